package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
	"barnabas/broker/metadata"
)

// OffsetCommit, key 8, versions 0 to 9.
//
//	0  offsets are kept in ZooKeeper, under /consumers
//	1  kept by the coordinator; membership; a timestamp for each offset
//	2  a retention time for all of them, until version 4; timestamps are gone
//	6  leader epochs
//	7  group instance id (KIP-345)
//	8  flexible
//	9  GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH, which the new protocol has
//
// Partitions that do not exist are told UNKNOWN_TOPIC_OR_PARTITION, the others
// are stored all the same. A request that has none of those is not shown to the
// coordinator, so that it is no sign of life.
func (d *Dispatcher) offsetCommit(c *call, req *kmsg.OffsetCommitRequest) {
	resp := kmsg.NewPtrOffsetCommitResponse()
	rows := offsetRows(resp)
	ask := &group.CommitRequest{Group: req.Group, Generation: req.Generation, MemberID: req.MemberID, InstanceID: req.InstanceID}
	snapshot := d.deps.Metadata.Load()
	mayGroup := d.mayGroup(c, kmsg.ACLOperationRead, req.Group)
	rights := d.topicRights(c, kmsg.ACLOperationRead)
	for i := range req.Topics {
		t := &req.Topics[i]
		if topicRefused(mayGroup, &rights, snapshot, t.Topic) {
			rows.topic(t.Topic) // also if nothing of it is asked
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			tp := group.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			if err := commitRefused(mayGroup, &rights, snapshot, tp); err != nil {
				rows.add(tp, err)
				continue
			}
			ask.Offsets = append(ask.Offsets, group.Commit{
				TopicPartition: tp, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: stringOrEmpty(p.Metadata),
				TimeMs: p.Timestamp, RetentionMs: req.RetentionTimeMillis,
			})
		}
	}
	if req.Version > 0 { // ZooKeeper is told one after the other
		ask.Offsets = lastOfEach(ask.Offsets)
	}
	switch {
	case len(ask.Offsets) == 0:
		c.answer(resp)
	case req.Version == 0:
		d.work(c, func(ctx context.Context) {
			for i := range ask.Offsets {
				rows.add(ask.Offsets[i].TopicPartition, d.commitLegacy(ctx, req.Group, &ask.Offsets[i]))
			}
			c.answer(resp)
		})
	default:
		d.deps.Groups.Commit(ask, func(r group.CommitResult) {
			for i, err := range r.Errs {
				rows.add(ask.Offsets[i].TopicPartition, err)
			}
			c.answer(resp)
		})
	}
}

// lastOfEach leaves of several commits of a partition the last one, which alone is stored and told of.
func lastOfEach(commits []group.Commit) []group.Commit {
	at := make(map[group.TopicPartition]int, len(commits))
	kept := commits[:0]
	for _, o := range commits {
		if i, again := at[o.TopicPartition]; again {
			kept[i] = o
			continue
		}
		at[o.TopicPartition] = len(kept)
		kept = append(kept, o)
	}
	return kept
}

// commitRefused tells why no offset of a partition is committed, before any
// coordinator is asked.
func commitRefused(mayGroup bool, rights *topicRights, snapshot *metadata.Snapshot, tp group.TopicPartition) error {
	switch {
	case !mayGroup:
		return kerr.GroupAuthorizationFailed
	case !rights.allow(tp.Topic):
		return kerr.TopicAuthorizationFailed
	case snapshot.Partition(tp.Topic, tp.Partition) == nil:
		return kerr.UnknownTopicOrPartition
	}
	return nil
}

// topicRefused tells whether commitRefused has one reason for a whole topic, so that
// the topic has a row though none of its partitions was named.
func topicRefused(mayGroup bool, rights *topicRights, snapshot *metadata.Snapshot, topic string) bool {
	return !mayGroup || !rights.allow(topic) || snapshot.Topic(topic) == nil
}

func (d *Dispatcher) commitLegacy(ctx context.Context, name string, o *group.Commit) error {
	if len(o.Metadata) > d.cfg.OffsetMetadataMaxBytes {
		return kerr.OffsetMetadataTooLarge
	}
	return d.deps.LegacyOffsets.Commit(ctx, name, o.Topic, o.Partition, o.Offset)
}

// offsetCommitRows adds rows to an answer, those of a topic together.
type offsetCommitRows struct {
	resp *kmsg.OffsetCommitResponse
	at   map[string]int
}

func offsetRows(resp *kmsg.OffsetCommitResponse) *offsetCommitRows {
	return &offsetCommitRows{resp: resp, at: make(map[string]int)}
}

// topic is the index of a topic's row.
func (r *offsetCommitRows) topic(name string) int {
	i, known := r.at[name]
	if !known {
		i = len(r.resp.Topics)
		r.at[name] = i
		t := kmsg.NewOffsetCommitResponseTopic()
		t.Topic = name
		r.resp.Topics = append(r.resp.Topics, t)
	}
	return i
}

func (r *offsetCommitRows) add(tp group.TopicPartition, err error) {
	i := r.topic(tp.Topic)
	p := kmsg.NewOffsetCommitResponseTopicPartition()
	p.Partition = tp.Partition
	p.ErrorCode, _ = code(err)
	r.resp.Topics[i].Partitions = append(r.resp.Topics[i].Partitions, p)
}
