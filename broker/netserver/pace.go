package netserver

import (
	"sync"
	"time"
)

// A client that breaks the protocol is worth a line in the log; a thousand a second are not.
const (
	paceLines  = 10
	paceWindow = 10 * time.Second
)

// pace lets so many lines through in each window of time, and counts the others.
type pace struct {
	mu      sync.Mutex
	began   time.Time
	lines   int
	skipped int
}

// allow tells whether to write a line now, and how many were not written since the last one.
func (p *pace) allow(now time.Time) (allowed bool, skipped int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.began) >= paceWindow {
		p.began, p.lines = now, 0
	}
	if p.lines == paceLines {
		p.skipped++
		return false, 0
	}
	p.lines++
	skipped = p.skipped
	p.skipped = 0
	return true, skipped
}
