package netserver

import (
	"container/list"
	"errors"
	"sync"
)

// budget bounds the bytes of requests that are being read or handled, over all connections.
//
// Invariants: used is the sum of what is held; it exceeds limit by at most one frame, and only while someone has
// the overdraft. Frames are charged piece by piece as their bytes arrive, so that a client that announces a
// hundred megabytes and sends nothing holds nothing. The price is that many frames, each half read, may together
// hold all there is and wait for more. That is what the overdraft is for: one frame at a time, the first that had
// to wait, is charged beyond the limit until it is answered, so somebody always gets on.
type budget struct {
	limit int64 // 0: none, nothing is counted

	mu        sync.Mutex
	used      int64
	overdrawn bool
	waiting   list.List // of *claim, oldest first
}

// claim is what one frame holds of the budget.
type claim struct {
	held      int64
	overdraft bool

	want    int64
	granted chan struct{}
}

var errGivenUp = errors.New("connection closed while waiting for memory")

func newBudget(limit int64) *budget { return &budget{limit: max(limit, 0)} }

// take charges n more bytes to c at once; false when c would have to wait.
func (b *budget) take(c *claim, n int64) bool {
	if b.limit == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !c.overdraft && (b.waiting.Len() > 0 || b.used+n > b.limit) {
		return false
	}
	c.held += n
	b.used += n
	return true
}

// wait charges n more bytes to c when they are there, or fails when giveUp is closed before.
func (b *budget) wait(c *claim, n int64, giveUp <-chan struct{}) error {
	b.mu.Lock()
	c.want = n
	c.granted = make(chan struct{})
	place := b.waiting.PushBack(c)
	b.grantLocked()
	b.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-giveUp:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.granted: // in between: it is held, and released with the rest
	default:
		b.waiting.Remove(place)
		b.grantLocked()
	}
	return errGivenUp
}

// release gives back all that c holds.
func (b *budget) release(c *claim) {
	if b.limit == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= c.held
	if c.overdraft {
		b.overdrawn = false
	}
	c.held, c.overdraft = 0, false
	b.grantLocked()
}

// short tells whether someone is waiting.
func (b *budget) short() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting.Len() > 0
}

// grantLocked serves those who wait, oldest first, as far as there is room.
func (b *budget) grantLocked() {
	for b.waiting.Len() > 0 {
		oldest := b.waiting.Front()
		c := oldest.Value.(*claim)
		if b.used+c.want > b.limit {
			if b.overdrawn {
				return
			}
			b.overdrawn, c.overdraft = true, true
		}
		b.waiting.Remove(oldest)
		c.held += c.want
		b.used += c.want
		close(c.granted)
	}
}
