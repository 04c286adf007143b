package partition

import (
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// The last replica standing (KIP-966 names it; hazard H20).
//
// Kafka acknowledges from the page cache and trusts replication. When all
// followers of a partition have left the ISR, that trust has no ground any more:
// the leader alone holds what it acknowledges, and a power cut takes back what it
// had not written out. Then it returns, still the only member of the ISR, leads
// with a shorter log, and the followers cut theirs to match. Committed records
// are gone from everywhere.
//
// So, with FlushThinISR, a leader
//
//   - flushes its log before it asks for an ISR of itself alone: everything that
//     the larger ISR committed is on its disk when the controller may first rely
//     on it only
//   - while alone, and from when it asks for that, moves the high watermark no further than what is on the disk.
//     Flushes are made by a few goroutines, one at a time per partition, each for
//     all that was appended before it: acks=all answers and consumers wait for
//     their flush, acks=1 does not
//
// A topic with a single replica is not degraded and not flushed: it is as durable
// as its owner asked. Nothing of this is visible on the wire, on disk or in
// ZooKeeper.
//
// FlushAlways does the same in every ISR and for topics of one replica, and a
// follower flushes what it was sent before its next fetch tells the leader that
// it has it. Then the power cut of all replicas at once takes nothing that was
// committed (H21), for one flush per fetch and follower, and one per group of
// appends at the leader.

// byDisk tells that this leader commits no more than what is on its disk.
func (c *core) byDisk() bool {
	if c.role != roleLeader {
		return false
	}
	return c.flush == FlushAlways || (c.flush == FlushThinISR && len(c.remotes) > 0 && c.mayBeAlone())
}

// mayBeAlone tells that this leader is the only member of the ISR, or asked to be: whether that was written it learns
// later than those who elect leaders.
func (c *core) mayBeAlone() bool {
	return len(c.isr) == 1 || c.inFlight != nil && len(c.inFlight.want) == 1
}

// wantsFlush tells that there is something on the way to be committed that is not
// on the disk.
func (c *core) wantsFlush(end int64) bool { return c.byDisk() && c.durable.Offset < end }

// flushed notes what a flush that began in this leader epoch made durable.
func (c *core) flushed(at commitlog.Position) {
	if at.Offset > c.durable.Offset {
		c.durable = at
	}
}

// flushThen puts the partition in the flushers' queue; after (may be nil) is asked
// for when its log is on the disk.
func (p *Partition) flushThen(after *ISRChange) {
	p.flush.Lock()
	if after != nil {
		p.flush.after = after
	}
	queued := p.flush.queued
	p.flush.queued = true
	p.flush.Unlock()
	if !queued {
		p.m.flusher.add(p)
	}
}

// flushNow is a flusher's work on one partition. No lock of the partition is
// held over the flush.
func (p *Partition) flushNow() {
	p.flush.Lock()
	after := p.flush.after
	p.flush.after, p.flush.queued = nil, false
	p.flush.Unlock()

	p.role.RLock()
	log, err := p.local(None, true)
	epoch := p.state.leaderEpoch
	p.role.RUnlock()
	if err != nil {
		return
	}
	at := log.EndPosition()
	if err := log.Flush(); err != nil {
		if now := p.Log(); now != nil && now != log {
			p.flushThen(after) // the replica was moved to another directory meanwhile
			return
		}
		p.m.cfg.Log.WithField("partition", p.tp.String()).WithError(err).Error("flush of the only in-sync replica failed")
		return
	}

	p.role.RLock()
	if p.role.dead == nil && p.role.log != log {
		p.role.RUnlock()
		p.flushThen(after)
		return
	}
	if p.role.dead != nil || p.state.role != roleLeader || p.state.leaderEpoch != epoch {
		p.role.RUnlock()
		return
	}
	minISR := p.minISR()
	p.state.Lock()
	p.state.flushed(at)
	s := step{highWatermark: p.state.advance(p.m.cfg.Now(), log.EndPosition(), minISR)}
	broken := p.settle(log, &s)
	p.state.Unlock()
	p.role.RUnlock()
	p.finish(s, broken)
	if after != nil {
		p.submit(after)
	}
}

// lostAlone refuses leadership to a replica whose log is the only one in the ISR
// and came back from a crash shorter than what it is known to have held
// committed. Another replica may have the rest, and leading would make the loss
// final; KAFKA_STORAGE_ERROR is what a controller, also one of Kafka, knows to
// handle. unclean.leader.election.enable means to go on all the same.
func (m *Manager) lostAlone(log *commitlog.Log, o *LeaderAndISRPartition) error {
	r := log.Recovery()
	if m.cfg.Flush == FlushAsKafka || !r.LostCommitted() || log.EndOffset() >= r.KnownCommitted {
		return nil
	}
	if len(o.ISR) != 1 || settled(o) < 2 || log.Config().UncleanElection {
		return nil
	}
	return fmt.Errorf("log ends at %d but held committed records up to %d before the crash; it does not lead as the only in-sync replica (unclean.leader.election.enable=true for the topic accepts the loss): %w",
		log.EndOffset(), r.KnownCommitted, kerr.KafkaStorageError)
}

// settled is how many replicas a partition has apart from those that a reassignment is only just adding: one that had a
// single replica is as durable as its owner asked until another one has caught up.
func settled(o *LeaderAndISRPartition) int {
	n := 0
	for _, id := range o.Replicas {
		if !slices.Contains(o.Adding, id) {
			n++
		}
	}
	return n
}

// flushersAtOnce bounds how many logs are flushed at the same time.
const flushersAtOnce = 4

// flusher is a queue of partitions and the goroutines that flush them.
type flusher struct {
	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*Partition
	closed bool
	wg     sync.WaitGroup
}

func (f *flusher) init() { f.wake = sync.NewCond(&f.mu) }

func (f *flusher) start() {
	for range flushersAtOnce {
		f.wg.Add(1)
		go f.run()
	}
}

func (f *flusher) add(p *Partition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, p)
	f.wake.Signal()
}

func (f *flusher) run() {
	defer f.wg.Done()
	for {
		f.mu.Lock()
		for len(f.queue) == 0 && !f.closed {
			f.wake.Wait()
		}
		if f.closed {
			f.mu.Unlock()
			return
		}
		p := f.queue[0]
		f.queue = f.queue[1:]
		f.mu.Unlock()
		p.flushNow()
	}
}

func (f *flusher) stop() {
	f.mu.Lock()
	f.closed = true
	f.wake.Broadcast()
	f.mu.Unlock()
	f.wg.Wait()
}
