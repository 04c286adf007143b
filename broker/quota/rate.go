package quota

import (
	"math"
	"time"
)

// Windows are how a rate is measured.
type Windows struct {
	Samples int           // quota.window.num
	Size    time.Duration // of each [quota.window.size.seconds]
}

func (w Windows) whole() time.Duration { return time.Duration(w.Samples) * w.Size }

// rate is a sum over a ring of samples. One more than the window has is kept: the oldest may have begun before the
// window and still reach into it.
type rate struct {
	samples []sample
	current int
}

type sample struct {
	began, last time.Time // last is when it was added to
	sum         float64
}

func (s *sample) begin(now time.Time) { *s = sample{began: now, last: now} }

func (r *rate) add(w Windows, value float64, now time.Time) {
	if len(r.samples) == 0 {
		r.samples = make([]sample, 1, w.Samples+1)
		r.samples[0].begin(now)
	}
	s := &r.samples[r.current]
	if now.Sub(s.began) >= w.Size {
		r.current = (r.current + 1) % (w.Samples + 1)
		if r.current == len(r.samples) {
			r.samples = append(r.samples, sample{})
		}
		s = &r.samples[r.current]
		s.begin(now)
	}
	s.sum += value
	s.last = now
}

// measure is the rate per second and the time it is over: what has passed since the oldest sample began, but never
// less than all samples but one, so that the first bytes of a client are not taken for a flood.
func (r *rate) measure(w Windows, now time.Time) (perSecond float64, over time.Duration) {
	oldest := now
	var sum float64
	for i := range r.samples {
		s := &r.samples[i]
		if now.Sub(s.last) >= w.whole() {
			s.begin(now)
		}
		sum += s.sum
		if s.began.Before(oldest) {
			oldest = s.began
		}
	}
	over = now.Sub(oldest)
	if full := int(over / w.Size); full < w.Samples-1 {
		over += time.Duration(w.Samples-1-full) * w.Size
	}
	over = max(over, time.Millisecond)
	return sum / over.Seconds(), over
}

// idle tells that nothing of what was added counts any more.
func (r *rate) idle(w Windows, now time.Time) bool {
	for i := range r.samples {
		if now.Sub(r.samples[i].last) < w.whole() {
			return false
		}
	}
	return true
}

// pause is how long a client has to wait until its rate is back at the limit, to the millisecond.
func pause(perSecond, limit float64, over time.Duration) time.Duration {
	if perSecond <= limit {
		return 0
	}
	ms := math.Round((perSecond - limit) / limit * float64(over.Milliseconds()))
	return time.Duration(min(ms, math.MaxInt32)) * time.Millisecond // throttle_time_ms has 32 bits
}

// average is the mean of what was added in the windows.
type average struct{ sum, times rate }

func (a *average) add(w Windows, value float64, now time.Time) {
	a.sum.add(w, value, now)
	a.times.add(w, 1, now)
}

// measure is 0 when there is nothing to measure.
func (a *average) measure(w Windows, now time.Time) float64 {
	sum, _ := a.sum.measure(w, now)
	times, _ := a.times.measure(w, now)
	if times <= 0 {
		return 0
	}
	return sum / times
}
