package embedded

import "sync"

// maxRequestBytes bounds what decoded requests of all connections together may take while they wait for the engine.
const maxRequestBytes = 64 << 20

// budget is a number of bytes that many share. It is taken only for frames that have arrived whole, so whoever holds some is
// about to be served: a client that stalls in the middle of a frame keeps nothing from the others.
type budget struct {
	mu struct {
		sync.Mutex
		free   int64
		closed bool
	}
	freed *sync.Cond
}

func newBudget(n int64) *budget {
	b := &budget{}
	b.mu.free = n
	b.freed = sync.NewCond(&b.mu)
	return b
}

// take waits for n bytes; false means that the engine is ending. One request may overdraw, so that none is too large for ever.
func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.mu.free <= 0 && !b.mu.closed {
		b.freed.Wait()
	}
	b.mu.free -= n
	return !b.mu.closed
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.free += n
	b.freed.Broadcast()
}

func (b *budget) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.closed = true
	b.freed.Broadcast()
}
