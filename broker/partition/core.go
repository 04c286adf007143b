package partition

import (
	"fmt"
	"slices"
	"time"

	"barnabas/broker/commitlog"
)

// core is what one replica knows and decides. It does no I/O, takes no lock,
// reads no clock and starts nothing: an event goes in with the time it happened
// and what the log looked like, and a step comes out that says what has to be
// done. The shell (partition.go) guards it with Partition.state.
//
// Invariants, kept here and checked by check:
//
//   - leaderEpoch and partitionEpoch (within one leader epoch) never go back
//   - hw never goes back while this replica leads
//   - a leader is in its own ISR; the ISR may name replicas that are no longer
//     assigned (a reassignment under way), which then count for nothing
//   - at most one ISR change is in flight; hw and acknowledgements use the
//     larger of the committed and the wanted set
type core struct {
	self   int32
	maxLag time.Duration // replica.lag.time.max.ms

	role            role
	leader          int32
	leaderEpoch     int32
	partitionEpoch  int32
	controllerEpoch int32

	replicas, adding, removing []int32

	// Of a leader only.
	epochStart int64     // log end when this leader epoch began
	isr        []int32   // committed, as far as this leader knows
	inFlight   *flight   // the change that was asked for, if any
	serials    int64     // of the latest flight
	calmUntil  time.Time // no expansion before: the last one was refused (H18)
	remotes    []remote  // the other assigned replicas, in assignment order
	hw         commitlog.Position
	recovering bool

	// Of a leader that commits by what is on its disk (thin.go).
	flush   FlushPolicy
	durable commitlog.Position // known to be on disk, in this leader epoch

	brokers map[int32]BrokerInfo // alive; replaced whole, never changed in place
}

type role int8

const (
	roleNone role = iota // no order from a controller yet
	roleFollower
	roleLeader
)

// remote is what a leader knows of a follower from its fetches.
type remote struct {
	id          int32
	end         commitlog.Position // Offset -1: not known
	logStart    int64              // -1: not known
	brokerEpoch int64              // of the registration under which it fetched; -1: not known

	// caughtUp is the latest time at which the follower had everything the leader
	// then had. Kafka's rule (KIP-16): a fetch at the leader's end proves it for
	// now; a fetch at or past where the leader's end was at the previous fetch
	// proves it for the time of that previous fetch. The second half keeps a
	// follower in sync that is always a little behind a busy leader.
	caughtUp      time.Time
	lastFetch     time.Time
	leaderEndThen int64 // leader's log end at lastFetch

	// rebooted: its registration changed and no fetch under the new one has
	// reached the high watermark. What it held before may be gone (KIP-903).
	rebooted bool

	// turnedAway: it was refused as a member of the ISR, as a broker is that shuts
	// down, and has not fetched since the leader may ask again.
	turnedAway bool
}

// unknown is the position of a replica that was not heard of.
var unknown = commitlog.Position{Offset: None, SegmentBase: -1}

// step is what follows from an event.
type step struct {
	highWatermark bool       // it moved: set it in the log, wake who waits for it
	lowWatermark  bool       // it may have moved
	change        *ISRChange // ask for this
	flush         bool       // what was appended has to reach the disk before it can be committed
}

func newCore(self int32, maxLag time.Duration) core {
	return core{
		self: self, maxLag: maxLag,
		leader: None, leaderEpoch: None, partitionEpoch: None, controllerEpoch: None,
		epochStart: None, hw: commitlog.Position{SegmentBase: -1},
	}
}

// order is the part of a LeaderAndIsr that both roles take over.
func (c *core) order(o *LeaderAndISRPartition) {
	c.leader = o.Leader
	c.leaderEpoch = o.LeaderEpoch
	c.partitionEpoch = o.PartitionEpoch
	c.controllerEpoch = o.ControllerEpoch
	c.replicas = slices.Clone(o.Replicas)
	c.adding = slices.Clone(o.Adding)
	c.removing = slices.Clone(o.Removing)
	c.inFlight = nil
}

// lead makes this replica the leader in the order's epoch. end and hw are the
// log's, durable is how much of it is known to be on disk. The caller has seen that the epoch is newer than the known one, and
// has noted in the log where it starts (H06: also when nothing will be written
// in it).
func (c *core) lead(now time.Time, o *LeaderAndISRPartition, end, hw commitlog.Position, durable int64) {
	wasLeader := c.role == roleLeader
	c.order(o)
	c.role = roleLeader
	c.isr = slices.Clone(o.ISR)
	c.recovering = false // a leader that serves has recovered (KIP-704)
	c.epochStart = end.Offset
	c.hw = hw
	c.durable = commitlog.Position{Offset: durable, SegmentBase: -1}

	old := c.remotes
	c.remotes = make([]remote, 0, len(o.Replicas))
	for _, id := range o.Replicas {
		if id == c.self {
			continue
		}
		r := remote{id: id, end: unknown, logStart: None, brokerEpoch: None, leaderEndThen: None}
		if i := findRemote(old, id); wasLeader && i >= 0 {
			r = old[i]
			r.leaderEndThen = end.Offset
			r.lastFetch = time.Time{}
			r.turnedAway = false
		}
		// A member of the ISR gets the whole time to show itself; for others the
		// zero time keeps them from holding the high watermark back.
		r.caughtUp = time.Time{}
		if slices.Contains(c.isr, id) {
			r.caughtUp = now
			if wasLeader {
				r.lastFetch = now
			}
		}
		c.remotes = append(c.remotes, r)
	}
}

// follow makes this replica a follower.
func (c *core) follow(o *LeaderAndISRPartition) {
	c.order(o)
	c.role = roleFollower
	c.isr = nil
	c.remotes = nil
	c.epochStart = None
	c.recovering = o.LeaderRecovery != 0
}

// findRemote returns the index of a replica, or -1.
func findRemote(rs []remote, id int32) int {
	for i := range rs {
		if rs[i].id == id {
			return i
		}
	}
	return -1
}

// fetched notes that a follower asked for records from at on: it holds
// everything below. end is the leader's log end before the read. A follower
// that is not assigned is refused by follower before.
func (c *core) fetched(now time.Time, id int32, at commitlog.Position, logStart, brokerEpoch int64, end commitlog.Position, minISR int32) step {
	i := findRemote(c.remotes, id)
	if c.role != roleLeader || i < 0 {
		return step{}
	}
	r := &c.remotes[i]
	lowBefore := r.logStart
	switch {
	case at.Offset >= end.Offset:
		r.caughtUp = later(r.caughtUp, now)
	case at.Offset >= r.leaderEndThen && r.leaderEndThen >= 0:
		r.caughtUp = later(r.caughtUp, r.lastFetch)
	}
	moved := at.Offset != r.end.Offset
	r.end = at
	r.logStart = logStart
	r.lastFetch = now
	r.leaderEndThen = max(r.leaderEndThen, end.Offset)
	if brokerEpoch < 0 {
		brokerEpoch = c.liveEpoch(id)
	}
	if brokerEpoch > r.brokerEpoch && r.brokerEpoch >= 0 {
		r.rebooted = true // seen here before the cluster's metadata told
	}
	r.brokerEpoch = brokerEpoch

	s := step{lowWatermark: logStart != lowBefore}
	if r.rebooted {
		if at.Offset >= c.hw.Offset {
			r.rebooted = false
		} else if s.change = c.expel(id); s.change != nil {
			return s
		}
	}
	if !now.Before(c.calmUntil) {
		r.turnedAway = false
	}
	s.change = c.maybeExpand(now, i)
	if moved {
		s.highWatermark = c.advance(now, end, minISR)
	}
	return s
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// stale tells that a fetch carries an older registration than one already known
// for that broker: it was sent before a restart (KIP-903).
func (c *core) stale(id int32, brokerEpoch int64) bool {
	if brokerEpoch < 0 {
		return false
	}
	if i := findRemote(c.remotes, id); i >= 0 && c.remotes[i].brokerEpoch > brokerEpoch {
		return true
	}
	return c.liveEpoch(id) > brokerEpoch
}

// liveEpoch is the broker epoch of a live broker, -1 if it is not known.
func (c *core) liveEpoch(id int32) int64 {
	b, ok := c.brokers[id]
	if !ok {
		return None
	}
	return b.Epoch
}

// setBrokers takes a new view of the live brokers. A follower whose
// registration changed has restarted: what it had fetched may not have survived,
// so the leader forgets its position until it fetches again (H17). Kafka does
// this in KRaft mode only.
func (c *core) setBrokers(brokers map[int32]BrokerInfo) {
	for i := range c.remotes {
		r := &c.remotes[i]
		now, alive := brokers[r.id]
		known := max(c.liveEpoch(r.id), r.brokerEpoch)
		if alive && known >= 0 && now.Epoch > known {
			r.end, r.logStart, r.brokerEpoch = unknown, None, None
			r.leaderEndThen = None
			r.rebooted = true
		}
	}
	c.brokers = brokers
}

// enforceable returns how many replicas must be in sync for acks=all: the
// setting, but never more than there are replicas (KIP-966, since 3.7).
func (c *core) enforceable(minISR int32) int {
	return min(int(minISR), len(c.remotes)+1)
}

// underMin tells that the committed ISR is too small for acks=all.
func (c *core) underMin(minISR int32) bool { return len(c.isr) < c.enforceable(minISR) }

// acked tells whether an acks=all append up to offset can be answered, and how.
//
// An ISR that has become too small answers at once, with an error. The high
// watermark will not move before it grows again (watermark.go), so Kafka since
// 3.7 lets the request run into its timeout; the error it documents, and gave
// before, tells the client the reason and half a minute sooner.
func (c *core) acked(offset int64, minISR int32) (done, enough bool) {
	enough = len(c.maximal()) >= c.enforceable(minISR)
	return c.hw.Offset >= offset || !enough, enough
}

// check is the assertion of the invariants that a core can see.
func (c *core) check() error {
	if c.role != roleLeader {
		return nil
	}
	if c.leader != c.self {
		return fmt.Errorf("leader role with leader id %d", c.leader)
	}
	if !slices.Contains(c.isr, c.self) {
		return fmt.Errorf("leader %d is not in its ISR %v", c.self, c.isr)
	}
	return nil
}
