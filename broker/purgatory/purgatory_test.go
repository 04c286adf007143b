package purgatory

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waiter is a request that is ready when its flag is set.
type waiter struct {
	Wait
	ready     atomic.Bool
	looking   atomic.Int32
	overlaps  atomic.Int32
	late      atomic.Int32
	completed atomic.Int32
	expired   atomic.Bool
	done      chan struct{}
}

func newWaiter() *waiter { return &waiter{done: make(chan struct{}, 8)} }

func (w *waiter) TryComplete(int) bool {
	if w.looking.Add(1) > 1 {
		w.overlaps.Add(1)
	}
	if w.completed.Load() > 0 {
		w.late.Add(1)
	}
	ready := w.ready.Load()
	w.looking.Add(-1)
	return ready
}

func (w *waiter) Complete(expired bool) {
	w.completed.Add(1)
	w.expired.Store(expired)
	w.done <- struct{}{}
}

func TestReadyRequestDoesNotWait(t *testing.T) {
	p := New(10)
	defer p.Close()
	var l List
	w := newWaiter()
	w.ready.Store(true)
	p.Park(w, &w.Wait, time.Hour, &l)
	require.EqualValues(t, 1, w.completed.Load())
	require.False(t, w.expired.Load())
	require.Zero(t, l.Len())
	require.Zero(t, p.Len())
}

func TestWakeAnswersWhoIsReadyAndLeavesTheOthers(t *testing.T) {
	p := New(10)
	defer p.Close()
	var l List
	a, b := newWaiter(), newWaiter()
	p.Park(a, &a.Wait, time.Hour, &l)
	p.Park(b, &b.Wait, time.Hour, &l)
	a.ready.Store(true)
	l.Wake()
	require.EqualValues(t, 1, a.completed.Load())
	require.Zero(t, b.completed.Load())
	require.Equal(t, 1, l.Len())
	require.Equal(t, 1, p.Len())
}

func TestTimeOverIsTold(t *testing.T) {
	p := New(10)
	defer p.Close()
	var l List
	long, short := newWaiter(), newWaiter()
	p.Park(long, &long.Wait, time.Hour, &l)
	p.Park(short, &short.Wait, time.Millisecond, &l)
	<-short.done
	require.True(t, short.expired.Load())
	require.Zero(t, long.completed.Load())
	require.Equal(t, 1, p.Len())
}

func TestOneInManyListsLeavesAllOfThem(t *testing.T) {
	p := New(10)
	defer p.Close()
	lists := make([]*List, 5)
	for i := range lists {
		lists[i] = new(List)
	}
	w := newWaiter()
	p.Park(w, &w.Wait, time.Hour, lists...)
	w.ready.Store(true)
	lists[3].Wake()
	for _, l := range lists {
		require.Zero(t, l.Len())
	}
	lists[0].Wake()
	require.EqualValues(t, 1, w.completed.Load())
}

func TestOneTooManyIsAnsweredAtOnce(t *testing.T) {
	p := New(1)
	defer p.Close()
	var l List
	a, b := newWaiter(), newWaiter()
	p.Park(a, &a.Wait, time.Hour, &l)
	p.Park(b, &b.Wait, time.Hour, &l)
	require.True(t, b.expired.Load())
	require.EqualValues(t, 1, b.completed.Load())
	require.Zero(t, a.completed.Load())
}

func TestCloseAnswersEverything(t *testing.T) {
	p := New(5000)
	var l List
	ws := make([]*waiter, 3000)
	for i := range ws {
		ws[i] = newWaiter()
		p.Park(ws[i], &ws[i].Wait, time.Hour, &l)
	}
	p.Close()
	for _, w := range ws {
		require.EqualValues(t, 1, w.completed.Load())
	}
	late := newWaiter()
	p.Park(late, &late.Wait, time.Hour, &l)
	require.True(t, late.expired.Load())
	require.Zero(t, l.Len())
}

// Wakers, deadlines and parking race; each request is still answered once, and
// nothing stays behind.
func TestEachIsAnsweredOnceUnderRace(t *testing.T) {
	p := New(1 << 20)
	lists := make([]List, 8)
	const parkers, each = 4, 500
	all := make([][]*waiter, parkers)
	var parking, waking sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		waking.Add(1)
		go func() {
			defer waking.Done()
			for {
				select {
				case <-stop:
					return
				default:
					lists[rand.IntN(len(lists))].Wake()
				}
			}
		}()
	}
	for k := range parkers {
		parking.Add(1)
		go func() {
			defer parking.Done()
			for range each {
				w := newWaiter()
				all[k] = append(all[k], w)
				var in []*List
				for _, i := range rand.Perm(len(lists))[:1+rand.IntN(4)] {
					in = append(in, &lists[i])
				}
				p.Park(w, &w.Wait, time.Duration(rand.IntN(2000))*time.Microsecond, in...)
				if rand.IntN(2) == 0 {
					w.ready.Store(true)
					in[0].Wake()
				}
			}
		}()
	}
	parking.Wait()
	for _, ws := range all {
		for _, w := range ws {
			<-w.done
		}
	}
	close(stop)
	waking.Wait()
	p.Close()
	for _, ws := range all {
		for _, w := range ws {
			require.EqualValues(t, 1, w.completed.Load())
			require.Zero(t, w.overlaps.Load(), "TryComplete ran twice at a time")
			require.Zero(t, w.late.Load(), "TryComplete ran after Complete")
		}
	}
	for i := range lists {
		require.Zero(t, lists[i].Len())
	}
	require.Zero(t, p.Len())
}

func BenchmarkParkAndWake(b *testing.B) {
	p := New(1 << 20)
	defer p.Close()
	var l List
	b.ReportAllocs()
	for b.Loop() {
		w := &waiter{done: make(chan struct{}, 1)}
		p.Park(w, &w.Wait, time.Second, &l)
		w.ready.Store(true)
		l.Wake()
	}
}
