package tools

import (
	"context"
	"time"
)

// pace spaces what is done out over time: so many a second, or at once when that is negative.
type pace struct {
	began     time.Time
	perSecond int64
}

// wait returns when the n-th, from 0 on, is due; 0 a second is never.
func (p pace) wait(ctx context.Context, n int64) error {
	const slack = 2 * time.Millisecond // shorter sleeps are longer than asked for
	if p.perSecond < 0 {
		return ctx.Err()
	}
	if p.perSecond == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	due := p.began.Add(time.Duration(float64(n) / float64(p.perSecond) * float64(time.Second)))
	left := time.Until(due)
	if left < slack {
		return ctx.Err()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
