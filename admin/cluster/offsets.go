package cluster

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// The times that stand for the ends of a partition.
const (
	Latest   = -1
	Earliest = -2
)

// Offsets asks for the offsets of a time in milliseconds, or of Latest or Earliest. A partition that has nothing as late is in neither map; failed tells why nothing is known of a partition.
func (c *Cluster) Offsets(ctx context.Context, partitions []plan.Partition, at int64) (found map[plan.Partition]int64, failed map[plan.Partition]error, err error) {
	found, failed = map[plan.Partition]int64{}, map[plan.Partition]error{}
	if len(partitions) == 0 {
		return found, failed, nil
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	byTopic := map[string]int{}
	for _, p := range partitions {
		if _, known := byTopic[p.Topic]; !known {
			byTopic[p.Topic] = len(req.Topics)
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		r := kmsg.NewListOffsetsRequestTopicPartition()
		r.Partition, r.Timestamp = p.ID, at
		req.Topics[byTopic[p.Topic]].Partitions = append(req.Topics[byTopic[p.Topic]].Partitions, r)
	}
	for _, shard := range c.client.RequestSharded(ctx, req) {
		if shard.Err != nil { // such as of partitions without a leader
			for _, t := range shard.Req.(*kmsg.ListOffsetsRequest).Topics {
				for _, p := range t.Partitions {
					failed[plan.Partition{Topic: t.Topic, ID: p.Partition}] = shard.Err
				}
			}
			continue
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				key := plan.Partition{Topic: t.Topic, ID: p.Partition}
				if err := Answered(p.ErrorCode, nil); err != nil {
					failed[key] = err
				} else if p.Offset >= 0 {
					found[key] = p.Offset
				}
			}
		}
	}
	return found, failed, ctx.Err()
}
