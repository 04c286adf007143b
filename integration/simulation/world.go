package simulation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// world is virtual time: a queue of things that happen, ordered by when and, at one moment, by when they were planned.
// It is the only source of order and of chance, so a seed replays exactly.
type world struct {
	now     time.Duration
	rand    *rand.Rand
	agenda  agenda
	planned uint64
	steps   int
	trace   *strings.Builder // nil unless a run is to be told in full
	// digest sums up all that happened, so that two runs can be compared without their traces.
	digest uint64
}

type happening struct {
	at    time.Duration
	order uint64
	do    func()
}

type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func newWorld(seed uint64) *world {
	return &world{rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// in plans something for after a while.
func (w *world) in(after time.Duration, do func()) {
	w.planned++
	heap.Push(&w.agenda, happening{w.now + after, w.planned, do})
}

// runUntil lets things happen up to a moment, looking after each of them.
func (w *world) runUntil(end time.Duration, look func() error) error {
	for len(w.agenda) > 0 && w.agenda[0].at <= end {
		next := heap.Pop(&w.agenda).(happening)
		w.now = next.at
		w.steps++
		next.do()
		if err := look(); err != nil {
			return err
		}
	}
	w.now = end
	return nil
}

func (w *world) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rand.Int64N(int64(high-low)+1))
}

func (w *world) chance(p float64) bool { return w.rand.Float64() < p }

func pick[T any](w *world, from []T) T { return from[w.rand.IntN(len(from))] }

// tell notes what happened, for the digest and, if asked for, the trace.
func (w *world) tell(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	const prime = 1099511628211
	for _, b := range []byte(line) {
		w.digest = (w.digest ^ uint64(b)) * prime
	}
	w.digest = (w.digest ^ uint64(w.now)) * prime
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%9.3fs  %s\n", w.now.Seconds(), line)
	}
}
