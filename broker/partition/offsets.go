package partition

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// Timestamps of ListOffsets with a meaning of their own.
const (
	TimeLatest         = int64(-1)
	TimeEarliest       = int64(-2)
	TimeMax            = int64(-3) // KIP-734, version 7
	TimeEarliestLocal  = int64(-4) // KIP-405, version 8
	TimeLatestTiered   = int64(-5) // KIP-1005, version 9
	noTimestamp        = int64(-1)
	timestampsFrom     = TimeLatestTiered
	availableSinceList = 5 // OFFSET_NOT_AVAILABLE may be answered from here on (KIP-207)
)

// timeSince is the first version of ListOffsets that knows a special timestamp,
// indexed by -timestamp.
var timeSince = [...]int16{-TimeLatest: 1, -TimeEarliest: 1, -TimeMax: 7, -TimeEarliestLocal: 8, -TimeLatestTiered: 9}

// ListOffset finds an offset by time: a timestamp in milliseconds, or one of the
// special ones. Nothing found is (-1, -1, -1) and no error. For a consumer
// (replicaID -1) offsets end at the high watermark, or the last stable offset
// with readCommitted; for a follower at the log end. The debugging consumer (-2)
// is answered by followers too.
//
// While a new leader's high watermark has not reached the start of its epoch, a
// consumer might be told an offset below one that the old leader already showed:
// OFFSET_NOT_AVAILABLE, or LEADER_NOT_AVAILABLE below version 5 (KIP-207, H13).
// Other errors: UNSUPPORTED_VERSION for a special timestamp that the version does
// not know, UNSUPPORTED_FOR_MESSAGE_FORMAT for a time in a log whose format has
// none, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER,
// UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
func (m *Manager) ListOffset(topic string, partition int32, timestamp int64, readCommitted bool, replicaID, currentLeaderEpoch int32, version int16) (ts, offset int64, leaderEpoch int32, err error) {
	if timestamp < 0 && (timestamp < timestampsFrom || version < timeSince[-timestamp]) {
		return noTimestamp, None, None, kerr.UnsupportedVersion
	}
	p, err := m.hosted(commitlog.TopicPartition{Topic: topic, Partition: partition})
	if err != nil {
		return noTimestamp, None, None, err
	}
	p.role.RLock()
	defer p.role.RUnlock()
	log, err := p.local(currentLeaderEpoch, replicaID != DebuggingConsumer)
	if err != nil {
		return noTimestamp, None, None, err
	}
	consumer := replicaID == ConsumerReplica
	limit := log.EndOffset()
	if consumer {
		limit = log.HighWatermark()
		if readCommitted {
			limit = log.LastStableOffset()
		}
	}
	var lagging error
	if consumer && p.state.role == roleLeader && p.state.epochStart > log.HighWatermark() {
		lagging = kerr.OffsetNotAvailable
		if version < availableSinceList {
			lagging = kerr.LeaderNotAvailable
		}
	}

	switch timestamp {
	case TimeLatest:
		if lagging != nil {
			return noTimestamp, None, None, lagging
		}
		return noTimestamp, limit, p.state.leaderEpoch, nil
	case TimeEarliest, TimeEarliestLocal:
		start := log.StartOffset()
		epoch, ok := log.EpochAt(start)
		if !ok {
			epoch = None
		}
		return noTimestamp, start, epoch, nil
	case TimeLatestTiered:
		// Nothing is ever tiered here.
		return noTimestamp, None, None, lagging
	}

	if log.Config().Format == commitlog.FormatV0 {
		return noTimestamp, None, None, kerr.UnsupportedForMessageFormat // its messages have no times
	}
	var found bool
	if timestamp == TimeMax {
		offset, ts, leaderEpoch, found, err = log.MaxTimestampOffset()
	} else {
		offset, ts, leaderEpoch, found, err = log.OffsetForTimestamp(timestamp)
	}
	if err != nil {
		return noTimestamp, None, None, err
	}
	if !found || offset >= limit {
		return noTimestamp, None, None, lagging
	}
	return ts, offset, leaderEpoch, nil
}

// OffsetsBefore answers ListOffsets version 0: commitlog.Log.OffsetsBefore, of which a consumer (replicaID -1) is told nothing
// behind the high watermark. Errors: NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
func (m *Manager) OffsetsBefore(topic string, partition int32, timestamp int64, limit int, replicaID int32) ([]int64, error) {
	p, err := m.hosted(commitlog.TopicPartition{Topic: topic, Partition: partition})
	if err != nil {
		return nil, err
	}
	p.role.RLock()
	defer p.role.RUnlock()
	log, err := p.local(None, replicaID != DebuggingConsumer)
	if err != nil {
		return nil, err
	}
	found := log.OffsetsBefore(timestamp, limit)
	if hw := log.HighWatermark(); replicaID == ConsumerReplica && len(found) > 0 && found[0] > hw {
		// What lies behind is left out, and the high watermark told instead, as Kafka does.
		known := []int64{hw}
		for _, offset := range found {
			if offset <= hw {
				known = append(known, offset)
			}
		}
		return known, nil
	}
	return found, nil
}

// OffsetForLeaderEpoch returns the largest epoch in the leader's log that is not
// above leaderEpoch, and where it ends: where a follower, or a consumer, that was
// in leaderEpoch may have to cut its log or go back to (KIP-101, KIP-279, H02).
// (-1, -1) when the log knows no such epoch.
//
// Errors: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH (KIP-320),
// NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
func (m *Manager) OffsetForLeaderEpoch(topic string, partition, currentLeaderEpoch, leaderEpoch int32) (epoch int32, endOffset int64, err error) {
	p, err := m.hosted(commitlog.TopicPartition{Topic: topic, Partition: partition})
	if err != nil {
		return None, None, err
	}
	p.role.RLock()
	defer p.role.RUnlock()
	log, err := p.local(currentLeaderEpoch, true)
	if err != nil {
		return None, None, err
	}
	if leaderEpoch == None {
		return None, None, nil
	}
	epoch, endOffset = log.EndOffsetForEpoch(leaderEpoch)
	return epoch, endOffset, nil
}
