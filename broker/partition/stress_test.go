package partition

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Clients produce and fetch, followers fetch, and the controller moves leadership
// to and fro and deletes, all at once: every request is answered exactly once, and
// no invariant breaks.
func TestEveryRequestIsAnsweredOnceWhileRolesChange(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	var asked, answered, twice atomic.Int64
	once := func() func() {
		asked.Add(1)
		var n atomic.Int32
		return func() {
			answered.Add(1)
			if n.Add(1) > 1 {
				twice.Add(1)
			}
		}
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	run := func(do func(rng *rand.Rand)) {
		clients.Add(1)
		seed := asked.Load() + int64(rand.Uint32())
		go func() {
			defer clients.Done()
			rng := rand.New(rand.NewPCG(uint64(seed), 3))
			for {
				select {
				case <-stop:
					return
				default:
					do(rng)
				}
			}
		}()
	}
	for range 2 {
		run(func(rng *rand.Rand) {
			done := once()
			ready := make(chan struct{}, 2)
			w.m.Produce(&ProduceRequest{Acks: int16(rng.IntN(3)) - 1, Timeout: 5 * time.Millisecond, Version: 9, Partitions: []ProducePartition{{Topic: "a", Records: batch(1+rng.IntN(3), 20)}}},
				func([]ProduceResult) { done(); ready <- struct{}{} })
			<-ready
		})
		run(func(rng *rand.Rand) {
			done := once()
			ready := make(chan struct{}, 2)
			req := &FetchRequest{ReplicaID: -1, Version: 12, MaxWait: 2 * time.Millisecond, MinBytes: int32(rng.IntN(2000)), MaxBytes: 1 << 16, ReadCommitted: rng.IntN(2) == 0, Partitions: []FetchPartition{
				{Topic: "a", FetchOffset: int64(rng.IntN(100)), MaxBytes: 1 << 16, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, LogStartOffset: -1}}}
			w.m.Fetch(req, func(r []FetchResult) {
				r[0].Records.Release()
				done()
				ready <- struct{}{}
			})
			<-ready
		})
	}
	run(func(rng *rand.Rand) {
		p := w.m.Partition("a", 0)
		if p == nil {
			return
		}
		log := p.Log()
		if log == nil {
			return
		}
		done := once()
		ready := make(chan struct{}, 2)
		w.m.Fetch(&FetchRequest{ReplicaID: 2, ReplicaEpoch: -1, Version: 12, MaxWait: time.Millisecond, MinBytes: 1, MaxBytes: 1 << 16, Partitions: []FetchPartition{
			{Topic: "a", FetchOffset: log.EndOffset(), MaxBytes: 1 << 16, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, LogStartOffset: 0}}},
			func(r []FetchResult) {
				r[0].Records.Release()
				done()
				ready <- struct{}{}
			})
		<-ready
	})

	rng := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		switch rng.IntN(6) {
		case 0:
			w.follow([]int32{1, 2})
		case 1:
			_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: EpochDuringDelete, Delete: true}}})
			require.NoError(t, each[0].Err)
			w.lead([]int32{1, 2}, []int32{1, 2})
		case 2:
			w.m.SetAliveBrokers(map[int32]BrokerInfo{1: {Rack: "a"}, 2: {Rack: "b", Epoch: int64(rng.IntN(5))}})
		case 3:
			w.m.shrinkISRs()
			w.m.Counts()
		default:
			w.lead([]int32{1, 2}, []int32{1, 2})
		}
		<-time.After(time.Duration(rng.IntN(3)) * time.Millisecond)
	}
	close(stop)
	clients.Wait()
	require.Equal(t, asked.Load(), answered.Load())
	require.Zero(t, twice.Load())
	require.Zero(t, w.m.Counts().Offline, "an invariant broke")
	require.Zero(t, w.m.Counts().WaitingFetches)
	require.Zero(t, w.m.Counts().WaitingProduces)
	require.Greater(t, asked.Load(), int64(100))
}
