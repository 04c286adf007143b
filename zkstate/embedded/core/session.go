package core

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"maps"
	"slices"

	"barnabas/zkstate/embedded/proto"
)

// session is a client's lease. It is attached to at most one connection, and outlives it until deadline.
type session struct {
	id        int64
	timeoutMs int64
	deadline  int64 // Now.Mono
	conn      Conn  // zero: detached
}

// password proves to a server that was restarted that a client owns a session: it is computed, not stored.
func (m *Machine) password(id int64) []byte {
	mac := hmac.New(sha256.New, m.opt.PasswordSecret)
	_ = binary.Write(mac, binary.BigEndian, id)
	return mac.Sum(nil)[:16]
}

// Connect handles the first frame of a connection. ip is the client's address without port.
//
// A client that has seen a later zxid than ours is hung up on without an answer: this tree is older than what it was told.
func (m *Machine) Connect(now Now, id Conn, ip string, req proto.ConnectRequest) {
	if req.LastZxidSeen > m.zxid {
		m.out = append(m.out, Send{Conn: id, Close: true})
		return
	}
	timeout := min(max(int64(req.TimeoutMs), m.opt.MinSessionTimeoutMs), m.opt.MaxSessionTimeoutMs)
	c := &conn{id: id, auth: []identity{{"ip", ip}}}
	if req.SessionID == 0 {
		m.zxid++
		m.dirty.zxid = true
		c.session = &session{id: m.nextID}
		m.nextID++
		m.sessions[c.session.id] = c.session
	} else {
		// The newest connection owns the session, and even a wrong password ends the older one, as in ZooKeeper.
		s := m.sessions[req.SessionID]
		if s != nil && s.conn != 0 {
			m.hangUp(s.conn)
		}
		if s == nil || subtle.ConstantTimeCompare(m.password(s.id), req.Password) != 1 {
			m.send(id, proto.ConnectResponse(0, 0, make([]byte, 16), req.HasReadOnly))
			m.out = append(m.out, Send{Conn: id, Close: true})
			return
		}
		c.session = s
	}
	c.session.conn = id
	c.session.deadline = now.Mono + timeout
	if c.session.timeoutMs != timeout {
		c.session.timeoutMs = timeout
		m.dirty.session(c.session.id)
	}
	m.conns[id] = c
	m.send(id, proto.ConnectResponse(int32(timeout), c.session.id, m.password(c.session.id), req.HasReadOnly))
}

// touch prolongs the session of a connection that was heard of; it reports whether there is one.
func (m *Machine) touch(c *conn, now Now) bool {
	if m.sessions[c.session.id] != c.session {
		return false
	}
	c.session.deadline = now.Mono + c.session.timeoutMs
	return true
}

// closeSession ends a session: its ephemerals go, under one zxid.
func (m *Machine) closeSession(s *session, now Now) {
	delete(m.sessions, s.id)
	m.dirty.session(s.id)
	m.removeEphemerals(s.id, now)
}

func (m *Machine) removeEphemerals(owner int64, now Now) {
	t := m.begin(now, nil)
	for _, path := range slices.Sorted(maps.Keys(m.tree.ephemerals[owner])) {
		t.remove(path)
	}
	t.commit()
}

// expire ends a session that was not heard of in time, and hangs up on its connection.
func (m *Machine) expire(s *session, now Now) {
	m.expired = append(m.expired, s.id)
	m.closeSession(s, now)
	if s.conn != 0 {
		m.hangUp(s.conn)
	}
}
