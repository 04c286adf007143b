package txn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
)

// A batch gathers the records of several ids while they come faster than they are
// written, up to these bounds.
const (
	gatherBytes   = 64 << 10
	gatherRecords = 1000
)

// loadRetry is the wait after a partition could not be read.
const loadRetry = time.Second

// clockStep is how far the wall clock must leave the monotonic one to be taken
// for set.
const clockStep = time.Second

// shard is one partition of __transaction_state that this broker leads: a core,
// and the goroutine that handles its events one at a time.
type shard struct {
	c         *Coordinator
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
		events []event
		closed bool
	}

	// Of the goroutine alone.
	core     *Core
	inFlight int // appends and wanted ids that are not answered
	wall     time.Time
}

// event is something to tell the core; refuse is called instead when the shard
// has ended, nil for what does not matter then.
type event struct {
	run    func(core *Core, nowMs int64)
	refuse func(error)
	always bool // somebody waits for what comes of it: matters until the end
}

func newShard(c *Coordinator, partition, epoch int32) *shard {
	s := &shard{c: c, partition: partition, epoch: epoch, wake: make(chan struct{}, 1), core: NewCore(c.cfg.Core, epoch)}
	s.log = c.cfg.Log.WithFields(logrus.Fields{"transaction partition": partition, "epoch": epoch})
	s.ctx, s.cancel = context.WithCancel(c.ctx)
	return s
}

func (s *shard) submit(e event) {
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

func (s *shard) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *shard) take() ([]event, bool) {
	s.queue.Lock()
	defer s.queue.Unlock()
	events := s.queue.events
	s.queue.events = nil
	return events, s.queue.closed
}

// depose ends the shard.
func (s *shard) depose() {
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
func (s *shard) run() {
	defer s.cancel()
	s.wall = s.c.cfg.Now()
	if s.load() {
		s.loaded.Store(true)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for unloaded := false; ; {
		events, closed := s.take()
		if closed && !unloaded {
			unloaded = true
			s.core.Unload()
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
func (s *shard) rest() {
	events, _ := s.take()
	for _, e := range events {
		s.handle(e, true)
	}
}

func (s *shard) handle(e event, closed bool) {
	switch {
	case !closed || e.always:
		e.run(s.core, s.nowMs())
	case e.refuse != nil:
		e.refuse(kerr.NotCoordinator)
	}
}

// sleep waits for the next event, or until the core wants to try something again.
func (s *shard) sleep(timer *time.Timer) {
	wait := time.Hour
	if atMs, any := s.core.Next(); any {
		wait = time.Duration(atMs-s.nowMs()) * time.Millisecond
	}
	timer.Reset(max(wait, 0))
	select {
	case <-s.wake:
	case <-timer.C:
	}
}

// nowMs is the wall clock. When somebody sets it, what waits moves along.
func (s *shard) nowMs() int64 {
	now := s.c.cfg.Now()
	step := now.Round(0).Sub(s.wall.Round(0)) - now.Sub(s.wall)
	if step > clockStep || step < -clockStep {
		s.core.Shift(step.Milliseconds())
	}
	s.wall = now
	return now.UnixMilli()
}

// load reads the partition; again and again if it cannot be read, since to answer
// without having read it would be to lose transactions. false: deposed meanwhile.
func (s *shard) load() bool {
	for {
		start := s.c.cfg.Now()
		loader := NewLoader(s.c.cfg.Limits)
		err := s.c.reader.Read(s.ctx, s.partition, loader.Add)
		switch {
		case s.ctx.Err() != nil:
			return false
		case err == nil:
			s.core.Loaded(s.nowMs(), loader)
			s.log.Infof("coordinator of %d transactional ids, %d records loaded in %s", s.core.IDs(), loader.Records, s.c.cfg.Now().Sub(start).Round(time.Millisecond))
			return true
		}
		s.log.WithError(err).Error("the transaction partition cannot be read")
		select {
		case <-s.ctx.Done():
			return false
		case <-time.After(loadRetry):
		}
	}
}

// settle does what the core has decided.
func (s *shard) settle(nowMs int64) {
	out := s.core.Take()
	for _, r := range out.Remarks {
		s.log.Info(r)
	}
	for len(out.Appends) > 0 {
		n := gather(out.Appends)
		s.append(nowMs, out.Appends[:n])
		out.Appends = out.Appends[n:]
	}
	for _, m := range out.Markers {
		s.c.sendMarker(s, m)
	}
	for _, w := range out.Wanted {
		s.identify(w)
	}
	for _, answer := range out.Answers {
		answer()
	}
}

// identify gets a producer id. It may take a round trip to ZooKeeper.
func (s *shard) identify(w *Wanted) {
	s.inFlight++
	s.c.done.Go(func() {
		id, err := s.c.ids.Next(s.ctx)
		s.submit(event{always: true, run: func(core *Core, nowMs int64) {
			s.inFlight--
			core.Identified(nowMs, w, id, err)
		}})
	})
}

// gather is how many of the appends go into one batch.
func gather(list []*Append) int {
	bytes := 0
	for i, a := range list {
		bytes += len(a.Key) + len(a.Value)
		if i > 0 && (bytes > gatherBytes || i >= gatherRecords) {
			return i
		}
	}
	return len(list)
}

// append writes the records of some appends as one batch. If it is too large
// together, each is tried by itself.
func (s *shard) append(nowMs int64, list []*Append) {
	s.inFlight++
	s.write(nowMs, list, func(err error) {
		s.submit(event{always: true, run: func(core *Core, nowMs int64) {
			s.inFlight--
			if len(list) > 1 && isAny(err, kerr.MessageTooLarge, kerr.RecordListTooLarge) {
				for i := range list {
					s.append(nowMs, list[i:i+1])
				}
				return
			}
			for _, a := range list {
				core.Appended(nowMs, a, err)
			}
		}})
	})
}

var errDeposed = errors.New("txn: the partition is led by another broker by now")

func (s *shard) write(nowMs int64, list []*Append, done func(error)) {
	b := record.NewBuilder(record.BuilderOptions{}) // never compressed, as Kafka has it
	for _, a := range list {
		b.Append(nowMs, a.Key, a.Value)
	}
	batch, err := b.Build()
	if err != nil {
		done(err)
		return
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.gate.deposed {
		done(errors.Join(kerr.NotLeaderForPartition, errDeposed))
		return
	}
	s.c.appender.Append(s.partition, batch, done)
}
