package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// Deleting a topic. Somebody creates /admin/delete_topics/NAME; the controller tells every broker that the topic is
// going (leader -2), stops its replicas with the order to delete, and when every replica has been deleted and every broker
// has confirmed that it knows removes the topic's nodes. A replica that is offline, a reassignment that is running, or a broker that refuses, halts the
// deletion of the topic (it is ineligible) until what halted it is over; the request stays in ZooKeeper, so another
// controller goes on with it.

// deletionRetry is how long after a refusal by a live broker a halted deletion is tried again.
const deletionRetry = 10 * time.Second

// deletionsRequested takes up deletions that were asked for since.
func (c *Core) deletionsRequested() error {
	names, err := c.children(zkstate.DeleteTopicsPath)
	if err != nil {
		return err
	}
	if err := c.queueDeletions(names); err != nil {
		return err
	}
	return c.resumeDeletions()
}

// queueDeletions marks topics as going. Requests that cannot be carried out are removed: of topics that do not exist,
// and all of them where topics may not be deleted.
func (c *Core) queueDeletions(names []string) error {
	var unknown, refused []string
	for _, name := range names {
		t := c.cluster.topics[name]
		switch {
		case t == nil:
			unknown = append(unknown, name)
		case !c.cfg.DeleteTopics:
			c.logf(LogWarn, "topic %s is not deleted, since delete.topic.enable is false", name)
			refused = append(refused, name)
		case !t.queuedForDeletion:
			t.queuedForDeletion = true
			t.deletionIneligible = c.anyReassigning(t)
			t.dying = !t.deletionIneligible
		}
	}
	missing, err := c.missingTopics(unknown)
	if err != nil {
		return err
	}
	return c.deleteNodes(zkstate.DeleteTopicsPath, append(refused, missing...))
}

// missingTopics gives those of the unknown topics that do not exist. One whose node is not readable has no replicas
// that anybody knows of: it is removed on the spot. The others were created since the list was read, and both the list
// and the requests are looked at again.
func (c *Core) missingTopics(unknown []string) ([]string, error) {
	ops := make([]zkstate.Op, len(unknown))
	for i, name := range unknown {
		ops[i] = zkstate.Exists(zkstate.TopicPath(name))
	}
	results, err := c.read(ops...)
	if err != nil {
		return nil, err
	}
	var missing []string
	for i, name := range unknown {
		switch {
		case errors.Is(results[i].Err, zkstate.ErrNoNode):
			c.logf(LogWarn, "topic %s does not exist and cannot be deleted", name)
			missing = append(missing, name)
		case c.cluster.unreadable[name] && !c.cfg.DeleteTopics:
			missing = append(missing, name)
		case c.cluster.unreadable[name]:
			c.logf(LogWarn, "topic %s is deleted, though its assignment is not readable", name)
			if err := c.removeTopicNodes(name); err != nil {
				return nil, err
			}
		default:
			c.enqueue(look{zkstate.TopicsPath})
			c.enqueue(look{zkstate.DeleteTopicsPath})
		}
	}
	return missing, nil
}

func (c *Core) anyReassigning(t *topic) bool {
	return slices.ContainsFunc(sortedKeys(t.partitions), func(id int32) bool { return t.partitions[id].reassigning })
}

func (c *Core) anyOffline(t *topic) bool {
	return slices.ContainsFunc(c.cluster.replicasOf(c.cluster.partitionsOf(t.name)), func(r replica) bool {
		return !c.cluster.online(r.broker, r.TopicPartition)
	})
}

// haltDeletion makes queued topics ineligible.
func (c *Core) haltDeletion(names []string, reason string) {
	for _, name := range names {
		if t := c.cluster.topics[name]; t != nil && t.queuedForDeletion && !t.deletionIneligible {
			t.deletionIneligible = true
			c.logf(LogInfo, "deletion of topic %s is halted: %s", name, reason)
		}
	}
}

// resumeDeletionOf lifts the halt of topics and goes on.
func (c *Core) resumeDeletionOf(names []string) error {
	resumed := false
	for _, name := range names {
		if t := c.cluster.topics[name]; t != nil && t.queuedForDeletion && !c.anyReassigning(t) {
			t.deletionIneligible = false
			resumed = true
		}
	}
	if !resumed {
		return nil
	}
	return c.resumeDeletions()
}

// resumeDeletions takes every queued topic one step further: finished ones are removed, failed replicas are readied
// for another try, and those that nothing halts are begun.
func (c *Core) resumeDeletions() error {
	var begin []string
	var retry []replica
	for _, name := range sortedKeys(c.cluster.topics) {
		t := c.cluster.topics[name]
		if !t.queuedForDeletion {
			continue
		}
		all := c.cluster.replicasOf(c.cluster.partitionsOf(name))
		switch started := c.replicasInState(name, deletionStarted); {
		case len(c.replicasInState(name, deletionSuccessful)) == len(all):
			if t.deletionStarted && len(t.untold) > 0 {
				continue
			}
			if err := c.finishDeletion(t); err != nil {
				return err
			}
			continue
		case len(started) > 0:
			continue
		}
		retry = append(retry, c.replicasInState(name, deletionIneligible)...)
		if !t.deletionIneligible {
			begin = append(begin, name)
		}
	}
	if err := c.moveReplicas(retry, offlineReplica); err != nil {
		return err
	}
	return c.beginDeletion(begin)
}

// beginDeletion sends the orders for topics that nothing halts.
func (c *Core) beginDeletion(names []string) error {
	if len(names) == 0 {
		return nil
	}
	c.logf(LogInfo, "deleting topics %v", names)
	for _, name := range names {
		t := c.cluster.topics[name]
		t.dying = true
		if !t.deletionStarted {
			c.markPartitions(c.cluster.partitionsOf(name), offlinePartition)
			c.markPartitions(c.cluster.partitionsOf(name), nonExistentPartition)
			t.deletionStarted = true
		}
		t.untold = map[int32]bool{}
		for _, id := range c.cluster.registered() {
			t.untold[id] = true
		}
	}
	c.tellEverybody(c.cluster.partitionsOf(names...)...)
	var dead, alive []replica
	var halted []string
	for _, r := range c.cluster.replicasOf(c.cluster.partitionsOf(names...)) {
		switch {
		case c.cluster.partition(r.TopicPartition).replicas[r.broker] == deletionSuccessful:
		case c.cluster.online(r.broker, r.TopicPartition):
			alive = append(alive, r)
		default:
			dead = append(dead, r)
			if !slices.Contains(halted, r.Topic) {
				halted = append(halted, r.Topic)
			}
		}
	}
	c.haltDeletion(halted, "replicas are offline")
	for _, step := range []struct {
		replicas []replica
		to       replicaState
	}{{dead, offlineReplica}, {dead, deletionIneligible}, {alive, offlineReplica}, {alive, deletionStarted}} {
		if err := c.moveReplicas(step.replicas, step.to); err != nil {
			return err
		}
	}
	return nil
}

// deletionHeard learns that a broker has taken out of its metadata what is going. A topic's nodes stay until every
// broker has: a controller that took over later could not tell any more that there was something to forget.
func (c *Core) deletionHeard(id int32, req *kmsg.UpdateMetadataRequest) error {
	heard := false
	for _, t := range req.TopicStates {
		known := c.cluster.topics[t.Topic]
		if known == nil || len(known.untold) == 0 || len(t.PartitionStates) == 0 || t.PartitionStates[0].Leader != leaderInDeletion {
			continue
		}
		delete(known.untold, id)
		heard = heard || len(known.untold) == 0
	}
	if !heard {
		return nil
	}
	return c.resumeDeletions()
}

// forgetUntold stops waiting for brokers that are gone.
func (c *Core) forgetUntold(ids []int32) {
	for _, name := range sortedKeys(c.cluster.topics) {
		for _, id := range ids {
			delete(c.cluster.topics[name].untold, id)
		}
	}
}

// stopReplicaAnswered learns which replicas a broker has deleted.
func (c *Core) stopReplicaAnswered(id int32, req *kmsg.StopReplicaRequest, resp *kmsg.StopReplicaResponse) error {
	asked := map[TopicPartition]bool{}
	for _, t := range req.Topics {
		for _, p := range t.PartitionStates {
			asked[TopicPartition{t.Topic, p.Partition}] = p.Delete && (req.Version >= 3 || req.DeletePartitions)
		}
	}
	codes := map[TopicPartition]int16{}
	for _, p := range resp.Partitions {
		codes[TopicPartition{p.Topic, p.Partition}] = p.ErrorCode
	}
	var deleted, failed []replica
	for _, tp := range sortedPartitions(asked) {
		p := c.cluster.partition(tp)
		if !asked[tp] || p == nil || !c.cluster.queuedForDeletion(tp.Topic) || p.replicas[id] != deletionStarted {
			continue
		}
		code, answered := codes[tp]
		if resp.ErrorCode != 0 {
			code, answered = resp.ErrorCode, true
		}
		switch {
		case answered && code == 0:
			deleted = append(deleted, replica{tp, id})
		case !answered:
			failed = append(failed, replica{tp, id})
		default:
			c.logf(LogWarn, "broker %d did not delete its replica of %s: %v", id, tp, kerr.ErrorForCode(code))
			failed = append(failed, replica{tp, id})
		}
	}
	if len(failed) > 0 {
		if err := c.failDeletion(failed); err != nil {
			return err
		}
		c.emit(SetTimer{ID: TimerDeletion, After: deletionRetry})
	}
	if len(deleted) == 0 {
		return nil
	}
	if err := c.moveReplicas(deleted, deletionSuccessful); err != nil {
		return err
	}
	return c.resumeDeletions()
}

// failDeletion notes replicas that cannot be deleted now and halts their topics.
func (c *Core) failDeletion(replicas []replica) error {
	var queued []replica
	var names []string
	for _, r := range replicas {
		if !c.cluster.queuedForDeletion(r.Topic) {
			continue
		}
		if s := c.cluster.partition(r.TopicPartition).replicas[r.broker]; s == offlineReplica || s == deletionStarted {
			queued = append(queued, r)
		}
		if !slices.Contains(names, r.Topic) {
			names = append(names, r.Topic)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := c.moveReplicas(queued, deletionIneligible); err != nil {
		return err
	}
	c.haltDeletion(names, "a replica could not be deleted")
	return c.resumeDeletions()
}

// retryDeletions lifts the halt of topics of which every broker is there.
func (c *Core) retryDeletions() error {
	var names []string
	for _, name := range sortedKeys(c.cluster.topics) {
		if t := c.cluster.topics[name]; t.queuedForDeletion && !c.anyOffline(t) {
			names = append(names, name)
		}
	}
	return c.resumeDeletionOf(names)
}

// finishDeletion removes a topic whose replicas are all deleted: what is below its node first, then its node, its
// configuration and the request in one multi. Whoever creates a topic of the same name can begin only after that, so
// nothing of the new topic can be removed with the old one.
func (c *Core) finishDeletion(t *topic) error {
	if err := c.moveReplicas(c.replicasInState(t.name, deletionSuccessful), nonExistentReplica); err != nil {
		return err
	}
	if err := c.removeTopicNodes(t.name); err != nil {
		return err
	}
	c.logf(LogInfo, "topic %s is deleted", t.name)
	return nil
}

// removeTopicNodes removes what stands in ZooKeeper of a topic, and forgets it.
func (c *Core) removeTopicNodes(name string) error {
	if err := c.deleteBelow(zkstate.TopicPath(name)); err != nil {
		return err
	}
	if err := c.deleteTogether(zkstate.TopicPath(name), zkstate.EntityPath(zkstate.TopicEntity, name), zkstate.DeleteTopicPath(name)); err != nil {
		return err
	}
	c.cluster.removeTopic(name)
	delete(c.cluster.unreadable, name)
	// If the name is in use again by now, the change of the list was reported while the old topic was still known.
	c.enqueue(look{zkstate.TopicsPath})
	return nil
}

// deleteTogether removes those of the nodes that exist in one multi.
func (c *Core) deleteTogether(paths ...string) error {
	for range electionAttempts {
		checks := make([]zkstate.Op, len(paths))
		for i, path := range paths {
			checks[i] = zkstate.Exists(path)
		}
		there, err := c.read(checks...)
		if err != nil {
			return err
		}
		var ops []zkstate.Op
		for i, path := range paths {
			if there[i].Err == nil {
				ops = append(ops, zkstate.Delete(path, zkstate.AnyVersion))
			}
		}
		if len(ops) == 0 {
			return nil
		}
		_, err = c.batch(ZKBatch{Ops: ops, Multi: true, Fence: c.cluster.epochVersion})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zkstate.ErrNoNode), errors.Is(err, zkstate.ErrConnectionLoss):
		default:
			return err
		}
	}
	return fmt.Errorf("removing %v: still unsettled after %d attempts", paths, electionAttempts)
}

// deleteBelow removes everything below a node, level by level from the bottom.
func (c *Core) deleteBelow(root string) error {
	var levels [][]string
	for level := []string{root}; len(level) > 0; {
		ops := make([]zkstate.Op, len(level))
		for i, path := range level {
			ops[i] = zkstate.Children(path)
		}
		results, err := c.read(ops...)
		if err != nil {
			return err
		}
		var below []string
		for i, r := range results {
			for _, name := range sortedStrings(r.Children) {
				below = append(below, level[i]+"/"+name)
			}
		}
		level = below
		if len(below) > 0 {
			levels = append(levels, below)
		}
	}
	for _, level := range slices.Backward(levels) {
		ops := make([]zkstate.Op, len(level))
		for i, path := range level {
			ops[i] = zkstate.Delete(path, zkstate.AnyVersion)
		}
		results, err := c.write(ops...)
		if err != nil {
			return err
		}
		for i, r := range results {
			if r.Err != nil && !errors.Is(r.Err, zkstate.ErrNoNode) {
				return fmt.Errorf("removing %s: %w", level[i], r.Err)
			}
		}
	}
	return nil
}
