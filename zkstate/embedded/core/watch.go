package core

import (
	"slices"

	"barnabas/zkstate/embedded/proto"
)

// watchMode is a set: one connection may hold several kinds of watch on one path.
type watchMode uint8

const (
	watchOnce watchMode = 1 << iota
	watchPersistent
	watchRecursive
)

// watchTable holds the watches of one sort: on data and existence, or on children.
type watchTable struct {
	byPath    map[string]map[Conn]watchMode
	byConn    map[Conn]map[string]struct{}
	recursive int // watches with watchRecursive: without any, no ancestor needs to be asked
}

func newWatchTable() *watchTable {
	return &watchTable{byPath: map[string]map[Conn]watchMode{}, byConn: map[Conn]map[string]struct{}{}}
}

func (w *watchTable) add(path string, c Conn, mode watchMode) {
	if w.byPath[path] == nil {
		w.byPath[path] = map[Conn]watchMode{}
	}
	if w.byConn[c] == nil {
		w.byConn[c] = map[string]struct{}{}
	}
	w.set(path, c, w.byPath[path][c]|mode)
}

// set stores what is left of a watch, and forgets it when that is nothing.
func (w *watchTable) set(path string, c Conn, mode watchMode) {
	old := w.byPath[path][c]
	if mode&watchRecursive != 0 {
		w.recursive++
	}
	if old&watchRecursive != 0 {
		w.recursive--
	}
	if mode != 0 {
		w.byPath[path][c] = mode
		w.byConn[c][path] = struct{}{}
		return
	}
	delete(w.byPath[path], c)
	if len(w.byPath[path]) == 0 {
		delete(w.byPath, path)
	}
	delete(w.byConn[c], path)
	if len(w.byConn[c]) == 0 {
		delete(w.byConn, c)
	}
}

func (w *watchTable) remove(path string, c Conn) bool {
	if w.byPath[path][c] == 0 {
		return false
	}
	w.set(path, c, 0)
	return true
}

func (w *watchTable) removeConn(c Conn) {
	//purecore:anyorder each is removed
	for path := range w.byConn[c] {
		w.set(path, c, 0)
	}
}

// contains tells whether c is told of what happens to path.
func (w *watchTable) contains(path string, c Conn) bool {
	if w.byPath[path][c] != 0 {
		return true
	}
	for p := path; w.recursive > 0 && p != rootPath; {
		p = parentOf(p)
		if w.byPath[p][c]&watchRecursive != 0 {
			return true
		}
	}
	return false
}

// fire takes the connections that an event on path concerns, in order of their number, and uses up watches that serve once.
// A recursive watch sees no child events: it gets the creation or removal itself.
func (w *watchTable) fire(path string, event proto.EventType) []Conn {
	var told []Conn
	//purecore:anyorder sorted below
	for c, mode := range w.byPath[path] {
		if mode&(watchOnce|watchPersistent) != 0 || event != proto.NodeChildrenChanged {
			told = append(told, c)
		}
	}
	for _, c := range told {
		w.set(path, c, w.byPath[path][c]&^watchOnce)
	}
	if event != proto.NodeChildrenChanged {
		for p := path; w.recursive > 0 && p != rootPath; {
			p = parentOf(p)
			//purecore:anyorder sorted below
			for c, mode := range w.byPath[p] {
				if mode&watchRecursive != 0 {
					told = append(told, c)
				}
			}
		}
	}
	slices.Sort(told)
	return slices.Compact(told)
}

// trigger tells the watchers of a change. Who watches a node's data and its children hears once of its removal.
func (m *Machine) trigger(e change) {
	var told []Conn
	switch e.event {
	case proto.NodeChildrenChanged:
		told = m.child.fire(e.path, e.event)
	case proto.NodeDeleted:
		told = append(m.data.fire(e.path, e.event), m.child.fire(e.path, e.event)...)
		slices.Sort(told)
		told = slices.Compact(told)
	default:
		told = m.data.fire(e.path, e.event)
	}
	for _, id := range told {
		// A watch outlives the right to read; its event does not (CVE-2024-23944).
		if c := m.conns[id]; c != nil && m.permits(c, e.acl, proto.PermRead) {
			m.send(id, proto.Notification(e.event, e.path))
		}
	}
}

// setWatches takes over the watches of a client that was away, and tells at once what it missed since RelativeZxid.
func (m *Machine) setWatches(c *conn, r *proto.SetWatchesRequest) {
	tell := func(event proto.EventType, path string) { m.send(c.id, proto.Notification(event, path)) }
	for _, path := range r.Data {
		switch n := m.tree.find(path); {
		case n == nil:
			tell(proto.NodeDeleted, path)
		case n.meta.Mzxid > r.RelativeZxid:
			tell(proto.NodeDataChanged, path)
		default:
			m.data.add(path, c.id, watchOnce)
		}
	}
	for _, path := range r.Exist {
		if m.tree.find(path) != nil {
			tell(proto.NodeCreated, path)
		} else {
			m.data.add(path, c.id, watchOnce)
		}
	}
	for _, path := range r.Child {
		switch n := m.tree.find(path); {
		case n == nil:
			tell(proto.NodeDeleted, path)
		case n.meta.Pzxid > r.RelativeZxid:
			tell(proto.NodeChildrenChanged, path)
		default:
			m.child.add(path, c.id, watchOnce)
		}
	}
	for _, path := range r.Persistent {
		m.addBoth(path, c.id, watchPersistent)
	}
	for _, path := range r.PersistentTree {
		m.addBoth(path, c.id, watchRecursive)
	}
}

func (m *Machine) addBoth(path string, c Conn, mode watchMode) {
	m.data.add(path, c, mode)
	m.child.add(path, c, mode)
}

// The kinds of watcher that removeWatches and checkWatches name.
const (
	watcherChildren = 1
	watcherData     = 2
	watcherAny      = 3
)

func (m *Machine) watchRequest(c *conn, op proto.Op, r *proto.WatchRequest) (body, proto.Code) {
	if op == proto.OpAddWatch {
		modes := []watchMode{watchPersistent, watchRecursive}
		if r.Mode < 0 || int(r.Mode) >= len(modes) {
			return nil, proto.MarshallingError
		}
		m.addBoth(r.Path, c.id, modes[r.Mode])
		return func(b []byte) []byte { return proto.AppendInt32(b, 0) }, proto.OK
	}
	if r.Mode < watcherChildren || r.Mode > watcherAny {
		return nil, proto.MarshallingError
	}
	found := false
	for _, w := range []struct {
		kind  int32
		table *watchTable
	}{{watcherChildren, m.child}, {watcherData, m.data}} {
		if r.Mode != watcherAny && r.Mode != w.kind {
			continue
		}
		if op == proto.OpRemoveWatches {
			found = w.table.remove(r.Path, c.id) || found
		} else {
			found = w.table.contains(r.Path, c.id) || found
		}
	}
	if !found {
		return nil, proto.NoWatcher
	}
	return nil, proto.OK
}

func (w *watchTable) total() int {
	n := 0
	//purecore:anyorder a sum
	for _, paths := range w.byConn {
		n += len(paths)
	}
	return n
}
