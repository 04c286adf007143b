package txn

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
)

// Init is [Core.Init] on the shard of the transactional id.
func (c *Coordinator) Init(req *InitRequest, reply func(InitResult)) {
	refuse := func(err error) {
		reply(InitResult{Err: err, Producer: Producer{NoProducerID, NoProducerEpoch}})
	}
	switch {
	case req.ID == "":
		refuse(kerr.InvalidRequest)
	case req.TimeoutMs <= 0 || req.TimeoutMs > c.cfg.Core.MaxTimeoutMs:
		refuse(kerr.InvalidTransactionTimeout)
	default:
		c.Do(req.ID, func(core *Core, nowMs int64) { core.Init(nowMs, req, reply) }, refuse)
	}
}

// AddPartitions is [Core.AddPartitions] on the shard of the transactional id.
func (c *Coordinator) AddPartitions(req *PartitionsRequest, reply func(error)) {
	if req.ID == "" {
		reply(kerr.InvalidRequest)
		return
	}
	c.Do(req.ID, func(core *Core, nowMs int64) { core.AddPartitions(nowMs, req, reply) }, reply)
}

// Verify is [Core.Verify] on the shard of the transactional id.
func (c *Coordinator) Verify(req *PartitionsRequest, reply func([]error)) {
	refuse := func(err error) { reply(slices.Repeat([]error{err}, len(req.Partitions))) }
	if req.ID == "" {
		refuse(kerr.InvalidRequest)
		return
	}
	c.DoCertainly(req.ID, func(core *Core, _ int64) { core.Verify(req, reply) }, refuse)
}

// End is [Core.End] on the shard of the transactional id.
func (c *Coordinator) End(req *EndRequest, reply func(error)) {
	if req.ID == "" {
		reply(kerr.InvalidRequest)
		return
	}
	c.DoCertainly(req.ID, func(core *Core, nowMs int64) { core.End(nowMs, req, reply) }, reply) // a repeated one appends nothing
}

// Describe is [Core.Describe] on the shard of the transactional id.
func (c *Coordinator) Describe(id string, reply func(Description)) {
	refuse := func(err error) { reply(Description{Err: err, ID: id}) }
	if id == "" {
		refuse(kerr.InvalidRequest)
		return
	}
	c.Do(id, func(core *Core, _ int64) {
		d := core.Describe(id)
		core.answer(func() { reply(d) })
	}, refuse)
}

// List answers with the ids coordinated here that pass the filters, sorted, or
// with COORDINATOR_LOAD_IN_PROGRESS when they would not be all.
func (c *Coordinator) List(req *ListRequest, reply func([]Listed, error)) {
	coordinator.Collect(c.shell, func(core *Core, nowMs int64) []Listed { return core.List(nowMs, req) }, func(all []Listed, err error) {
		if err != nil {
			all = nil
		}
		slices.SortFunc(all, func(a, b Listed) int { return strings.Compare(a.ID, b.ID) })
		reply(all, err)
	})
}
