package controller

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// Config is what a Controller needs to know.
type Config struct {
	BrokerID int32
	// IBP is inter.broker.protocol.version, such as "3.9" or "2.7-IV2".
	IBP string
	// Listener names the listener on which brokers are reached: control.plane.listener.name, else the inter-broker one.
	Listener string
	// LeaderListener names the listener on which followers reach their leaders, the inter-broker one; empty: Listener.
	LeaderListener string
	// DeleteTopics is delete.topic.enable.
	DeleteTopics bool
	// UncleanElection is unclean.leader.election.enable; see SetUncleanElection.
	UncleanElection bool
	// AutoRebalance is auto.leader.rebalance.enable.
	AutoRebalance bool
	// RebalanceInterval is leader.imbalance.check.interval.seconds; 0 means 300 s.
	RebalanceInterval time.Duration
	// RebalancePercent is leader.imbalance.per.broker.percentage.
	RebalancePercent int
	Log              *logrus.Entry
}

// Stats is the controller's load and what it knows, for metrics.
type Stats struct {
	// Queued is the number of events that wait; Busy is the time that the loop spent handling events since Start, waiting
	// for ZooKeeper included.
	Queued int
	Busy   time.Duration
	Counts Counts
}

// Controller runs the Core: it is one broker's part in electing the controller, and the controller itself when elected.
// Its goroutines: the loop (owner of the core), one for the ZooKeeper batch outstanding, one per broker while active,
// and one that passes watches on. Stop ends all of them and waits.
type Controller struct {
	cfg     Config
	core    *Core
	zk      *zkstate.Client
	sender  Sender
	log     *logrus.Entry
	unclean atomic.Bool
	status  atomic.Pointer[StatusChanged]
	stats   atomic.Pointer[Stats]

	// Owned by the loop.
	lanes     map[int32]*lane
	timers    map[TimerID]*time.Timer
	callbacks map[uint64]func(kmsg.Response)
	busySince time.Time
	busy      time.Duration
	changed   bool // since the counts were taken

	mu struct {
		sync.Mutex
		inbox   []item
		stopped bool
	}
	wake     chan struct{}
	quit     chan struct{}
	started  atomic.Bool
	nextID   atomic.Uint64
	finished sync.WaitGroup
	// batch is the ZooKeeper batch outstanding; it is cancelled when the session is lost.
	batch struct {
		cancel context.CancelFunc
		done   chan struct{}
	}
}

// item is an event on its way to the loop, with what belongs to it outside of the core.
type item struct {
	event Event
	done  func(kmsg.Response)
}

// New makes a controller that does nothing before Start and SessionReady.
func New(cfg Config, zk *zkstate.Client, sender Sender) (*Controller, error) {
	ibp, err := ParseIBP(cfg.IBP)
	if err != nil {
		return nil, err
	}
	if cfg.RebalanceInterval <= 0 {
		cfg.RebalanceInterval = 300 * time.Second
	}
	c := &Controller{
		cfg: cfg, zk: zk, sender: sender, log: cfg.Log,
		lanes: map[int32]*lane{}, timers: map[TimerID]*time.Timer{}, callbacks: map[uint64]func(kmsg.Response){},
		wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	c.unclean.Store(cfg.UncleanElection)
	c.status.Store(&StatusChanged{ControllerID: -1})
	c.stats.Store(&Stats{})
	c.core = NewCore(CoreConfig{
		BrokerID: cfg.BrokerID, IBP: ibp, Listener: cfg.Listener, LeaderListener: cfg.LeaderListener, DeleteTopics: cfg.DeleteTopics,
		UncleanElection: c.unclean.Load, AutoRebalance: cfg.AutoRebalance, RebalanceInterval: cfg.RebalanceInterval,
		RebalancePercent: cfg.RebalancePercent, Random: rand.Reader,
	})
	return c, nil
}

// Start starts the loop. The controller stands for election at the first SessionReady.
func (c *Controller) Start() {
	if c.started.Swap(true) {
		return
	}
	sub := c.zk.Subscribe()
	c.finished.Go(func() { c.passWatches(sub) })
	c.finished.Go(c.loop)
}

// Stop resigns without touching ZooKeeper (closing the session does that), answers what is open with NOT_CONTROLLER,
// and waits for every goroutine.
func (c *Controller) Stop() {
	c.mu.Lock()
	already := c.mu.stopped
	c.mu.stopped = true
	c.mu.Unlock()
	if already || !c.started.Load() {
		return
	}
	close(c.quit)
	c.finished.Wait()
}

// SessionReady says that the broker is registered in the ZooKeeper session of now: the controller stands for election.
// Calling it again for the same session changes nothing.
func (c *Controller) SessionReady() {
	if id, generation := c.zk.Session(); id != 0 {
		c.put(item{event: SessionReady{Session: id, Generation: generation}})
	}
}

// SessionExpired says that the session is over: the controller resigns at once, whatever it is doing. Calling it again
// changes nothing.
func (c *Controller) SessionExpired() { c.putFirst(item{event: SessionExpired{}}) }

// IsActive tells whether this broker is the controller.
func (c *Controller) IsActive() bool { return c.status.Load().Active }

// ControllerID is the broker that is the controller to this one's knowledge, -1 if none is.
func (c *Controller) ControllerID() int32 { return c.status.Load().ControllerID }

// Stats is the controller's load and what it knows, at most a second old.
func (c *Controller) Stats() Stats { return *c.stats.Load() }

// SetUncleanElection changes the cluster's default of unclean.leader.election.enable. Turning it on makes the
// controller try again for partitions without a leader.
func (c *Controller) SetUncleanElection(on bool) {
	if !c.unclean.Swap(on) && on {
		c.put(item{event: UncleanElectionEnabled{}})
	}
}

// UncleanElectionEnabled says that a topic's own configuration now allows unclean elections.
func (c *Controller) UncleanElectionEnabled(topic string) {
	c.put(item{event: UncleanElectionEnabled{Topic: topic}})
}

// Do hands the controller one of the requests that only a controller answers: AlterPartition, ControlledShutdown,
// ElectLeaders, AlterPartitionAssignments, ListPartitionReassignments, AllocateProducerIDs, UpdateFeatures. The request's version
// is respected. done is called exactly once, from any goroutine, and must not block; a broker that is not the
// controller answers NOT_CONTROLLER.
func (c *Controller) Do(req kmsg.Request, done func(kmsg.Response)) {
	if !c.put(item{event: Requested{ID: c.nextID.Add(1), Request: req}, done: done}) {
		done(refusal(req, notController))
	}
}

// put queues an event for the loop; false means that the controller has stopped.
func (c *Controller) put(it item) bool { return c.queue(it, false) }

// putFirst lets an event overtake all that wait.
func (c *Controller) putFirst(it item) { c.queue(it, true) }

func (c *Controller) queue(it item, first bool) bool {
	c.mu.Lock()
	if c.mu.stopped {
		c.mu.Unlock()
		return false
	}
	if first {
		c.mu.inbox = append([]item{it}, c.mu.inbox...)
	} else {
		c.mu.inbox = append(c.mu.inbox, it)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return true
}

// passWatches turns what ZooKeeper reports into events. A lapsed session counts as lost: others may act on it already.
func (c *Controller) passWatches(sub *zkstate.Subscription) {
	defer sub.Close()
	lapsed := false
	for {
		select {
		case <-c.quit:
			return
		case ev, ok := <-sub.C():
			if !ok {
				return
			}
			switch ev.Kind {
			case zkstate.SessionExpired:
				lapsed = false
				c.putFirst(item{event: SessionExpired{Session: ev.Session}})
			case zkstate.SessionLapsed:
				lapsed = true
				c.putFirst(item{event: SessionExpired{Session: ev.Session}})
			case zkstate.Connected:
				if lapsed {
					lapsed = false
					c.put(item{event: SessionReady{Session: ev.Session, Generation: ev.Generation}})
				}
			case zkstate.NodeCreated, zkstate.NodeDeleted, zkstate.NodeDataChanged, zkstate.NodeChildrenChanged:
				c.put(item{event: NodeChanged{Path: ev.Path}})
			}
		}
	}
}

// loop is the one goroutine that touches the core.
func (c *Controller) loop() {
	tick := time.NewTicker(statsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.takeStats()
			continue
		case <-c.quit:
			c.shutDown()
			return
		case <-c.wake:
		}
		c.mu.Lock()
		items := c.mu.inbox
		c.mu.inbox = nil
		c.mu.Unlock()
		for _, it := range items {
			c.step(it)
		}
	}
}

func (c *Controller) step(it item) {
	switch ev := it.event.(type) {
	case Requested:
		c.callbacks[ev.ID] = it.done
	case SessionExpired:
		if c.core.Loses(ev) {
			c.cancelBatch()
		}
	}
	wasBusy := c.core.Busy()
	now := time.Now()
	for _, e := range c.core.Step(now, it.event) {
		c.carryOut(e)
	}
	switch {
	case !wasBusy && c.core.Busy():
		c.busySince = now
	case wasBusy && !c.core.Busy():
		c.busy += time.Since(c.busySince)
	}
	c.changed = true
}

// statsEvery is how often the counts are taken, which looks at every partition.
const statsEvery = time.Second

func (c *Controller) takeStats() {
	if c.changed {
		c.stats.Store(&Stats{Queued: c.core.Queued(), Busy: c.busy, Counts: c.core.Counts()})
		c.changed = false
	}
}

func (c *Controller) carryOut(e Effect) {
	switch e := e.(type) {
	case ZKBatch:
		c.runBatch(e)
	case Connect:
		if l := c.lanes[e.To.BrokerID]; l != nil && l.endpoint().BrokerEpoch == e.To.BrokerEpoch {
			l.move(e.To)
			return
		}
		c.dropLane(e.To.BrokerID)
		to := e.To
		c.lanes[to.BrokerID] = newLane(to, c.sender, func(req kmsg.Request, resp kmsg.Response) {
			c.put(item{event: BrokerAnswered{BrokerID: to.BrokerID, BrokerEpoch: to.BrokerEpoch, Request: req, Response: resp}})
		})
	case Disconnect:
		if l := c.lanes[e.BrokerID]; l != nil && l.endpoint().BrokerEpoch == e.BrokerEpoch {
			c.dropLane(e.BrokerID)
		}
	case Send:
		if l := c.lanes[e.BrokerID]; l != nil && l.endpoint().BrokerEpoch == e.BrokerEpoch {
			l.add(e.Request)
		}
	case Answer:
		done := c.callbacks[e.ID]
		delete(c.callbacks, e.ID)
		if done != nil {
			done(e.Response)
		}
	case SetTimer:
		c.setTimer(e.ID, e.After)
	case StopTimers:
		c.stopTimers()
	case StatusChanged:
		c.status.Store(&e)
	case Log:
		c.write(e)
	}
}

func (c *Controller) write(l Log) {
	switch l.Level {
	case LogDebug:
		c.log.Debug(l.Message)
	case LogInfo:
		c.log.Info(l.Message)
	case LogWarn:
		c.log.Warn(l.Message)
	default:
		c.log.Error(l.Message)
	}
}

// runBatch carries out a ZooKeeper batch on a goroutine of its own; its result comes back as an event. A batch that was
// cancelled is waited for first, so that nothing of a former life runs beside the new one.
func (c *Controller) runBatch(b ZKBatch) {
	before := c.batch.done
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.batch.cancel, c.batch.done = cancel, done
	c.finished.Go(func() {
		defer close(done)
		defer cancel()
		if before != nil {
			<-before
		}
		results, err := c.execute(ctx, b)
		c.put(item{event: ZKDone{Tag: b.Tag, Results: results, Err: err}})
	})
}

func (c *Controller) execute(ctx context.Context, b ZKBatch) ([]zkstate.Result, error) {
	ctx = zkstate.WithGeneration(ctx, b.Generation)
	switch {
	case b.Fence != unfenced && b.Multi:
		return c.zk.FenceIn(b.Fence, b.Generation).Multi(ctx, b.Ops)
	case b.Fence != unfenced:
		return c.zk.FenceIn(b.Fence, b.Generation).Do(ctx, b.Ops)
	case b.Multi:
		return c.zk.Multi(ctx, b.Ops)
	default:
		return c.zk.Do(ctx, b.Ops)
	}
}

func (c *Controller) cancelBatch() {
	if c.batch.cancel != nil {
		c.batch.cancel()
	}
}

func (c *Controller) dropLane(id int32) {
	l := c.lanes[id]
	if l == nil {
		return
	}
	delete(c.lanes, id)
	l.close()
	l.wait()
}

func (c *Controller) setTimer(id TimerID, after time.Duration) {
	if t := c.timers[id]; t != nil {
		t.Stop()
	}
	c.timers[id] = time.AfterFunc(after, func() { c.put(item{event: TimerFired{ID: id}}) })
}

func (c *Controller) stopTimers() {
	for _, t := range c.timers {
		t.Stop()
	}
	clear(c.timers)
}

// shutDown runs on the loop as its last act.
func (c *Controller) shutDown() {
	c.cancelBatch()
	for _, e := range c.core.Stop(time.Now()) {
		c.carryOut(e)
	}
	c.stopTimers()
	for id := range c.lanes {
		c.dropLane(id)
	}
	c.mu.Lock()
	items := c.mu.inbox
	c.mu.inbox = nil
	c.mu.Unlock()
	for _, it := range items {
		if r, ok := it.event.(Requested); ok {
			it.done(refusal(r.Request, notController))
		}
	}
}
