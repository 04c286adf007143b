package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/metadata"
)

// CreatePartitions, key 37, versions 0 to 3, to the controller.
//
//	2  flexible
//	3  THROTTLING_QUOTA_EXCEEDED (KIP-599); before, the client has to pause
//
// It waits as CreateTopics does. A topic named twice is refused, in one row.
func (d *Dispatcher) createPartitions(c *call, req *kmsg.CreatePartitionsRequest) {
	op := &enlargeCall{call: c, d: d, req: req, resp: kmsg.NewPtrCreatePartitionsResponse(), counts: make(map[string]int32), mutations: c.mutations(3)}
	active := d.deps.Controller.IsActive()
	named := make(map[string]int, len(req.Topics))
	for i := range req.Topics {
		named[req.Topics[i].Topic]++
	}
	var specs []admin.PartitionsSpec
	for i := range req.Topics {
		ask := &req.Topics[i]
		row := kmsg.NewCreatePartitionsResponseTopic()
		row.Topic = ask.Topic
		switch n := named[ask.Topic]; {
		case n == 0:
			continue // told already
		case !active:
			row.ErrorCode = kerr.NotController.Code
		case n > 1:
			row.ErrorCode, row.ErrorMessage = code(refusal(kerr.InvalidRequest, "Duplicate topic in request."))
		case !d.mayTopic(c, kmsg.ACLOperationAlter, ask.Topic):
			row.ErrorCode, row.ErrorMessage = code(refusal(kerr.TopicAuthorizationFailed, "The topic authorization is failed."))
		default:
			spec := partitionsSpec(ask)
			spec.Permit = op.permit
			specs = append(specs, spec)
		}
		named[ask.Topic] = 0
		op.resp.Topics = append(op.resp.Topics, row)
	}
	if len(specs) == 0 {
		c.answer(op.resp)
		return
	}
	d.work(c, func(ctx context.Context) {
		op.enlarged(d.deps.Admin.CreatePartitions(ctx, specs, req.ValidateOnly))
	})
}

func partitionsSpec(ask *kmsg.CreatePartitionsRequestTopic) admin.PartitionsSpec {
	spec := admin.PartitionsSpec{Name: ask.Topic, Count: ask.Count}
	if ask.Assignment != nil {
		spec.Assignment = make([][]int32, len(ask.Assignment))
		for i := range ask.Assignment {
			spec.Assignment[i] = ask.Assignment[i].Replicas
		}
	}
	return spec
}

type enlargeCall struct {
	*call
	d      *Dispatcher
	req    *kmsg.CreatePartitionsRequest
	resp   *kmsg.CreatePartitionsResponse
	counts map[string]int32 // partitions of the topics that were enlarged
	mutations
}

func (op *enlargeCall) enlarged(results []admin.PartitionsResult) {
	for i := range results {
		r := &results[i]
		op.d.faults("enlarging "+r.Name, r.Err)
		if r.Err == nil {
			op.counts[r.Name] = r.Count
		}
		for j := range op.resp.Topics {
			if row := &op.resp.Topics[j]; row.Topic == r.Name && row.ErrorCode == 0 {
				row.ErrorCode, row.ErrorMessage = code(r.Err)
			}
		}
	}
	if op.req.ValidateOnly || len(op.counts) == 0 {
		op.answerFor(op.resp, op.owed())
		return
	}
	if op.req.TimeoutMillis <= 0 {
		op.finish(nil)
		return
	}
	op.d.waits.await(millis(op.req.TimeoutMillis), op.ready, op.finish)
}

func (op *enlargeCall) ready(s *metadata.Snapshot) bool {
	for topic, count := range op.counts {
		if !hasLeaders(s, topic, count) {
			return false
		}
	}
	return true
}

// finish answers by a snapshot; nil stands for "did not wait".
func (op *enlargeCall) finish(s *metadata.Snapshot) {
	for i := range op.resp.Topics {
		row := &op.resp.Topics[i]
		if row.ErrorCode == 0 && (s == nil || !hasLeaders(s, row.Topic, op.counts[row.Topic])) {
			row.ErrorCode = kerr.RequestTimedOut.Code
		}
	}
	op.answerFor(op.resp, op.owed())
}
