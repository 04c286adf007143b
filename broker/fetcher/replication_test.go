package fetcher

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/partition"
	"barnabas/broker/vfs"
)

func TestFollowersCopyTheLeader(t *testing.T) {
	for _, ibp := range []string{"3.9", "2.8", "2.7-IV0", "2.4", "1.1", "0.11.0-IV2"} {
		t.Run(ibp, func(t *testing.T) {
			c := newCluster(t, ibp, partition.FlushAsKafka, 2, 1, 2, 3)
			for i := range 50 {
				offset, ok := c.produce(fmt.Sprint(i))
				require.True(t, ok)
				require.EqualValues(t, i, offset)
			}
			c.settled()
			require.Equal(t, Counts{Fetchers: 1, Partitions: 1}, c.nodes[2].fetchers.Counts())
			_, want := c.nodes[1].values(t)
			for _, id := range []int32{2, 3} {
				_, got := c.nodes[id].values(t)
				require.Equal(t, want, got, "byte for byte")
			}
		})
	}
}

func TestH01_RestartedFollowerElectedAtOnceKeepsWhatIsCommitted(t *testing.T) {
	for _, ibp := range []string{"3.9", "2.6"} {
		t.Run(ibp, func(t *testing.T) {
			c := newCluster(t, ibp, partition.FlushAsKafka, 1, 1, 2)
			for i := range 20 {
				_, ok := c.produce(fmt.Sprint(i))
				require.True(t, ok)
			}
			c.settled()
			disk := c.die(2, vfs.Everything, 1)
			c.revive(2, disk)
			c.settled()
			c.die(1, vfs.Everything, 2)
			values, _ := c.nodes[2].values(t)
			require.Len(t, values, 20)
		})
	}
}

// Brokers die by kill -9 or by power cut, come back, and leadership moves, while
// clients write with acks=all. What was acknowledged is at its offset on every
// replica in the end, and the replicas are equal. Without the flush of the thin
// ISR, power is cut only while another member of the ISR lives: Kafka promises no
// more.
func TestCommittedRecordsSurviveRandomDeaths(t *testing.T) {
	for seed := range uint64(3) {
		for _, ibp := range []string{"3.9", "2.6"} {
			t.Run(fmt.Sprintf("%s/%d", ibp, seed), func(t *testing.T) { survive(t, ibp, partition.FlushAsKafka, seed) })
		}
	}
}

func TestH20_CommittedRecordsSurviveThePowerCutOfTheLastReplica(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { survive(t, "3.9", partition.FlushThinISR, seed) })
	}
}

func survive(t *testing.T, ibp string, flush partition.FlushPolicy, seed uint64) {
	thin := flush != partition.FlushAsKafka
	rng := rand.New(rand.NewPCG(seed, 7))
	c := newClusterWithLag(t, ibp, flush, 300*time.Millisecond, 1, 1, 2, 3)
	acked := map[int64]string{}
	var mu sync.Mutex
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for k := range 4 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				value := fmt.Sprintf("%d-%d", k, i)
				if offset, ok := c.produce(value); ok {
					mu.Lock()
					if before, twice := acked[offset]; twice {
						t.Errorf("offset %d acknowledged for %s and %s", offset, before, value)
					}
					acked[offset] = value
					mu.Unlock()
				} else {
					<-time.After(2 * time.Millisecond)
				}
			}
		}()
	}

	dead := map[int32]*vfs.CrashFS{}
	pause := func() { <-time.After(time.Duration(5+rng.IntN(60)) * time.Millisecond) }
	for range 12 {
		pause()
		id := c.replicas[rng.IntN(3)]
		switch disk := dead[id]; {
		case disk != nil:
			c.revive(id, disk)
			delete(dead, id)
		case rng.IntN(4) == 0:
			c.move(id)
		default:
			how := vfs.Everything
			c.mu.Lock()
			others := c.leader != id || slices.ContainsFunc(c.isr, func(m int32) bool { return m != id && c.alive[m] })
			c.mu.Unlock()
			if !others && thin {
				c.flushed(id)
			}
			if (others || thin) && rng.IntN(2) == 0 {
				how = vfs.Adversaries[rng.IntN(len(vfs.Adversaries))]
			}
			dead[id] = c.die(id, how, rng.Uint64())
		}
	}
	for _, id := range c.replicas {
		if disk := dead[id]; disk != nil {
			c.revive(id, disk)
		}
	}
	pause()
	close(stop)
	clients.Wait()
	c.settled()

	require.Greater(t, len(acked), 20, "the run did its work")
	for _, id := range c.replicas {
		c.whole(id, c.nodes[id].logs.Get(tp0))
	}
	want, raw := c.nodes[1].values(t)
	for offset, value := range acked {
		require.Less(t, offset, int64(len(want)), "acknowledged %s at %d is lost", value, offset)
		require.Equal(t, value, want[offset], "offset %d", offset)
	}
	for _, id := range c.replicas[1:] {
		_, other := c.nodes[id].values(t)
		require.Equal(t, raw, other, "replica %d differs", id)
	}
}

func TestPartitionsAreDealtAnewWhenTheNumberOfFetchersChanges(t *testing.T) {
	c := newCluster(t, "3.9", partition.FlushAsKafka, 2, 1, 2)
	followed := c.nodes[2].fetchers
	for i, fetchers := range []int{2, 3, 5, 1, 0} {
		followed.Resize(fetchers)
		if fetchers > 0 {
			followed.mu.Lock()
			number := followed.mu.of[tp0].by.key.number
			followed.mu.Unlock()
			require.EqualValues(t, fetcherNumber(tp0, fetchers), number, "of %d", fetchers)
		}
		_, ok := c.produce(fmt.Sprint(i))
		require.True(t, ok)
		c.settled()
		require.Equal(t, Counts{Fetchers: 1, Partitions: 1}, followed.Counts())
	}
}
