package peer

import (
	"context"
	"time"
)

// pauses are the waits between attempts to connect: doubled with each failure, from least to most.
type pauses struct {
	least, most time.Duration
	last        time.Duration
	until       time.Time // no attempt before it
}

// failed makes the next attempt wait. A connection that ends before its first answer has failed too.
func (p *pauses) failed(now time.Time) {
	p.last = min(max(2*p.last, p.least), p.most)
	p.until = now.Add(p.last)
}

// worked ends the pauses.
func (p *pauses) worked() { p.last, p.until = 0, time.Time{} }

// sleepUntil returns at until, or with the error of ctx.
func sleepUntil(ctx context.Context, until time.Time) error {
	wait := time.Until(until)
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
