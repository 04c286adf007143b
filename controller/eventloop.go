package controller

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// CoreConfig is what the core needs to know. Nothing in it changes while the core runs.
type CoreConfig struct {
	BrokerID int32
	IBP      IBP
	// Listener names the listener on which brokers are reached: control.plane.listener.name, or the inter-broker one.
	Listener string
	// LeaderListener names the listener on which followers reach their leaders; empty: Listener.
	LeaderListener string
	// DeleteTopics is delete.topic.enable.
	DeleteTopics bool
	// UncleanElection is the cluster's default of unclean.leader.election.enable, asked at each election since it may
	// be changed while the broker runs.
	UncleanElection func() bool
	// AutoRebalance is auto.leader.rebalance.enable; the interval and the percentage are leader.imbalance.check.interval.
	// seconds and leader.imbalance.per.broker.percentage.
	AutoRebalance     bool
	RebalanceInterval time.Duration
	RebalancePercent  int
	// Random yields the bytes of new topic ids.
	Random io.Reader
}

func (c *CoreConfig) leaderListener() string {
	if c.LeaderListener != "" {
		return c.LeaderListener
	}
	return c.Listener
}

// Why a procedure ends before its time.
var (
	// errAbandoned: the session was lost while the procedure waited.
	errAbandoned = errors.New("controller: abandoned")
	// errSessionGone: ZooKeeper says that the session is over.
	errSessionGone = errors.New("controller: the ZooKeeper session is over")
	// errIllegalState: an invariant does not hold. The controllership ends, loudly, and another begins from ZooKeeper.
	errIllegalState = errors.New("controller: illegal state")
)

// Core decides. Its one method is Step; see the package comment.
type Core struct {
	cfg CoreConfig
	now time.Time

	// session is the ZooKeeper session in which the core stands for election, 0 for none; former are the sessions of
	// this process that ended, whose left-over nodes are ours to remove.
	session    int64
	generation int
	former     []int64
	// holdOff keeps the core from standing again at once after it gave the controllership up.
	holdOff bool

	status  StatusChanged
	cluster *cluster // nil unless this broker is the controller
	outbox  outbox

	queue []Event
	// waiting are the hints in the queue.
	waiting map[Event]bool
	open    map[uint64]kmsg.Request
	running *procedure
	tag     uint64
	out     []Effect
}

// procedure is one event being handled: straight-line code, suspended at each batch of ZooKeeper operations.
type procedure struct {
	event   Event
	next    func() (ZKBatch, bool)
	stop    func()
	yield   func(ZKBatch) bool
	tag     uint64
	done    ZKDone
	failure error
}

// Internal events, which the core queues for itself.
type (
	// stand makes the core look at /controller and stand for election if nobody owns it.
	stand struct{}
	// abdicate gives /controller up after an invariant broke or the failover failed.
	abdicate struct{}
	// look makes the core read again what it may have missed, as if the watch of this node had fired.
	look struct{ path string }
)

func (stand) event()    {}
func (abdicate) event() {}
func (look) event()     {}

// NewCore makes a core that does nothing before its first SessionReady.
func NewCore(cfg CoreConfig) *Core {
	return &Core{cfg: cfg, open: map[uint64]kmsg.Request{}, waiting: map[Event]bool{}, status: StatusChanged{ControllerID: -1}}
}

// Step takes one event at the given time and returns what is to be done about it, in order.
func (c *Core) Step(now time.Time, ev Event) []Effect {
	c.now = now
	switch ev := ev.(type) {
	case SessionExpired:
		if c.Loses(ev) {
			c.loseSession()
		}
	case ZKDone:
		if c.running != nil && c.running.tag == ev.Tag {
			c.running.done = ev
			c.advance()
		}
	default:
		c.enqueue(ev)
	}
	for c.running == nil && len(c.queue) > 0 {
		c.start(c.dequeue())
	}
	out := c.out
	c.out = nil
	return out
}

// Loses tells whether an expiry is that of the session in which the core stands.
func (c *Core) Loses(ev SessionExpired) bool { return ev.Session == 0 || ev.Session == c.session }

// Queued is the number of events that wait: the core's saturation.
func (c *Core) Queued() int { return len(c.queue) }

// Busy tells whether an event is being handled, waiting for ZooKeeper.
func (c *Core) Busy() bool { return c.running != nil }

// Stop ends the core: what runs is abandoned, and every open request is answered.
func (c *Core) Stop(now time.Time) []Effect { return c.Step(now, SessionExpired{}) }

// enqueue adds an event. Hints that wait already are not queued twice: each makes the core read the whole state.
func (c *Core) enqueue(ev Event) {
	switch ev := ev.(type) {
	case Requested:
		c.open[ev.ID] = ev.Request
	case NodeChanged, TimerFired, look, stand:
		if c.waiting[ev] {
			return
		}
		c.waiting[ev] = true
	}
	c.queue = append(c.queue, ev)
}

func (c *Core) dequeue() Event {
	ev := c.queue[0]
	c.queue = c.queue[1:]
	switch ev.(type) {
	case NodeChanged, TimerFired, look, stand:
		delete(c.waiting, ev)
	}
	return ev
}

func (c *Core) dropQueue() {
	c.queue = nil
	clear(c.waiting)
}

func (c *Core) start(ev Event) {
	p := &procedure{event: ev}
	p.next, p.stop = iter.Pull(func(yield func(ZKBatch) bool) {
		p.yield = yield
		p.failure = c.handle(ev)
	})
	c.running = p
	c.advance()
}

// advance runs the procedure to its next batch or its end.
func (c *Core) advance() {
	p := c.running
	batch, more := p.next()
	if more {
		c.tag++
		p.tag = c.tag
		batch.Tag, batch.Generation = c.tag, c.generation
		c.emit(batch)
		return
	}
	c.running = nil
	c.settle(p)
}

// settle draws the consequences of how a procedure ended.
func (c *Core) settle(p *procedure) {
	switch err := p.failure; {
	case err == nil:
	case errors.Is(err, errSessionGone):
		c.loseSession()
	case errors.Is(err, zkstate.ErrFenced):
		c.logf(LogWarn, "another controller has taken over (epoch of this one: %d)", c.epoch())
		c.leave()
		c.dropQueue()
		c.enqueue(stand{})
	case errors.Is(err, errIllegalState):
		c.logf(LogError, "giving up the controllership while handling %T: %v", p.event, err)
		c.enqueueFirst(abdicate{})
	default:
		c.logf(LogError, "handling of %T failed: %v", p.event, err)
	}
	if r, ok := p.event.(Requested); ok {
		if req, unanswered := c.open[r.ID]; unanswered {
			c.answer(r.ID, refusal(req, unknownServerError))
		}
	}
}

func (c *Core) enqueueFirst(ev Event) { c.queue = append([]Event{ev}, c.queue...) }

// loseSession drops everything that belongs to the session, the running procedure first.
func (c *Core) loseSession() {
	if p := c.running; p != nil {
		c.running = nil
		before := len(c.out)
		p.stop()
		c.out = c.out[:before]
		c.outbox.clear()
	}
	if c.session != 0 {
		c.former = append(c.former, c.session)
		if len(c.former) > maxFormerSessions {
			c.former = c.former[1:]
		}
	}
	c.session = 0
	c.holdOff = false
	c.dropQueue()
	c.leave()
	c.setStatus(StatusChanged{ControllerID: -1})
}

const maxFormerSessions = 8

// leave ends the controllership in memory: nothing is sent any more, and every open request is answered.
func (c *Core) leave() {
	if c.cluster != nil {
		c.logf(LogInfo, "resigned as controller of epoch %d", c.cluster.epoch)
		for _, id := range c.cluster.registered() {
			c.emit(Disconnect{BrokerID: id, BrokerEpoch: c.cluster.brokers[id].epoch})
		}
		c.emit(StopTimers{})
		c.cluster = nil
		c.outbox.clear()
	}
	for _, id := range sortedKeys(c.open) {
		c.answer(id, refusal(c.open[id], notController))
	}
	if c.status.Active {
		c.setStatus(StatusChanged{ControllerID: -1})
	}
}

func (c *Core) epoch() int32 {
	if c.cluster == nil {
		return 0
	}
	return c.cluster.epoch
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

func (c *Core) answer(id uint64, resp kmsg.Response) {
	if _, open := c.open[id]; !open {
		return
	}
	delete(c.open, id)
	c.emit(Answer{ID: id, Response: resp})
}

func (c *Core) setStatus(s StatusChanged) {
	if c.status != s {
		c.status = s
		c.emit(s)
	}
}

func (c *Core) logf(level LogLevel, format string, args ...any) {
	c.emit(Log{Level: level, Message: fmt.Sprintf(format, args...)})
}

// handle is the body of a procedure: one case per kind of event.
func (c *Core) handle(ev Event) error {
	switch ev := ev.(type) {
	case SessionReady:
		return c.sessionReady(ev)
	case stand:
		return c.standForElection()
	case abdicate:
		return c.giveUp()
	case NodeChanged:
		return c.nodeChanged(ev.Path)
	case look:
		return c.nodeChanged(ev.path)
	case Requested:
		return c.requested(ev)
	case TimerFired:
		return c.timerFired(ev.ID)
	}
	if c.cluster == nil {
		return nil
	}
	switch ev := ev.(type) {
	case BrokerAnswered:
		return c.brokerAnswered(ev)
	case UncleanElectionEnabled:
		return c.uncleanElectionEnabled(ev.Topic)
	}
	return fmt.Errorf("%w: unknown event %T", errIllegalState, ev)
}

// nodeChanged says who reacts to which watch.
func (c *Core) nodeChanged(path string) error {
	if path == zkstate.ControllerPath {
		return c.standForElection()
	}
	if c.cluster == nil {
		return nil
	}
	switch path {
	case zkstate.BrokerIDsPath:
		return c.brokersChanged()
	case zkstate.TopicsPath:
		return c.topicsChanged()
	case zkstate.DeleteTopicsPath:
		return c.deletionsRequested()
	case zkstate.ISRChangeNotificationPath:
		return c.isrChangesNotified()
	case zkstate.LogDirEventNotificationPath:
		return c.logDirsFailed()
	case zkstate.ReassignPartitionsPath:
		return c.reassignmentNodeChanged()
	case zkstate.PreferredReplicaElectionPath:
		return c.preferredElectionNodeChanged()
	}
	if id, ok := brokerIDOf(path); ok {
		return c.brokerInfoChanged(id)
	}
	tp, ok := topicOf(path)
	switch {
	case !ok:
		return nil
	case tp.Partition < 0:
		return c.partitionsChanged(tp.Topic)
	}
	return c.reassignedISRChanged(tp)
}

func (c *Core) timerFired(id TimerID) error {
	switch {
	case id == TimerElect:
		c.holdOff = false
		return c.standForElection()
	case c.cluster == nil:
		return nil
	case id == TimerRebalance:
		return c.rebalanceLeaders()
	case id == TimerDeletion:
		return c.retryDeletions()
	}
	return nil
}
