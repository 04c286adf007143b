package simulation

import (
	"slices"
	"time"

	"barnabas/zkstate"
)

const (
	zkServers      = 3
	sessionTimeout = 2 * time.Second
)

// ensemble is the servers, the log between them, and the sessions.
type ensemble struct {
	w        *world
	leader   *tree
	log      []transaction
	servers  []*server
	sessions map[int64]*session
	lastID   int64
	// committed is called for every transaction, before anybody sees it; author is the session that wrote it.
	committed func(author int64, t transaction, before *tree)
	maxLag    time.Duration
	// sabotage, for tests of the simulation itself.
	ignoreFence bool
}

type session struct {
	id     int64
	client *zkClient // who holds it now
	// silent counts the times that the session lost touch; an expiry is due only for the silence in which it was set.
	silent  int
	expired bool
}

// server applies the log in order and in its own time.
type server struct {
	e       *ensemble
	tree    *tree
	applied int // entries of the log
	waiting []func() bool
	// data and children are the watches, by path, in the order in which they were left.
	data, children map[string][]*zkClient
}

func newEnsemble(w *world) *ensemble {
	e := &ensemble{w: w, leader: newTree(), sessions: map[int64]*session{}, lastID: 100, maxLag: 5 * time.Millisecond}
	for range zkServers {
		e.servers = append(e.servers, &server{e: e, tree: newTree(), data: map[string][]*zkClient{}, children: map[string][]*zkClient{}})
	}
	return e
}

// commit carries out operations of a session; a transaction without changes is none.
func (e *ensemble) commit(author int64, ops []zkstate.Op) ([]zkstate.Result, error) {
	zxid := e.leader.zxid + 1
	results, changes, err := e.leader.decide(zxid, author, ops)
	if err != nil || len(changes) == 0 {
		return results, err
	}
	e.append(author, transaction{zxid, changes})
	return results, nil
}

func (e *ensemble) append(author int64, t transaction) {
	e.log = append(e.log, t)
	if e.committed != nil {
		e.committed(author, t, e.leader)
	}
	for _, s := range e.servers {
		e.w.in(e.w.between(0, e.maxLag), s.catchUp)
	}
}

// catchUp applies one more entry of the log. One call is planned per entry and server, so every entry is applied in
// the end, in order, though its own call may come before those of earlier entries.
func (s *server) catchUp() {
	if s.applied == len(s.e.log) {
		return
	}
	t := s.e.log[s.applied]
	s.applied++
	for _, c := range t.changes {
		s.tree.apply(t.zxid, c)
		s.tree.zxid = t.zxid
		s.fire(c)
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(ready func() bool) bool { return ready() })
}

// when calls do once the server has applied up to zxid.
func (s *server) when(zxid int64, do func()) {
	if s.tree.zxid >= zxid {
		do()
		return
	}
	s.waiting = append(s.waiting, func() bool {
		if s.tree.zxid < zxid {
			return false
		}
		do()
		return true
	})
}

func (s *server) fire(c change) {
	parent, _ := parentOf(c.path)
	s.notify(s.data, c.path, false)
	switch c.kind {
	case zkstate.OpCreate:
		s.notify(s.children, parent, true)
	case zkstate.OpDelete:
		s.notify(s.children, c.path, true)
		s.notify(s.children, parent, true)
	}
}

func (s *server) notify(watches map[string][]*zkClient, path string, children bool) {
	watchers := watches[path]
	delete(watches, path)
	for _, c := range watchers {
		c.watchFired(s, path, children)
	}
}

// leave puts a watch on a node.
func (s *server) leave(c *zkClient, op zkstate.Op) {
	watches := s.data
	if op.Kind == zkstate.OpChildren {
		watches = s.children
	}
	if !slices.Contains(watches[op.Path], c) {
		watches[op.Path] = append(watches[op.Path], c)
	}
}

func (s *server) forget(c *zkClient) {
	for _, watches := range []map[string][]*zkClient{s.data, s.children} {
		for path := range watches {
			watches[path] = slices.DeleteFunc(watches[path], func(other *zkClient) bool { return other == c })
		}
	}
}

func (e *ensemble) open(c *zkClient) *session {
	e.lastID++
	s := &session{id: e.lastID, client: c}
	e.sessions[s.id] = s
	return s
}

// lostTouch starts the timer of a session that nothing is heard of; heard stops it.
func (e *ensemble) lostTouch(s *session) {
	s.silent++
	mine := s.silent
	e.w.in(sessionTimeout+e.w.between(0, sessionTimeout/4), func() {
		if s.silent == mine {
			e.expire(s)
		}
	})
}

func (e *ensemble) heard(s *session) { s.silent++ }

// expire ends a session: its ephemeral nodes go in one transaction.
func (e *ensemble) expire(s *session) {
	if s.expired {
		return
	}
	s.expired = true
	e.w.tell("zookeeper: session %d expires", s.id)
	var paths []string
	for path, n := range e.leader.nodes {
		if n.owner == s.id {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	if len(paths) == 0 {
		return
	}
	t := transaction{zxid: e.leader.zxid + 1}
	for _, path := range paths {
		t.changes = append(t.changes, change{kind: zkstate.OpDelete, path: path})
	}
	for _, c := range t.changes {
		e.leader.apply(t.zxid, c)
	}
	e.leader.zxid = t.zxid
	e.append(0, t)
}
