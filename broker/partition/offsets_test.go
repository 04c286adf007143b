package partition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
)

// stamped builds a batch whose records have the given timestamps.
func stamped(timestamps ...int64) []byte {
	b := record.NewBuilder(record.BuilderOptions{})
	for _, ts := range timestamps {
		b.Append(ts, nil, []byte("v"))
	}
	out, err := b.Build()
	if err != nil {
		panic(err)
	}
	return out
}

func TestListOffsets(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	require.NoError(t, w.produced(1, stamped(100, 300, 200)).Err)
	require.NoError(t, w.produced(1, stamped(250)).Err)
	for name, c := range map[string]struct {
		timestamp  int64
		ts, offset int64
		epoch      int32
	}{
		"latest":         {TimeLatest, -1, 4, 1},
		"earliest":       {TimeEarliest, -1, 0, 1},
		"earliest local": {TimeEarliestLocal, -1, 0, 1},
		"max":            {TimeMax, 300, 1, 1},
		"latest tiered":  {TimeLatestTiered, -1, -1, -1},
		"exact":          {300, 300, 1, 1},
		"between":        {150, 300, 1, 1},
		"none":           {301, -1, -1, -1},
	} {
		ts, offset, epoch, err := w.m.ListOffset("a", 0, c.timestamp, false, -1, -1, 9)
		require.NoError(t, err, name)
		require.Equal(t, [2]int64{c.ts, c.offset}, [2]int64{ts, offset}, name)
		require.Equal(t, c.epoch, epoch, name)
	}
}

func TestListOffsetsKnowsSpecialTimesByVersion(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	for _, c := range []struct {
		timestamp int64
		version   int16
		ok        bool
	}{{-1, 1, true}, {-2, 1, true}, {-3, 6, false}, {-3, 7, true}, {-4, 7, false}, {-4, 8, true}, {-5, 8, false}, {-5, 9, true}, {-6, 9, false}} {
		_, _, _, err := w.m.ListOffset("a", 0, c.timestamp, false, -1, -1, c.version)
		if c.ok {
			require.NoError(t, err, c)
		} else {
			require.ErrorIs(t, err, kerr.UnsupportedVersion, c)
		}
	}
}

func TestH13_LatestIsNotAvailableWhileTheHighWatermarkLags(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, stamped(100)).Err)
	w.lead([]int32{1, 2}, []int32{1, 2}) // a new epoch begins at 1, the high watermark is 0
	_, _, _, err := w.m.ListOffset("a", 0, TimeLatest, false, -1, -1, 5)
	require.ErrorIs(t, err, kerr.OffsetNotAvailable)
	_, _, _, err = w.m.ListOffset("a", 0, TimeLatest, false, -1, -1, 4)
	require.ErrorIs(t, err, kerr.LeaderNotAvailable)
	_, _, _, err = w.m.ListOffset("a", 0, 100, false, -1, -1, 5)
	require.ErrorIs(t, err, kerr.OffsetNotAvailable, "found, but not yet to be read")
	_, offset, _, err := w.m.ListOffset("a", 0, TimeLatest, false, 2, -1, 5)
	require.NoError(t, err)
	require.EqualValues(t, 1, offset, "a follower asks for the log end")
	_, _, _, err = w.m.ListOffset("a", 0, TimeEarliest, false, -1, -1, 5)
	require.NoError(t, err)

	w.follower(2, 1)
	_, offset, _, err = w.m.ListOffset("a", 0, TimeLatest, false, -1, -1, 5)
	require.NoError(t, err)
	require.EqualValues(t, 1, offset)
}

func TestListOffsetsOfFollowersIsForTheDebuggingConsumerOnly(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	_, _, _, err := w.m.ListOffset("a", 0, TimeLatest, false, -1, -1, 5)
	require.ErrorIs(t, err, kerr.NotLeaderForPartition)
	_, _, _, err = w.m.ListOffset("a", 0, TimeLatest, false, DebuggingConsumer, -1, 5)
	require.NoError(t, err)
}

func TestH04_EpochLookupsAreFencedBothWays(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	w.lead([]int32{1}, []int32{1})
	_, _, err := w.m.OffsetForLeaderEpoch("a", 0, 1, 1)
	require.ErrorIs(t, err, kerr.FencedLeaderEpoch)
	_, _, err = w.m.OffsetForLeaderEpoch("a", 0, 3, 1)
	require.ErrorIs(t, err, kerr.UnknownLeaderEpoch)
	_, _, err = w.m.OffsetForLeaderEpoch("a", 0, -1, 1)
	require.NoError(t, err, "-1 is never fenced")
	epoch, end, err := w.m.OffsetForLeaderEpoch("a", 0, 2, -1)
	require.NoError(t, err)
	require.EqualValues(t, -1, epoch)
	require.EqualValues(t, -1, end)
	_, _, _, err = w.m.ListOffset("a", 0, TimeLatest, false, -1, 1, 5)
	require.ErrorIs(t, err, kerr.FencedLeaderEpoch)
	_, _, _, err = w.m.ListOffset("a", 0, TimeLatest, false, -1, -2, 5)
	require.ErrorIs(t, err, kerr.FencedLeaderEpoch, "only -1 is no epoch")
	epoch, end, err = w.m.OffsetForLeaderEpoch("a", 0, -1, -2)
	require.NoError(t, err)
	require.EqualValues(t, -2, epoch, "as any epoch that is older than the log")
	require.EqualValues(t, 0, end)
}

func (w *world) deleteRecords(timeout time.Duration, offset int64) <-chan DeleteRecordsResult {
	out := make(chan DeleteRecordsResult, 2)
	w.m.DeleteRecords(map[commitlog.TopicPartition]int64{topicA: offset}, timeout, func(r map[commitlog.TopicPartition]DeleteRecordsResult) { out <- r[topicA] })
	return out
}

func TestDeleteRecordsWaitsForFollowers(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(10, 10)).Err)
	w.follower(2, 10)
	wait := w.deleteRecords(time.Minute, 4)
	require.Empty(t, wait)
	require.EqualValues(t, 4, w.m.Partition("a", 0).Log().StartOffset())
	w.fetched(func(r *FetchRequest) {
		r.ReplicaID = 2
		r.Partitions[0].FetchOffset, r.Partitions[0].LogStartOffset = 10, 4
	})
	r := <-wait
	require.NoError(t, r.Err)
	require.EqualValues(t, 4, r.LowWatermark)

	wait = w.deleteRecords(time.Minute, DeleteToHighWatermark)
	require.Empty(t, wait)
	w.m.SetAliveBrokers(map[int32]BrokerInfo{1: {}})
	require.NoError(t, (<-wait).Err, "a dead follower is not waited for")
	require.EqualValues(t, 10, w.m.Partition("a", 0).Log().StartOffset())
}

func TestDeleteRecordsErrors(t *testing.T) {
	w := newWorld(t)
	require.ErrorIs(t, (<-w.deleteRecords(time.Minute, 1)).Err, kerr.UnknownTopicOrPartition)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(10, 10)).Err)
	require.ErrorIs(t, (<-w.deleteRecords(time.Minute, 1)).Err, kerr.OffsetOutOfRange, "beyond the high watermark")
	require.ErrorIs(t, (<-w.deleteRecords(time.Minute, -2)).Err, kerr.OffsetOutOfRange)
	w.follower(2, 10)
	require.ErrorIs(t, (<-w.deleteRecords(time.Millisecond, 1)).Err, kerr.RequestTimedOut)
	w.config.CleanupDelete, w.config.CleanupCompact = false, true
	w.logs.UpdateTopicConfig("a", w.config)
	require.ErrorIs(t, (<-w.deleteRecords(time.Minute, 1)).Err, kerr.PolicyViolation)
	w.follow([]int32{1, 2})
	require.ErrorIs(t, (<-w.deleteRecords(time.Minute, 1)).Err, kerr.NotLeaderForPartition)
	internal := commitlog.TopicPartition{Topic: "__consumer_offsets"}
	w.m.DeleteRecords(map[commitlog.TopicPartition]int64{internal: 1}, time.Minute, func(r map[commitlog.TopicPartition]DeleteRecordsResult) {
		require.ErrorIs(t, r[internal].Err, kerr.InvalidTopicException)
	})
}

func TestFollowerBeginsInsideABatch(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	p := w.m.Partition("a", 0)
	_, err := p.TruncateFully(w.epoch, 50)
	require.NoError(t, err)
	b := record.Batch(batch(100, 10))
	s, err := p.AppendFetched(Fetched{LeaderEpoch: w.epoch, Offset: 50, Records: b, HighWatermark: 100, LogStartOffset: 50})
	require.NoError(t, err)
	require.EqualValues(t, 100, s.End)
	require.EqualValues(t, 50, s.Start)
	require.EqualValues(t, 100, s.HighWatermark)
}

// A follower wrote offsets of its own, and the leader deleted its records up to where that one ends, inside a batch. By its epochs it finds nothing to cut; what it has is worth nothing all the same.
func TestFollowerThatEndsWhereTheLeaderBeginsInsideABatchBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	p := w.m.Partition("a", 0)
	_, err := p.AppendFetched(Fetched{LeaderEpoch: w.epoch, Records: batch(50, 10), HighWatermark: 20})
	require.NoError(t, err)
	_, err = p.AppendFetched(Fetched{LeaderEpoch: w.epoch, Offset: 50, Records: batch(100, 10), HighWatermark: 100, LogStartOffset: 49})
	require.ErrorIs(t, err, kerr.OffsetOutOfRange, "what the leader still has is not thrown away")
	s, err := p.AppendFetched(Fetched{LeaderEpoch: w.epoch, Offset: 50, Records: batch(100, 10), HighWatermark: 100, LogStartOffset: 50})
	require.NoError(t, err)
	require.Equal(t, FollowerState{Start: 50, End: 100, HighWatermark: 100, LatestEpoch: s.LatestEpoch}, s)
}

func TestH04_LateFetcherOfAnEarlierEpochTouchesNothing(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	p := w.m.Partition("a", 0)
	old := w.epoch
	w.follow([]int32{1, 2})
	_, err := p.AppendFetched(Fetched{LeaderEpoch: old, Records: batch(1, 1)})
	require.ErrorIs(t, err, ErrStale)
	_, err = p.TruncateTo(old, 0)
	require.ErrorIs(t, err, ErrStale)
	w.lead([]int32{1, 2}, []int32{1})
	_, err = p.TruncateFully(w.epoch, 9)
	require.ErrorIs(t, err, ErrStale)
	require.Zero(t, p.Log().EndOffset())
}

func TestH09_FullCutKeepsTheOffsetsInOrder(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	p := w.m.Partition("a", 0)
	_, err := p.AppendFetched(Fetched{LeaderEpoch: w.epoch, Records: batch(10, 10), HighWatermark: 4})
	require.NoError(t, err)
	s, err := p.TruncateFully(w.epoch, 500)
	require.NoError(t, err)
	require.Equal(t, FollowerState{Start: 500, End: 500, HighWatermark: 500, LatestEpoch: s.LatestEpoch}, s)
	w.lead([]int32{1, 2}, []int32{1})
	require.EqualValues(t, 500, p.Status().HighWatermark)
}

func TestLogDirsDescribeEveryLog(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	require.NoError(t, w.produced(1, batch(10, 10)).Err)
	dirs := w.m.LogDirs()
	require.Len(t, dirs, 1)
	require.NoError(t, dirs[0].Err)
	require.Positive(t, dirs[0].Total)
	require.Len(t, dirs[0].Partitions, 1)
	require.Equal(t, topicA, dirs[0].Partitions[0].TP)
	require.Positive(t, dirs[0].Partitions[0].Size)
	require.Zero(t, dirs[0].Partitions[0].OffsetLag)
}
