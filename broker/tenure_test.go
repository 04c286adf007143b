package broker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// playedSessions is a session that ends when the test says so.
type playedSessions struct {
	generation int
	alive      bool
}

func (s *playedSessions) Session() (int64, int)     { return 7, s.generation }
func (s *playedSessions) Alive(generation int) bool { return s.alive && generation == s.generation }

func TestOnlyTheSessionInWhichItBeganVouchesForALeadership(t *testing.T) {
	s := &playedSessions{generation: 1, alive: true}
	led := newTenure(s)
	require.False(t, led.lasts(3))
	led.began(3)
	require.True(t, led.lasts(3))
	require.False(t, led.lasts(4))
	s.alive = false
	require.False(t, led.lasts(3), "somebody else may have been elected")
	s.generation, s.alive = 2, true
	require.False(t, led.lasts(3), "what was in the last session may have ended with it")
	led.began(3)
	require.True(t, led.lasts(3), "the controller has said it again")
	led.ended(3)
	require.False(t, led.lasts(3))
}
