package simulation

import (
	"errors"
	"maps"
	"slices"
	"syscall"
	"time"

	"barnabas/broker/partition"
	"barnabas/broker/vfs"
	"barnabas/controller"
	"barnabas/zkstate"
)

// howItEnds says what becomes of what the disk was not yet told to keep.
type howItEnds vfs.Adversary

const processEnds = howItEnds(vfs.Everything)

var errDisk = errors.New("input/output error")

// powerCuts are the ways in which a power cut treats what was not synced.
var powerCuts = slices.DeleteFunc(slices.Clone(vfs.Adversaries), func(a vfs.Adversary) bool { return a == vfs.Everything })

// powerCut ends a node and loses what was not synced.
//
// What may be lost without losing what is committed depends on the flush policy. With Kafka's, nothing: replication has
// to hold, and power is not cut. With the flush of a thin ISR one failure at a time is survived: the other members of
// the ISR go on until the controller has seen the node return. With a flush before every commit, anything goes.
func powerCut(s *Sim, n *node) {
	if !n.up || s.flush == partition.FlushAsKafka {
		return
	}
	if s.flush == partition.FlushThinISR {
		n = s.standsAlone(n)
		if !n.up || !s.othersHold(n) || s.aloneUnawares(n) {
			return
		}
	}
	s.Done.PowerCuts++
	how := pick(s.w, powerCuts)
	s.w.tell("node %d: loses its power (%s)", n.id, how)
	if s.flush == partition.FlushThinISR {
		s.quietUntil = s.w.now + 12*time.Second
		n.powerLost = s.w.now
		s.forgiveSingles(n)
	}
	n.crash(howItEnds(how))
	s.unlessCalm(s.w.between(50*time.Millisecond, 4*time.Second), n.startAgain)
}

// forgiveSingles: a partition of one replica is as durable as its owner asked, which is not at all with the flush of a
// thin ISR. What is lost of it is forgotten once its only replica leads again.
func (s *Sim) forgiveSingles(n *node) {
	for _, name := range s.topicNames() {
		a, _, _ := s.topicNode(name)
		for p := range int32(len(a.Partitions)) {
			tp := controller.TopicPartition{Topic: name, Partition: p}
			status, _ := n.broker.status(tp)
			settled := slices.DeleteFunc(slices.Clone(a.Partitions[p].Replicas), func(id int32) bool { return slices.Contains(a.Partitions[p].Adding, id) })
			if slices.Equal(settled, []int32{n.id}) || slices.Equal(status.Replicas, []int32{n.id}) {
				h := s.history(s.incarnation(tp))
				h.forgiven, h.lossy = true, true
			}
		}
	}
}

// standsAlone is a node that is the last in the ISR of a partition with more replicas, if there is one: what is at stake.
func (s *Sim) standsAlone(n *node) *node {
	for _, path := range slices.Sorted(maps.Keys(s.facts.states)) {
		state := s.facts.states[path]
		if len(state.ISR) != 1 || state.Leader != state.ISR[0] {
			continue
		}
		for _, p := range s.nodes[state.Leader-1].broker.everyPartition() {
			if st := p.Status(); st.IsLeader && len(st.ISR) == 1 && len(st.Replicas) > 1 {
				return s.nodes[state.Leader-1]
			}
		}
	}
	return n
}

// aloneUnawares tells that a node was made the last of an ISR, by a broker that shuts down, and has not heard of it yet: what
// it holds was not flushed for that. To lose its power now would be the second failure.
func (s *Sim) aloneUnawares(n *node) bool {
	for _, p := range n.broker.everyPartition() {
		state, led := s.facts.states[zkstate.PartitionStatePath(p.TP().Topic, p.TP().Partition)]
		if st := p.Status(); led && slices.Equal(state.ISR, []int32{n.id}) && !(st.IsLeader && st.LeaderEpoch == state.LeaderEpoch) {
			return true
		}
	}
	return false
}

// othersHold tells that nobody else is failing, nor has failed without the controller having dealt with it.
func (s *Sim) othersHold(n *node) bool {
	c := s.active()
	if s.w.now < s.quietUntil || c == nil || c.core.Busy() {
		return false
	}
	for _, o := range s.nodes {
		if o != n && (!o.up || o.paused || o.cutFromZK || o.zk.session == nil || o.zk.session.expired || !o.zk.connected || o.broker.epoch == 0 || o.broker.failed || s.w.now-o.since < 4*time.Second) {
			return false
		}
		if l := c.lanes[o.id]; o != n && (l == nil || l.to.BrokerEpoch != o.broker.epoch) {
			return false // the controller has yet to learn of a failure
		}
	}
	return true
}

// quiet tells that no further node may fail: one that lost its power is on its way back.
func (s *Sim) quiet() bool { return s.w.now < s.quietUntil }

// recoversFromPowerCut tells that a node may still be in an ISR with less than it had: the controller has not seen yet
// that it was away.
func (s *Sim) recoversFromPowerCut(n *node) bool {
	return s.flush != partition.FlushAlways && n.powerLost > 0 && s.w.now-n.powerLost < 12*time.Second
}

// breakDisk makes a node's disk fail at some operation soon. The broker ends; the disk is exchanged for a copy of it.
func breakDisk(s *Sim, n *node) {
	if !n.up || n.broker.failed || s.flush == partition.FlushThinISR && !s.othersHold(n) {
		return
	}
	s.Done.DiskErrors++
	s.w.tell("node %d: its disk is about to fail", n.id)
	if s.flush == partition.FlushThinISR {
		s.quietUntil = s.w.now + 16*time.Second
		n.powerLost = s.w.now
		s.forgiveSingles(n)
	}
	left := s.w.rand.IntN(20)
	kinds := pick(s.w, [][]vfs.OpKind{{vfs.OpSync}, {vfs.OpWrite}, {vfs.OpSync, vfs.OpWrite, vfs.OpCreate, vfs.OpRename, vfs.OpTruncate, vfs.OpSyncDir}})
	if s.flush == partition.FlushAsKafka {
		kinds = []vfs.OpKind{vfs.OpWrite} // a failed sync loses pages, as a power cut does
	}
	n.disk.Inject(func(o vfs.Op) error {
		if slices.Contains(kinds, o.Kind) {
			if left--; left < 0 {
				return errDisk
			}
		}
		return nil
	})
	disk := n.disk
	s.unlessCalm(4*time.Second, func() { disk.Inject(nil) })
}

// fillDisk leaves no room on a node's disk for a while. The broker goes on without its replicas, and with them when there is
// room again.
func fillDisk(s *Sim, n *node) {
	if !n.up || n.broker.failed {
		return
	}
	s.Done.DiskErrors++
	s.w.tell("node %d: its disk is about to be full", n.id)
	left := s.w.rand.IntN(20)
	n.disk.Inject(func(o vfs.Op) error {
		if o.Kind == vfs.OpWrite || o.Kind == vfs.OpCreate {
			if left--; left < 0 {
				return syscall.ENOSPC
			}
		}
		return nil
	})
	disk := n.disk
	s.unlessCalm(s.w.between(500*time.Millisecond, 4*time.Second), func() { disk.Inject(nil) })
}

// operate is an operator who looks for replicas that their broker took out of use because something that was safe is
// damaged (H47). Unless it is the last one, the replica is removed and made anew from the others.
func (s *Sim) operate() {
	s.w.in(2*time.Second, func() {
		for _, n := range s.nodes {
			if n.up && !n.paused && !n.broker.failed && !s.quiet() {
				s.replaceDamaged(n)
			}
		}
		s.operate()
	})
}

func (s *Sim) replaceDamaged(n *node) {
	for _, log := range n.broker.logs.All() {
		if log.Err() == nil {
			continue
		}
		state := s.facts.states[zkstate.PartitionStatePath(log.TP().Topic, log.TP().Partition)]
		if slices.Equal(state.ISR, []int32{n.id}) {
			continue
		}
		s.Done.Damaged++
		s.w.tell("node %d: the operator removes the damaged replica of %s", n.id, log.TP())
		dir := log.Dir()
		n.crash(processEnds)
		if err := n.disk.RemoveAll(dir); err != nil {
			panic(err)
		}
		n.start()
		return
	}
}

// jumpClock moves a node's clock; timeouts do not care, timestamps do.
func jumpClock(s *Sim, n *node) {
	s.Done.ClockJumps++
	n.clockOff = pick(s.w, []time.Duration{0, -time.Hour, time.Hour, 365 * 24 * time.Hour})
	s.w.tell("node %d: its clock is off by %v", n.id, n.clockOff)
}

func (n *node) clock() time.Time { return n.s.wallClock().Add(n.clockOff) }
