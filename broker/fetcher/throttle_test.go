package fetcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/partition"
)

func TestAThrottledPartitionIsLeftOutWhileItIsBehind(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 5, partition.FollowerState{LatestEpoch: 4})
	f.add(tp1, 5, partition.FollowerState{LatestEpoch: 4})
	f.c.parts[tp0].lag = 10
	all := func(*part) bool { return true }
	f.c.hold(f.now.Add(time.Second), all)
	req := f.fetchNow().req
	require.Len(t, req.Topics[0].Partitions, 1)
	require.EqualValues(t, 1, req.Topics[0].Partitions[0].Partition, "the one that has caught up goes on")
	f.now = f.now.Add(time.Second)
	require.Len(t, f.fetchNow().req.Topics[0].Partitions, 2)

	f.c.parts[tp0].lag = 10
	f.c.hold(f.now.Add(time.Second), func(*part) bool { return false })
	require.Len(t, f.fetchNow().req.Topics[0].Partitions, 2, "not named, not held")
}
