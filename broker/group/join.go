package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// Join answers when the generation begins that the member is part of, or at once
// with an error. MEMBER_ID_REQUIRED carries an id to join again with.
func (c *Core) Join(nowMs int64, req *JoinRequest, reply func(JoinResult)) {
	g := c.groups[req.Group]
	if g == nil {
		if req.MemberID != "" {
			c.refuseJoin(reply, req.MemberID, kerr.UnknownMemberID)
			return
		}
		g = newGroup(req.Group, nowMs)
		c.groups[g.name] = g
	}
	switch {
	case !c.hasRoom(g, req.MemberID):
		c.drop(g, req.MemberID)
		c.refuseJoin(reply, "", kerr.GroupMaxSizeReached)
	case !g.speaks(req.ProtocolType, req.Protocols):
		c.refuseJoin(reply, req.MemberID, kerr.InconsistentGroupProtocol)
	case req.MemberID == "":
		c.joinNew(nowMs, g, req, reply)
	case g.pending[req.MemberID] != nil:
		c.joinPending(nowMs, g, req, reply)
	default:
		c.joinAgain(nowMs, g, req, reply)
	}
	c.completeIfJoined(g, nowMs)
}

func (c *Core) refuseJoin(reply func(JoinResult), memberID string, err error) {
	c.answer(func() { reply(JoinResult{Err: err, Generation: NoGeneration, MemberID: memberID}) })
}

// hasRoom tells whether the group takes one more, or this one again. During a
// rebalance it is who has joined that counts: a group that is too large, since
// the limit was lowered, sheds those who come last.
func (c *Core) hasRoom(g *group, memberID string) bool {
	m := g.members[memberID]
	switch g.state {
	case PreparingRebalance:
		return m != nil && m.joining != nil || g.joining < c.cfg.MaxSize
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < c.cfg.MaxSize
	}
	return true
}

// joinNew is a join without a member id.
func (c *Core) joinNew(nowMs int64, g *group, req *JoinRequest, reply func(JoinResult)) {
	if req.InstanceID != nil {
		id := *req.InstanceID + "-" + c.cfg.NewID()
		if old, taken := g.static[*req.InstanceID]; taken {
			c.remark("group %q: static member %q comes again as %s, %s is fenced", g.name, *req.InstanceID, id, old)
			c.replaceStatic(nowMs, g, g.members[old], id, req, reply)
			return
		}
		c.addMember(nowMs, g, id, req, reply)
		return
	}
	id := req.ClientID + "-" + c.cfg.NewID()
	if !req.RequireMemberID {
		c.addMember(nowMs, g, id, req, reply)
		return
	}
	t := newTimer(func(nowMs int64) {
		delete(g.pending, id)
		c.completeIfJoined(g, nowMs)
	})
	g.pending[id] = t
	c.timers.set(t, nowMs+int64(req.SessionTimeoutMs))
	c.refuseJoin(reply, id, kerr.MemberIDRequired)
}

// joinPending is the second step of a dynamic member (KIP-394).
func (c *Core) joinPending(nowMs int64, g *group, req *JoinRequest, reply func(JoinResult)) {
	if req.InstanceID != nil { // such ids are not given to static members; Kafka stumbles over it
		c.refuseJoin(reply, req.MemberID, kerr.UnknownServerError)
		return
	}
	c.addMember(nowMs, g, req.MemberID, req, reply)
}

func (c *Core) addMember(nowMs int64, g *group, id string, req *JoinRequest, reply func(JoinResult)) {
	if t := g.pending[id]; t != nil {
		c.timers.cancel(t)
		delete(g.pending, id)
	}
	m := &member{
		id: id, instanceID: req.InstanceID, clientID: req.ClientID, clientHost: req.ClientHost,
		rebalanceTimeoutMs: req.RebalanceTimeoutMs, sessionTimeoutMs: req.SessionTimeoutMs,
		protocols: req.Protocols, fresh: true, joining: reply,
	}
	c.watch(g, m)
	if g.state == PreparingRebalance && g.generation == 0 {
		c.prolong(g, nowMs)
	}
	g.add(m, req.ProtocolType)
	c.timers.set(m.session, nowMs+newMemberJoinTimeoutMs)
	c.rebalance(g, nowMs, "member "+id+" joins; it says: "+req.Reason)
}

// joinAgain is a join of somebody who says that it is a member.
func (c *Core) joinAgain(nowMs int64, g *group, req *JoinRequest, reply func(JoinResult)) {
	m, err := g.known(req.MemberID, req.InstanceID)
	if err != nil {
		c.refuseJoin(reply, req.MemberID, err)
		return
	}
	switch same := m.matches(req.Protocols); {
	case g.state == CompletingRebalance && same:
		// It did not get the answer to its first join of this generation.
		c.tellGeneration(g, m, reply)
	case g.state == Stable && same && g.leader != m.id:
		// Nothing changed. The leader joins to have partitions assigned anew.
		c.tellGeneration(g, m, reply)
	case g.state == Empty || g.state == Dead:
		c.refuseJoin(reply, req.MemberID, kerr.UnknownMemberID)
	default:
		g.update(m, req.Protocols, req.RebalanceTimeoutMs, req.SessionTimeoutMs)
		c.awaitJoin(g, m, reply)
		c.rebalance(g, nowMs, "member "+m.id+" joins again; it says: "+req.Reason)
	}
}

// generationOf is the result of a join for one member of the present generation.
func (g *group) generationOf(m *member) JoinResult {
	r := JoinResult{Generation: g.generation, ProtocolType: g.protocolType, Protocol: g.protocol, LeaderID: g.leader, MemberID: m.id}
	if g.leader == m.id {
		r.Members = g.roster()
	}
	return r
}

func (c *Core) tellGeneration(g *group, m *member, reply func(JoinResult)) {
	r := g.generationOf(m)
	c.answer(func() { reply(r) })
}

// replaceStatic gives the place of a static member to its next incarnation. In a
// stable group that needs no rebalance, but it must be in the log before the new
// id is told: otherwise a coordinator that loads the group afterwards knows the
// old id alone, and fences the living member (KAFKA-8500).
func (c *Core) replaceStatic(nowMs int64, g *group, m *member, id string, req *JoinRequest, reply func(JoinResult)) {
	was := *m
	leader := g.leader
	c.rename(g, m, id)
	g.update(m, req.Protocols, req.RebalanceTimeoutMs, req.SessionTimeoutMs)
	c.awaitJoin(g, m, reply)
	c.heard(m, nowMs)
	switch g.state {
	case CompletingRebalance:
		// The leader may be assigning to the old id already.
		c.prepareRebalance(g, nowMs, "static member "+*m.instanceID+" came again before the assignment")
	case Stable:
		if g.protocol == nil || g.choose() != *g.protocol {
			c.prepareRebalance(g, nowMs, "static member "+*m.instanceID+" came again and changes the protocol")
			return
		}
		c.storeGroup(g, g.assignments(), func(nowMs int64, err error) {
			c.replacedStatic(nowMs, g, m, &was, leader, id, req.CanSkipAssignment, err)
		})
	}
}

// replacedStatic answers when the new id is in the log, or takes it back. Before
// version 9 the answer names the old leader, so that a leader that came again
// does not assign: nobody would be told.
func (c *Core) replacedStatic(nowMs int64, g *group, m, was *member, leader, id string, canSkip bool, err error) {
	if m.joining == nil || g.members[id] != m || g.state != Stable {
		return // somebody else came in between, or a rebalance answers
	}
	if err != nil {
		c.remark("group %q: static member %q keeps its old id: %v", g.name, *m.instanceID, err)
		r := JoinResult{Err: err, Generation: g.generation, ProtocolType: g.protocolType, Protocol: g.protocol, LeaderID: leader}
		c.joined(g, m, r)
		g.update(m, was.protocols, was.rebalanceTimeoutMs, was.sessionTimeoutMs)
		c.rename(g, m, was.id)
		c.heard(m, nowMs)
		return
	}
	r := g.generationOf(m)
	if canSkip {
		r.SkipAssignment = g.leader == m.id
	} else {
		r.Members, r.LeaderID = nil, leader
	}
	c.joined(g, m, r)
}

// rename gives a static member another id, and fences the one who had it.
func (c *Core) rename(g *group, m *member, id string) {
	old := m.id
	c.joined(g, m, JoinResult{Err: kerr.FencedInstanceID, Generation: NoGeneration, MemberID: old})
	c.synced(m, SyncResult{Err: kerr.FencedInstanceID})
	delete(g.members, old)
	m.id = id
	g.members[id] = m
	g.static[*m.instanceID] = id
	if g.leader == old {
		g.leader = id
	}
	if g.unsynced[old] {
		delete(g.unsynced, old)
		g.unsynced[id] = true
	}
}
