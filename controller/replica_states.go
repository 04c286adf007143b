package controller

import (
	"errors"
	"fmt"
	"slices"

	"barnabas/zkstate"
)

type replicaState int8

const (
	nonExistentReplica replicaState = iota
	newReplica
	onlineReplica
	offlineReplica
	deletionStarted
	deletionSuccessful
	// deletionIneligible: the replica could not be deleted, because its broker is away or refused.
	deletionIneligible
)

func (s replicaState) String() string {
	return [...]string{"NonExistent", "New", "Online", "Offline", "DeletionStarted", "DeletionSuccessful", "DeletionIneligible"}[s]
}

// replicaTransitions gives, for each state, the states that it may be entered from.
var replicaTransitions = map[replicaState][]replicaState{
	newReplica:         {nonExistentReplica},
	onlineReplica:      {newReplica, onlineReplica, offlineReplica, deletionIneligible},
	offlineReplica:     {newReplica, onlineReplica, offlineReplica, deletionIneligible},
	deletionStarted:    {offlineReplica},
	deletionSuccessful: {deletionStarted},
	deletionIneligible: {offlineReplica, deletionStarted},
	nonExistentReplica: {deletionSuccessful},
}

// moveReplicas takes replicas to a state, with what that means for their brokers and the ISR, and sends the requests
// that follow from it. It returns an error only if the controllership is over.
func (c *Core) moveReplicas(replicas []replica, to replicaState) error {
	byBroker := map[int32][]replica{}
	for _, r := range replicas {
		if p := c.cluster.partition(r.TopicPartition); p == nil {
			c.logf(LogWarn, "replica %d of unknown partition %s cannot become %s", r.broker, r.TopicPartition, to)
		} else if from := p.replicas[r.broker]; !slices.Contains(replicaTransitions[to], from) {
			c.logf(LogError, "replica %d of %s is %s and cannot become %s", r.broker, r.TopicPartition, from, to)
		} else {
			byBroker[r.broker] = append(byBroker[r.broker], r)
		}
	}
	for _, id := range sortedKeys(byBroker) {
		if to == offlineReplica {
			if err := c.takeOffline(id, byBroker[id]); err != nil {
				return err
			}
			continue
		}
		for _, r := range byBroker[id] {
			c.moveReplica(r, to)
		}
	}
	c.outbox.flush(c)
	return nil
}

func (c *Core) moveReplica(r replica, to replicaState) {
	p := c.cluster.partition(r.TopicPartition)
	switch to {
	case newReplica:
		if p.leadership != nil {
			if p.leadership.leader == r.broker {
				c.logf(LogError, "replica %d of %s leads and cannot become New", r.broker, r.TopicPartition)
				return
			}
			c.outbox.leaderAndISR(c, []int32{r.broker}, r.TopicPartition, true)
		}
	case onlineReplica:
		if p.replicas[r.broker] != newReplica && p.leadership != nil {
			c.outbox.leaderAndISR(c, []int32{r.broker}, r.TopicPartition, false)
		}
	case deletionStarted:
		c.outbox.stopReplica(c, r.broker, r.TopicPartition, true)
	case nonExistentReplica:
		p.assignment = p.assignment.removeReplica(r.broker)
		delete(p.replicas, r.broker)
		delete(p.awaited, r.broker)
		return
	}
	p.replicas[r.broker] = to
}

// takeOffline stops replicas of one broker and takes them out of their ISRs.
func (c *Core) takeOffline(id int32, replicas []replica) error {
	var led []TopicPartition
	for _, r := range replicas {
		c.outbox.stopReplica(c, id, r.TopicPartition, false)
		if c.cluster.partition(r.TopicPartition).leadership != nil {
			led = append(led, r.TopicPartition)
			continue
		}
		c.outbox.updateMetadata(c, c.cluster.registered(), r.TopicPartition)
		c.cluster.partition(r.TopicPartition).replicas[id] = offlineReplica
	}
	for len(led) > 0 {
		again, err := c.removeFromISR(id, led)
		if err != nil {
			return err
		}
		led = again
	}
	return nil
}

// removeFromISR makes one round; partitions whose state changed in between are returned for another.
func (c *Core) removeFromISR(id int32, tps []TopicPartition) (again []TopicPartition, err error) {
	failed := map[TopicPartition]error{}
	current, err := c.readStates(tps, failed)
	if err != nil {
		return nil, err
	}
	var changing []TopicPartition
	var ops []zkstate.Op
	for _, tp := range sortedPartitions(current) {
		l := current[tp]
		if !slices.Contains(l.isr, id) {
			c.wentOffline(id, tp, l)
			continue
		}
		// The last member that is a replica stays, so that it is known who has the committed records.
		isr, leader := without(l.isr, []int32{id}), l.leader
		replicas := c.cluster.partition(tp).assignment.replicas
		if !slices.ContainsFunc(isr, func(other int32) bool { return slices.Contains(replicas, other) }) {
			isr = l.isr
		}
		if leader == id {
			leader = noLeader
		}
		l = l.withLeader(leader, isr)
		l.controllerEpoch = c.cluster.epoch
		current[tp] = l
		changing = append(changing, tp)
		ops = append(ops, zkstate.Set(zkstate.PartitionStatePath(tp.Topic, tp.Partition), encodeState(l), l.version))
	}
	results, err := c.write(ops...)
	if err != nil {
		return nil, err
	}
	for i, tp := range changing {
		switch {
		case results[i].Err == nil:
			l := current[tp]
			l.version = results[i].Stat.Version
			c.wentOffline(id, tp, l)
		case errors.Is(results[i].Err, zkstate.ErrBadVersion):
			again = append(again, tp)
		default:
			failed[tp] = fmt.Errorf("writing its state: %w", results[i].Err)
		}
	}
	for _, tp := range sortedPartitions(failed) {
		if !c.cluster.queuedForDeletion(tp.Topic) {
			c.logf(LogError, "replica %d of %s could not be taken offline: %v", id, tp, failed[tp])
		} else if errors.Is(failed[tp], zkstate.ErrNoNode) {
			c.cluster.partition(tp).replicas[id] = offlineReplica
		}
	}
	return again, nil
}

func (c *Core) wentOffline(id int32, tp TopicPartition, l leadership) {
	p := c.cluster.partition(tp)
	p.leadership = &l
	p.replicas[id] = offlineReplica
	if !c.cluster.dying(tp.Topic) {
		c.outbox.leaderAndISR(c, without(p.assignment.replicas, []int32{id}), tp, false)
	}
}

func (c *Core) replicasInState(name string, s replicaState) []replica {
	var found []replica
	for _, r := range c.cluster.replicasOf(c.cluster.partitionsOf(name)) {
		if c.cluster.partition(r.TopicPartition).replicas[r.broker] == s {
			found = append(found, r)
		}
	}
	return found
}
