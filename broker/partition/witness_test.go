package partition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALeaderIsSureWhenTheISRFetches(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 10, 10)
	asked := w.now
	require.False(t, w.c.seen(asked), "nobody has fetched")
	w.now = w.now.Add(time.Second)
	w.fetch(2, 10)
	require.False(t, w.c.seen(asked), "3 may lead by now")
	w.fetch(3, 4)
	require.True(t, w.c.seen(asked), "however far they are")
	require.False(t, w.c.seen(w.now), "that was then")

	alone := leading(t, []int32{1}, 10, 10)
	require.True(t, alone.c.seen(alone.now), "nobody else may be elected")
	alone.c.follow(&LeaderAndISRPartition{Topic: "t", Leader: 2, LeaderEpoch: 6, ISR: []int32{1, 2}, Replicas: []int32{1, 2, 3}})
	require.False(t, alone.c.seen(asked), "a follower is none")
}

func TestWhatTheISRHoldsIsKnownFromItsFetches(t *testing.T) {
	w := leading(t, []int32{1, 2}, 10, 0)
	require.False(t, w.c.held(1), "nothing is known of 2")
	w.fetch(2, 6)
	require.True(t, w.c.held(6))
	require.False(t, w.c.held(7))
	w.min = 3
	require.True(t, w.c.held(6), "fewer than min.insync.replicas are enough")
	require.True(t, leading(t, []int32{1}, 10, 0).c.held(10))
}
