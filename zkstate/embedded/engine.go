package embedded

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"barnabas/zkstate/embedded/core"
	"barnabas/zkstate/embedded/proto"
	"barnabas/zkstate/embedded/quorum"
)

const (
	// maxBatch bounds how many events share one disk transaction, and so how long the first of them waits.
	maxBatch = 1024
	// tickEvery is how often deadlines are looked at: the delay of an expiry.
	tickEvery = 100 * time.Millisecond
)

type eventKind uint8

const (
	evConnect eventKind = iota
	evRequest
	evGone
	evCommand
)

// event is what a connection tells the engine.
type event struct {
	kind        eventKind
	conn        *conn
	connect     proto.ConnectRequest
	certificate string // the client's name in it, "" without one
	header      proto.Header
	request     proto.Request // nil: did not decode
	command     command
	name        string
	size        int64 // bytes taken from the budget
	received    time.Time
}

// engine owns the core and the statistics; only run touches them.
type engine struct {
	s       *Server
	m       *core.Machine
	keep    func(core.Changes) error // makes changes durable
	term    uint64                   // of an ensemble, in which this server leads
	events  chan event
	done    chan struct{} // closed when it is to end
	end     sync.Once
	stopped chan struct{}
	epoch   time.Time // origin of the monotonic clock
	conns   map[core.Conn]*conn
	stats   serverStats
	budget  *budget // of the events that wait; what an engine leaves undone goes with it
}

// newEngine begins with a state. Sessions that it opens are numbered as a server's of that id.
func newEngine(s *Server, state core.State, id uint64, keep func(core.Changes) error) (*engine, error) {
	e := &engine{
		s: s, keep: keep, events: make(chan event, maxBatch), done: make(chan struct{}), stopped: make(chan struct{}), epoch: time.Now(), conns: map[core.Conn]*conn{},
		budget: newBudget(maxRequestBytes),
	}
	m, err := core.New(core.Options{
		MinSessionTimeoutMs: s.cfg.MinSessionTimeout.Milliseconds(), MaxSessionTimeoutMs: s.cfg.MaxSessionTimeout.Milliseconds(),
		ContainerCheckMs: s.cfg.ContainerCheck.Milliseconds(), SuperDigest: s.cfg.SuperDigest, ExtendedTypes: s.cfg.ExtendedTypes,
		ReconfigEnabled: s.cfg.ReconfigEnabled, PasswordSecret: s.store.secret,
		FirstSessionID: int64(id)<<56 | int64(uint64(time.Now().UnixMilli())<<24>>8),
	}, state, e.now())
	if err != nil {
		return nil, err
	}
	e.m = m
	return e, e.commit()
}

func (e *engine) now() core.Now {
	t := time.Now()
	return core.Now{Wall: t.UnixMilli(), Mono: t.Sub(e.epoch).Milliseconds()}
}

// stop has the engine end soon.
func (e *engine) stop() {
	e.end.Do(func() {
		close(e.done)
		e.budget.close()
	})
}

// submit queues an event; false means that the engine is ending.
func (e *engine) submit(ev event) bool {
	select {
	case e.events <- ev:
		return true
	case <-e.done:
		return false
	}
}

// run is the engine's goroutine: take what is there, decide, commit once, answer.
func (e *engine) run() {
	defer close(e.stopped)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	batch := make([]event, 0, maxBatch)
	for {
		tick := false
		batch = batch[:0]
		select {
		case <-e.done:
			return
		case ev := <-e.events:
			batch = append(batch, ev)
		case <-ticker.C:
			tick = true
		}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case ev := <-e.events:
				batch = append(batch, ev)
			default:
				more = false
			}
		}
		if !e.step(batch, tick) {
			return
		}
	}
}

// step handles one batch. Requests come before the tick: who was heard of in time is not expired for having waited here.
func (e *engine) step(batch []event, tick bool) bool {
	for _, ev := range batch {
		e.handle(ev)
	}
	if tick {
		e.m.Tick(e.now())
	}
	if err := e.commit(); errors.Is(err, quorum.ErrDeposed) {
		return false // nothing of it was told to anybody
	} else if err != nil {
		e.s.log.WithError(err).Error("Embedded ZooKeeper cannot write its data directory and stops serving; restart it once the disk is well")
		e.s.shutdown(err)
		return false
	}
	e.deliver()
	for _, id := range e.m.TakeExpired() {
		e.s.log.WithField("session", fmt.Sprintf("0x%x", uint64(id))).Info("Session expired: its client was not heard of in time")
	}
	for _, ev := range batch {
		if ev.kind == evConnect || ev.kind == evRequest {
			e.account(ev)
			<-ev.conn.slots
			e.budget.give(ev.size)
		}
	}
	return true
}

func (e *engine) handle(ev event) {
	switch ev.kind {
	case evConnect:
		e.conns[ev.conn.id] = ev.conn
		e.m.Connect(e.now(), ev.conn.id, ev.conn.ip, ev.connect)
		if ev.certificate != "" {
			e.m.Certified(ev.conn.id, ev.certificate)
		}
	case evRequest:
		e.m.Request(e.now(), ev.conn.id, ev.header, ev.request)
	case evGone:
		e.m.Gone(ev.conn.id)
		delete(e.conns, ev.conn.id)
	case evCommand:
		ev.conn.enqueue([]byte(e.runCommand(ev.name, ev.command)), true)
	}
}

// commit makes durable what the core changed.
func (e *engine) commit() error {
	ch, ok := e.m.TakeChanges()
	if !ok {
		return nil
	}
	if err := e.keep(ch); err != nil {
		return fmt.Errorf("commit of zxid 0x%x: %w", ch.Zxid, err)
	}
	return nil
}

// deliver hands the core's output to the writers.
func (e *engine) deliver() {
	for _, out := range e.m.TakeSends() {
		c := e.conns[out.Conn]
		if c == nil {
			continue
		}
		if out.Frame != nil {
			c.stats.sent++
			e.stats.sent++
		}
		c.enqueue(out.Frame, out.Close)
	}
}
