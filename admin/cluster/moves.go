package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// The settings with which replication is held back while partitions move (KIP-73, KIP-113).
const (
	LeaderThrottleRate       = "leader.replication.throttled.rate"
	FollowerThrottleRate     = "follower.replication.throttled.rate"
	LogDirThrottleRate       = "replica.alter.log.dirs.io.max.bytes.per.second"
	LeaderThrottleReplicas   = "leader.replication.throttled.replicas"
	FollowerThrottleReplicas = "follower.replication.throttled.replicas"
)

// Move is what becomes of a partition that is being reassigned. Replicas are all that it has meanwhile.
type Move struct{ Replicas, Adding, Removing []int32 }

// Moves are the reassignments under way.
type Moves map[plan.Partition]Move

func (m Moves) of(topic string, partition int32) (Move, bool) {
	move, moving := m[plan.Partition{Topic: topic, ID: partition}]
	return move, moving
}

// Moves lists what is being reassigned (KIP-455).
func (c *Cluster) Moves(ctx context.Context) (Moves, error) {
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.TimeoutMillis = TimeoutMs
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	if err := Answered(resp.ErrorCode, resp.ErrorMessage); err != nil {
		return nil, err
	}
	moves := Moves{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			moves[plan.Partition{Topic: t.Topic, ID: p.Partition}] = Move{p.Replicas, p.AddingReplicas, p.RemovingReplicas}
		}
	}
	return moves, nil
}

// Reassign starts reassignments of partitions, or with no targets ends them. The errors are those of single partitions.
func (c *Cluster) Reassign(ctx context.Context, partitions []plan.Partition, targets plan.Assignment) (map[plan.Partition]error, error) {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = TimeoutMs
	byTopic := map[string]int{}
	for _, p := range partitions {
		at, known := byTopic[p.Topic]
		if !known {
			at = len(req.Topics)
			byTopic[p.Topic] = at
			t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		r := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		r.Partition, r.Replicas = p.ID, targets[p]
		req.Topics[at].Partitions = append(req.Topics[at].Partitions, r)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, err
	}
	if err := Answered(resp.ErrorCode, resp.ErrorMessage); err != nil {
		return nil, err
	}
	failed := map[plan.Partition]error{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := Answered(p.ErrorCode, p.ErrorMessage); err != nil {
				failed[plan.Partition{Topic: t.Topic, ID: p.Partition}] = err
			}
		}
	}
	return failed, nil
}
