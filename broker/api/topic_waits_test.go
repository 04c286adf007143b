package api

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/metadata"
)

// TestAWaitIsFinishedOnceWhateverRaces lets the deadline, updates and the first
// look race for the same waits, each of which works on state of its own.
func TestAWaitIsFinishedOnceWhateverRaces(t *testing.T) {
	waits := newTopicWaits(metadata.NewCache())
	const n = 300
	var finished atomic.Int32
	var open atomic.Bool
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			answered := false
			done := make(chan struct{})
			waits.await(time.Duration(i%5)*time.Millisecond, func(*metadata.Snapshot) bool {
				return !answered && open.Load() // a read that the race detector holds against the write below
			}, func(*metadata.Snapshot) {
				answered = true
				finished.Add(1)
				close(done)
			})
			<-done
		})
		if i == n/2 {
			open.Store(true)
		}
		waits.changed()
	}
	all.Wait()
	require.Equal(t, int32(n), finished.Load())
	waits.mu.Lock() // a timer may still find that its wait is over
	defer waits.mu.Unlock()
	require.Empty(t, waits.mu.waits)
}
