package metrics

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Times are counted in buckets whose width grows with them: eight to each doubling, from a microsecond to about a
// minute, so that a quantile is at most an eighth too high.
const (
	perDoubling = 8
	doublings   = 26
	buckets     = (doublings + 1) * perDoubling
)

type counts [buckets]int64

// latency is the distribution of some times since the start. Adding to it takes three atomic additions.
type latency struct {
	count   atomic.Int64
	micros  atomic.Int64 // sum
	buckets [buckets]atomic.Int64
}

func (l *latency) add(took time.Duration) {
	micros := max(0, took.Microseconds())
	l.count.Add(1)
	l.micros.Add(micros)
	l.buckets[bucketOf(uint64(micros))].Add(1)
}

func (l *latency) load() (c counts) {
	for i := range l.buckets {
		c[i] = l.buckets[i].Load()
	}
	return c
}

// bucketOf: values below perDoubling have a bucket each; above, the three bits after the first choose.
func bucketOf(micros uint64) int {
	if micros < perDoubling {
		return int(micros)
	}
	doubling := bits.Len64(micros) - 3 // 1 for 8 to 15
	return min(doubling*perDoubling+int(micros>>(doubling-1))-perDoubling, buckets-1)
}

// topOf is the largest number of microseconds that falls into a bucket.
func topOf(bucket int) uint64 {
	if bucket < perDoubling {
		return uint64(bucket)
	}
	doubling := bucket / perDoubling
	return uint64(bucket%perDoubling+perDoubling+1)<<(doubling-1) - 1
}

// quantile is the time, in milliseconds, that the share q of what was counted did not exceed; 0 when nothing was.
func (c *counts) quantile(q float64) float64 {
	var total int64
	for _, n := range c {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank := max(1, int64(q*float64(total)+0.5))
	var seen int64
	for i, n := range c {
		if seen += n; seen >= rank {
			return float64(topOf(i)) / 1000
		}
	}
	return float64(topOf(buckets-1)) / 1000
}

// Quantiles tell of the last minutes, as Kafka's do, though counting knows of no time: a scrape takes what was
// counted since an earlier one.
const (
	windowLength = 5 * time.Minute
	windowStep   = windowLength / 5 // between the readings that are kept
)

// window is the readings of a distribution that later ones are compared with, the oldest first.
type window struct {
	kept []reading
}

type reading struct {
	at     time.Time
	counts counts
}

// since returns what was counted in about the last windowLength before now, and keeps the reading.
func (w *window) since(now time.Time, c counts) counts {
	for len(w.kept) > 1 && now.Sub(w.kept[1].at) >= windowLength {
		w.kept = w.kept[1:]
	}
	recent := c
	if len(w.kept) > 0 && now.Sub(w.kept[0].at) >= windowLength {
		for i, before := range w.kept[0].counts {
			recent[i] -= before
		}
	}
	if n := len(w.kept); n == 0 || now.Sub(w.kept[n-1].at) >= windowStep {
		w.kept = append(w.kept, reading{at: now, counts: c})
	}
	return recent
}
