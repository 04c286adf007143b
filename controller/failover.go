package controller

import (
	"errors"
	"fmt"
	"time"

	"barnabas/zkstate"
)

// firstRebalance is how long after its election a controller looks at leader imbalance for the first time.
const firstRebalance = 5 * time.Second

// failover is what a new controller reads and does, in this order:
//
//  1. the feature node, and what stands in each directory. Each read leaves the watch that reports the next change;
//  2. pending notifications of ISR changes and log directories are deleted: what they tell is read below anyway;
//  3. brokers, topics with their assignments and ids, the state of every partition, deletions asked for;
//  4. brokers that were away without a controller having seen it are set aside;
//  5. every broker is told who is alive, before it hears of partitions, so that it knows the leaders it will be told of;
//  6. replicas and partitions take their initial states, and partitions without a leader get one;
//  7. those set aside come in, as if they had been away until now;
//  8. reassignments, deletions and preferred elections that a former controller left half done are resumed.
//
// The reads of step 1, and each of step 3, are one pipelined batch, however many partitions there are.
func (c *Core) failover() error {
	found, err := c.lookAround()
	if err != nil {
		return err
	}
	var unseen map[int32]*broker
	steps := []struct {
		name string
		do   func() error
	}{
		{"feature node", func() error { return c.setUpFeatures(found.features) }},
		{"log directory events", func() error { return c.deleteNodes(zkstate.LogDirEventNotificationPath, found.logDirEvents) }},
		{"ISR change notifications", func() error { return c.deleteNodes(zkstate.ISRChangeNotificationPath, found.isrChanges) }},
		{"brokers", func() error { return c.loadBrokers(found.brokers) }},
		{"topics", func() error { return c.loadTopics(found.topics) }},
		{"partition states", func() (err error) {
			unseen, err = c.loadStates()
			return err
		}},
		{"deletions", func() error { return c.queueDeletions(found.deletions) }},
		{"first states", c.startStates},
		{"brokers that came unseen", func() error { return c.brokersArrived(unseen, sortedKeys(unseen)) }},
		{"reassignments", c.resumeReassignments},
		{"deletions", c.resumeDeletions},
		{"preferred elections", c.resumePreferredElections},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if c.cfg.AutoRebalance {
		c.emit(SetTimer{ID: TimerRebalance, After: firstRebalance})
	}
	c.logf(LogInfo, "ready as controller of epoch %d: %d brokers, %d topics", c.cluster.epoch, len(c.cluster.brokers), len(c.cluster.topics))
	return nil
}

// surroundings are what a new controller finds: the feature node, and names in directories.
type surroundings struct {
	features                                             zkstate.Result
	logDirEvents, isrChanges, brokers, topics, deletions []string
}

func (c *Core) lookAround() (surroundings, error) {
	results, err := c.read(zkstate.Get(zkstate.FeaturePath), zkstate.Children(zkstate.LogDirEventNotificationPath).Watched(), zkstate.Children(zkstate.ISRChangeNotificationPath).Watched(),
		zkstate.Children(zkstate.BrokerIDsPath).Watched(), zkstate.Children(zkstate.TopicsPath).Watched(), zkstate.Children(zkstate.DeleteTopicsPath).Watched())
	if err != nil {
		return surroundings{}, err
	}
	found := surroundings{features: results[0]}
	for i, names := range []*[]string{&found.logDirEvents, &found.isrChanges, &found.brokers, &found.topics, &found.deletions} {
		if *names, err = listed(results[i+1]); err != nil {
			return surroundings{}, err
		}
	}
	return found, nil
}

// children lists a node's children, leaving a watch.
func (c *Core) children(path string) ([]string, error) {
	results, err := c.read(zkstate.Children(path).Watched())
	if err != nil {
		return nil, err
	}
	return listed(results[0])
}

// listed are the names that a list of children answers, in order; a missing node has none.
func listed(r zkstate.Result) ([]string, error) {
	switch {
	case errors.Is(r.Err, zkstate.ErrNoNode):
		return nil, nil
	case r.Err != nil:
		return nil, fmt.Errorf("reading %s: %w", r.Path, r.Err)
	}
	return sortedStrings(r.Children), nil
}

// deleteNodes removes children by name; what is gone already is fine.
func (c *Core) deleteNodes(parent string, names []string) error {
	ops := make([]zkstate.Op, len(names))
	for i, name := range names {
		ops[i] = zkstate.Delete(parent+"/"+name, zkstate.AnyVersion)
	}
	results, err := c.write(ops...)
	if err != nil {
		return err
	}
	for i, r := range results {
		if r.Err != nil && !errors.Is(r.Err, zkstate.ErrNoNode) {
			c.logf(LogWarn, "removing %s: %v", ops[i].Path, r.Err)
		}
	}
	return nil
}

func (c *Core) loadBrokers(names []string) error {
	found, err := c.readBrokers(names)
	if err != nil {
		return err
	}
	for _, id := range sortedKeys(found) {
		c.cluster.brokers[id] = found[id]
		c.connect(id)
	}
	return nil
}

func (c *Core) loadTopics(names []string) error {
	if _, err := c.readTopics(names); err != nil {
		return err
	}
	c.cluster.each(func(_ TopicPartition, _ *topic, p *partition) { p.reassigning = p.assignment.reassigning() })
	return nil
}

// loadStates reads the state of every partition, and sets brokers aside that came unseen.
func (c *Core) loadStates() (unseen map[int32]*broker, err error) {
	changed, err := c.refreshStates(c.cluster.partitionsWhere(func(TopicPartition, *topic, *partition) bool { return true }))
	if err != nil {
		return nil, err
	}
	unseen = c.cluster.cameUnseen(changed)
	for _, id := range sortedKeys(unseen) {
		c.logf(LogWarn, "broker %d was away while no controller looked: it is taken for one that comes now", id)
		c.emit(Disconnect{BrokerID: id, BrokerEpoch: unseen[id].epoch})
		delete(c.cluster.brokers, id)
	}
	return unseen, nil
}

// cameUnseen are the brokers that registered after a state was written which still has them in sync, beside one that was there all the time. A controller that had seen them go would have
// taken them out: they may have lost what the others have (H20). Where all of them were away nobody has more than they, and nothing is gained. But one that led alone has to lead in another
// epoch: a follower may have fetched what it has lost, and could not tell by the epoch that something else has that offset now.
func (c *cluster) cameUnseen(changed map[TopicPartition]int64) map[int32]*broker {
	unseen := map[int32]*broker{}
	c.each(func(tp TopicPartition, _ *topic, p *partition) {
		if p.leadership == nil {
			return
		}
		var stayed bool
		var came []*broker
		for _, id := range p.leadership.isr {
			switch b := c.brokers[id]; {
			case b == nil:
			case b.epoch > changed[tp]:
				came = append(came, b)
			default:
				stayed = true
			}
		}
		if alone := len(p.leadership.isr) == 1 && len(p.assignment.replicas) > 1; stayed || alone {
			for _, b := range came {
				unseen[b.id] = b
			}
		}
	})
	return unseen
}

// refreshStates reads the leadership of partitions into the cluster's state, and returns the zxids of their last changes; a partition without a state is left as it is.
func (c *Core) refreshStates(tps []TopicPartition) (changed map[TopicPartition]int64, err error) {
	ops := make([]zkstate.Op, len(tps))
	for i, tp := range tps {
		ops[i] = zkstate.Get(zkstate.PartitionStatePath(tp.Topic, tp.Partition))
	}
	results, err := c.read(ops...)
	if err != nil {
		return nil, err
	}
	changed = map[TopicPartition]int64{}
	for i, tp := range tps {
		if errors.Is(results[i].Err, zkstate.ErrNoNode) {
			continue
		}
		if results[i].Err != nil {
			return nil, fmt.Errorf("reading %s: %w", ops[i].Path, results[i].Err)
		}
		l, err := decodeState(results[i])
		if err != nil {
			c.logf(LogError, "the state of partition %s is not readable: %v", tp, err)
			continue
		}
		c.cluster.partition(tp).leadership = &l
		changed[tp] = results[i].Stat.Mzxid
	}
	return changed, nil
}

// startStates gives every replica and partition its first state, and every partition a leader if one can be found.
func (c *Core) startStates() error {
	c.tellEverybody()
	var online []replica
	c.cluster.each(func(tp TopicPartition, t *topic, p *partition) {
		for _, id := range p.assignment.replicas {
			if c.cluster.online(id, tp) {
				p.replicas[id] = onlineReplica
				online = append(online, replica{tp, id})
			} else {
				p.replicas[id] = deletionIneligible
			}
		}
		p.awaitAfterFailover()
		switch {
		case p.leadership == nil:
			p.state = newPartition
		case c.cluster.online(p.leadership.leader, tp):
			p.state = onlinePartition
		default:
			p.state = offlinePartition
		}
	})
	// The first metadata that names partitions names all of them, those without a living replica too: a broker that has just started knows nothing else, and a client that is told of a part
	// of a topic gives up what it has for the rest. Apache Kafka tells of the others in a second round, after it has written their states.
	if all := c.cluster.partitionsWhere(func(_ TopicPartition, t *topic, p *partition) bool { return p.leadership != nil && !t.dying }); len(all) > 0 {
		c.outbox.updateMetadata(c, c.cluster.registered(), all...)
	}
	if err := c.moveReplicas(online, onlineReplica); err != nil {
		return err
	}
	var offline []replica
	c.cluster.each(func(tp TopicPartition, _ *topic, p *partition) {
		for _, id := range p.assignment.replicas {
			if !c.cluster.online(id, tp) {
				offline = append(offline, replica{tp, id})
			}
		}
	})
	if err := c.moveReplicas(offline, offlineReplica); err != nil {
		return err
	}
	_, err := c.bringAllOnline()
	return err
}
