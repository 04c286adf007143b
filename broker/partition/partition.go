package partition

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/purgatory"
)

// Partition is one replica on this broker: a core with its log and its waiting
// requests.
type Partition struct {
	tp      commitlog.TopicPartition
	m       *Manager
	traffic *traffic // of the topic's replicas together

	// role is held for reading by whoever appends, reads or truncates, and for
	// writing while the role changes: what was a leader at the start of an append
	// is one at its end. The core's role, leader, epochs and assignment change
	// under role held for writing only, so readers need no state lock for them.
	role struct {
		sync.RWMutex
		log    *commitlog.Log // nil before the first order
		future *commitlog.Log // in another directory, to take the place of log; nil: the replica is not moved
		dead   error          // why the replica serves no more: KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER
		term   int64          // counts the times a leader stopped being one

		// cutting is held, under role held for reading, while a piece of the log is copied to the future one, and while
		// the log is cut: what was found to agree still does when it is copied.
		cutting sync.Mutex
		flushed int64 // bytes of the future log when it was last flushed; guarded by cutting
	}

	// state guards what else the core holds. Taken after role; held for
	// arithmetic and for setting the log's high watermark, never for other I/O.
	state struct {
		sync.Mutex
		core
	}

	broken atomic.Bool // an invariant failed; the partition is going offline

	returned bool // the replica was offline, and an order has brought it back; guarded by Manager.orders

	flush struct { // of the thin ISR; see thin.go
		sync.Mutex
		queued bool
		after  *ISRChange // asked for when the flush is done
	}

	consumers purgatory.List // fetches bounded by the high watermark
	followers purgatory.List // fetches bounded by the log end
	producers purgatory.List // acks=all appends
	deletes   purgatory.List // DeleteRecords
}

// newPartition makes a replica that knows nothing yet. Under Manager.mu.
func newPartition(m *Manager, tp commitlog.TopicPartition) *Partition {
	p := &Partition{tp: tp, m: m}
	m.enterTrafficLocked(p)
	p.state.core = newCore(m.cfg.BrokerID, m.cfg.ReplicaLagTimeMax)
	p.state.core.flush = m.cfg.Flush
	return p
}

// TP names the partition.
func (p *Partition) TP() commitlog.TopicPartition { return p.tp }

// Log is the replica's log; nil before the first order of a controller and after
// the replica went.
func (p *Partition) Log() *commitlog.Log {
	p.role.RLock()
	defer p.role.RUnlock()
	if p.role.dead != nil {
		return nil
	}
	return p.role.log
}

// Status is a replica's state at one moment, for metrics and descriptions.
type Status struct {
	IsLeader       bool
	Leader         int32
	LeaderEpoch    int32
	PartitionEpoch int32
	Replicas       []int32
	ISR            []int32
	HighWatermark  int64
	UnderMinISR    bool
	AtMinISR       bool
	Reassigning    bool
	InFlight       bool // an ISR change awaits its answer
}

// Status returns the replica's state.
func (p *Partition) Status() Status {
	p.role.RLock()
	defer p.role.RUnlock()
	minISR := p.minISR()
	p.state.Lock()
	defer p.state.Unlock()
	c := &p.state.core
	s := Status{
		IsLeader: c.role == roleLeader && p.role.dead == nil, Leader: c.leader, LeaderEpoch: c.leaderEpoch, PartitionEpoch: c.partitionEpoch,
		Replicas: append([]int32(nil), c.replicas...), ISR: append([]int32(nil), c.isr...),
		Reassigning: len(c.adding)+len(c.removing) > 0, InFlight: c.inFlight != nil,
	}
	if p.role.log != nil {
		s.HighWatermark = p.role.log.HighWatermark()
	}
	if s.IsLeader {
		s.UnderMinISR = c.underMin(minISR)
		s.AtMinISR = len(c.isr) == c.enforceable(minISR)
	}
	return s
}

// minISR is the topic's min.insync.replicas. Under role.
func (p *Partition) minISR() int32 {
	if p.role.log == nil {
		return 1
	}
	return p.role.log.Config().MinInsync
}

// local returns the log for a request that knows the leader epoch epoch (-1: not
// fenced), and must be answered by the leader if leaderOnly. Under role.
func (p *Partition) local(epoch int32, leaderOnly bool) (*commitlog.Log, error) {
	if p.role.dead != nil {
		return nil, p.role.dead
	}
	if p.broken.Load() {
		return nil, kerr.KafkaStorageError
	}
	c := &p.state.core
	if err := fence(epoch, c.leaderEpoch); err != nil {
		return nil, err
	}
	if p.role.log == nil || (leaderOnly && c.role != roleLeader) {
		return nil, kerr.NotLeaderForPartition
	}
	return p.role.log, nil
}

// fence compares the epoch a request carries with the one known here (KIP-320,
// H04): both an outdated asker and an outdated leader must be told.
func fence(asked, known int32) error {
	switch {
	case asked == None || asked == known:
		return nil
	case asked < known:
		return kerr.FencedLeaderEpoch
	}
	return kerr.UnknownLeaderEpoch
}

// leaderHint is the leader this replica knows of, for answers that send a client
// there (KIP-951).
func (p *Partition) leaderHint() (id, epoch int32) {
	p.role.RLock()
	defer p.role.RUnlock()
	return p.state.leader, p.state.leaderEpoch
}

// settle carries the log's high watermark to where the core has it and checks
// the invariants; the error is a broken one. Under role and state.
func (p *Partition) settle(log *commitlog.Log, s *step) error {
	s.flush = p.state.wantsFlush(log.EndOffset())
	if s.highWatermark {
		log.SetHighWatermarkPosition(p.state.hw)
	}
	if err := p.state.check(); err != nil {
		return err
	}
	return checkOffsets(log)
}

// checkOffsets asserts log start <= last stable <= high watermark <= log end.
// The four only grow while a leader is not truncated, so reading the smaller one
// first never sees a violation that is not there.
func checkOffsets(log *commitlog.Log) error {
	start := log.StartOffset()
	stable := log.LastStableOffset()
	hw := log.HighWatermark()
	end := log.EndOffset()
	if start > hw || stable > hw || hw > end {
		return fmt.Errorf("log start %d, last stable %d, high watermark %d, log end %d", start, stable, hw, end)
	}
	return nil
}

// finish does what follows from a step outside of all locks.
func (p *Partition) finish(s step, broken error) {
	if broken != nil {
		p.m.breakdown(p, broken)
		return
	}
	if s.highWatermark {
		p.consumers.Wake()
		p.producers.Wake()
	}
	if s.lowWatermark {
		p.deletes.Wake()
	}
	if s.change != nil && s.change.alone {
		p.flushThen(s.change)
		return
	}
	if s.change != nil {
		p.submit(s.change)
	}
	if s.flush {
		p.flushThen(nil)
	}
}

// wakeAll makes every waiting request look again: the role changed.
func (p *Partition) wakeAll() {
	p.consumers.Wake()
	p.followers.Wake()
	p.producers.Wake()
	p.deletes.Wake()
}

// submit hands an ISR change out.
func (p *Partition) submit(change *ISRChange) {
	change.TP = p.tp
	if log := p.Log(); log != nil {
		change.TopicID = log.TopicID()
	}
	for i := range change.ISR {
		if change.ISR[i].ID == p.m.cfg.BrokerID {
			change.ISR[i].BrokerEpoch = p.m.brokerEpoch.Load()
		}
	}
	p.m.cfg.Log.WithField("partition", p.tp.String()).Infof("asking for ISR %v in leader epoch %d, partition epoch %d",
		change.ISR, change.LeaderEpoch, change.PartitionEpoch)
	serial := change.serial
	p.m.isr.ChangeISR(*change, func(got ISRChanged, err error) { p.changed(serial, got, err) })
}

// changed takes the answer to an ISR change.
func (p *Partition) changed(serial int64, got ISRChanged, err error) {
	p.role.RLock()
	log := p.role.log
	if log == nil || p.role.dead != nil {
		p.role.RUnlock()
		return
	}
	minISR := p.minISR()
	p.state.Lock()
	before := len(p.state.isr)
	s := p.state.changed(p.m.cfg.Now(), serial, got, err, log.EndPosition(), minISR)
	broken := p.settle(log, &s)
	isr, epoch, retry := p.state.isr, p.state.partitionEpoch, p.state.inFlight != nil
	p.state.Unlock()
	p.role.RUnlock()

	if retry {
		p.m.retryLater(p)
	}
	entry := p.m.cfg.Log.WithField("partition", p.tp.String())
	switch {
	case err != nil:
		p.m.counts.isrFailed.Add(1)
		entry.WithError(err).Warnf("ISR change was not confirmed (will repeat: %t); ISR %v, partition epoch %d", retry, isr, epoch)
	case len(isr) > before:
		p.m.counts.isrExpanded.Add(1)
		entry.Infof("ISR is %v, partition epoch %d", isr, epoch)
	case len(isr) < before:
		p.m.counts.isrShrunk.Add(1)
		entry.Infof("ISR is %v, partition epoch %d", isr, epoch)
	}
	// A smaller ISR can let an append be answered, with an error, although the
	// high watermark stays: the waiting ones look again in any case.
	p.producers.Wake()
	p.finish(s, broken)
}

// advanced is the step of a high watermark that nothing but the time or the cluster may have held back.
func (p *Partition) advanced(log *commitlog.Log) step {
	return step{highWatermark: p.state.advance(p.m.cfg.Now(), log.EndPosition(), p.minISR())}
}

// shrinkISR asks for who lags to leave.
func (p *Partition) shrinkISR() {
	p.asLeader(func(log *commitlog.Log) step {
		s := p.advanced(log)
		s.change = p.state.maybeShrink(p.m.cfg.Now(), log.EndOffset())
		return s
	})
}

// retryISR sends a change again whose answer was uncertain, when it is time.
func (p *Partition) retryISR() {
	p.asLeader(func(*commitlog.Log) step {
		change := p.state.due(p.m.cfg.Now())
		if change == nil && p.state.inFlight != nil {
			p.m.retryLater(p)
		}
		return step{change: change}
	})
}

// asLeader runs decide under the locks if this replica leads, and does what
// follows.
func (p *Partition) asLeader(decide func(*commitlog.Log) step) {
	p.role.RLock()
	log := p.role.log
	if log == nil || p.role.dead != nil || p.state.role != roleLeader {
		p.role.RUnlock()
		return
	}
	p.state.Lock()
	s := decide(log)
	broken := p.settle(log, &s)
	p.state.Unlock()
	p.role.RUnlock()
	p.finish(s, broken)
}

// setBrokers tells the core who is alive.
func (p *Partition) setBrokers(brokers map[int32]BrokerInfo) {
	p.state.Lock()
	p.state.setBrokers(brokers)
	p.state.Unlock()
	p.asLeader(p.advanced) // a follower that is gone is not waited for
	p.deletes.Wake()       // a dead follower is not waited for
}

// die ends the replica's service: every request is answered with err from now on.
func (p *Partition) die(err error) {
	p.role.Lock()
	p.role.dead = err
	p.role.term++
	p.role.Unlock()
	p.wakeAll()
}
