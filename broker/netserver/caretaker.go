package netserver

import (
	"errors"
	"time"
)

var (
	errIdle    = errors.New("idle for too long")
	errStalled = &protocolError{errors.New("request came in too slowly while others waited for memory")}
)

// lookEvery is how often the caretaker asks whether memory is short.
const lookEvery = time.Second

// caretaker looks over the connections now and then: one timer for all of them, where a deadline for each read
// and write would be set a hundred thousand times a second.
func (s *Server) caretaker() {
	pause := lookEvery
	if s.cfg.IdleTimeout > 0 {
		pause = max(min(pause, s.cfg.IdleTimeout/4), time.Millisecond)
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	var idleSeen time.Time
	for {
		select {
		case <-s.stopped:
			return
		case <-tick.C:
		}
		now := time.Now()
		if s.memory.short() {
			s.endStalled(now)
		}
		if s.cfg.IdleTimeout > 0 && now.Sub(idleSeen) >= s.cfg.IdleTimeout/8 {
			idleSeen = now
			s.endIdle(now)
		}
	}
}

// endIdle closes connections on which nothing has moved for the idle time-out.
func (s *Server) endIdle(now time.Time) {
	for _, c := range s.snapshot() {
		if now.Sub(c.wire.LastUse()) > s.cfg.IdleTimeout && !c.waitsForHandler() {
			c.kill(errIdle)
		}
	}
}

// endStalled closes connections that hold memory for a request which does not come on, while others wait for it.
func (s *Server) endStalled(now time.Time) {
	for _, c := range s.snapshot() {
		if c.in.stalled(now) {
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
