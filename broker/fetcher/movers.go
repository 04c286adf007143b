package fetcher

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// MoversConfig is what Movers need to know. Zero sizes and times take Kafka's defaults.
type MoversConfig struct {
	Threads  int           // num.replica.alter.log.dirs.threads; at least 1
	MaxBytes int32         // replica.fetch.max.bytes, of one piece
	Backoff  time.Duration // replica.fetch.backoff.ms

	// Throttle is replica.alter.log.dirs.io.max.bytes.per.second; nil lets everything pass.
	Throttle *partition.Throttle

	Log *logrus.Entry
	Now func() time.Time
}

// Movers copy replicas from one log directory of this broker to another. They implement partition.Movers.
//
// A partition always belongs to the same mover, and a mover finishes one partition before it begins the next, so that a
// large move gives room in the old directory as early as can be.
type Movers struct {
	cfg    MoversConfig
	movers []*mover
}

var _ partition.Movers = (*Movers)(nil)

// NewMovers returns Movers without goroutines; each has one while it has something to move. Close ends them.
func NewMovers(cfg MoversConfig) *Movers {
	defaultTo(&cfg.MaxBytes, 1<<20)
	defaultTo(&cfg.Backoff, time.Second)
	if cfg.Throttle == nil {
		cfg.Throttle = &partition.Throttle{}
	}
	m := &Movers{cfg: cfg}
	for range max(cfg.Threads, 1) {
		m.movers = append(m.movers, &mover{cfg: &m.cfg, told: make(chan struct{}, 1), closed: make(chan struct{})})
	}
	return m
}

func (m *Movers) of(tp commitlog.TopicPartition) *mover {
	return m.movers[fetcherNumber(tp, len(m.movers))]
}

// Start implements partition.Movers.
func (m *Movers) Start(ps []*partition.Partition) {
	for _, p := range ps {
		m.of(p.TP()).add(p)
	}
}

// Stop implements partition.Movers.
func (m *Movers) Stop(tps []commitlog.TopicPartition) {
	for _, tp := range tps {
		m.of(tp).remove(tp)
	}
}

// Moving is how many replicas are being moved, or wait for it.
func (m *Movers) Moving() int {
	n := 0
	for _, mv := range m.movers {
		mv.mu.Lock()
		n += len(mv.queue)
		mv.mu.Unlock()
	}
	return n
}

// Close ends the goroutines and waits for them.
func (m *Movers) Close() {
	for _, mv := range m.movers {
		mv.close()
	}
}

// mover is one of the goroutines and its partitions.
type mover struct {
	cfg     *MoversConfig
	told    chan struct{} // something changed
	closed  chan struct{}
	running sync.WaitGroup

	// mu is held while a piece is copied, so that nothing happens to a log after its partition was taken away.
	mu      sync.Mutex
	queue   []*moving
	awake   bool // the goroutine runs
	stopped bool
}

// moving is a partition on its way.
type moving struct {
	p       *partition.Partition
	delayed time.Time // nothing before, after an error
}

func (m *mover) add(p *partition.Partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	if i := m.find(p.TP()); i >= 0 {
		m.queue[i].p, m.queue[i].delayed = p, time.Time{}
	} else {
		m.queue = append(m.queue, &moving{p: p})
	}
	if !m.awake {
		m.awake = true
		m.running.Go(m.run)
	}
	m.tell()
}

func (m *mover) remove(tp commitlog.TopicPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.find(tp); i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
		m.tell()
	}
}

func (m *mover) find(tp commitlog.TopicPartition) int {
	return slices.IndexFunc(m.queue, func(w *moving) bool { return w.p.TP() == tp })
}

func (m *mover) tell() {
	select {
	case m.told <- struct{}{}:
	default:
	}
}

func (m *mover) close() {
	m.mu.Lock()
	if !m.stopped {
		m.stopped = true
		close(m.closed)
	}
	m.mu.Unlock()
	m.running.Wait()
}

// longestWait is how long a mover sleeps at most: the rate it waits for may be changed.
const longestWait = 500 * time.Millisecond

// run moves until there is nothing to move.
func (m *mover) run() {
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	for {
		wait, more := m.step()
		if !more {
			return
		}
		if wait <= 0 {
			continue
		}
		timer.Reset(min(wait, longestWait))
		select {
		case <-m.closed:
		case <-timer.C:
		case <-m.told:
		}
	}
}

// step copies one piece, or says how long there is nothing to do; more is false when the goroutine is to end.
func (m *mover) step() (wait time.Duration, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped || len(m.queue) == 0 {
		m.awake = false
		return 0, false
	}
	now := m.cfg.Now()
	if wait := m.cfg.Throttle.Wait(now); wait > 0 {
		return wait, true
	}
	w, wait := soonest(m.queue, now)
	if w == nil {
		return wait, true
	}
	copied, done, err := w.p.Move(int(m.cfg.MaxBytes))
	m.cfg.Throttle.Take(now, int64(copied))
	switch log := m.cfg.Log.WithField("partition", w.p.TP().String()); {
	case errors.Is(err, partition.ErrNotMoving):
		done = true
	case errors.Is(err, kerr.KafkaStorageError):
		log.WithError(err).Error("replica is not moved any further")
		done = true
	case err != nil:
		log.WithError(err).Warn("moving the replica failed; will go on after a pause")
		w.delayed = now.Add(m.cfg.Backoff)
	}
	if done {
		m.queue = slices.DeleteFunc(m.queue, func(other *moving) bool { return other == w })
	}
	return 0, true
}

// soonest is the first of the queue that is not delayed, or how long the first of the delayed ones is.
func soonest(queue []*moving, now time.Time) (*moving, time.Duration) {
	var wait time.Duration
	for _, w := range queue {
		left := w.delayed.Sub(now)
		if left <= 0 {
			return w, 0
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return nil, wait
}
