package partition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newThinWorld(t *testing.T) *world {
	w := newWorld(t)
	w.flush = FlushThinISR
	w.close()
	w.open()
	return w
}

func TestH20_AcksAllOfALoneLeaderAreOnItsDisk(t *testing.T) {
	w := newThinWorld(t)
	w.lead([]int32{1, 2}, []int32{1})
	for i := range 5 {
		r := w.produced(-1, batch(3, 10))
		require.NoError(t, r.Err)
		require.GreaterOrEqual(t, w.m.Partition("a", 0).Log().RecoveryPoint(), int64(3*i+3))
	}
}

func TestH20_LogIsFlushedBeforeTheISRBecomesTheLeaderAlone(t *testing.T) {
	w := newThinWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	p := w.m.Partition("a", 0)
	require.NoError(t, w.produced(1, batch(3, 10)).Err)
	w.follower(2, 3)
	require.EqualValues(t, 3, p.Status().HighWatermark)
	require.Zero(t, p.Log().RecoveryPoint(), "two hold it")
	require.NoError(t, w.produced(1, batch(3, 10)).Err)
	recovery := int64(-1)
	w.isr.asked = func() { recovery = p.Log().RecoveryPoint() }
	p.state.Lock()
	p.state.remotes[0].caughtUp = time.Now().Add(-2 * time.Hour)
	p.state.Unlock()
	w.m.shrinkISRs()
	require.Eventually(t, func() bool { return p.Status().HighWatermark == 6 }, time.Minute, time.Millisecond)
	require.GreaterOrEqual(t, recovery, int64(3))
	require.Equal(t, []int32{1}, p.Status().ISR)
}

func TestBecomingAloneByOrderFlushesWhatWasCommittedBefore(t *testing.T) {
	w := newThinWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(3, 10)).Err)
	w.follower(2, 3)
	p := w.m.Partition("a", 0)
	require.Zero(t, p.Log().RecoveryPoint())
	w.lead([]int32{1, 2}, []int32{1})
	require.Eventually(t, func() bool { return p.Log().RecoveryPoint() == 3 }, time.Minute, time.Millisecond)
}

// A reassignment is only just adding the others: nothing that they have is owed to anybody yet.
func TestReplicasThatAreOnlyBeingAddedDoNotMakeAPartitionOneOfMany(t *testing.T) {
	require.Equal(t, 1, settled(&LeaderAndISRPartition{Replicas: []int32{2, 3, 1}, Adding: []int32{2, 3}}))
	require.Equal(t, 2, settled(&LeaderAndISRPartition{Replicas: []int32{3, 1, 2}, Adding: []int32{3}, Removing: []int32{1}}))
}

// What a process that was killed, or one that led, left to the page cache is on no disk, though it can be read.
func TestAFollowerThatAlwaysFlushesHasOnItsDiskWhatItFetchesBehind(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(3, 10)).Err)
	p := w.m.Partition("a", 0)
	require.Zero(t, p.Log().RecoveryPoint())
	w.m.cfg.Flush = FlushAlways
	w.follow([]int32{1, 2})
	s, err := p.FollowerState(w.epoch)
	require.NoError(t, err)
	require.EqualValues(t, 3, s.End)
	require.EqualValues(t, 3, p.Log().RecoveryPoint())
}
