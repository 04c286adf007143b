package api

import (
	"sync"
	"sync/atomic"

	"barnabas/broker/wire"
)

// produceTurns keeps the produce requests of a connection in their order while one
// of them waits for a coordinator's word: the next one may carry the sequence
// behind it. Other requests wait for nothing before their append and need no turn.
type produceTurns struct {
	held atomic.Int32 // connections that have an entry in waiting

	mu struct {
		sync.Mutex
		waiting map[*wire.Conn][]func() bool
	}
}

func newProduceTurns() *produceTurns {
	t := &produceTurns{}
	t.mu.waiting = map[*wire.Conn][]func() bool{}
	return t
}

// queue lets f wait for its turn; false: it is its turn.
func (t *produceTurns) queue(conn *wire.Conn, f func() bool) bool {
	if t.held.Load() == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting, held := t.mu.waiting[conn]
	if held {
		t.mu.waiting[conn] = append(waiting, f)
	}
	return held
}

// hold makes those that come wait until release.
func (t *produceTurns) hold(conn *wire.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, held := t.mu.waiting[conn]; !held {
		t.mu.waiting[conn] = nil
		t.held.Add(1)
	}
}

// release runs those that wait, up to one that holds the turn itself, as its
// result tells.
func (t *produceTurns) release(conn *wire.Conn) {
	for {
		next := t.next(conn)
		if next == nil || next() {
			return
		}
	}
}

func (t *produceTurns) next(conn *wire.Conn) func() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := t.mu.waiting[conn]
	if len(waiting) == 0 {
		delete(t.mu.waiting, conn)
		t.held.Add(-1)
		return nil
	}
	t.mu.waiting[conn] = waiting[1:]
	return waiting[0]
}
