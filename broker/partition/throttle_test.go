package partition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAThrottleKeepsItsRateOverTime(t *testing.T) {
	now := time.Unix(1000, 0)
	var th Throttle
	require.Zero(t, th.Wait(now), "no limit unless one is set")
	th.Take(now, 1<<40)
	require.Zero(t, th.Wait(now))

	th.SetRate(now, 1000)
	moved := 0
	for end := now.Add(20 * time.Second); now.Before(end); {
		if wait := th.Wait(now); wait > 0 {
			now = now.Add(wait)
			continue
		}
		th.Take(now, 3000) // three seconds' worth at once
		moved += 3000
		th.SetRate(now, 1000) // said again: nothing starts anew
	}
	require.InDelta(t, 20_000, moved, 3000)

	now = now.Add(time.Hour) // idle time buys no more than a burst
	for moved = 0; th.Wait(now) == 0; moved += 100 {
		th.Take(now, 100)
	}
	require.InDelta(t, 500, moved, 100)

	th.SetRate(now, 0)
	require.Zero(t, th.Wait(now))
}

func TestNamesOfThrottledReplicas(t *testing.T) {
	for _, c := range []struct {
		list string
		want bool
	}{{"", false}, {"*", true}, {"1:2", true}, {"1:3", false}, {"2:2", false}, {"0:1,1:2", true}, {"0:1, 1:2", true}, {"11:2,1:22", false}, {"none", false}, {":", false}} {
		require.Equal(t, c.want, named(c.list, 1, 2), c.list)
	}
}

// A follower that is behind gets nothing while the rate is exceeded, its fetch waits, and its position still counts. One in the ISR is not slowed.
func TestAThrottledFollowerWaitsAndOneInSyncDoesNot(t *testing.T) {
	w := newWorld(t)
	w.config.LeaderThrottle = "0:1"
	w.lead([]int32{1, 2, 3}, []int32{1, 3})
	p := w.m.Partition("a", 0)
	p.Log().SetConfig(w.config)
	require.NoError(t, w.produced(1, batch(10, 100)).Err)

	w.follower(3, 10) // and 2 is behind the high watermark
	w.m.LeaderThrottle.SetRate(time.Now(), 1000)
	fetch := func(id int32, wait time.Duration) chan FetchResult {
		got := make(chan FetchResult, 1)
		w.m.Fetch(&FetchRequest{ReplicaID: id, ReplicaEpoch: -1, Version: 12, MaxWait: wait, MinBytes: 1, MaxBytes: 1 << 20,
			Partitions: []FetchPartition{{Topic: "a", MaxBytes: 1 << 20, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1}}}, func(r []FetchResult) {
			r[0].Records.Release()
			got <- r[0]
		})
		return got
	}
	first := <-fetch(2, 0)
	require.NoError(t, first.Err)
	require.Positive(t, first.Records.Length, "within the rate until it was used")
	second := <-fetch(2, 0)
	require.NoError(t, second.Err)
	require.Zero(t, second.Records.Length)
	require.NotZero(t, w.m.LeaderThrottle.Wait(time.Now()))

	waiting := fetch(2, 50*time.Millisecond)
	require.NoError(t, w.produced(1, batch(10, 100)).Err)
	select {
	case r := <-waiting:
		require.Zero(t, r.Records.Length, "an append does not wake it to find nothing")
	case <-time.After(time.Minute):
		t.Fatal("the fetch is not answered")
	}
	inSync := <-fetch(3, 0)
	require.Positive(t, inSync.Records.Length)
}
