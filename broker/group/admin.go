package group

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
)

func isAny(err error, list ...error) bool {
	return slices.ContainsFunc(list, func(e error) bool { return errors.Is(err, e) })
}

// List gives the groups to each, sorted by name.
func (c *Core) List() []Listed {
	list := make([]Listed, 0, len(c.groups))
	for _, name := range c.names() {
		g := c.groups[name]
		l := Listed{Group: name, State: g.state}
		if g.protocolType != nil {
			l.ProtocolType = *g.protocolType
		}
		list = append(list, l)
	}
	return list
}

// Describe shows one group; one that does not exist is Dead.
func (c *Core) Describe(name string) Description {
	if g := c.groups[name]; g != nil {
		return g.describe()
	}
	return Description{Group: name, State: Dead.String()}
}

// DeleteGroup ends an empty group and removes its offsets.
func (c *Core) DeleteGroup(nowMs int64, name string) error {
	g := c.groups[name]
	switch {
	case g == nil:
		return kerr.GroupIDNotFound
	case g.state != Empty:
		return kerr.NonEmptyGroup
	}
	c.forget(g, nowMs, g.sorted(every), true)
	return nil
}

// DeleteOffsets removes the offsets of partitions. While the group has members,
// those of topics that they consume stay: GROUP_SUBSCRIBED_TO_TOPIC.
func (c *Core) DeleteOffsets(nowMs int64, name string, partitions []TopicPartition) DeleteOffsetsResult {
	g := c.groups[name]
	switch {
	case g == nil:
		return DeleteOffsetsResult{Err: kerr.GroupIDNotFound}
	case g.state != Empty && !g.isConsumers():
		return DeleteOffsetsResult{Err: kerr.NonEmptyGroup}
	}
	r := DeleteOffsetsResult{Errs: make([]error, len(partitions))}
	var free []TopicPartition
	for i, tp := range partitions {
		if g.state != Empty && (g.subscribed == nil || g.subscribed[tp.Topic]) {
			r.Errs[i] = kerr.GroupSubscribedToTopic
			continue
		}
		free = append(free, tp)
	}
	if len(free) > 0 {
		c.forget(g, nowMs, free, false)
	}
	return r
}

// TopicsDeleted removes what was committed for partitions that exist no more.
func (c *Core) TopicsDeleted(nowMs int64, partitions []TopicPartition) {
	for _, name := range c.names() {
		c.forget(c.groups[name], nowMs, partitions, false)
	}
}

// Expire removes offsets whose time is over, and groups that nothing is left of.
func (c *Core) Expire(nowMs int64) {
	n := 0
	for _, name := range c.names() {
		g := c.groups[name]
		expired := g.expired(nowMs, c.cfg.OffsetsRetentionMs)
		n += len(expired)
		c.forget(g, nowMs, expired, false)
	}
	if n > 0 {
		c.remark("%d expired offsets are removed", n)
	}
}

// tombstonesAtOnce bounds the records of one append.
const tombstonesAtOnce = 1000

// forget removes offsets from a group and writes tombstones for them, and for
// the group too if nothing is left of it. A group that never had a generation is
// not in the log. Nobody waits for the outcome: what is not written expires
// again.
func (c *Core) forget(g *group, nowMs int64, partitions []TopicPartition, whole bool) {
	var records []coordinator.KeyValue
	for _, tp := range partitions {
		if g.drop(tp) {
			records = append(records, coordinator.KeyValue{Key: offsetKey(g.name, tp)})
		}
	}
	if whole || g.state == Empty && !g.has() && len(g.pending) == 0 {
		c.discard(g, nowMs)
		if g.generation > 0 {
			records = append(records, coordinator.KeyValue{Key: groupKey(g.name)})
		}
	}
	for chunk := range slices.Chunk(records, tombstonesAtOnce) {
		c.out.Appends = append(c.out.Appends, &coordinator.Append{Records: chunk})
	}
}
