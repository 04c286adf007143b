package netserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestComplaintsAreCountedWhenTheyAreTooMany(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	for range paceLines {
		allowed, skipped := p.allow(now)
		require.True(t, allowed)
		require.Zero(t, skipped)
	}
	for range 7 {
		allowed, _ := p.allow(now.Add(paceWindow - 1))
		require.False(t, allowed)
	}
	allowed, skipped := p.allow(now.Add(paceWindow))
	require.True(t, allowed)
	require.Equal(t, 7, skipped)
}
