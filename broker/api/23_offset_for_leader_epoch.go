package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
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
	rights := d.topicRights(c, kmsg.ACLOperationDescribe)
	if d.seesCluster(c, kmsg.ACLOperationClusterAction) {
		rights.everyTopic(true)
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		to := kmsg.NewOffsetForLeaderEpochResponseTopic()
		to.Topic = t.Topic
		for j := range t.Partitions {
			if !rights.allow(t.Topic) {
				row := noEndOfEpoch(t.Partitions[j].Partition)
				row.ErrorCode = kerr.TopicAuthorizationFailed.Code
				to.Partitions = append(to.Partitions, row)
				continue
			}
			to.Partitions = append(to.Partitions, d.endOfEpoch(snapshot, t.Topic, &t.Partitions[j]))
		}
		resp.Topics = append(resp.Topics, to)
	}
	c.answer(resp)
}

func noEndOfEpoch(id int32) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	to := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
	to.Partition, to.LeaderEpoch, to.EndOffset = id, partition.None, partition.None
	return to
}

func (d *Dispatcher) endOfEpoch(snapshot *metadata.Snapshot, topic string, ask *kmsg.OffsetForLeaderEpochRequestTopicPartition) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	to := noEndOfEpoch(ask.Partition)
	epoch, end, err := d.deps.Replicas.OffsetForLeaderEpoch(topic, ask.Partition, ask.CurrentLeaderEpoch, ask.LeaderEpoch)
	if err != nil {
		d.faults("looking up an epoch", err)
		to.ErrorCode, _ = code(placed(snapshot, topic, ask.Partition, err))
		return to
	}
	to.LeaderEpoch, to.EndOffset = epoch, end
	return to
}
