package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// Heartbeat prolongs a member's session. REBALANCE_IN_PROGRESS calls it to join.
func (c *Core) Heartbeat(nowMs int64, req *HeartbeatRequest, reply func(error)) {
	err := c.heartbeat(nowMs, req)
	c.answer(func() { reply(err) })
}

func (c *Core) heartbeat(nowMs int64, req *HeartbeatRequest) error {
	g := c.groups[req.Group]
	if g == nil {
		return kerr.UnknownMemberID
	}
	m, err := g.known(req.MemberID, req.InstanceID)
	switch {
	case err != nil:
		return err
	case req.Generation != g.generation:
		return kerr.IllegalGeneration
	}
	c.heard(m, nowMs)
	if g.state == PreparingRebalance {
		return kerr.RebalanceInProgress
	}
	return nil
}

// Leave takes members out.
func (c *Core) Leave(nowMs int64, req *LeaveRequest, reply func(LeaveResult)) {
	r := LeaveResult{Members: make([]error, len(req.Members))}
	g := c.groups[req.Group]
	for i := range req.Members {
		if g == nil {
			r.Members[i] = kerr.UnknownMemberID
		} else {
			r.Members[i] = c.leaveOne(g, nowMs, &req.Members[i])
		}
	}
	c.answer(func() { reply(r) })
}

func (c *Core) leaveOne(g *group, nowMs int64, l *LeavingMember) error {
	id := l.MemberID
	switch {
	case id == "":
		if l.InstanceID == nil || g.static[*l.InstanceID] == "" {
			return kerr.UnknownMemberID
		}
		id = g.static[*l.InstanceID]
	case g.pending[id] != nil:
		c.drop(g, id)
		c.completeIfJoined(g, nowMs)
		return nil
	}
	m, err := g.known(id, l.InstanceID)
	if err != nil {
		return err
	}
	c.leave(g, m, nowMs, "member "+id+" leaves; it says: "+l.Reason)
	return nil
}
