package coordinator

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
)

// loadRetry is the wait after a partition could not be read.
const loadRetry = time.Second

// clockStep is how far the wall clock must leave the monotonic one to be taken
// for set.
const clockStep = time.Second

// Shard is one partition that this broker leads: a core, and the goroutine that
// handles its events one at a time.
type Shard[C Core] struct {
	shell     *Shell[C]
	partition int32
	epoch     int32
	log       *logrus.Entry
	loaded    atomic.Bool
	wake      chan struct{}

	ctx    context.Context // ends with the leadership
	cancel context.CancelFunc

	// gate is held for reading while something is appended, and for writing to
	// depose: afterwards nothing is.
	gate struct {
		sync.RWMutex
		deposed bool
	}

	queue struct {
		sync.Mutex
		events []event[C]
		closed bool
	}

	// Of the goroutine alone.
	core     C
	inFlight int // appends, and functions of Go, whose outcome is to come
	wall     time.Time
}

// event is something to tell the core; refuse is called instead when the shard
// has ended, nil for what does not matter then.
type event[C Core] struct {
	run    func(core C, nowMs int64)
	refuse func(error)
	always bool // an outcome: matters until the end
}

func newShard[C Core](sh *Shell[C], partition, epoch int32) *Shard[C] {
	s := &Shard[C]{shell: sh, partition: partition, epoch: epoch, wake: make(chan struct{}, 1), core: sh.cfg.NewCore(epoch)}
	s.log = sh.cfg.Log.WithFields(logrus.Fields{"partition": partition, "epoch": epoch})
	s.ctx, s.cancel = context.WithCancel(sh.ctx)
	return s
}

// Tell has f run with the core soon, unless the shard ends before.
func (s *Shard[C]) Tell(f func(core C, nowMs int64)) { s.submit(event[C]{run: f}) }

// Go runs ask, which may block until its context ends with the leadership, in a
// goroutine of its own, and then what it returns with the core: always, the shard
// does not end before. It must be called in the course of an event.
func (s *Shard[C]) Go(ask func(ctx context.Context) func(core C, nowMs int64)) {
	s.inFlight++
	s.shell.running.Go(func() { s.outcome(ask(s.ctx)) })
}

// Deposed tells whether the leadership has ended.
func (s *Shard[C]) Deposed() bool { return s.ctx.Err() != nil }

// outcome is told of what is in flight.
func (s *Shard[C]) outcome(f func(core C, nowMs int64)) {
	s.submit(event[C]{always: true, run: func(core C, nowMs int64) {
		s.inFlight--
		f(core, nowMs)
	}})
}

func (s *Shard[C]) submit(e event[C]) {
	s.queue.Lock()
	closed := s.queue.closed && !e.always
	if !closed {
		s.queue.events = append(s.queue.events, e)
	}
	s.queue.Unlock()
	if closed {
		if e.refuse != nil {
			e.refuse(kerr.NotCoordinator)
		}
		return
	}
	s.nudge()
}

func (s *Shard[C]) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Shard[C]) take() ([]event[C], bool) {
	s.queue.Lock()
	defer s.queue.Unlock()
	events := s.queue.events
	s.queue.events = nil
	return events, s.queue.closed
}

// depose ends the shard.
func (s *Shard[C]) depose() {
	s.gate.Lock()
	s.gate.deposed = true
	s.gate.Unlock()
	s.queue.Lock()
	s.queue.closed = true
	s.queue.Unlock()
	s.cancel()
	s.nudge()
}

// run is the shard's goroutine.
func (s *Shard[C]) run() {
	defer s.cancel()
	s.wall = s.shell.cfg.Now()
	if s.load() {
		s.loaded.Store(true)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for unloaded := false; ; {
		events, closed := s.take()
		if closed && !unloaded {
			unloaded = true
			s.core.Unload(s.nowMs())
			s.log.Info("not the coordinator any more")
		}
		for _, e := range events {
			s.handle(e, closed)
		}
		nowMs := s.nowMs()
		s.core.Tick(nowMs)
		s.settle(nowMs)
		if unloaded && s.inFlight == 0 {
			s.rest()
			return
		}
		s.sleep(timer)
	}
}

// rest refuses what came in while the last events were handled.
func (s *Shard[C]) rest() {
	events, _ := s.take()
	for _, e := range events {
		s.handle(e, true)
	}
}

func (s *Shard[C]) handle(e event[C], closed bool) {
	switch {
	case !closed || e.always:
		e.run(s.core, s.nowMs())
	case e.refuse != nil:
		e.refuse(kerr.NotCoordinator)
	}
}

// sleep waits for the next event, or until the core wants to be called.
func (s *Shard[C]) sleep(timer *time.Timer) {
	wait := time.Hour
	if atMs, any := s.core.Next(); any {
		wait = time.Duration(atMs-s.nowMs()) * time.Millisecond
	}
	timer.Reset(max(wait, 0))
	select {
	case <-s.wake:
		// Whoever is woken runs right after who woke it, ahead of the others that are ready. They may have something for
		// the same batch: many small batches cost more than the wait.
		runtime.Gosched()
	case <-timer.C:
	}
}

// nowMs is the wall clock. When somebody sets it, the core's times move along.
func (s *Shard[C]) nowMs() int64 {
	now := s.shell.cfg.Now()
	step := now.Round(0).Sub(s.wall.Round(0)) - now.Sub(s.wall)
	if step > clockStep || step < -clockStep {
		s.core.Shift(step.Milliseconds())
	}
	s.wall = now
	return now.UnixMilli()
}

// load reads the partition; again and again if it cannot be read, since to answer
// without having read it would be to lose what it says. false: deposed meanwhile.
func (s *Shard[C]) load() bool {
	cfg := &s.shell.cfg
	for {
		start := cfg.Now()
		loader := cfg.NewLoader()
		err := s.shell.topic.Read(s.ctx, s.partition, loader.Add)
		switch {
		case s.Deposed():
			return false
		case err == nil:
			what := loader.Load(s.core, s.nowMs())
			s.log.Infof("coordinator of %s, loaded in %s", what, cfg.Now().Sub(start).Round(time.Millisecond))
			return true
		}
		s.log.WithError(err).Error("the partition cannot be read")
		select {
		case <-s.ctx.Done():
			return false
		case <-time.After(loadRetry):
		}
	}
}

// settle does what the core has decided.
func (s *Shard[C]) settle(nowMs int64) {
	out := s.shell.cfg.Take(s, s.core)
	for _, r := range out.Remarks {
		s.log.Info(r)
	}
	for len(out.Appends) > 0 {
		n := gather(out.Appends)
		s.append(nowMs, out.Appends[:n])
		out.Appends = out.Appends[n:]
	}
	for _, answer := range out.Answers {
		answer()
	}
}

// append writes the records of some appends as one batch. If it is too large
// together, each is tried by itself.
func (s *Shard[C]) append(nowMs int64, list []*Append) {
	s.inFlight++
	s.write(nowMs, list, func(first int64, err error) {
		s.outcome(func(_ C, nowMs int64) {
			if len(list) > 1 && (errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)) {
				for i := range list {
					s.append(nowMs, list[i:i+1])
				}
				return
			}
			for _, a := range list {
				a.Ended(nowMs, first, err)
				first += int64(len(a.Records))
			}
		})
	})
}

var errDeposed = errors.New("the partition of the coordinator is led by another broker by now")

func (s *Shard[C]) write(nowMs int64, list []*Append, done func(firstOffset int64, err error)) {
	o := record.BuilderOptions{Codec: s.shell.cfg.Codec}
	var guard *commitlog.VerificationGuard
	if p := list[0].Producer; p != nil {
		o.Producer = &record.Producer{ID: p.ID, Epoch: p.Epoch, Transactional: true} // from sequence 0 each time, as Kafka writes them; nobody checks the order of a coordinator's own
		guard = p.Guard
	}
	b := record.NewBuilder(o)
	for _, a := range list {
		for _, r := range a.Records {
			b.Append(nowMs, r.Key, r.Value)
		}
	}
	batch, err := b.Build()
	if err != nil {
		done(0, err)
		return
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.gate.deposed {
		done(0, errors.Join(kerr.NotLeaderForPartition, errDeposed))
		return
	}
	s.shell.topic.Append(s.partition, batch, guard, done)
}
