package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// How a rebalance goes: prepareRebalance calls the members, whose joins wait;
// when all have joined, or the longest rebalance timeout of them is over, or the
// initial delay of a group that was empty, completeJoin drops the dynamic members
// that did not come and begins a generation. Its leader's sync then brings the
// assignment (sync.go). Members that do not ask for theirs within the same
// timeout are dropped, by another rebalance.

// rebalance begins one unless one is being prepared.
func (c *Core) rebalance(g *group, nowMs int64, reason string) {
	switch g.state {
	case Stable, CompletingRebalance, Empty:
		c.prepareRebalance(g, nowMs, reason)
	}
}

func (c *Core) prepareRebalance(g *group, nowMs int64, reason string) {
	if g.state == CompletingRebalance {
		c.spread(g, nowMs, nil, kerr.RebalanceInProgress)
	}
	c.allSynced(g)
	waitMs := g.rebalanceTimeoutMs()
	g.initial = initialDelay{}
	if g.state == Empty {
		delayMs := c.cfg.InitialRebalanceDelayMs
		g.initial = initialDelay{on: true, endMs: nowMs + max(waitMs, delayMs)}
		waitMs = delayMs
	}
	c.remark("group %q: rebalance of generation %d, %d members: %s", g.name, g.generation, len(g.members), reason)
	g.enter(PreparingRebalance, nowMs)
	if g.rebalance == nil {
		g.rebalance = newTimer(func(nowMs int64) { c.waitedForJoins(g, nowMs) })
	}
	c.timers.cancel(g.rebalance)
	c.timers.set(g.rebalance, nowMs+waitMs)
	c.completeIfJoined(g, nowMs)
}

// completeIfJoined ends the waiting as soon as all have joined. An initial delay
// runs its time.
func (c *Core) completeIfJoined(g *group, nowMs int64) {
	if g.state == PreparingRebalance && !g.initial.on && g.allJoined() {
		c.completeJoin(g, nowMs)
	}
}

// prolong lets an initial delay begin anew: another member has come.
func (c *Core) prolong(g *group, nowMs int64) {
	if g.initial.on {
		c.timers.set(g.rebalance, min(nowMs+c.cfg.InitialRebalanceDelayMs, g.initial.endMs))
	}
}

func (c *Core) waitedForJoins(g *group, nowMs int64) {
	if g.state == PreparingRebalance {
		c.completeJoin(g, nowMs)
	}
}

// completeJoin begins the next generation with those who have joined, and with
// the static members, who may be away for as long as their session lasts.
func (c *Core) completeJoin(g *group, nowMs int64) {
	c.timers.cancel(g.rebalance)
	for _, m := range append([]*member(nil), g.order...) {
		if m.joining == nil && !m.isStatic() {
			c.remark("group %q: member %s did not join again and is removed", g.name, m.id)
			c.remove(g, m)
		}
	}
	if !g.electJoined() && len(g.members) > 0 {
		// Only static members are left, all away. Their sessions end this.
		c.remark("group %q: no member joined", g.name)
		g.initial = initialDelay{}
		c.timers.set(g.rebalance, nowMs+max(g.rebalanceTimeoutMs(), 1000))
		return
	}
	g.initial = initialDelay{}
	g.nextGeneration(nowMs)
	if g.state == Empty {
		c.remark("group %q: generation %d is empty", g.name, g.generation)
		c.storeGroup(g, nil, func(_ int64, err error) {
			if err != nil { // the members of the generation before come back at a failover, and time out
				c.remark("group %q: its emptiness is not in the log: %v", g.name, err)
			}
		})
		return
	}
	c.remark("group %q: generation %d has %d members", g.name, g.generation, len(g.members))
	for _, m := range g.order {
		c.joined(g, m, g.generationOf(m))
		c.heard(m, nowMs)
		m.fresh = false
		g.unsynced[m.id] = true
	}
	if g.syncs == nil {
		g.syncs = newTimer(func(nowMs int64) { c.waitedForSyncs(g, nowMs) })
	}
	c.timers.set(g.syncs, nowMs+g.rebalanceTimeoutMs())
}

// waitedForSyncs drops members that joined the generation but never asked for
// their assignment.
func (c *Core) waitedForSyncs(g *group, nowMs int64) {
	if g.state != CompletingRebalance && g.state != Stable || len(g.unsynced) == 0 {
		return
	}
	for _, m := range append([]*member(nil), g.order...) {
		if g.unsynced[m.id] {
			c.remark("group %q: member %s did not ask for its assignment and is removed", g.name, m.id)
			c.remove(g, m)
		}
	}
	c.prepareRebalance(g, nowMs, "members without assignment are gone")
}

func (c *Core) allSynced(g *group) {
	clear(g.unsynced)
	c.timers.cancel(g.syncs)
}

func (c *Core) syncedBy(g *group, id string) {
	delete(g.unsynced, id)
	if len(g.unsynced) == 0 {
		c.timers.cancel(g.syncs)
	}
}

// watch makes the timer of a member's session.
func (c *Core) watch(g *group, m *member) {
	m.session = newTimer(func(nowMs int64) {
		if m.alive() {
			return // it is set again when the member is answered
		}
		c.remark("group %q: session of member %s is over", g.name, m.id)
		c.leave(g, m, nowMs, "member "+m.id+" is silent")
	})
}

// heard prolongs a member's session.
func (c *Core) heard(m *member, nowMs int64) {
	c.timers.set(m.session, nowMs+int64(m.sessionTimeoutMs))
}

// leave takes a member out and rebalances the rest.
func (c *Core) leave(g *group, m *member, nowMs int64, reason string) {
	c.remove(g, m)
	c.rebalance(g, nowMs, reason)
	c.completeIfJoined(g, nowMs)
}

// remove takes a member out and answers what it waits for: UNKNOWN_MEMBER_ID, so
// that it joins anew if it is there after all.
func (c *Core) remove(g *group, m *member) {
	c.joined(g, m, JoinResult{Err: kerr.UnknownMemberID, Generation: NoGeneration})
	c.synced(m, SyncResult{Err: kerr.UnknownMemberID})
	c.timers.cancel(m.session)
	g.remove(m)
	if len(g.unsynced) == 0 {
		c.timers.cancel(g.syncs)
	}
}

// drop takes out whoever has an id, member or pending.
func (c *Core) drop(g *group, id string) {
	if m := g.members[id]; m != nil {
		c.remove(g, m)
	}
	if t := g.pending[id]; t != nil {
		c.timers.cancel(t)
		delete(g.pending, id)
	}
}
