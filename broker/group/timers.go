package group

import "container/heap"

// timer fires once at a time. Setting it later costs nothing: the heap keeps the
// earlier time and looks again then, since sessions are prolonged by every
// heartbeat and hardly ever end.
type timer struct {
	atMs   int64 // when to fire
	heapMs int64 // where the heap has it, never after atMs
	order  int64 // among timers of one time: in the order they were set
	index  int
	fire   func(nowMs int64)
}

const notSet = -1

func newTimer(fire func(nowMs int64)) *timer { return &timer{index: notSet, fire: fire} }

// timers is a heap of those that are set.
type timers struct {
	heap timerHeap
	last int64
}

func (t *timers) set(x *timer, atMs int64) {
	x.atMs = atMs
	if x.index != notSet {
		if atMs < x.heapMs {
			x.heapMs = atMs
			heap.Fix(&t.heap, x.index)
		}
		return
	}
	t.last++
	x.heapMs, x.order = atMs, t.last
	heap.Push(&t.heap, x)
}

// cancel is harmless for a timer that is not set, or nil.
func (t *timers) cancel(x *timer) {
	if x != nil && x.index != notSet {
		heap.Remove(&t.heap, x.index)
	}
}

// next is when to look again; false when nothing is set.
func (t *timers) next() (atMs int64, any bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].heapMs, true
}

// due takes out the next timer whose time has come; nil when there is none.
func (t *timers) due(nowMs int64) *timer {
	for len(t.heap) > 0 && t.heap[0].heapMs <= nowMs {
		x := t.heap[0]
		if x.atMs > nowMs {
			x.heapMs = x.atMs
			heap.Fix(&t.heap, 0)
			continue
		}
		heap.Pop(&t.heap)
		return x
	}
	return nil
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].heapMs != h[j].heapMs {
		return h[i].heapMs < h[j].heapMs
	}
	return h[i].order < h[j].order
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for container/heap.
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop is for container/heap.
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = notSet
	return t
}
