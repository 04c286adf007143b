package partition

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

func TestConsumerReadsUpToTheHighWatermark(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(5, 10)).Err)
	r := w.fetched(func(r *FetchRequest) {})
	require.NoError(t, r[0].Err)
	require.Zero(t, r[0].Records.Length, "nothing is committed")
	require.Zero(t, r[0].HighWatermark)

	require.NotZero(t, w.follower(2, 0).Records.Length, "a follower reads to the log end")
	w.follower(2, 5)
	r = w.fetched(func(r *FetchRequest) {})
	require.NotZero(t, r[0].Records.Length)
	require.EqualValues(t, 5, r[0].HighWatermark)
}

func TestFetchWaitsForMinBytes(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	one := batch(1, 100)
	wait := w.fetch(func(r *FetchRequest) { r.MinBytes, r.MaxWait = int32(3*len(one)), time.Minute })
	require.NoError(t, w.produced(1, one).Err)
	require.Empty(t, wait)
	require.NoError(t, w.produced(1, batch(1, 100)).Err)
	require.Empty(t, wait, "bytes are counted once, however often one looks")
	require.NoError(t, w.produced(1, batch(1, 100)).Err)
	r := <-wait
	require.EqualValues(t, 3*len(one), r[0].Records.Length)
	r[0].Records.Release()
}

func TestFetchCountsOverAllPartitions(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	o := w.order(1, []int32{1}, []int32{1})
	o.Partition = 1
	require.NoError(t, w.apply(o)[0].Err)
	one := batch(1, 100)
	wait := w.fetch(func(r *FetchRequest) {
		r.MinBytes, r.MaxWait = int32(2*len(one)), time.Minute
		second := r.Partitions[0]
		second.Partition = 1
		r.Partitions = append(r.Partitions, second)
	})
	require.NoError(t, w.produced(1, one).Err)
	require.Empty(t, wait)
	w.m.Produce(&ProduceRequest{Acks: 1, Version: 9, Partitions: []ProducePartition{{Topic: "a", Partition: 1, Records: batch(1, 100)}}}, func([]ProduceResult) {})
	r := <-wait
	require.NotZero(t, r[0].Records.Length)
	require.NotZero(t, r[1].Records.Length)
	for i := range r {
		r[i].Records.Release()
	}
}

func TestFetchTimeIsOver(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	r := <-w.fetch(func(r *FetchRequest) { r.MinBytes, r.MaxWait = 1000, time.Millisecond })
	require.NoError(t, r[0].Err)
	require.Zero(t, r[0].Records.Length)
	require.Zero(t, w.m.Counts().WaitingFetches)
}

func TestAnErrorAnswersAtOnce(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	for name, c := range map[string]struct {
		change func(*FetchPartition)
		want   error
	}{
		"beyond the end":  {func(p *FetchPartition) { p.FetchOffset = 7 }, kerr.OffsetOutOfRange},
		"unknown":         {func(p *FetchPartition) { p.Partition = 9 }, kerr.UnknownTopicOrPartition},
		"preset":          {func(p *FetchPartition) { p.Err = kerr.UnknownTopicID }, kerr.UnknownTopicID},
		"other topic id":  {func(p *FetchPartition) { p.TopicID = commitlog.TopicID{9} }, kerr.InconsistentTopicID},
		"H04 old epoch":   {func(p *FetchPartition) { p.CurrentLeaderEpoch = 0 }, kerr.FencedLeaderEpoch},
		"H04 newer epoch": {func(p *FetchPartition) { p.CurrentLeaderEpoch = 99 }, kerr.UnknownLeaderEpoch},
	} {
		r := w.fetched(func(r *FetchRequest) {
			r.MinBytes, r.MaxWait = 1, time.Minute
			c.change(&r.Partitions[0])
		})
		require.ErrorIs(t, r[0].Err, c.want, name)
		require.EqualValues(t, -1, r[0].HighWatermark, name)
	}
}

func TestLeaderChangeAnswersWaitingFetches(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	old := w.fetch(func(r *FetchRequest) { r.MaxWait, r.Version = time.Minute, 10 }) // must ask the leader
	fenced := w.fetch(func(r *FetchRequest) { r.MaxWait, r.Partitions[0].CurrentLeaderEpoch = time.Minute, 1 })
	w.follow([]int32{1, 2})
	r := (<-old)[0]
	require.ErrorIs(t, r.Err, kerr.NotLeaderForPartition)
	require.EqualValues(t, 2, r.LeaderID)
	require.ErrorIs(t, (<-fenced)[0].Err, kerr.FencedLeaderEpoch)
}

func TestFirstPartitionGivesAWholeBatchOthersNeverPassTheTotal(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	sizes := []int{100, 10_000, 1_000_000, 100, 10_000}
	lengths := make([]int64, len(sizes))
	for i, size := range sizes {
		if i > 0 {
			o := w.order(1, []int32{1}, []int32{1})
			o.Partition = int32(i)
			require.NoError(t, w.apply(o)[0].Err)
		}
		records := batch(1, size)
		lengths[i] = int64(len(records))
		w.m.Produce(&ProduceRequest{Acks: 1, Version: 9, Partitions: []ProducePartition{{Topic: "a", Partition: int32(i), Records: records}}},
			func(r []ProduceResult) { require.NoError(t, r[0].Err) })
	}
	for rotate := range sizes {
		for _, c := range []struct{ part, total int32 }{
			{1024, 2048}, {1, 1}, {1 << 20, int32(lengths[1])}, {1 << 20, int32(lengths[1]) - 1}, {1 << 20, int32(lengths[1]) + 1}, {1 << 21, 1 << 22},
		} {
			r := w.fetched(func(r *FetchRequest) {
				r.MaxBytes = c.total
				var ps []FetchPartition
				for i := range sizes {
					p := r.Partitions[0]
					p.Partition, p.MaxBytes = int32((i+rotate)%len(sizes)), c.part
					ps = append(ps, p)
				}
				r.Partitions = ps
			})
			sum := int64(0)
			for i := range r {
				whole := lengths[r[i].Partition]
				name := fmt.Sprintf("rotation %d, limits %+v, place %d", rotate, c, i)
				require.Contains(t, []int64{0, whole}, r[i].Records.Length, name)
				if i == 0 {
					require.Equal(t, whole, r[0].Records.Length, name)
				} else if r[i].Records.Length > 0 {
					require.LessOrEqual(t, r[i].Records.Length, int64(c.part), name)
					require.LessOrEqual(t, sum+r[i].Records.Length, int64(c.total), name)
				}
				sum += r[i].Records.Length
			}
		}
	}
}

func TestConsumerIsSentToTheReplicaInItsRack(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(5, 10)).Err)
	w.follower(2, 5)
	r := w.fetched(func(r *FetchRequest) { r.RackID, r.MaxWait = "b", time.Minute; r.Partitions[0].FetchOffset = 5 })
	require.EqualValues(t, 2, r[0].PreferredReadReplica)
	require.EqualValues(t, 5, r[0].HighWatermark)
	require.EqualValues(t, -1, w.fetched(func(r *FetchRequest) { r.RackID = "a" })[0].PreferredReadReplica)
	require.EqualValues(t, -1, w.fetched(func(r *FetchRequest) { r.RackID, r.Version = "b", 10 })[0].PreferredReadReplica)
}

func TestH39_ConsumerOnAFollower(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	p := w.m.Partition("a", 0)
	records := batch(5, 10)
	_, err := p.AppendFetched(Fetched{LeaderEpoch: w.epoch, Records: records, HighWatermark: 3})
	require.NoError(t, err)
	r := w.fetched(func(r *FetchRequest) { r.Partitions[0].FetchOffset = 3 })
	require.NoError(t, r[0].Err)
	require.Zero(t, r[0].Records.Length, "never beyond the follower's own high watermark")
	require.ErrorIs(t, w.fetched(func(r *FetchRequest) { r.Partitions[0].FetchOffset = 9 })[0].Err, kerr.OffsetNotAvailable)
	require.ErrorIs(t, w.fetched(func(r *FetchRequest) { r.Version = 10 })[0].Err, kerr.NotLeaderForPartition)

	wait := w.fetch(func(r *FetchRequest) { r.Partitions[0].FetchOffset, r.MaxWait = 3, time.Minute })
	_, err = p.AppendFetched(Fetched{LeaderEpoch: w.epoch, Offset: 5, HighWatermark: 5})
	require.NoError(t, err)
	got := (<-wait)[0]
	require.NotZero(t, got.Records.Length, "the follower's high watermark wakes its readers")
	got.Records.Release()
}

func TestFollowerOutsideTheAssignmentIsRefused(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	r := w.fetched(func(r *FetchRequest) { r.ReplicaID = 7; r.Partitions[0].CurrentLeaderEpoch = w.epoch })
	require.ErrorIs(t, r[0].Err, kerr.UnknownLeaderEpoch)
	r = w.fetched(func(r *FetchRequest) { r.ReplicaID = 7 })
	require.ErrorIs(t, r[0].Err, kerr.NotLeaderForPartition)
}

func TestDivergingFollowerIsToldAtOnceAndSaysNothing(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2}) // epoch 1
	require.NoError(t, w.produced(1, batch(5, 10)).Err)
	w.follow([]int32{1, 2})              // epoch 2 is another's
	w.lead([]int32{1, 2}, []int32{1, 2}) // epoch 3
	r := w.fetched(func(r *FetchRequest) {
		r.ReplicaID, r.MaxWait = 2, time.Minute
		r.Partitions[0].FetchOffset, r.Partitions[0].LastFetchedEpoch, r.Partitions[0].CurrentLeaderEpoch = 9, 2, 3
	})
	require.NoError(t, r[0].Err)
	require.EqualValues(t, 1, r[0].DivergingEpoch)
	require.EqualValues(t, 5, r[0].DivergingEndOffset)
	require.Zero(t, w.m.Partition("a", 0).Log().HighWatermark())
}

func TestSlowFollowerJoinsWhenItHasEverything(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1})
	require.NoError(t, w.produced(-1, batch(5, 10)).Err)
	w.follower(2, 0)
	require.Empty(t, w.isr.asks)
	w.follower(2, 5)
	require.Equal(t, []int32{1, 2}, w.m.Partition("a", 0).Status().ISR)
	require.EqualValues(t, 100, w.isr.asks[0].ISR[0].BrokerEpoch, "the leader's own registration")
	require.Equal(t, commitlog.TopicID{1}, w.isr.asks[0].TopicID)
}

func BenchmarkFetchSingleReplica(b *testing.B) {
	w := newWorld(b)
	w.lead([]int32{1}, []int32{1})
	for range 200 {
		w.m.Produce(&ProduceRequest{Acks: 1, Version: 9, Partitions: []ProducePartition{{Topic: "a", Records: batch(10, 1000)}}}, func([]ProduceResult) {})
	}
	end := w.m.Partition("a", 0).Log().EndOffset()
	req := &FetchRequest{ReplicaID: -1, Version: 12, MinBytes: 1, MaxBytes: 1 << 20, Partitions: []FetchPartition{{Topic: "a", MaxBytes: 1 << 20, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1}}}
	b.ReportAllocs()
	i := int64(0)
	for b.Loop() {
		req.Partitions[0].FetchOffset = i % end
		i += 10
		w.m.Fetch(req, func(r []FetchResult) { r[0].Records.Release() })
	}
}

func BenchmarkWaitingFetch(b *testing.B) {
	w := newWorld(b)
	w.lead([]int32{1}, []int32{1})
	records := batch(1, 100)
	b.ReportAllocs()
	offset := int64(0)
	for b.Loop() {
		w.m.Fetch(&FetchRequest{ReplicaID: -1, Version: 12, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: time.Minute, Partitions: []FetchPartition{
			{Topic: "a", FetchOffset: offset, MaxBytes: 1 << 20, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1}}},
			func(r []FetchResult) { r[0].Records.Release() })
		w.m.Produce(&ProduceRequest{Acks: 1, Version: 9, Partitions: []ProducePartition{{Topic: "a", Records: records}}}, func([]ProduceResult) {})
		offset++
	}
}
