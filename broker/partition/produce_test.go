package partition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
)

func TestProduceToASingleReplicaIsCommittedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.config.MinInsync = 2 // never more than there are replicas
	w.lead([]int32{1}, []int32{1})
	for i, acks := range []int16{0, 1, -1} {
		select {
		case r := <-w.produce(acks, time.Minute, batch(3, 10)):
			require.NoError(t, r[0].Err)
			require.EqualValues(t, i*3, r[0].BaseOffset)
		default:
			t.Fatal("waits")
		}
	}
	require.EqualValues(t, 9, w.m.Partition("a", 0).Log().HighWatermark())
}

func TestInvalidAcksAppendNothing(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	for _, acks := range []int16{2, -2} {
		require.ErrorIs(t, w.produced(acks, batch(1, 1)).Err, kerr.InvalidRequiredAcks)
	}
	require.Zero(t, w.m.Partition("a", 0).Log().EndOffset())
}

func TestProduceToAnUnknownPartition(t *testing.T) {
	w := newWorld(t)
	require.ErrorIs(t, w.produced(1, batch(1, 1)).Err, kerr.UnknownTopicOrPartition)
}

func TestProduceToAFollowerNamesTheLeader(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	r := w.produced(1, batch(1, 1))
	require.ErrorIs(t, r.Err, kerr.NotLeaderForPartition)
	require.EqualValues(t, 2, r.LeaderID)
	require.EqualValues(t, w.epoch, r.LeaderEpoch)
}

func TestAcksAllWaitsForTheWholeISR(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2, 3}, []int32{1, 2, 3})
	wait := w.produce(-1, time.Minute, batch(5, 10))
	w.follower(2, 5)
	require.Empty(t, wait)
	w.follower(3, 5)
	r := (<-wait)[0]
	require.NoError(t, r.Err)
	require.EqualValues(t, 0, r.BaseOffset)
}

func TestAcksAllTimesOut(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	r := (<-w.produce(-1, time.Millisecond, batch(5, 10)))[0]
	require.ErrorIs(t, r.Err, kerr.RequestTimedOut)
	require.EqualValues(t, 5, w.m.Partition("a", 0).Log().EndOffset())
}

func TestH14_TooFewInSync(t *testing.T) {
	w := newWorld(t)
	w.config.MinInsync = 2
	w.lead([]int32{1, 2, 3}, []int32{1})
	require.ErrorIs(t, w.produced(-1, batch(1, 1)).Err, kerr.NotEnoughReplicas)
	require.Zero(t, w.m.Partition("a", 0).Log().EndOffset(), "nothing is appended")
	require.NoError(t, w.produced(1, batch(1, 1)).Err)
	require.NoError(t, w.produced(0, batch(1, 1)).Err)
}

func TestH14_ISRShrinksBetweenAppendAndAnswer(t *testing.T) {
	w := newWorld(t)
	w.config.MinInsync = 2
	w.lead([]int32{1, 2}, []int32{1, 2})
	wait := w.produce(-1, time.Minute, batch(1, 1))
	p := w.m.Partition("a", 0)
	p.state.Lock()
	p.state.remotes[0].caughtUp = time.Now().Add(-2 * time.Hour)
	p.state.Unlock()
	w.m.shrinkISRs()
	require.Equal(t, []int32{1}, p.Status().ISR)
	require.ErrorIs(t, (<-wait)[0].Err, kerr.NotEnoughReplicasAfterAppend)
	require.EqualValues(t, 1, p.Log().EndOffset())
	require.Zero(t, p.Status().HighWatermark, "and nobody reads it below the minimum")
}

func TestLosingLeadershipAnswersWaitingProducers(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	wait := w.produce(-1, time.Minute, batch(1, 1))
	w.follow([]int32{1, 2})
	r := (<-wait)[0]
	require.ErrorIs(t, r.Err, kerr.NotLeaderForPartition)
	require.EqualValues(t, 2, r.LeaderID)
}

func TestAppendOfAnEarlierLeadershipIsNotAcknowledgedByALaterOne(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	p := w.m.Partition("a", 0)
	p.role.RLock()
	term := p.role.term
	p.role.RUnlock()
	require.NoError(t, w.produced(1, batch(5, 1)).Err)
	w.follow([]int32{1, 2})
	w.lead([]int32{1, 2}, []int32{1})
	require.EqualValues(t, 5, p.Log().HighWatermark())
	done, err := p.committed(5, term)
	require.True(t, done)
	require.ErrorIs(t, err, kerr.NotLeaderForPartition)
}

func TestDeletionAnswersWaitingProducers(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	wait := w.produce(-1, time.Minute, batch(1, 1))
	_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: EpochDuringDelete, Delete: true}}})
	require.NoError(t, each[0].Err)
	require.ErrorIs(t, (<-wait)[0].Err, kerr.NotLeaderForPartition)
	require.Nil(t, w.logs.Get(topicA))
	require.ErrorIs(t, w.produced(1, batch(1, 1)).Err, kerr.UnknownTopicOrPartition)
}

func BenchmarkProduceSingleReplica(b *testing.B) {
	w := newWorld(b)
	w.lead([]int32{1}, []int32{1})
	records := batch(10, 1000)
	req := &ProduceRequest{Acks: 1, Version: 9, Partitions: []ProducePartition{{Topic: "a", Records: records}}}
	done := func(r []ProduceResult) {
		if r[0].Err != nil {
			b.Fatal(r[0].Err)
		}
	}
	b.SetBytes(int64(len(records)))
	b.ReportAllocs()
	for b.Loop() {
		record.Batch(records).SetBaseOffset(0) // as it came from a client
		w.m.Produce(req, done)
	}
}

// A follower that had everything is waited for although it is not in the ISR: until its broker is gone, or nothing was heard of it for too long. Nobody need fetch or append for that to be seen, since
// who waits may be the only one who would.
func TestAnAppendDoesNotWaitForAFollowerThatIsGone(t *testing.T) {
	for name, gone := range map[string]func(*world, *remote){
		"its broker has ended": func(w *world, _ *remote) {
			w.m.SetAliveBrokers(map[int32]BrokerInfo{1: {Rack: "a"}, 2: {Rack: "b"}})
		},
		"nothing was heard of it": func(w *world, r *remote) {
			r.caughtUp = time.Now().Add(-2 * time.Hour)
			w.m.shrinkISRs()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lead([]int32{1, 2, 3}, []int32{1, 2})
			require.NoError(t, w.produced(1, batch(1, 1)).Err)
			p := w.m.Partition("a", 0)
			p.state.Lock()
			third := &p.state.remotes[1]
			third.end, third.caughtUp = p.Log().EndPosition(), time.Now()
			p.state.Unlock()
			wait := w.produce(-1, time.Hour, batch(1, 1))
			w.follower(2, 2)
			require.EqualValues(t, 1, p.Status().HighWatermark, "3 is about to join")
			gone(w, third)
			require.EqualValues(t, 2, p.Status().HighWatermark)
			require.NoError(t, (<-wait)[0].Err)
		})
	}
}
