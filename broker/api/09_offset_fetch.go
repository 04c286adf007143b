package api

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
)

// OffsetFetch, key 9, versions 0 to 9.
//
//	0  offsets from ZooKeeper, under /consumers
//	1  from the coordinator
//	2  a null list is all partitions that have an offset; an error for all
//	5  leader epochs
//	6  flexible
//	7  require_stable: UNSTABLE_OFFSET_COMMIT where a transaction may still change
//	   an offset (KIP-447)
//	8  several groups
//	9  member id and epoch, which only the new protocol minds
//
// Version 1 has no error for all: it is told for each partition asked. (Kafka 3.9
// leaves them out, and the client without an answer.)
func (d *Dispatcher) offsetFetch(c *call, req *kmsg.OffsetFetchRequest) {
	if req.Version == 0 {
		d.work(c, func(ctx context.Context) { c.answer(d.fetchLegacy(ctx, c, req)) })
		return
	}
	if req.Version < 8 {
		ask := &group.FetchOffsetsRequest{Group: req.Group, All: req.Topics == nil, RequireStable: req.RequireStable}
		for i := range req.Topics {
			ask.Partitions = withPartitions(ask.Partitions, req.Topics[i].Topic, req.Topics[i].Partitions)
		}
		ask.Partitions = once(ask.Partitions)
		d.fetchOffsets(c, ask, func(r group.FetchOffsetsResult) { c.answer(offsetFetchSingle(req.Version, ask, r)) })
		return
	}
	d.offsetFetchGroups(c, req)
}

func (d *Dispatcher) offsetFetchGroups(c *call, req *kmsg.OffsetFetchRequest) {
	resp := kmsg.NewPtrOffsetFetchResponse()
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, len(req.Groups))
	if len(req.Groups) == 0 {
		c.answer(resp)
		return
	}
	var left atomic.Int32
	left.Store(int32(len(req.Groups)))
	for i := range req.Groups {
		from, to := &req.Groups[i], &resp.Groups[i]
		ask := &group.FetchOffsetsRequest{Group: from.Group, All: from.Topics == nil, RequireStable: req.RequireStable}
		for j := range from.Topics {
			ask.Partitions = withPartitions(ask.Partitions, from.Topics[j].Topic, from.Topics[j].Partitions)
		}
		ask.Partitions = once(ask.Partitions)
		d.fetchOffsets(c, ask, func(r group.FetchOffsetsResult) {
			*to = offsetFetchGroup(ask.Group, r)
			if left.Add(-1) == 0 {
				c.answer(resp)
			}
		})
	}
}

func withPartitions(to []group.TopicPartition, topic string, partitions []int32) []group.TopicPartition {
	for _, p := range partitions {
		to = append(to, group.TopicPartition{Topic: topic, Partition: p})
	}
	return to
}

// once leaves out what was there before: who names a partition twice is told of it once.
func once(partitions []group.TopicPartition) []group.TopicPartition {
	seen := make(map[group.TopicPartition]bool, len(partitions))
	return slices.DeleteFunc(partitions, func(tp group.TopicPartition) bool {
		again := seen[tp]
		seen[tp] = true
		return again
	})
}

// fetchOffsets asks the group for the offsets of topics that the client may describe.
// Of the others it is told that it may not, or nothing where it asked for all.
func (d *Dispatcher) fetchOffsets(c *call, ask *group.FetchOffsetsRequest, reply func(group.FetchOffsetsResult)) {
	if !d.mayGroup(c, kmsg.ACLOperationDescribe, ask.Group) {
		reply(group.FetchOffsetsResult{Err: kerr.GroupAuthorizationFailed})
		return
	}
	if d.deps.Authorizer == nil {
		d.deps.Groups.FetchOffsets(ask, reply)
		return
	}
	rights := d.topicRights(c, kmsg.ACLOperationDescribe)
	var hidden []group.FetchedOffset
	allowed := *ask
	allowed.Partitions = slices.DeleteFunc(slices.Clone(ask.Partitions), func(tp group.TopicPartition) bool {
		if rights.allow(tp.Topic) {
			return false
		}
		hidden = append(hidden, group.FetchedOffset{TopicPartition: tp, Err: kerr.TopicAuthorizationFailed, Offset: group.NoOffset, LeaderEpoch: -1})
		return true
	})
	d.deps.Groups.FetchOffsets(&allowed, func(r group.FetchOffsetsResult) {
		if r.Err == nil {
			r.Offsets = slices.DeleteFunc(r.Offsets, func(o group.FetchedOffset) bool { return !rights.allow(o.Topic) })
			r.Offsets = append(r.Offsets, hidden...)
		}
		reply(r)
	})
}

func offsetFetchGroup(name string, r group.FetchOffsetsResult) kmsg.OffsetFetchResponseGroup {
	to := kmsg.NewOffsetFetchResponseGroup()
	to.Group = name
	to.ErrorCode, _ = code(r.Err)
	at := make(map[string]int)
	for i := range r.Offsets {
		o := &r.Offsets[i]
		k, known := at[o.Topic]
		if !known {
			k = len(to.Topics)
			at[o.Topic] = k
			t := kmsg.NewOffsetFetchResponseGroupTopic()
			t.Topic = o.Topic
			to.Topics = append(to.Topics, t)
		}
		p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = o.Partition, o.Offset, o.LeaderEpoch, &o.Metadata
		p.ErrorCode, _ = code(o.Err)
		to.Topics[k].Partitions = append(to.Topics[k].Partitions, p)
	}
	return to
}

// offsetFetchSingle is the answer of the versions that ask for one group.
func offsetFetchSingle(version int16, ask *group.FetchOffsetsRequest, r group.FetchOffsetsResult) *kmsg.OffsetFetchResponse {
	if version < 2 && r.Err != nil {
		for _, tp := range ask.Partitions {
			r.Offsets = append(r.Offsets, group.FetchedOffset{TopicPartition: tp, Err: r.Err, Offset: group.NoOffset, LeaderEpoch: -1})
		}
	}
	resp := kmsg.NewPtrOffsetFetchResponse()
	g := offsetFetchGroup(ask.Group, r)
	resp.ErrorCode = g.ErrorCode
	for i := range g.Topics {
		t := kmsg.NewOffsetFetchResponseTopic()
		t.Topic = g.Topics[i].Topic
		for _, from := range g.Topics[i].Partitions {
			p := kmsg.NewOffsetFetchResponseTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch, p.Metadata, p.ErrorCode = from.Partition, from.Offset, from.LeaderEpoch, from.Metadata, from.ErrorCode
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// fetchLegacy answers version 0.
func (d *Dispatcher) fetchLegacy(ctx context.Context, c *call, req *kmsg.OffsetFetchRequest) *kmsg.OffsetFetchResponse {
	var r group.FetchOffsetsResult
	snapshot := d.deps.Metadata.Load()
	mayGroup := d.mayGroup(c, kmsg.ACLOperationDescribe, req.Group)
	rights := d.topicRights(c, kmsg.ACLOperationDescribe)
	var asked []group.TopicPartition
	for i := range req.Topics {
		asked = withPartitions(asked, req.Topics[i].Topic, req.Topics[i].Partitions)
	}
	for _, tp := range once(asked) {
		o := group.FetchedOffset{TopicPartition: tp, Offset: group.NoOffset, LeaderEpoch: -1}
		found := false
		switch {
		case !mayGroup:
			o.Err = kerr.GroupAuthorizationFailed
		case !rights.allow(tp.Topic):
			o.Err = kerr.TopicAuthorizationFailed
		case snapshot.Partition(tp.Topic, tp.Partition) != nil:
			var at int64
			if at, found, o.Err = d.deps.LegacyOffsets.Fetch(ctx, req.Group, tp.Topic, tp.Partition); found {
				o.Offset = at
			}
		}
		if !found && o.Err == nil {
			o.Err = kerr.UnknownTopicOrPartition
		}
		r.Offsets = append(r.Offsets, o)
	}
	return offsetFetchSingle(req.Version, &group.FetchOffsetsRequest{Group: req.Group}, r)
}
