package broker

import (
	"time"

	"barnabas/broker/group"
	"barnabas/broker/partition"
	"barnabas/broker/record"
)

// newGroups makes the group coordinator over the partitions of the offsets topic.
func (b *Broker) newGroups() *group.Coordinator {
	v := b.values
	topic := &coordinatorTopic{
		replicas: b.replicas,
		name:     offsetsTopic,
		acks:     int16(v.Int("offsets.commit.required.acks")),
		timeout:  v.Millis("offsets.commit.timeout.ms"),
		reader:   newLogReader(b.replicas, offsetsTopic, v.Int("offsets.load.buffer.size")),
		verify:   b.verifyTransactions,
		tenure:   newTenure(b.zk),

		heldIsSafe: true,
	}
	return group.New(group.Config{
		Core: group.CoreConfig{
			InitialRebalanceDelayMs: v.Int("group.initial.rebalance.delay.ms"),
			MaxSize:                 int(v.Int("group.max.size")),
			OffsetMetadataMaxBytes:  int(v.Int("offset.metadata.max.bytes")),
			OffsetsRetentionMs:      v.Int("offsets.retention.minutes") * time.Minute.Milliseconds(),
			Format:                  group.FormatSince23,
		},
		MinSessionTimeoutMs: int32(v.Int("group.min.session.timeout.ms")),
		MaxSessionTimeoutMs: int32(v.Int("group.max.session.timeout.ms")),
		ExpiryCheck:         v.Millis("offsets.retention.check.interval.ms"),
		Codec:               record.Codec(v.Int("offsets.topic.compression.codec")),
		Limits:              record.Limits{MaxDecompressed: maxDecompressed(v)},
		Partitions:          b.offsetsPartitions,
		Now:                 time.Now,
		Log:                 b.log.WithField("part", "groups"),
	}, topic)
}

func (b *Broker) offsetsPartitions() (int32, bool) {
	if t := b.cluster.Load().Topic(offsetsTopic); t != nil && len(t.Partitions) > 0 {
		return int32(len(t.Partitions)), true
	}
	return int32(b.values.Int("offsets.topic.num.partitions")), false
}

// coordinate loads and unloads groups and transactions as this broker begins and ends to lead partitions of their topics.
func (b *Broker) coordinate(roles []partition.Role) {
	for _, r := range roles {
		switch {
		case r.TP.Topic == transactionTopic && r.Leader:
			b.transactions.Lead(r.TP.Partition, r.LeaderEpoch)
		case r.TP.Topic == transactionTopic:
			b.transactions.Resign(r.TP.Partition)
		case r.TP.Topic != offsetsTopic:
		case r.Leader:
			b.groups.Lead(r.TP.Partition, r.LeaderEpoch)
		default:
			b.groups.Resign(r.TP.Partition)
		}
	}
}
