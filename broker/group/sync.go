package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// Sync answers with the member's assignment: at once in a stable group, else when
// the leader's sync has brought it and it is in the log.
func (c *Core) Sync(nowMs int64, req *SyncRequest, reply func(SyncResult)) {
	g := c.groups[req.Group]
	m, err := c.maySync(g, req)
	switch {
	case err != nil:
	case g.state == Empty:
		err = kerr.UnknownMemberID
	case g.state == PreparingRebalance:
		err = kerr.RebalanceInProgress
	}
	if err != nil {
		c.answer(func() { reply(SyncResult{Err: err}) })
		return
	}
	c.syncedBy(g, m.id)
	if g.state == Stable {
		r := SyncResult{ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment}
		c.answer(func() { reply(r) })
		c.heard(m, nowMs)
		return
	}
	c.synced(m, SyncResult{Err: kerr.RebalanceInProgress}) // one that it sent before
	m.syncing = reply
	if g.leader == m.id {
		c.assign(g, req.Assignments)
	}
}

func (c *Core) maySync(g *group, req *SyncRequest) (*member, error) {
	if g == nil {
		return nil, kerr.UnknownMemberID
	}
	m, err := g.known(req.MemberID, req.InstanceID)
	switch {
	case err != nil:
		return nil, err
	case req.Generation != g.generation:
		return nil, kerr.IllegalGeneration
	case req.ProtocolType != nil && !same(req.ProtocolType, g.protocolType),
		req.Protocol != nil && !same(req.Protocol, g.protocol):
		return nil, kerr.InconsistentGroupProtocol
	}
	return m, nil
}

func same(a, b *string) bool { return a != nil && b != nil && *a == *b }

// assign writes the leader's assignment and tells it when it is committed. Until
// then the group may have gone on to another generation: then it is for nobody.
func (c *Core) assign(g *group, list []Assignment) {
	assignments := make(map[string][]byte, len(list))
	for _, a := range list {
		assignments[a.MemberID] = a.Data
	}
	generation := g.generation
	c.storeGroup(g, assignments, func(nowMs int64, err error) {
		if g.state != CompletingRebalance || g.generation != generation {
			return
		}
		if err != nil {
			c.spread(g, nowMs, nil, err)
			c.rebalance(g, nowMs, "the assignment could not be written: "+err.Error())
			return
		}
		c.spread(g, nowMs, assignments, nil)
		g.enter(Stable, nowMs)
	})
}

// spread gives members their assignments, nothing where there is none, and
// answers their syncs. A session that ran out while one waited begins anew.
func (c *Core) spread(g *group, nowMs int64, assignments map[string][]byte, err error) {
	for _, m := range g.order {
		m.assignment = assignments[m.id]
		r := SyncResult{Err: err}
		if err == nil {
			r = SyncResult{ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment}
		}
		if c.synced(m, r) {
			c.heard(m, nowMs)
		}
	}
}

func (g *group) assignments() map[string][]byte {
	all := make(map[string][]byte, len(g.order))
	for _, m := range g.order {
		all[m.id] = m.assignment
	}
	return all
}
