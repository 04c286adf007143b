package controller

import (
	"errors"
	"fmt"
	"slices"

	"barnabas/zkstate"
)

// Moving replicas (KIP-455). The assignment in /brokers/topics/T carries the old and the new replicas together, with
// those that are being added and removed, so any controller can go on with it. ORS is the original set, TRS the target.
//
//	A  until every member of TRS is in the ISR: the assignment with ORS and TRS together is written; the leader gets
//	   it with a new leader epoch, the added replicas are started.
//	B  then: the added replicas are online; the leader moves into TRS if it is not there; the removed replicas leave the
//	   ISR and are deleted; the assignment becomes TRS alone; what asked for it in /admin/reassign_partitions goes.
//
// The replicas that go are deleted before the final assignment is written: a controller that dies in between does B again.
// A reassignment to another target, or back to ORS (a cancel), supersedes the one that runs: replicas that only it
// wanted are stopped with a raised leader epoch, so that the order cannot be taken for a stale one. It is refused if only
// they are in sync: an added replica may have become the leader, and dropping it would lose what was committed.

// errReassignment is a reassignment that could not be begun or completed; the controllership goes on.
var errReassignment = errors.New("reassignment failed")

// errWouldLose is a reassignment that is refused, since it would drop every replica that has the committed records.
var errWouldLose = fmt.Errorf("%w: it would lose records", errReassignment)

// errLeaderless is one whose target has nobody who may lead.
var errLeaderless = fmt.Errorf("%w: no replica of its target may lead", errReassignment)

// reassign begins, supersedes, goes on with or completes the reassignment of one partition.
func (c *Core) reassign(tp TopicPartition, to assignment) error {
	if p := c.cluster.partition(tp); p.leadership == nil {
		if p.state != newPartition {
			return fmt.Errorf("%w: the state of partition %s is not known", errReassignment, tp)
		}
		return c.assignAnew(tp, to)
	}
	c.haltDeletion([]string{tp.Topic}, "a reassignment is running")
	if err := c.takeUpReassignment(tp, to); err != nil {
		return err
	}
	complete, err := c.reassignmentComplete(tp, to)
	if err != nil {
		return err
	}
	if complete {
		return c.completeReassignment(tp, to)
	}
	if err := c.openEpoch(tp, to); err != nil {
		return err
	}
	var starting []replica
	for _, id := range to.adding {
		if s := c.cluster.partition(tp).replicas[id]; s == nonExistentReplica {
			starting = append(starting, replica{tp, id})
		}
	}
	return c.moveReplicas(starting, newReplica)
}

// assignAnew gives a partition that never had a leader its target replicas at once: there is nothing to move.
func (c *Core) assignAnew(tp TopicPartition, to assignment) error {
	p := c.cluster.partition(tp)
	before := p.assignment
	p.assignment = assignment{replicas: to.target()}
	if !before.equal(p.assignment) {
		if err := c.writeAssignment(c.cluster.topics[tp.Topic]); err != nil {
			p.assignment = before
			return err
		}
	}
	p.replicas = map[int32]replicaState{}
	for _, id := range p.assignment.replicas {
		p.replicas[id] = newReplica
	}
	p.reassigning = false
	if err := c.removeFromReassignNode(func(asked TopicPartition, target []int32) bool {
		return asked == tp && slices.Equal(target, p.assignment.replicas)
	}); err != nil {
		return err
	}
	if _, err := c.bringOnline([]TopicPartition{tp}, forOffline); err != nil {
		return err
	}
	return c.moveReplicas(c.cluster.replicasOf([]TopicPartition{tp}), onlineReplica)
}

// mayDrop refuses to drop the only replicas that are in sync.
func (c *Core) mayDrop(tp TopicPartition, ids []int32) error {
	outcomes := map[TopicPartition]error{}
	states, err := c.readStates([]TopicPartition{tp}, outcomes)
	if err != nil {
		return err
	}
	l, ok := states[tp]
	if !ok {
		return fmt.Errorf("%w: partition %s: %w", errReassignment, tp, outcomes[tp])
	}
	if subset(l.isr, ids) {
		return fmt.Errorf("%w of partition %s: the only in-sync replicas %v are among those that would be dropped", errWouldLose, tp, l.isr)
	}
	return nil
}

// takeUpReassignment makes an assignment that differs from the present one the partition's own, in ZooKeeper first.
func (c *Core) takeUpReassignment(tp TopicPartition, to assignment) error {
	p := c.cluster.partition(tp)
	if before := p.assignment; !before.equal(to) {
		unneeded := without(before.replicas, to.replicas)
		if len(unneeded) > 0 {
			if err := c.mayDrop(tp, unneeded); err != nil {
				return err
			}
		}
		p.assignment = to
		if err := c.writeAssignment(c.cluster.topics[tp.Topic]); err != nil {
			p.assignment = before
			return err
		}
		// Whatever they are sent from here on has a higher leader epoch than the orders of an earlier assignment.
		p.await(without(to.adding, before.adding), p.leadership.leaderEpoch+1)
		c.logf(LogInfo, "partition %s is reassigned from (%s) to (%s)", tp, before, to)
		if slices.Contains(unneeded, p.leadership.leader) {
			// Nobody would look for a leader after it was dropped.
			if _, err := c.bringOnline([]TopicPartition{tp}, forOffline); err != nil {
				return err
			}
		}
		if len(unneeded) > 0 {
			// Leaving the ISR raises the leader epoch. Who is not in it would get an order of the epoch it knows, and brokers
			// before 3.5 take that for a stale one and keep the replica.
			if len(without(unneeded, p.leadership.isr)) == len(unneeded) {
				if err := c.openEpoch(tp, to); err != nil {
					return err
				}
			}
			if err := c.dropReplicas(tp, unneeded); err != nil {
				return err
			}
		}
	}
	p.reassigning = true
	if !c.cfg.IBP.alterPartition() {
		// Leaders change the ISR by themselves: only a watch tells when the new replicas have caught up.
		_, err := c.read(zkstate.Exists(zkstate.PartitionStatePath(tp.Topic, tp.Partition)).Watched())
		return err
	}
	return nil
}

// reassignmentComplete tells whether every replica of the target is in the ISR that ZooKeeper holds now.
func (c *Core) reassignmentComplete(tp TopicPartition, a assignment) (bool, error) {
	if !a.reassigning() {
		return true, nil
	}
	outcomes := map[TopicPartition]error{}
	states, err := c.readStates([]TopicPartition{tp}, outcomes)
	if err != nil {
		return false, err
	}
	l, ok := states[tp]
	return ok && subset(a.target(), l.isr), nil
}

// openEpoch raises the leader epoch and tells the replicas the assignment: those that were there before must have the
// partition, those that are added may create it.
func (c *Core) openEpoch(tp TopicPartition, a assignment) error {
	l, err := c.writeNoOp(tp)
	if err != nil {
		return err
	}
	c.cluster.partition(tp).leadership = &l
	c.outbox.leaderAndISR(c, a.origin(), tp, false)
	c.outbox.leaderAndISR(c, a.adding, tp, true)
	c.outbox.flush(c)
	return nil
}

// writeNoOp elects the present leader again, in a new leader epoch.
func (c *Core) writeNoOp(tp TopicPartition) (leadership, error) {
	for {
		outcomes := map[TopicPartition]error{}
		states, err := c.readStates([]TopicPartition{tp}, outcomes)
		if err != nil {
			return leadership{}, err
		}
		current, ok := states[tp]
		if !ok {
			return leadership{}, fmt.Errorf("%w: partition %s: %w", errReassignment, tp, outcomes[tp])
		}
		l, _ := electNoOp(candidate{current: current})
		l.controllerEpoch = c.cluster.epoch
		results, err := c.write(zkstate.Set(zkstate.PartitionStatePath(tp.Topic, tp.Partition), encodeState(l), current.version))
		switch {
		case err != nil:
			return leadership{}, err
		case errors.Is(results[0].Err, zkstate.ErrBadVersion):
			continue
		case results[0].Err != nil:
			return leadership{}, fmt.Errorf("%w: partition %s: %w", errReassignment, tp, results[0].Err)
		}
		l.version = results[0].Stat.Version
		return l, nil
	}
}

// completeReassignment does part B.
func (c *Core) completeReassignment(tp TopicPartition, a assignment) error {
	p := c.cluster.partition(tp)
	var added []replica
	for _, id := range a.adding {
		added = append(added, replica{tp, id})
	}
	if err := c.moveReplicas(added, onlineReplica); err != nil {
		return err
	}
	done := assignment{replicas: a.target()}
	p.assignment = done
	// While replicas are to be dropped, who is left has to lead first. A reassignment that was taken back is over without: the leader comes back with its broker.
	switch err := c.moveLeaderIfRequired(tp, done); {
	case errors.Is(err, errLeaderless) && !a.reassigning():
		c.logf(LogWarn, "partition %s stays without a leader: none of %v may lead it now", tp, done.replicas)
	case err != nil:
		p.assignment = a
		return err
	}
	if err := c.dropReplicas(tp, a.removing); err != nil {
		return err
	}
	p.assignment = done
	if err := c.writeAssignment(c.cluster.topics[tp.Topic]); err != nil {
		return err
	}
	p.reassigning = false
	if err := c.removeFromReassignNode(func(asked TopicPartition, to []int32) bool {
		return asked == tp && slices.Equal(to, done.replicas)
	}); err != nil {
		return err
	}
	c.tellEverybody(tp)
	c.logf(LogInfo, "partition %s has replicas %v now", tp, done.replicas)
	return c.resumeDeletionOf([]string{tp.Topic})
}

// moveLeaderIfRequired elects a leader in the target set, or tells the present one the final assignment.
func (c *Core) moveLeaderIfRequired(tp TopicPartition, done assignment) error {
	p := c.cluster.partition(tp)
	if p.leadership == nil {
		return fmt.Errorf("%w: partition %s has never had a leader", errReassignment, tp)
	}
	leader := p.leadership.leader
	if slices.Contains(done.replicas, leader) && c.cluster.online(leader, tp) {
		return c.openEpoch(tp, done)
	}
	if _, err := c.bringOnline([]TopicPartition{tp}, forReassigned); err != nil {
		return err
	}
	if !slices.Contains(done.replicas, p.leadership.leader) {
		return fmt.Errorf("%w: partition %s: %v", errLeaderless, tp, done.replicas)
	}
	return nil
}

// dropReplicas takes replicas out of the ISR and deletes them. Their brokers' answers are not waited for; a broker that
// is away finds on its return that it is not a replica any more.
func (c *Core) dropReplicas(tp TopicPartition, ids []int32) error {
	var gone []replica
	for _, id := range ids {
		gone = append(gone, replica{tp, id})
	}
	for _, to := range []replicaState{offlineReplica, deletionStarted, deletionSuccessful, nonExistentReplica} {
		if err := c.moveReplicas(gone, to); err != nil {
			return err
		}
	}
	return nil
}

// dropStrays takes out of the ISR who is not a replica: a controller died between writing an assignment and dropping
// whom it does not name, or a leader that writes the ISR itself had not heard of the assignment.
func (c *Core) dropStrays(tps []TopicPartition) error {
	for _, tp := range tps {
		p := c.cluster.partition(tp)
		if p == nil || p.leadership == nil {
			continue
		}
		strays := without(p.leadership.isr, p.assignment.replicas)
		if len(strays) == 0 || len(strays) == len(p.leadership.isr) {
			continue
		}
		c.logf(LogWarn, "partition %s has %v in its ISR, which are not replicas of it", tp, strays)
		for _, id := range strays {
			p.replicas[id] = onlineReplica
		}
		if slices.Contains(strays, p.leadership.leader) {
			if _, err := c.bringOnline([]TopicPartition{tp}, forOffline); err != nil {
				return err
			}
		}
		// The leader may not have heard of the assignment, and would take them in again.
		if err := c.tolerate(tp, c.openEpoch(tp, p.assignment)); err != nil {
			return err
		}
		if err := c.dropReplicas(tp, strays); err != nil {
			return err
		}
	}
	return nil
}

// resumeReassignmentsWhere goes on with running reassignments.
func (c *Core) resumeReassignmentsWhere(ok func(TopicPartition, *partition) bool) error {
	running := c.cluster.partitionsWhere(func(tp TopicPartition, _ *topic, p *partition) bool { return p.reassigning && ok(tp, p) })
	for _, tp := range running {
		if p := c.cluster.partition(tp); p != nil {
			if err := c.tolerate(tp, c.reassign(tp, p.assignment)); err != nil {
				return err
			}
		}
	}
	return nil
}

// tolerate logs a reassignment that failed by itself, and passes on what ends the controllership.
func (c *Core) tolerate(tp TopicPartition, err error) error {
	if errors.Is(err, errReassignment) {
		c.logf(LogError, "partition %s: %v", tp, err)
		return nil
	}
	return err
}

// reassignedISRChanged is the watch that tells, where leaders write the ISR themselves, that new replicas may have
// caught up.
func (c *Core) reassignedISRChanged(tp TopicPartition) error {
	p := c.cluster.partition(tp)
	if p == nil || !p.reassigning {
		return nil
	}
	if _, err := c.read(zkstate.Exists(zkstate.PartitionStatePath(tp.Topic, tp.Partition)).Watched()); err != nil {
		return err
	}
	return c.completeIfCaughtUp(tp)
}

// completeIfCaughtUp completes a reassignment whose target has joined the ISR.
func (c *Core) completeIfCaughtUp(tp TopicPartition) error {
	p := c.cluster.partition(tp)
	if p == nil || !p.reassigning {
		return nil
	}
	complete, err := c.reassignmentComplete(tp, p.assignment)
	if err != nil || !complete {
		return err
	}
	return c.tolerate(tp, c.reassign(tp, p.assignment))
}
