package netserver

import (
	"errors"
	"time"
)

var (
	errIdle    = errors.New("idle for too long")
	errStalled = &protocolError{errors.New("request came in too slowly while others waited for memory")}
)

// caretaker looks over the connections now and then: one timer for all of them, where a deadline for each read
// and write would be set a hundred thousand times a second.
func (s *Server) caretaker() {
	pause := time.Second
	if s.cfg.IdleTimeout > 0 {
		pause = max(min(pause, s.cfg.IdleTimeout/4), time.Millisecond)
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-s.stopped:
			return
		case <-tick.C:
			s.inspect(time.Now(), s.memory.short())
		}
	}
}

func (s *Server) inspect(now time.Time, memoryShort bool) {
	if s.cfg.IdleTimeout <= 0 && !memoryShort {
		return
	}
	for _, c := range s.snapshot() {
		switch {
		case s.cfg.IdleTimeout > 0 && now.Sub(c.wire.LastUse()) > s.cfg.IdleTimeout && !c.waitsForHandler():
			c.kill(errIdle)
		case memoryShort && c.in.stalled(now):
			c.kill(errStalled)
		}
	}
}

// waitsForHandler tells whether it is the broker's turn: a request is not answered yet, and no answer is stuck at
// the client. Such a connection is not idle, however long a fetch may wait.
func (c *conn) waitsForHandler() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.head != nil && !c.mu.writing
}
