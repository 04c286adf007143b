package core

import (
	"maps"
	"slices"

	"barnabas/zkstate/embedded/proto"
)

// Conn names a client's connection; the shell numbers them and never reuses a number.
type Conn uint64

// Now is the time of an event: Wall in milliseconds since 1970 (ctime, mtime), Mono in milliseconds of a clock that never
// goes back (deadlines). No correctness depends on Wall.
type Now struct{ Wall, Mono int64 }

// Options are the settings that decide answers. Durations are milliseconds.
type Options struct {
	MinSessionTimeoutMs, MaxSessionTimeoutMs int64
	ContainerCheckMs                         int64
	SuperDigest                              string // "user:base64(sha1)"; empty: no superuser
	ExtendedTypes                            bool   // TTL nodes allowed
	ReconfigEnabled                          bool
	PasswordSecret                           []byte // keys the passwords of sessions; must survive restarts
	FirstSessionID                           int64
}

// Send is one frame for a connection. Close asks to end the connection after the frame (or at once, without one).
type Send struct {
	Conn  Conn
	Frame []byte
	Close bool
}

// stallMs is the gap between two ticks past which the server itself, not its clients, is taken to have been away.
const stallMs = 1000

// Machine is the whole state of a server. It is not safe for concurrent use.
type Machine struct {
	opt       Options
	zxid      int64
	tree      *tree
	sessions  map[int64]*session
	nextID    int64
	conns     map[Conn]*conn
	data      *watchTable
	child     *watchTable
	lastTick  int64
	nextSweep int64
	out       []Send
	expired   []int64
	dirty     dirtySet
}

// conn is what the machine knows of an attached connection.
type conn struct {
	id      Conn
	session *session
	auth    []identity
}

// New builds a machine from what the disk held; a zero State is a fresh server.
func New(opt Options, st State, now Now) (*Machine, error) {
	m := &Machine{
		opt: opt, zxid: st.Zxid, sessions: map[int64]*session{}, nextID: opt.FirstSessionID, conns: map[Conn]*conn{},
		data: newWatchTable(), child: newWatchTable(), lastTick: now.Mono, nextSweep: now.Mono + opt.ContainerCheckMs,
		dirty: newDirtySet(),
	}
	var err error
	if len(st.Nodes) == 0 {
		m.tree = newTree()
		//purecore:anyorder fills a set
		for path := range m.tree.nodes {
			m.dirty.node(path, true)
		}
		m.dirty.zxid = true
	} else if m.tree, err = loadTree(st.Nodes); err != nil {
		return nil, err
	}
	for _, s := range st.Sessions {
		m.sessions[s.ID] = &session{id: s.ID, timeoutMs: s.TimeoutMs, deadline: now.Mono + s.TimeoutMs}
		if s.ID >= m.nextID {
			m.nextID = s.ID + 1
		}
	}
	m.removeOrphans(now)
	return m, m.Verify()
}

// removeOrphans removes ephemerals whose session is not there, which only a damaged store can hold.
func (m *Machine) removeOrphans(now Now) {
	for _, owner := range slices.Sorted(maps.Keys(m.tree.ephemerals)) {
		if _, live := m.sessions[owner]; !live {
			m.removeEphemerals(owner, now)
		}
	}
}

// TakeSends hands out what is to be sent, in order, and forgets it.
func (m *Machine) TakeSends() []Send {
	out := m.out
	m.out = nil
	return out
}

// TakeExpired hands out the sessions that ran out since it was last called.
func (m *Machine) TakeExpired() []int64 {
	out := m.expired
	m.expired = nil
	return out
}

// Zxid is the id of the last transaction.
func (m *Machine) Zxid() int64 { return m.zxid }

func (m *Machine) send(c Conn, frame []byte) { m.out = append(m.out, Send{Conn: c, Frame: frame}) }

// hangUp ends a connection after what was sent to it. Its session lives on until its deadline.
func (m *Machine) hangUp(c Conn) {
	m.out = append(m.out, Send{Conn: c, Close: true})
	m.Gone(c)
}

// Gone tells that a connection ended. Its watches go with it, its session does not.
func (m *Machine) Gone(id Conn) {
	c := m.conns[id]
	if c == nil {
		return
	}
	delete(m.conns, id)
	m.data.removeConn(id)
	m.child.removeConn(id)
	if c.session != nil && c.session.conn == id {
		c.session.conn = 0
	}
}

// Request handles one request after the connection's first. A nil req stands for a body that could not be decoded.
func (m *Machine) Request(now Now, id Conn, h proto.Header, req proto.Request) {
	c := m.conns[id]
	if c == nil {
		return
	}
	if h.Op == proto.OpAuth {
		m.authenticate(c, h, req)
		return
	}
	if !m.touch(c, now) {
		return
	}
	switch {
	case h.Op == proto.OpSASL:
		m.reply(c, h.Xid, proto.AuthFailed, nil)
		m.hangUp(id)
	case !proto.Known(h.Op):
		m.reply(c, h.Xid, proto.Unimplemented, nil)
		m.hangUp(id)
	case h.Op == proto.OpPing:
		m.reply(c, proto.XidPing, proto.OK, nil)
	case h.Op == proto.OpCloseSession:
		m.closeSession(c.session, now)
		m.reply(c, h.Xid, proto.OK, nil)
		m.hangUp(id)
	case isWrite(h.Op):
		m.write(now, c, h, req)
	case req == nil:
		m.reply(c, h.Xid, proto.MarshallingError, nil)
	default:
		m.read(c, h, req)
	}
}

// reply sends a header and, on success, a body.
func (m *Machine) reply(c *conn, xid int32, code proto.Code, body func([]byte) []byte) {
	f := proto.AppendReplyHeader(proto.Frame(), xid, m.zxid, code)
	if code == proto.OK && body != nil {
		f = body(f)
	}
	m.send(c.id, proto.Seal(f))
}

// Tick expires sessions, and now and then removes empty containers and outlived TTL nodes.
//
// A gap between ticks means that this process did not run (stopped, starved, waiting for its disk). Its clients could not be
// heard during it, so the gap is not counted against them.
func (m *Machine) Tick(now Now) {
	if gap := now.Mono - m.lastTick; gap > stallMs {
		//purecore:anyorder each by itself
		for _, s := range m.sessions {
			s.deadline += gap
		}
	}
	m.lastTick = now.Mono
	for _, id := range slices.Sorted(maps.Keys(m.sessions)) {
		if s := m.sessions[id]; now.Mono >= s.deadline {
			m.expire(s, now)
		}
	}
	if now.Mono >= m.nextSweep {
		m.nextSweep = now.Mono + m.opt.ContainerCheckMs
		m.sweep(now)
	}
}
