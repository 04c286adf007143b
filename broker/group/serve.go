package group

import (
	"errors"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
)

// Join is [Core.Join] on the group's shard. INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT and the errors
// of coordinators come at once.
func (c *Coordinator) Join(req *JoinRequest, reply func(JoinResult)) {
	refuse := func(err error) {
		reply(JoinResult{Err: err, Generation: NoGeneration, MemberID: req.MemberID})
	}
	if req.Group == "" {
		refuse(kerr.InvalidGroupID)
		return
	}
	c.Do(req.Group, func(core *Core, nowMs int64) {
		if req.SessionTimeoutMs < c.cfg.MinSessionTimeoutMs || req.SessionTimeoutMs > c.cfg.MaxSessionTimeoutMs {
			refuse(kerr.InvalidSessionTimeout)
			return
		}
		core.Join(nowMs, req, reply)
	}, refuse)
}

// Sync is [Core.Sync] on the group's shard. While the group is being loaded its rebalance is lost:
// REBALANCE_IN_PROGRESS makes every client join again, where the truth would
// confuse old ones.
func (c *Coordinator) Sync(req *SyncRequest, reply func(SyncResult)) {
	refuse := func(err error) {
		if errors.Is(err, kerr.CoordinatorLoadInProgress) {
			err = kerr.RebalanceInProgress
		}
		reply(SyncResult{Err: err})
	}
	if req.Group == "" {
		refuse(kerr.InvalidGroupID)
		return
	}
	c.Do(req.Group, func(core *Core, nowMs int64) { core.Sync(nowMs, req, reply) }, refuse)
}

// Heartbeat is [Core.Heartbeat] on the group's shard. While the group is being loaded every member is
// taken for alive.
func (c *Coordinator) Heartbeat(req *HeartbeatRequest, reply func(error)) {
	refuse := func(err error) {
		if errors.Is(err, kerr.CoordinatorLoadInProgress) {
			err = nil
		}
		reply(err)
	}
	if req.Group == "" {
		refuse(kerr.InvalidGroupID)
		return
	}
	c.Do(req.Group, func(core *Core, nowMs int64) { core.Heartbeat(nowMs, req, reply) }, refuse)
}

// Leave is [Core.Leave] on the group's shard.
func (c *Coordinator) Leave(req *LeaveRequest, reply func(LeaveResult)) {
	refuse := func(err error) { reply(LeaveResult{Err: err}) }
	if req.Group == "" {
		refuse(kerr.InvalidGroupID)
		return
	}
	c.Do(req.Group, func(core *Core, nowMs int64) { core.Leave(nowMs, req, reply) }, refuse)
}

// Commit is [Core.Commit] on the group's shard. The group without a name may keep offsets.
func (c *Coordinator) Commit(req *CommitRequest, reply func(CommitResult)) {
	refuse := func(err error) {
		reply(CommitResult{Errs: slices.Repeat([]error{err}, len(req.Offsets))})
	}
	if req.Producer != nil && req.Group == "" {
		refuse(kerr.InvalidGroupID)
		return
	}
	c.Do(req.Group, func(core *Core, nowMs int64) { core.Commit(nowMs, req, reply) }, refuse)
}

// EndTransaction is [Core.EndTransaction] on one shard; partition is the one of the offsets
// topic that the marker was written to.
func (c *Coordinator) EndTransaction(partition int32, producerID int64, commit bool) {
	// One that is being loaded reads the marker; hearing of it too does no harm.
	c.Tell(partition, func(core *Core, _ int64) { core.EndTransaction(producerID, commit) })
}

// FetchOffsets is [Core.FetchOffsets] on the group's shard.
func (c *Coordinator) FetchOffsets(req *FetchOffsetsRequest, reply func(FetchOffsetsResult)) {
	c.DoCertainly(req.Group, func(core *Core, _ int64) { core.FetchOffsets(req, reply) }, func(err error) { reply(FetchOffsetsResult{Err: err}) })
}

// Describe is [Core.Describe] on the group's shard.
func (c *Coordinator) Describe(group string, reply func(Description)) {
	c.Do(group, func(core *Core, _ int64) {
		d := core.Describe(group)
		core.answer(func() { reply(d) })
	}, func(err error) { reply(Description{Err: err, Group: group}) })
}

// DeleteGroup is [Core.DeleteGroup] on the group's shard.
func (c *Coordinator) DeleteGroup(group string, reply func(error)) {
	c.Do(group, func(core *Core, nowMs int64) {
		err := core.DeleteGroup(nowMs, group)
		core.answer(func() { reply(err) })
	}, reply)
}

// DeleteOffsets is [Core.DeleteOffsets] on the group's shard.
func (c *Coordinator) DeleteOffsets(group string, partitions []TopicPartition, reply func(DeleteOffsetsResult)) {
	refuse := func(err error) { reply(DeleteOffsetsResult{Err: err}) }
	if group == "" {
		refuse(kerr.InvalidGroupID)
		return
	}
	c.Do(group, func(core *Core, nowMs int64) {
		r := core.DeleteOffsets(nowMs, group, partitions)
		core.answer(func() { reply(r) })
	}, refuse)
}

// TopicsDeleted says that partitions exist no more; their offsets go.
func (c *Coordinator) TopicsDeleted(partitions []TopicPartition) {
	c.Each(func(core *Core, nowMs int64) { core.TopicsDeleted(nowMs, partitions) })
}

// List answers with the groups coordinated here, sorted by name, and with
// COORDINATOR_LOAD_IN_PROGRESS when they may not be all.
func (c *Coordinator) List(reply func([]Listed, error)) {
	coordinator.Collect(c.shell, func(core *Core, _ int64) []Listed { return core.List() }, func(all []Listed, err error) {
		slices.SortFunc(all, func(a, b Listed) int { return strings.Compare(a.Group, b.Group) })
		reply(all, err)
	})
}
