package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestADirectoryThatFillsUpAgainAtOnceIsLeftAloneForLonger(t *testing.T) {
	var r rooms
	now := time.Unix(1_700_000_000, 0)
	require.Equal(t, lookForRoom, r.full("/a", now))
	var pauses []time.Duration
	for range 12 {
		now = now.Add(time.Second)
		r.back("/a", now)
		now = now.Add(time.Second)
		pauses = append(pauses, r.full("/a", now))
	}
	require.Equal(t, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}, pauses[:3])
	require.Equal(t, longestPause, pauses[11])
	require.Equal(t, lookForRoom, r.full("/b", now), "each directory by itself")
	r.back("/a", now)
	require.Equal(t, lookForRoom, r.full("/a", now.Add(lasting*longestPause)), "it was good for a while")
}
