package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/metadata"
	"barnabas/broker/partition"
)

// OffsetForLeaderEpoch, key 23, versions 0 to 4, from followers (KIP-101) and
// consumers (KIP-320).
//
//	1  the epoch found
//	2  current leader epoch, throttle time
//	3  replica id
//	4  flexible
func (d *Dispatcher) offsetForLeaderEpoch(c *call, req *kmsg.OffsetForLeaderEpochRequest) {
	snapshot := d.deps.Metadata.Load()
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	for i := range req.Topics {
		t := &req.Topics[i]
		to := kmsg.NewOffsetForLeaderEpochResponseTopic()
		to.Topic = t.Topic
		for j := range t.Partitions {
			to.Partitions = append(to.Partitions, d.endOfEpoch(snapshot, t.Topic, &t.Partitions[j]))
		}
		resp.Topics = append(resp.Topics, to)
	}
	c.answer(resp)
}

func (d *Dispatcher) endOfEpoch(snapshot *metadata.Snapshot, topic string, ask *kmsg.OffsetForLeaderEpochRequestTopicPartition) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	to := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
	to.Partition, to.LeaderEpoch, to.EndOffset = ask.Partition, partition.None, partition.None
	epoch, end, err := d.deps.Replicas.OffsetForLeaderEpoch(topic, ask.Partition, ask.CurrentLeaderEpoch, ask.LeaderEpoch)
	if err != nil {
		d.faults("looking up an epoch", err)
		to.ErrorCode, _ = code(placed(snapshot, topic, ask.Partition, err))
		return to
	}
	to.LeaderEpoch, to.EndOffset = epoch, end
	return to
}
