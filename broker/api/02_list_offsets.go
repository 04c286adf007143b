package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/metadata"
	"barnabas/broker/partition"
)

// ListOffsets, key 2, versions 0 to 9.
//
//	0  a list of offsets: beginnings of segments that were last changed before
//	   a time
//	1  one offset with its timestamp, found by time index (KIP-79)
//	2  isolation level, throttle time
//	4  current leader epoch (KIP-320)
//	5  OFFSET_NOT_AVAILABLE while a new leader's high watermark lags (before:
//	   LEADER_NOT_AVAILABLE)
//	6  flexible
//	7  -3: the offset of the largest timestamp (KIP-734)
//	8  -4: the earliest offset on local disk (KIP-405)
//	9  -5: the last offset in tiered storage (KIP-1005), of which there is none
func (d *Dispatcher) listOffsets(c *call, req *kmsg.ListOffsetsRequest) {
	resp := kmsg.NewPtrListOffsetsResponse()
	snapshot := d.deps.Metadata.Load()
	twice := duplicatedOffsets(req)
	rights := d.topicRights(c, kmsg.ACLOperationDescribe)
	for i := range req.Topics {
		t := &req.Topics[i]
		to := kmsg.NewListOffsetsResponseTopic()
		to.Topic = t.Topic
		for j := range t.Partitions {
			if !rights.allow(t.Topic) {
				to.Partitions = append(to.Partitions, failedOffset(t.Partitions[j].Partition, kerr.TopicAuthorizationFailed))
				continue
			}
			if _, dup := twice[metadata.TopicPartition{Topic: t.Topic, Partition: t.Partitions[j].Partition}]; dup && req.Version > 0 {
				to.Partitions = append(to.Partitions, failedOffset(t.Partitions[j].Partition, kerr.InvalidRequest))
				continue
			}
			to.Partitions = append(to.Partitions, d.listOffset(req, t.Topic, &t.Partitions[j], snapshot))
		}
		resp.Topics = append(resp.Topics, to)
	}
	c.answer(resp)
}

// duplicatedOffsets finds partitions that are asked for more than once; nil if
// there are none.
func duplicatedOffsets(req *kmsg.ListOffsetsRequest) map[metadata.TopicPartition]struct{} {
	if len(req.Topics) == 1 && len(req.Topics[0].Partitions) == 1 {
		return nil
	}
	seen := make(map[metadata.TopicPartition]bool)
	var twice map[metadata.TopicPartition]struct{}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			tp := metadata.TopicPartition{Topic: req.Topics[i].Topic, Partition: req.Topics[i].Partitions[j].Partition}
			if seen[tp] {
				if twice == nil {
					twice = make(map[metadata.TopicPartition]struct{})
				}
				twice[tp] = struct{}{}
			}
			seen[tp] = true
		}
	}
	return twice
}

// timestampSince is the first version in which a timestamp below zero has a
// meaning; false if none.
func timestampSince(timestamp int64) (int16, bool) {
	switch timestamp {
	case -1, -2: // latest, earliest
		return 0, true
	case -3: // largest timestamp
		return 7, true
	case -4: // earliest local
		return 8, true
	case -5: // latest tiered
		return 9, true
	}
	return 0, timestamp >= 0
}

func (d *Dispatcher) listOffset(req *kmsg.ListOffsetsRequest, topic string, ask *kmsg.ListOffsetsRequestTopicPartition, snapshot *metadata.Snapshot) kmsg.ListOffsetsResponseTopicPartition {
	if since, known := timestampSince(ask.Timestamp); !known || req.Version < since {
		return failedOffset(ask.Partition, kerr.UnsupportedVersion)
	}
	if req.Version == 0 {
		return d.offsetsBefore(req, topic, ask, snapshot)
	}
	if req.ReplicaID == partition.None && (req.IsolationLevel < 0 || req.IsolationLevel > 1) { // nobody else is asked for it
		return failedOffset(ask.Partition, kerr.UnknownServerError)
	}
	epoch := ask.CurrentLeaderEpoch
	if req.Version < 4 {
		epoch = partition.None
	}
	ts, offset, leaderEpoch, err := d.deps.Replicas.ListOffset(topic, ask.Partition, ask.Timestamp, req.IsolationLevel == 1, req.ReplicaID, epoch, req.Version)
	if err != nil {
		d.faults("looking up an offset", err)
		err = placed(snapshot, topic, ask.Partition, err)
		to := failedOffset(ask.Partition, err)
		if to.ErrorCode == kerr.OffsetNotAvailable.Code && req.Version < 5 {
			to.ErrorCode = kerr.LeaderNotAvailable.Code
		}
		return to
	}
	to := kmsg.NewListOffsetsResponseTopicPartition()
	to.Partition = ask.Partition
	to.Timestamp, to.Offset, to.LeaderEpoch = ts, offset, leaderEpoch
	return to
}

// offsetsBefore is the answer of version 0 for one partition.
func (d *Dispatcher) offsetsBefore(req *kmsg.ListOffsetsRequest, topic string, ask *kmsg.ListOffsetsRequestTopicPartition, snapshot *metadata.Snapshot) kmsg.ListOffsetsResponseTopicPartition {
	offsets, err := d.deps.Replicas.OffsetsBefore(topic, ask.Partition, ask.Timestamp, int(ask.MaxNumOffsets), req.ReplicaID)
	if err != nil {
		d.faults("looking up offsets", err)
		return failedOffset(ask.Partition, placed(snapshot, topic, ask.Partition, err))
	}
	to := kmsg.NewListOffsetsResponseTopicPartition()
	to.Partition, to.OldStyleOffsets = ask.Partition, offsets
	return to
}

func failedOffset(id int32, err error) kmsg.ListOffsetsResponseTopicPartition {
	to := kmsg.NewListOffsetsResponseTopicPartition()
	to.Partition = id
	to.ErrorCode, _ = code(err)
	to.Timestamp, to.Offset, to.LeaderEpoch = -1, -1, -1
	return to
}
