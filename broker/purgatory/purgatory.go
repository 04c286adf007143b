// Package purgatory keeps requests that cannot be answered yet.
//
// A waiting request is a Wait inside the caller's own struct. It stands in the
// lists of the things it waits for (List, one per thing, owned by that thing)
// and in one heap of deadlines. Whoever changes such a thing calls List.Wake;
// every waiting request there looks again. One goroutine per Purgatory answers
// those whose time is over.
//
// Invariants:
//
//   - Operation.Complete is called exactly once for each Wait that was parked
//   - TryComplete calls of one Wait never overlap, and none begins after Complete
//   - a Wait that is done stands in no list and not in the heap: waiting costs
//     no memory afterwards
//   - no lock of this package is held while Complete runs; while TryComplete
//     runs, only the Wait's own
package purgatory

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// Operation is what a waiting request does when it is looked at.
type Operation interface {
	// TryComplete tells whether the request can be answered now. place is the
	// index, in the lists given to Park, of the list that was woken, or Everywhere.
	// It must not block and must not call Wake.
	TryComplete(place int) bool
	// Complete answers the request. expired: its time is over.
	Complete(expired bool)
}

// Everywhere as a place means that anything may have changed.
const Everywhere = -1

// Wait is the place of one request in a purgatory. The zero value is ready for
// one Park.
type Wait struct {
	mu       sync.Mutex // serialises TryComplete; taken before list and heap locks
	done     bool
	op       Operation
	owner    *Purgatory
	places   []entry
	one      [1]entry // backs places for the common single list
	deadline time.Time
	heapAt   int // index in the heap; -1 when not in it. Guarded by Purgatory.mu
}

// entry is a Wait's place in one list: a doubly linked list needs no search to
// leave.
type entry struct {
	wait       *Wait
	list       *List
	place      int
	prev, next *entry
	linked     bool // guarded by list.mu
}

// List holds the requests that wait for one thing. The zero value is ready.
type List struct {
	count atomic.Int32 // read without the lock: waking an empty list costs nothing
	mu    sync.Mutex
	first *entry
	last  *entry
}

// Len returns how many requests wait here.
func (l *List) Len() int { return int(l.count.Load()) }

// wakes are reused: a busy partition wakes its list at each append.
var wakes = sync.Pool{New: func() any { return new([]*entry) }}

// Wake makes every request in the list look again, in the order they came. It
// must be called without locks that an Operation takes.
func (l *List) Wake() {
	if l.count.Load() == 0 {
		return
	}
	buf := wakes.Get().(*[]*entry)
	waiting := (*buf)[:0]
	l.mu.Lock()
	for e := l.first; e != nil; e = e.next {
		waiting = append(waiting, e)
	}
	l.mu.Unlock()
	for i, e := range waiting {
		e.wait.look(e.place)
		waiting[i] = nil
	}
	*buf = waiting[:0]
	wakes.Put(buf)
}

func (l *List) add(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.linked = true
	e.prev = l.last
	if l.last != nil {
		l.last.next = e
	} else {
		l.first = e
	}
	l.last = e
	l.count.Add(1)
}

func (l *List) remove(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !e.linked {
		return
	}
	e.linked = false
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	e.prev, e.next = nil, nil
	l.count.Add(-1)
}

// Purgatory is the deadlines of waiting requests and the goroutine that watches
// them.
type Purgatory struct {
	max    int
	parked atomic.Int64

	mu     sync.Mutex
	heap   deadlines
	closed bool
	sleeps time.Time // when the goroutine will next look; zero: not before it is told

	tell    chan struct{}
	stopped chan struct{}
}

// New starts a purgatory for at most max requests.
func New(max int) *Purgatory {
	p := &Purgatory{max: max, tell: make(chan struct{}, 1), stopped: make(chan struct{})}
	go p.expire()
	return p
}

// Len returns how many requests wait.
func (p *Purgatory) Len() int { return int(p.parked.Load()) }

// Park makes op wait in the given lists until TryComplete says yes or the
// timeout is over. It looks once more after op stands in all lists, so nothing
// that happens meanwhile is missed; Complete may therefore run before Park
// returns. When the purgatory is full or closed, op is completed as expired at
// once: a bound on memory that answers early is still an answer.
func (p *Purgatory) Park(op Operation, w *Wait, timeout time.Duration, lists ...*List) {
	w.op, w.owner, w.heapAt = op, p, -1
	if p.parked.Add(1) > int64(p.max) {
		p.parked.Add(-1)
		w.done = true
		op.Complete(true)
		return
	}
	w.deadline = time.Now().Add(timeout)
	w.places = w.one[:0]
	if len(lists) > 1 {
		w.places = make([]entry, 0, len(lists))
	}

	// The Wait is locked while it takes its places: a waker that finds it in its
	// first list waits until it stands in all, and leave() then misses none.
	w.mu.Lock()
	for i, l := range lists {
		w.places = append(w.places, entry{wait: w, list: l, place: i})
		l.add(&w.places[i])
	}
	if op.TryComplete(Everywhere) {
		w.done = true
		w.mu.Unlock()
		p.leave(w)
		op.Complete(false)
		return
	}
	open := p.schedule(w)
	if !open {
		w.done = true
	}
	w.mu.Unlock()
	if !open {
		p.leave(w)
		op.Complete(true)
	}
}

// look asks a waiting request whether it can be answered and answers it if so.
func (w *Wait) look(place int) {
	w.mu.Lock()
	if w.done || !w.op.TryComplete(place) {
		w.mu.Unlock()
		return
	}
	w.done = true
	p := w.owner
	w.mu.Unlock()
	p.leave(w)
	w.op.Complete(false)
}

// leave takes a finished Wait out of everything.
func (p *Purgatory) leave(w *Wait) {
	for i := range w.places {
		w.places[i].list.remove(&w.places[i])
	}
	p.mu.Lock()
	if w.heapAt >= 0 {
		heap.Remove(&p.heap, w.heapAt)
	}
	p.mu.Unlock()
	p.parked.Add(-1)
}

// schedule enters the deadline; false when the purgatory is closed.
func (p *Purgatory) schedule(w *Wait) bool {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return false
	}
	heap.Push(&p.heap, w)
	earlier := p.sleeps.IsZero() || w.deadline.Before(p.sleeps)
	if earlier {
		p.sleeps = w.deadline
	}
	p.mu.Unlock()
	if earlier {
		p.signal()
	}
	return true
}

func (p *Purgatory) signal() {
	select {
	case p.tell <- struct{}{}:
	default:
	}
}

// Close answers everything that waits, as expired, and ends the goroutine.
func (p *Purgatory) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.signal()
	<-p.stopped
}

// expire is the goroutine: it sleeps until the earliest deadline.
func (p *Purgatory) expire() {
	defer close(p.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var due []*Wait
	for {
		var closed bool
		var sleep time.Duration
		due, sleep, closed = p.due(due[:0], time.Now())
		for i, w := range due {
			w.mu.Lock()
			first := !w.done
			w.done = true
			w.mu.Unlock()
			if first {
				p.leave(w)
				w.op.Complete(true)
			}
			due[i] = nil
		}
		if len(due) > 0 {
			continue
		}
		if closed {
			return
		}
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-p.tell:
		}
	}
}

// dueAtOnce bounds how many expired requests are taken out in one go.
const dueAtOnce = 1024

// due takes out what is over at now and says how long nothing else will be.
func (p *Purgatory) due(due []*Wait, now time.Time) ([]*Wait, time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.heap) > 0 && len(due) < dueAtOnce && (p.closed || !p.heap[0].deadline.After(now)) {
		due = append(due, heap.Pop(&p.heap).(*Wait))
	}
	if len(p.heap) == 0 {
		p.sleeps = time.Time{}
		return due, time.Hour, p.closed
	}
	p.sleeps = p.heap[0].deadline
	return due, p.sleeps.Sub(now), p.closed
}

// deadlines is a heap of waits by deadline.
type deadlines []*Wait

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].heapAt, d[j].heapAt = i, j
}
func (d *deadlines) Push(x any) {
	w := x.(*Wait)
	w.heapAt = len(*d)
	*d = append(*d, w)
}
func (d *deadlines) Pop() any {
	old := *d
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	w.heapAt = -1
	return w
}
