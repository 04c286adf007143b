package group

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
)

// CoreConfig is what a Core needs to know.
type CoreConfig struct {
	InitialRebalanceDelayMs int64 // group.initial.rebalance.delay.ms
	MaxSize                 int   // group.max.size
	OffsetMetadataMaxBytes  int   // offset.metadata.max.bytes
	OffsetsRetentionMs      int64 // offsets.retention.minutes

	Format Format // of the records that are written

	// NewID gives the part of a member id that makes it unique.
	NewID func() string
}

// newMemberJoinTimeoutMs ends the join of a member that does not know its id yet
// and may have gone long since (KAFKA-7610).
const newMemberJoinTimeoutMs = 5 * 60 * 1000

// Core is all groups of one partition of the offsets topic, without I/O. Its
// methods are called one at a time, with the time, which may not go back. They
// answer through the functions given to them, not at once, but by leaving the
// calls in what Take returns.
type Core struct {
	cfg    CoreConfig
	groups map[string]*group
	open   map[int64][]string // of producers whose transaction has not ended: all the groups that have commits of it, and maybe others
	timers timers
	out    coordinator.Effects
}

// NewCore returns a Core without groups.
func NewCore(cfg CoreConfig) *Core {
	return &Core{cfg: cfg, groups: map[string]*group{}, open: map[int64][]string{}}
}

// Take returns what is to be done since it was called last.
func (c *Core) Take() coordinator.Effects {
	out := c.out
	c.out = coordinator.Effects{}
	return out
}

// Next is when Tick wants to be called; false for never.
func (c *Core) Next() (atMs int64, any bool) { return c.timers.next() }

// Tick lets the timers fire whose time has come.
func (c *Core) Tick(nowMs int64) {
	for t := c.timers.due(nowMs); t != nil; t = c.timers.due(nowMs) {
		t.fire(nowMs)
	}
}

// Shift moves all timers: the clock was set, which has made no session longer or
// shorter.
func (c *Core) Shift(byMs int64) {
	for _, t := range c.timers.heap {
		t.atMs += byMs
		t.heapMs += byMs
	}
	//purecore:anyorder each group for itself
	for _, g := range c.groups {
		g.initial.endMs += byMs
	}
}

func (c *Core) remark(format string, args ...any) {
	c.out.Remarks = append(c.out.Remarks, fmt.Sprintf(format, args...))
}

func (c *Core) answer(f func()) { c.out.Answers = append(c.out.Answers, f) }

// storeGroup writes the group's metadata. done is given what the members are
// told of a failure.
func (c *Core) storeGroup(g *group, assignments map[string][]byte, done func(nowMs int64, err error)) {
	records := []coordinator.KeyValue{{Key: groupKey(g.name), Value: c.cfg.Format.groupValue(g, assignments)}}
	c.out.Appends = append(c.out.Appends, &coordinator.Append{Records: records, Alone: true, Done: func(nowMs, _ int64, err error) { done(nowMs, storeError(err)) }})
}

// Unload ends all groups: their coordinator is elsewhere now. Who waits is told
// NOT_COORDINATOR.
func (c *Core) Unload(nowMs int64) {
	for _, name := range c.names() {
		g := c.groups[name]
		for _, m := range g.order {
			c.joined(g, m, JoinResult{Err: kerr.NotCoordinator, Generation: NoGeneration, MemberID: m.id})
			c.synced(m, SyncResult{Err: kerr.NotCoordinator})
			c.timers.cancel(m.session)
		}
		c.discard(g, nowMs)
	}
}

// discard ends one group whose members are answered.
func (c *Core) discard(g *group, nowMs int64) {
	for _, t := range []*timer{g.rebalance, g.syncs} {
		c.timers.cancel(t)
	}
	//purecore:anyorder each is cancelled by itself
	for _, t := range g.pending {
		c.timers.cancel(t)
	}
	g.enter(Dead, nowMs)
	delete(c.groups, g.name)
}

// names are those of all groups, sorted.
func (c *Core) names() []string {
	names := make([]string, 0, len(c.groups))
	//purecore:anyorder they are sorted
	for name := range c.groups {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// joined answers a member's waiting join, if there is one.
func (c *Core) joined(g *group, m *member, r JoinResult) {
	if reply := m.joining; reply != nil {
		m.joining = nil
		g.joining--
		c.answer(func() { reply(r) })
	}
}

// synced answers a member's waiting sync, if there is one.
func (c *Core) synced(m *member, r SyncResult) bool {
	reply := m.syncing
	if reply == nil {
		return false
	}
	m.syncing = nil
	c.answer(func() { reply(r) })
	return true
}

// awaitJoin lets a member's join wait. One that it sent before, and does not wait
// for any more, is answered.
func (c *Core) awaitJoin(g *group, m *member, reply func(JoinResult)) {
	c.joined(g, m, JoinResult{Err: kerr.RebalanceInProgress, Generation: NoGeneration, MemberID: m.id})
	m.joining = reply
	g.joining++
}
