package partition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

func TestTrafficIsCountedByTopicAndForAll(t *testing.T) {
	w := newWorld(t)
	w.config.MaxMessageBytes = 1000
	o := w.order(1, []int32{1}, []int32{1})
	o.Topic, o.TopicID = "b", commitlog.TopicID{2}
	require.NoError(t, w.apply(o)[0].Err)
	w.lead([]int32{1, 2}, []int32{1, 2})

	records := batch(5, 10)
	size := int64(len(records))
	require.NoError(t, w.produced(1, records).Err)
	require.Error(t, w.produced(1, batch(1, 2000)).Err)
	require.NotZero(t, w.follower(2, 0).Records.Length)
	w.follower(2, 5)
	require.NotZero(t, w.fetched(func(*FetchRequest) {})[0].Records.Length)
	w.fetched(func(r *FetchRequest) { r.Partitions[0].FetchOffset = 99 })

	all, topics := w.m.Traffic()
	a := Traffic{Messages: 5, BytesIn: size, BytesOut: size, FollowersOut: size, BytesRejected: int64(len(batch(1, 2000))), Produces: 2, Fetches: 4}
	require.Equal(t, a, topics["a"])
	require.Equal(t, Traffic{}, topics["b"], "of another topic")
	require.Equal(t, a, all)
}

func TestBytesOfAFetchThatWaitsAreCountedOnce(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	one := batch(1, 100)
	require.NoError(t, w.produced(1, one).Err)
	wait := w.fetch(func(r *FetchRequest) { r.MinBytes, r.MaxWait = int32(2*len(one)), time.Minute })
	require.NoError(t, w.produced(1, batch(1, 100)).Err)
	r := <-wait
	r[0].Records.Release()
	all, _ := w.m.Traffic()
	require.EqualValues(t, 2*len(one), all.BytesOut)
	require.EqualValues(t, 1, all.Fetches)
}

func TestWhatAFollowerFetchesIsCounted(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	records := batch(3, 10)
	_, err := w.m.Partition("a", 0).AppendFetched(Fetched{LeaderEpoch: w.epoch, Records: records})
	require.NoError(t, err)
	all, topics := w.m.Traffic()
	require.Equal(t, Traffic{FollowersIn: int64(len(records))}, all)
	require.Equal(t, all, topics["a"])
}

func TestTheTrafficOfATopicEndsWithItsLastReplica(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	second := w.order(1, []int32{1}, []int32{1})
	second.Partition = 1
	require.NoError(t, w.apply(second)[0].Err)
	require.NoError(t, w.produced(1, batch(1, 10)).Err)
	for partition, left := range []int{1, 0} {
		_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", Partition: int32(partition), LeaderEpoch: EpochDuringDelete, Delete: true}}})
		require.NoError(t, each[0].Err)
		all, topics := w.m.Traffic()
		require.Len(t, topics, left)
		require.EqualValues(t, 1, all.Messages, "a counter never goes back")
	}
}

func TestAnOfflineReplicaLeavesTheTrafficOfItsTopic(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	w.m.markOffline(w.m.Partition("a", 0))
	_, topics := w.m.Traffic()
	require.Empty(t, topics)
}

func TestCountingMakesNothing(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	p := w.m.Partition("a", 0)
	answer := []FetchResult{{replica: p}, {replica: p, Err: kerr.OffsetOutOfRange}, {}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.countAppend(100, 1, nil)
		p.countFollowed(100)
		w.m.countFetches(reader{}, answer)
	}))
}
