package controller

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"barnabas/zkstate"
)

// readTopics reads the assignments of topics that are not known yet, leaving a watch on each, and takes them up. It gives
// the partitions taken up. A topic whose node is not readable is logged and left alone: it is taken up when its node
// changes to something that is.
func (c *Core) readTopics(names []string) ([]TopicPartition, error) {
	ops := make([]zkstate.Op, len(names))
	for i, name := range names {
		ops[i] = zkstate.Get(zkstate.TopicPath(name)).Watched()
	}
	results, err := c.read(ops...)
	if err != nil {
		return nil, err
	}
	var found []TopicPartition
	var nameless []*topic
	for i, name := range names {
		if errors.Is(results[i].Err, zkstate.ErrNoNode) {
			continue
		}
		if results[i].Err != nil {
			return nil, fmt.Errorf("reading %s: %w", ops[i].Path, results[i].Err)
		}
		node, err := zkstate.DecodeTopicAssignment(results[i].Data)
		if err == nil {
			err = checkTopicNode(node)
		}
		if err != nil {
			c.ignoreTopic(name, fmt.Errorf("its assignment is not readable: %w", err))
			continue
		}
		if other, taken := c.cluster.topicNames[node.ID]; taken && node.ID != (TopicID{}) {
			c.ignoreTopic(name, fmt.Errorf("it has the id %s of topic %s", node.ID, other))
			continue
		}
		delete(c.cluster.unreadable, name)
		t := c.cluster.addTopic(name, node.ID)
		for _, id := range sortedKeys(node.Partitions) {
			t.addPartition(id, toAssignment(node.Partitions[id]))
			found = append(found, TopicPartition{name, id})
		}
		if node.ID == (TopicID{}) && c.cfg.IBP.topicIDs() {
			nameless = append(nameless, t)
		}
	}
	return found, c.giveIDs(nameless)
}

// ignoreTopic leaves a topic alone until its node changes, and says so once.
func (c *Core) ignoreTopic(name string, why error) {
	if !c.cluster.unreadable[name] {
		c.logf(LogError, "topic %s is ignored: %v", name, why)
	}
	c.cluster.unreadable[name] = true
}

// checkTopicNode refuses what would break the controller later: empty and doubled replica lists.
func checkTopicNode(node zkstate.TopicAssignment) error {
	for _, id := range sortedKeys(node.Partitions) {
		replicas := node.Partitions[id].Replicas
		if len(replicas) == 0 {
			return fmt.Errorf("partition %d has no replicas", id)
		}
		for i, r := range replicas {
			if slices.Contains(replicas[:i], r) {
				return fmt.Errorf("partition %d has broker %d twice", id, r)
			}
		}
	}
	return nil
}

func toAssignment(a zkstate.ReplicaAssignment) assignment {
	return assignment{replicas: a.Replicas, adding: a.Adding, removing: a.Removing}
}

// giveIDs gives topics that were created without an id one (KIP-516).
func (c *Core) giveIDs(topics []*topic) error {
	ops := make([]zkstate.Op, len(topics))
	for i, t := range topics {
		id, err := c.newTopicID()
		if err != nil {
			return err
		}
		t.id = id
		c.cluster.topicNames[id] = t.name
		ops[i] = zkstate.Set(zkstate.TopicPath(t.name), encodeTopic(t), zkstate.AnyVersion)
	}
	results, err := c.write(ops...)
	if err != nil {
		return err
	}
	for i, r := range results {
		if r.Err != nil && !errors.Is(r.Err, zkstate.ErrNoNode) {
			return fmt.Errorf("giving topic %s an id: %w", topics[i].name, r.Err)
		}
	}
	return nil
}

// newTopicID draws an id as a random UUID of version 4. Ids whose text begins with a dash are not used: command lines
// would take them for options. The two first values are reserved by Kafka.
func (c *Core) newTopicID() (TopicID, error) {
	for {
		var id TopicID
		if _, err := io.ReadFull(c.cfg.Random, id[:]); err != nil {
			return TopicID{}, fmt.Errorf("drawing a topic id: %w", err)
		}
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if _, taken := c.cluster.topicNames[id]; !taken && id.String()[0] != '-' {
			return id, nil
		}
	}
}

// topicsChanged takes up topics that were created and forgets those whose nodes are gone.
func (c *Core) topicsChanged() error {
	names, err := c.children(zkstate.TopicsPath)
	if err != nil {
		return err
	}
	var created []string
	for _, name := range names {
		if c.cluster.topics[name] == nil {
			created = append(created, name)
		}
	}
	for _, name := range sortedKeys(c.cluster.topics) {
		if _, there := slices.BinarySearch(names, name); !there {
			c.logf(LogInfo, "topic %s is gone", name)
			c.cluster.removeTopic(name)
		}
	}
	partitions, err := c.readTopics(created)
	if err != nil {
		return err
	}
	if len(partitions) > 0 {
		c.logf(LogInfo, "new topics: %v", created)
	}
	return c.createPartitions(partitions)
}

// createPartitions takes new partitions and their replicas from NonExistent over New to Online.
func (c *Core) createPartitions(tps []TopicPartition) error {
	if len(tps) == 0 {
		return nil
	}
	c.markPartitions(tps, newPartition)
	if err := c.moveReplicas(c.cluster.replicasOf(tps), newReplica); err != nil {
		return err
	}
	if _, err := c.bringOnline(tps, forOffline); err != nil {
		return err
	}
	return c.moveReplicas(c.cluster.replicasOf(tps), onlineReplica)
}

// partitionsChanged takes up partitions that were added to a topic. While the topic is being deleted they are taken
// out of its node again.
func (c *Core) partitionsChanged(name string) error {
	t := c.cluster.topics[name]
	if t == nil {
		// Not taken up yet, maybe because its node was not readable.
		return c.topicsChanged()
	}
	results, err := c.read(zkstate.Get(zkstate.TopicPath(name)).Watched())
	switch {
	case err != nil:
		return err
	case errors.Is(results[0].Err, zkstate.ErrNoNode):
		return nil // the watch on the list of topics tells of it
	case results[0].Err != nil:
		return results[0].Err
	}
	node, err := zkstate.DecodeTopicAssignment(results[0].Data)
	if err == nil {
		err = checkTopicNode(node)
	}
	if err != nil {
		c.logf(LogError, "the assignment of topic %s is not readable; the one known is kept: %v", name, err)
		return nil
	}
	if node.ID != (TopicID{}) && t.id != (TopicID{}) && node.ID != t.id {
		c.logf(LogWarn, "topic %s was replaced by another of the same name: its id was %s and is %s", name, t.id, node.ID)
		c.cluster.removeTopic(name)
		return c.topicsChanged()
	}
	var added []int32
	for _, id := range sortedKeys(node.Partitions) {
		if t.partitions[id] == nil {
			added = append(added, id)
		}
	}
	if len(added) == 0 {
		return nil
	}
	if t.queuedForDeletion {
		c.logf(LogWarn, "partitions %v of topic %s are not added, since the topic is being deleted", added, name)
		return c.writeAssignment(t)
	}
	c.logf(LogInfo, "new partitions of topic %s: %v", name, added)
	var tps []TopicPartition
	for _, id := range added {
		t.addPartition(id, toAssignment(node.Partitions[id]))
		tps = append(tps, TopicPartition{name, id})
	}
	return c.createPartitions(tps)
}

// writeAssignment writes the assignment of all partitions of a topic as the controller knows it.
func (c *Core) writeAssignment(t *topic) error {
	results, err := c.write(zkstate.Set(zkstate.TopicPath(t.name), encodeTopic(t), zkstate.AnyVersion))
	if err != nil {
		return err
	}
	if results[0].Err != nil {
		return fmt.Errorf("writing the assignment of topic %s: %w", t.name, results[0].Err)
	}
	return nil
}
