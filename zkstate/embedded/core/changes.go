package core

import (
	"maps"
	"slices"

	"barnabas/zkstate/embedded/proto"
)

// State is everything that outlives the process.
type State struct {
	Zxid     int64
	Nodes    []NodeRecord
	Sessions []SessionRecord
}

// NodeRecord is one node on disk. In Changes, HasData is false when only Meta or ACL changed.
type NodeRecord struct {
	Path    string
	Meta    Meta
	ACL     []proto.ACL
	Data    []byte // nil: null
	HasData bool
}

// SessionRecord is one session on disk.
type SessionRecord struct {
	ID        int64
	TimeoutMs int64
}

// Changes is what must be on disk before the answers are sent; all of it together or none of it.
type Changes struct {
	Zxid     int64
	Nodes    []NodeRecord
	Removed  []string
	Sessions []SessionRecord
	Closed   []int64
}

// dirtySet remembers what changed, not how: a batch of many writes to one node costs one.
type dirtySet struct {
	nodes    map[string]bool // value: the data too
	sessions map[int64]struct{}
	zxid     bool
}

func newDirtySet() dirtySet {
	return dirtySet{nodes: map[string]bool{}, sessions: map[int64]struct{}{}}
}

func (d *dirtySet) node(path string, data bool) { d.nodes[path] = d.nodes[path] || data }
func (d *dirtySet) session(id int64)            { d.sessions[id] = struct{}{} }

// TakeChanges hands out what changed since it was last called; ok is false when nothing did.
func (m *Machine) TakeChanges() (ch Changes, ok bool) {
	if !m.dirty.zxid && len(m.dirty.nodes) == 0 && len(m.dirty.sessions) == 0 {
		return Changes{}, false
	}
	ch.Zxid = m.zxid
	for _, path := range slices.Sorted(maps.Keys(m.dirty.nodes)) {
		n := m.tree.nodes[path]
		if n == nil {
			ch.Removed = append(ch.Removed, path)
			continue
		}
		ch.Nodes = append(ch.Nodes, NodeRecord{Path: path, Meta: n.meta, ACL: n.acl, Data: n.data, HasData: m.dirty.nodes[path]})
	}
	for _, id := range slices.Sorted(maps.Keys(m.dirty.sessions)) {
		if s := m.sessions[id]; s != nil {
			ch.Sessions = append(ch.Sessions, SessionRecord{ID: id, TimeoutMs: s.timeoutMs})
		} else {
			ch.Closed = append(ch.Closed, id)
		}
	}
	m.dirty = newDirtySet()
	return ch, true
}
