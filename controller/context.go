package controller

import (
	"slices"

	"barnabas/zkstate"
)

// TopicID is a topic's identity (KIP-516); the zero value means that it has none.
type TopicID = zkstate.TopicID

// broker is one registration under /brokers/ids.
type broker struct {
	id    int32
	epoch int64 // czxid of the registration
	info  zkstate.Broker
}

// partition is everything the controller knows of one partition.
type partition struct {
	assignment assignment
	// leadership is nil until a leader was ever elected.
	leadership *leadership
	state      partitionState
	replicas   map[int32]replicaState
	// reassigning is true from the moment a reassignment is taken up until it is complete.
	reassigning bool
	// awaited are the replicas that may not be elected from outside the ISR before their brokers have answered an order of
	// this leader epoch or a later one. electionDue: an election found nobody else.
	awaited     map[int32]int32
	electionDue bool
}

// joining tells whether a replica is being added and has not been in the ISR yet.
func (p *partition) joining(id int32) bool {
	s := p.replicas[id]
	return slices.Contains(p.assignment.adding, id) && (s == nonExistentReplica || s == newReplica)
}

type topic struct {
	name       string
	id         TopicID
	partitions map[int32]*partition

	queuedForDeletion bool
	// dying is set from the moment on which nothing stands between the request and the deletion.
	dying bool
	// deletionStarted is set once the brokers were told that the partitions are going; untold are those that have not
	// confirmed it.
	deletionStarted bool
	untold          map[int32]bool
	// deletionIneligible halts the deletion: a replica is offline, a move is running, or a broker refused.
	deletionIneligible bool
}

// cluster is the controller's state. Only procedures of the core touch it, one at a time; it is empty while this broker
// is not the controller. ZooKeeper is the truth, and this is what was last read of it or written to it.
type cluster struct {
	epoch        int32
	epochVersion int32

	brokers      map[int32]*broker
	shuttingDown map[int32]bool
	// offlineDirs holds, per broker, the replicas whose log directory failed.
	offlineDirs map[int32]map[TopicPartition]bool

	topics     map[string]*topic
	topicNames map[TopicID]string
	// unreadable are the topics whose node is there and makes no sense. They are left alone until it changes.
	unreadable map[string]bool
}

func newCluster(epoch, epochVersion int32) *cluster {
	return &cluster{
		epoch: epoch, epochVersion: epochVersion,
		brokers: map[int32]*broker{}, shuttingDown: map[int32]bool{}, offlineDirs: map[int32]map[TopicPartition]bool{},
		topics: map[string]*topic{}, topicNames: map[TopicID]string{}, unreadable: map[string]bool{},
	}
}

func (c *cluster) partition(tp TopicPartition) *partition {
	if t := c.topics[tp.Topic]; t != nil {
		return t.partitions[tp.Partition]
	}
	return nil
}

func (c *cluster) addTopic(name string, id TopicID) *topic {
	t := &topic{name: name, id: id, partitions: map[int32]*partition{}}
	c.topics[name] = t
	if id != (TopicID{}) {
		c.topicNames[id] = name
	}
	return t
}

func (c *cluster) removeTopic(name string) {
	t := c.topics[name]
	if t == nil {
		return
	}
	delete(c.topics, name)
	if c.topicNames[t.id] == name {
		delete(c.topicNames, t.id)
	}
	for _, id := range sortedKeys(c.offlineDirs) {
		for _, p := range sortedKeys(t.partitions) {
			delete(c.offlineDirs[id], TopicPartition{name, p})
		}
	}
}

func (t *topic) addPartition(id int32, a assignment) {
	t.partitions[id] = &partition{assignment: a, state: nonExistentPartition, replicas: map[int32]replicaState{}}
}

// dying tells whether a topic is on its way out: from then on nobody leads it. While the request only waits, for a
// reassignment to end, its partitions live on, since without leaders the reassignment would never end.
func (c *cluster) dying(name string) bool {
	t := c.topics[name]
	return t != nil && t.dying
}

// queuedForDeletion tells whether somebody asked for a topic to be deleted.
func (c *cluster) queuedForDeletion(name string) bool {
	t := c.topics[name]
	return t != nil && t.queuedForDeletion
}

// alive tells whether a broker is registered and did not ask to be shut down.
func (c *cluster) alive(id int32) bool { return c.brokers[id] != nil && !c.shuttingDown[id] }

// online tells whether a replica can serve: its broker is alive and its log directory works.
func (c *cluster) online(id int32, tp TopicPartition) bool {
	return c.alive(id) && !c.offlineDirs[id][tp]
}

func (c *cluster) onlineReplicas(tp TopicPartition, ids []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !c.online(id, tp) })
}

// registered gives the brokers that can be reached, those that are shutting down among them.
func (c *cluster) registered() []int32 { return sortedKeys(c.brokers) }

// each calls f for every partition, in order.
func (c *cluster) each(f func(TopicPartition, *topic, *partition)) {
	for _, name := range sortedKeys(c.topics) {
		t := c.topics[name]
		for _, id := range sortedKeys(t.partitions) {
			f(TopicPartition{name, id}, t, t.partitions[id])
		}
	}
}

func (c *cluster) partitionsWhere(ok func(TopicPartition, *topic, *partition) bool) []TopicPartition {
	var found []TopicPartition
	c.each(func(tp TopicPartition, t *topic, p *partition) {
		if ok(tp, t, p) {
			found = append(found, tp)
		}
	})
	return found
}

func (c *cluster) partitionsOf(names ...string) []TopicPartition {
	var found []TopicPartition
	for _, name := range names {
		if t := c.topics[name]; t != nil {
			for _, id := range sortedKeys(t.partitions) {
				found = append(found, TopicPartition{name, id})
			}
		}
	}
	return found
}

// replicasOn gives the replicas assigned to these brokers, grouped by broker.
func (c *cluster) replicasOn(ids []int32) []replica {
	var found []replica
	for _, id := range ids {
		c.each(func(tp TopicPartition, _ *topic, p *partition) {
			if slices.Contains(p.assignment.replicas, id) {
				found = append(found, replica{tp, id})
			}
		})
	}
	return found
}

func (c *cluster) replicasOf(partitions []TopicPartition) []replica {
	var found []replica
	for _, tp := range partitions {
		if p := c.partition(tp); p != nil {
			for _, id := range p.assignment.replicas {
				found = append(found, replica{tp, id})
			}
		}
	}
	return found
}

// leaderEpochForStop is the epoch that a StopReplica carries: a sentinel that overrides every epoch when the topic is
// being deleted, so that a late order cannot hit a topic of the same name that was created since (KIP-570).
func (c *cluster) leaderEpochForStop(tp TopicPartition) int32 {
	if c.queuedForDeletion(tp.Topic) {
		return epochInDeletion
	}
	if p := c.partition(tp); p != nil && p.leadership != nil {
		return p.leadership.leaderEpoch
	}
	return noEpoch
}
