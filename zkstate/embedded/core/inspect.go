package core

import (
	"maps"
	"slices"
)

// Counts are the figures that the four-letter commands report.
type Counts struct {
	Zxid                                 int64
	Nodes, Ephemerals, Sessions          int
	Watches, WatchedPaths, WatchingConns int
	DataBytes                            int64
}

// Counts sums the state up. Nodes counts the root twice, as ZooKeeper's own count does.
func (m *Machine) Counts() Counts {
	c := Counts{
		Zxid: m.zxid, Nodes: len(m.tree.nodes) + 1, Sessions: len(m.sessions), DataBytes: m.tree.dataBytes,
		Watches: m.data.total(), WatchedPaths: len(m.data.byPath), WatchingConns: len(m.data.byConn),
	}
	//purecore:anyorder a sum
	for _, set := range m.tree.ephemerals {
		c.Ephemerals += len(set)
	}
	return c
}

// SessionInfo describes a session; DeadlineMs is on the clock of Now.Mono, Conn is zero while it is detached.
type SessionInfo struct {
	ID, TimeoutMs, DeadlineMs int64
	Conn                      Conn
	Ephemerals                []string
}

// Sessions lists the sessions in order of their id.
func (m *Machine) Sessions() []SessionInfo {
	out := make([]SessionInfo, 0, len(m.sessions))
	for _, id := range slices.Sorted(maps.Keys(m.sessions)) {
		s := m.sessions[id]
		out = append(out, SessionInfo{
			ID: id, TimeoutMs: s.timeoutMs, DeadlineMs: s.deadline, Conn: s.conn,
			Ephemerals: slices.Sorted(maps.Keys(m.tree.ephemerals[id])),
		})
	}
	return out
}

// WatchedPaths maps each path with a data watch to the sessions that hold one.
func (m *Machine) WatchedPaths() map[string][]int64 {
	out := map[string][]int64{}
	//purecore:anyorder fills a map
	for path, conns := range m.data.byPath {
		for _, id := range slices.Sorted(maps.Keys(conns)) {
			if c := m.conns[id]; c != nil {
				out[path] = append(out[path], c.session.id)
			}
		}
	}
	return out
}

// SessionOf is the session of a connection, zero if it has none.
func (m *Machine) SessionOf(id Conn) (sessionID, timeoutMs int64) {
	if c := m.conns[id]; c != nil {
		return c.session.id, c.session.timeoutMs
	}
	return 0, 0
}
