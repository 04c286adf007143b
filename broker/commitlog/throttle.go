package commitlog

import (
	"math"
	"sync"
	"time"
)

// throttle keeps several threads together to a number of bytes per second.
type throttle struct {
	mu   sync.Mutex
	rate float64   // bytes per second; 0: without limit
	free time.Time // when the bytes so far will have been worth their time
}

func (t *throttle) setRate(bytesPerSecond float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rate, t.free = bytesPerSecond, time.Time{}
	if bytesPerSecond >= math.MaxInt64 {
		t.rate = 0
	}
}

// wait books n bytes and says how long to wait for them.
func (t *throttle) wait(n int64, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rate <= 0 || n <= 0 {
		return 0
	}
	if t.free.Before(now) {
		t.free = now
	}
	t.free = t.free.Add(time.Duration(float64(n) / t.rate * float64(time.Second)))
	return t.free.Sub(now)
}

// pace waits for n bytes; errStopping when stop is closed.
func (t *throttle) pace(n int64, stop <-chan struct{}) error {
	pause := t.wait(n, time.Now())
	if pause <= 0 {
		select {
		case <-stop:
			return errStopping
		default:
			return nil
		}
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-stop:
		return errStopping
	case <-timer.C:
		return nil
	}
}
