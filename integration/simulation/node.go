package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/vfs"
	"barnabas/controller"
	"barnabas/zkstate"
)

// node is one process: the controller core as it is in the product, and models of everything around it: the ZooKeeper
// client, the queue of control requests per broker, timers, and the broker itself.
type node struct {
	s  *Sim
	id int32
	// life counts incarnations; what was planned for an earlier one never happens.
	life   int
	up     bool
	paused bool
	held   []func()
	// cutFromZK keeps the node from reaching any ZooKeeper server.
	cutFromZK bool

	zk      *zkClient
	former  []int64
	noted   *session // of the life before, if it was killed: what its note in the log directory names
	core    *controller.Core
	status  controller.StatusChanged
	lanes   map[int32]*lane
	timers  map[controller.TimerID]int
	waiting map[uint64]func(kmsg.Response)
	broker  *broker
	// places numbers the control requests that the node sent, over all its lives.
	places int
	// disk outlives the process.
	disk      *vfs.CrashFS
	since     time.Duration // when it last started, or went on after a pause
	powerLost time.Duration // when it last lost its power, while that matters
	clockOff  time.Duration
}

// atLife lets something happen to an incarnation: now, when it is awake again, or never.
func (n *node) atLife(life int, do func()) {
	switch {
	case n.life != life || !n.up:
	case n.paused:
		n.held = append(n.held, do)
	default:
		do()
	}
}

// later plans something for this incarnation.
func (n *node) later(after time.Duration, do func()) {
	life := n.life
	n.s.w.in(after, func() { n.atLife(life, do) })
}

func (n *node) start() {
	n.life++
	n.up, n.paused, n.held, n.former, n.since = true, false, nil, nil, n.s.w.now
	n.s.w.tell("node %d: starts", n.id)
	n.status = controller.StatusChanged{ControllerID: -1}
	n.lanes, n.timers, n.waiting = map[int32]*lane{}, map[controller.TimerID]int{}, map[uint64]func(kmsg.Response){}
	n.broker = newBroker(n)
	n.core = controller.NewCore(n.s.coreConfig(n))
	n.zk = newZKClient(n)
	n.later(n.s.w.between(0, tickEvery), n.tick)
}

// startAgain starts a node that is down.
func (n *node) startAgain() {
	if !n.up {
		n.start()
	}
}

func (n *node) crash(how howItEnds) {
	if !n.up {
		return
	}
	n.s.w.tell("node %d: crashes", n.id)
	n.up = false
	n.life++
	n.disk.Inject(nil)
	n.disk = n.disk.Image(n.disk.Ops(), vfs.Adversary(how), n.s.w.rand.Uint64())
	n.s.plants.image(n, how)
	n.broker.die()
	n.core.Stop(n.s.wallClock()) // what it would still do does not happen
	n.zk.close()
	n.noted = nil
	if n.zk.session != nil {
		n.s.zk.lostTouch(n.zk.session)
		if how == processEnds {
			n.noted = n.zk.session
		}
	}
}

func (n *node) pause() {
	if n.up && !n.paused {
		n.s.w.tell("node %d: pauses", n.id)
		n.paused = true
		if n.zk.session != nil {
			n.s.zk.lostTouch(n.zk.session)
		}
	}
}

// resume lets everything happen that was held, in its order, before the node learns how long it was away.
func (n *node) resume() {
	if !n.paused {
		return
	}
	n.s.w.tell("node %d: goes on", n.id)
	n.paused, n.since = false, n.s.w.now
	held := n.held
	n.held = nil
	for i, do := range held {
		if n.paused || !n.up {
			n.held = append(n.held, held[i:]...)
			return
		}
		do()
	}
	switch s := n.zk.session; {
	case s == nil:
	case s.expired:
		n.later(n.s.w.between(0, 20*time.Millisecond), n.zk.cut)
	case n.zk.connected:
		n.s.zk.heard(s)
	}
}

// What the ZooKeeper client reports.

func (n *node) sessionStarted() {
	n.endPredecessor()
	n.register()
}

// endPredecessor ends the session of the life before, as a broker does that was killed, where the scenario has it; every
// other time it is another machine's life, and is waited out.
func (n *node) endPredecessor() {
	if n.s.only.succeeds && n.noted != nil && !n.noted.expired && n.life%4 == 3 { // lives have odd numbers
		n.s.Done.Ended++
		n.s.zk.expire(n.noted)
	}
	n.noted = nil
}

// register makes the broker's ephemeral node, as a broker does: its own former session's is removed, a stranger's
// waited out.
func (n *node) register() {
	path := zkstate.BrokerIDPath(n.id)
	again := func() { n.later(n.s.w.between(50*time.Millisecond, 200*time.Millisecond), n.register) }
	session := n.zk.session
	if session == nil {
		return
	}
	n.zk.submit(&unit{ops: []zkstate.Op{zkstate.CreateEphemeral(path, n.registration())}, done: func([]zkstate.Result, error) {
		n.zk.submit(&unit{ops: []zkstate.Op{zkstate.Get(path)}, done: func(rs []zkstate.Result, err error) {
			switch {
			case n.zk.session != session || errors.Is(err, zkstate.ErrSessionExpired):
			case err != nil || len(rs) == 0 || rs[0].Err != nil:
				again()
			case rs[0].Stat.EphemeralOwner == session.id || n.s.planted("a registration of any session is the own"):
				n.registered(rs[0].Stat.Czxid)
			case slices.Contains(n.former, rs[0].Stat.EphemeralOwner):
				n.zk.submit(&unit{ops: []zkstate.Op{zkstate.Delete(path, zkstate.AnyVersion)}, done: func([]zkstate.Result, error) { again() }})
			default:
				again()
			}
		}})
	}})
}

func (n *node) registration() []byte {
	return zkstate.Broker{ID: n.id, Version: 5, JMXPort: -1, Endpoints: []zkstate.Endpoint{
		{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "sim", Port: 9000 + n.id}}}.Encode()
}

func (n *node) registered(epoch int64) {
	if epoch == n.broker.epoch {
		return
	}
	n.s.w.tell("node %d: registered with broker epoch %d", n.id, epoch)
	n.s.check(epoch > n.broker.epoch, "I9: broker %d had epoch %d and registers with %d", n.id, n.broker.epoch, epoch)
	n.broker.registered(epoch)
	n.since = n.s.w.now
	n.step(controller.SessionReady{Session: n.zk.session.id, Generation: n.zk.sessions})
}

func (n *node) sessionExpired(id int64) {
	n.former = append(n.former, id)
	n.step(controller.SessionExpired{Session: id})
}

func (n *node) changed(path string) { n.step(controller.NodeChanged{Path: path}) }

// step feeds the core and carries out what it wants.
func (n *node) step(ev controller.Event) {
	for _, e := range n.core.Step(n.s.wallClock(), ev) {
		n.carryOut(e)
	}
}

func (n *node) carryOut(e controller.Effect) {
	switch e := e.(type) {
	case controller.ZKBatch:
		n.s.checkBatch(n, e)
		n.zk.run(e, func(rs []zkstate.Result, err error) { n.step(controller.ZKDone{Tag: e.Tag, Results: rs, Err: err}) })
	case controller.Connect:
		n.lanes[e.To.BrokerID] = &lane{from: n, to: e.To}
	case controller.Disconnect:
		if l := n.lanes[e.BrokerID]; l != nil && l.to.BrokerEpoch == e.BrokerEpoch {
			l.closed = true
			delete(n.lanes, e.BrokerID)
		}
	case controller.Send:
		l := n.lanes[e.BrokerID]
		n.s.check(l != nil && l.to.BrokerEpoch == e.BrokerEpoch, "a request is sent to broker %d epoch %d, which is not connected", e.BrokerID, e.BrokerEpoch)
		if l != nil {
			l.queue = append(l.queue, e.Request)
			l.sendNext()
			n.s.plants.sent(n, e)
		}
	case controller.Answer:
		done := n.waiting[e.ID]
		n.s.check(done != nil, "request %d is answered twice, or was never asked", e.ID)
		delete(n.waiting, e.ID)
		if done != nil {
			done(e.Response)
		}
	case controller.SetTimer:
		n.timers[e.ID]++
		mine := n.timers[e.ID]
		n.later(e.After, func() {
			if n.timers[e.ID] == mine {
				n.step(controller.TimerFired{ID: e.ID})
			}
		})
	case controller.StopTimers:
		for id := range n.timers {
			n.timers[id]++
		}
	case controller.StatusChanged:
		n.status = e
		n.s.w.tell("node %d: controller is %d, active %v, epoch %d", n.id, e.ControllerID, e.Active, e.Epoch)
		n.s.statusChanged(n)
	case controller.Log:
		n.s.w.tell("node %d: %s", n.id, e.Message)
		n.s.check(!strings.Contains(e.Message, "illegal state"), "node %d gave up: %s", n.id, e.Message)
	}
}

// ask hands the core a request that came over the network; done is called once, if the node lives that long.
func (n *node) ask(req kmsg.Request, done func(kmsg.Response)) {
	n.s.requests++
	id := n.s.requests
	n.waiting[id] = done
	n.step(controller.Requested{ID: id, Request: req})
}

// lane is the queue of control requests to one registration of a broker: one in flight, repeated until answered.
type lane struct {
	from    *node
	to      controller.Endpoint
	queue   []kmsg.Request
	attempt int
	busy    bool
	closed  bool
}

const controlTimeout = 700 * time.Millisecond

func (l *lane) sendNext() {
	if l.busy || l.closed || len(l.queue) == 0 {
		return
	}
	l.busy = true
	l.attempt++
	mine, n, req := l.attempt, l.from, l.queue[0]
	current := func() bool { return !l.closed && l.busy && l.attempt == mine }
	life := n.life
	target := n.s.nodes[l.to.BrokerID-1]
	n.places++
	place, topics := n.places, n.s.Done.TopicsCreated
	if n.s.planted("deletions of earlier leader epochs") && hasLeaderEpochs(req) && topics == n.s.Done.TopicsCreated {
		n.s.w.in(n.s.w.between(0, 2*time.Second), func() { target.atLife(target.life, func() { target.broker.take(overTheWire(req)) }) })
	}
	n.s.net(n, target, func() {
		// A connection keeps order. Only what can be judged by its leader epoch is tried out of order, and not when a topic
		// was created since, whose epochs begin anew.
		judged := hasLeaderEpochs(req) && topics == n.s.Done.TopicsCreated
		if !judged && place < target.broker.lastTaken[n.id] {
			return
		}
		target.broker.lastTaken[n.id] = max(place, target.broker.lastTaken[n.id])
		resp := target.broker.take(overTheWire(req))
		if resp == nil {
			return
		}
		n.s.net(target, n, func() {
			if n.life != life || !current() {
				return
			}
			l.busy = false
			l.queue = l.queue[1:]
			n.step(controller.BrokerAnswered{BrokerID: l.to.BrokerID, BrokerEpoch: l.to.BrokerEpoch, Request: req, Response: resp})
			l.sendNext()
		})
	})
	n.later(controlTimeout, func() {
		if current() {
			l.busy = false
			if n.s.planted("control requests are sent once") {
				l.queue = l.queue[1:]
			}
			l.sendNext()
		}
	})
}

// hasLeaderEpochs tells whether a request is a StopReplica that carries a leader epoch for each partition (KIP-570); the
// sentinel of a deletion is none.
func hasLeaderEpochs(req kmsg.Request) bool {
	stop, ok := req.(*kmsg.StopReplicaRequest)
	if !ok || stop.Version < 3 {
		return false
	}
	for _, t := range stop.Topics {
		for _, p := range t.PartitionStates {
			if p.LeaderEpoch < 0 {
				return false
			}
		}
	}
	return true
}

// overTheWire gives the request as the other side decodes it: what its version cannot carry is lost.
func overTheWire(req kmsg.Request) kmsg.Request {
	copied := kmsg.RequestForKey(req.Key())
	copied.SetVersion(req.GetVersion())
	if err := copied.ReadFrom(req.AppendTo(nil)); err != nil {
		panic(fmt.Sprintf("%T version %d does not decode: %v", req, req.GetVersion(), err))
	}
	return copied
}
