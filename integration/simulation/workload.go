package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/controller"
	"barnabas/zkstate"
)

// planWork lets administrators work until the storm is over.
func (s *Sim) planWork() {
	works := []func(*Sim){createTopic, createTopic, deleteTopic, addPartitions, reassignByAPI, reassignByAPI, thereAndBack, cancelReassignment, reassignByNode,
		electByNode, electByAPI, flipLeader, shutDown, allocateIDs, writeJunk, deleteRecords}
	if s.only.works != nil {
		works = s.only.works
	}
	s.w.in(s.w.between(50*time.Millisecond, 600*time.Millisecond), func() {
		if s.calm {
			return
		}
		work := pick(s.w, works)
		s.act(func() { work(s) })
		s.planWork()
	})
}

func (s *Sim) topicNames() []string {
	return sortedNames(s.zk.leader.nodes[zkstate.TopicsPath].children)
}

// topicNode is what stands in ZooKeeper of a topic. The maps of the assignment are not to be changed: it is decoded once
// for each version of the node.
func (s *Sim) topicNode(name string) (zkstate.TopicAssignment, *znode, bool) {
	n := s.zk.leader.nodes[zkstate.TopicPath(name)]
	if n == nil {
		return zkstate.TopicAssignment{}, nil, false
	}
	known, found := s.assignments[name]
	if !found || known.zxid != n.mzxid {
		known.zxid = n.mzxid
		known.assignment, known.err = zkstate.DecodeTopicAssignment(n.data)
		s.assignments[name] = known
	}
	return known.assignment, n, known.err == nil && len(known.assignment.Partitions) > 0
}

type decoded struct {
	zxid       int64
	assignment zkstate.TopicAssignment
	err        error
}

// someReplicas draws a replica list.
func (s *Sim) someReplicas() []int32 {
	var ids []int32
	for _, i := range s.w.rand.Perm(len(s.nodes))[:1+s.w.rand.IntN(3)] {
		ids = append(ids, int32(i)+1)
	}
	return ids
}

// replicasFor draws a replica list for a topic: at least two where nothing may be lost.
func (s *Sim) replicasFor(topic string) []int32 {
	r := s.someReplicas()
	for durable(topic) && len(r) < 2 {
		r = s.someReplicas()
	}
	return r
}

// createTopic does what CreateTopics does: it refuses a name in use or in deletion, and writes the node.
func createTopic(s *Sim) {
	name := fmt.Sprintf("t%d", s.w.rand.IntN(4))
	if !s.ibp.AtLeast(2, 8, 0) && s.facts.made[name] > 0 {
		// Without topic ids (KIP-516) nobody can tell a replica that a lost StopReplica left behind from one of a new topic
		// of the same name, so names are not used twice.
		name = fmt.Sprintf("t%d", 10+s.Done.TopicsCreated)
		if len(s.plainTopics()) > 5 {
			return
		}
	}
	if s.zk.leader.nodes[zkstate.DeleteTopicPath(name)] != nil || s.zk.leader.nodes[zkstate.TopicPath(name)] != nil {
		return
	}
	s.writeTopic(name, 1+s.w.rand.IntN(3))
	s.Done.TopicsCreated++
}

func (s *Sim) writeTopic(name string, partitions int) {
	node := zkstate.TopicAssignment{Version: 3, Partitions: map[int32]zkstate.ReplicaAssignment{}}
	if s.w.chance(0.5) && s.ibp.AtLeast(2, 8, 0) {
		_, _ = dice{s.w.rand}.Read(node.ID[:])
	}
	for p := range int32(partitions) {
		node.Partitions[p] = zkstate.ReplicaAssignment{Replicas: s.replicasFor(name)}
	}
	s.w.tell("topic %s is created: %v", name, node.Partitions)
	s.facts.topicMade(name)
	_, _ = s.zk.commit(admin, []zkstate.Op{zkstate.Create(zkstate.EntityPath(zkstate.TopicEntity, name), zkstate.EntityConfig{}.Encode())})
	_, _ = s.zk.commit(admin, []zkstate.Op{zkstate.Create(zkstate.TopicPath(name), node.Encode())})
}

func deleteTopic(s *Sim) {
	names := s.plainTopics()
	if len(names) == 0 {
		return
	}
	name := pick(s.w, names)
	if _, err := s.zk.commit(admin, []zkstate.Op{zkstate.Create(zkstate.DeleteTopicPath(name), nil)}); err == nil {
		s.w.tell("topic %s is to be deleted", name)
		s.Done.TopicsDeleted++
	}
}

func addPartitions(s *Sim) {
	names := s.plainTopics()
	if len(names) == 0 {
		return
	}
	name := pick(s.w, names)
	a, n, ok := s.topicNode(name)
	if !ok || len(a.Partitions) > 4 {
		return
	}
	a.Partitions = maps.Clone(a.Partitions)
	a.Partitions[int32(len(a.Partitions))] = zkstate.ReplicaAssignment{Replicas: s.someReplicas()}
	s.w.tell("topic %s gets a partition", name)
	_, _ = s.zk.commit(admin, []zkstate.Op{zkstate.Set(zkstate.TopicPath(name), a.Encode(), n.version)})
}

// somePartition is a partition of any topic.
func (s *Sim) somePartition() (controller.TopicPartition, bool) {
	return s.partitionAmong(s.topicNames())
}

// somePlainPartition is one of a topic that is neither the coordinators' nor their clients'.
func (s *Sim) somePlainPartition() (controller.TopicPartition, bool) {
	return s.partitionAmong(s.plainTopics())
}

func (s *Sim) plainTopics() []string {
	return slices.DeleteFunc(s.topicNames(), durable)
}

func (s *Sim) partitionAmong(names []string) (controller.TopicPartition, bool) {
	if len(names) == 0 {
		return controller.TopicPartition{}, false
	}
	name := pick(s.w, names)
	a, _, ok := s.topicNode(name)
	if !ok {
		return controller.TopicPartition{}, false
	}
	return controller.TopicPartition{Topic: name, Partition: int32(s.w.rand.IntN(len(a.Partitions)))}, true
}

// byAPI sends a request to some node, the controller more often than not.
func (s *Sim) byAPI(req kmsg.Request, done func(kmsg.Response)) {
	n := s.active()
	if n == nil || s.w.chance(0.2) {
		n = pick(s.w, s.nodes)
	}
	if n.up && !n.paused {
		n.ask(overTheWire(req), done)
	}
}

func (s *Sim) alterReassignment(tp controller.TopicPartition, target []int32) {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	p := kmsg.AlterPartitionAssignmentsRequestTopicPartition{Partition: tp.Partition, Replicas: target}
	req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: tp.Topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{p}}}
	s.w.tell("partition %s is to be reassigned to %v", tp, target)
	s.byAPI(req, func(kmsg.Response) { s.Done.Reassignments++ })
}

func reassignByAPI(s *Sim) {
	if tp, ok := s.somePartition(); ok {
		s.alterReassignment(tp, s.replicasFor(tp.Topic))
	}
}

// thereAndBack takes one replica away and brings it back soon after, while orders to delete it may still be on their way.
func thereAndBack(s *Sim) {
	tp, ok := s.somePartition()
	if !ok {
		return
	}
	a, _, _ := s.topicNode(tp.Topic)
	replicas := a.Partitions[tp.Partition].Replicas
	if len(replicas) < 2 || durable(tp.Topic) && len(replicas) < 3 {
		return
	}
	s.alterReassignment(tp, replicas[:len(replicas)-1])
	s.unlessCalm(s.w.between(100*time.Millisecond, time.Second), func() { s.alterReassignment(tp, replicas) })
}

// awayAndLost moves a partition to one of its replicas alone, which dies, and back to another one, which cannot be reached
// by the controller meanwhile: the order to delete is still on its way when there is nobody else left to lead (H27).
func awayAndLost(s *Sim) {
	tp, ok := s.somePlainPartition()
	active := s.active()
	if !ok || active == nil || s.quiet() {
		return
	}
	a, _, _ := s.topicNode(tp.Topic)
	replicas := a.Partitions[tp.Partition].Replicas
	if len(replicas) < 2 {
		return
	}
	stays, goes := s.nodes[replicas[0]-1], s.nodes[replicas[1]-1]
	if stays == active || goes == active || !stays.up {
		return
	}
	s.cutLink(active, goes, sessionTimeout, 2*sessionTimeout)
	s.alterReassignment(tp, []int32{stays.id})
	s.unlessCalm(s.w.between(100*time.Millisecond, time.Second), func() {
		if stays.up && !s.quiet() {
			s.Done.Crashes++
			stays.crash(processEnds)
			s.unlessCalm(2*sessionTimeout, stays.startAgain)
		}
		s.alterReassignment(tp, []int32{goes.id, stays.id})
	})
}

func cancelReassignment(s *Sim) {
	if tp, ok := s.somePartition(); ok {
		s.alterReassignment(tp, nil)
	}
}

func reassignByNode(s *Sim) {
	tp, ok := s.somePartition()
	if !ok {
		return
	}
	data := zkstate.EncodeReassignments([]zkstate.Reassignment{{TopicPartition: zkstate.TopicPartition(tp), Replicas: s.replicasFor(tp.Topic)}})
	if _, err := s.zk.commit(admin, []zkstate.Op{zkstate.Create(zkstate.ReassignPartitionsPath, data)}); err == nil {
		s.w.tell("reassignment by node: %s", data)
	}
}

func electByNode(s *Sim) {
	if tp, ok := s.somePartition(); ok {
		data := zkstate.EncodePreferredReplicaElection([]zkstate.TopicPartition{zkstate.TopicPartition(tp)})
		_, _ = s.zk.commit(admin, []zkstate.Op{zkstate.Create(zkstate.PreferredReplicaElectionPath, data)})
	}
}

// flipLeader makes another replica the preferred one, has it elected, and takes it back at once: two failovers, faster
// than the followers fetch (H02).
func flipLeader(s *Sim) {
	tp, ok := s.somePartition()
	if !ok {
		return
	}
	a, _, _ := s.topicNode(tp.Topic)
	replicas := a.Partitions[tp.Partition].Replicas
	if len(replicas) < 2 {
		return
	}
	other := append(slices.Clone(replicas[1:]), replicas[0])
	prefer := func(order []int32) {
		s.alterReassignment(tp, order)
		s.unlessCalm(s.w.between(20*time.Millisecond, 100*time.Millisecond), func() {
			data := zkstate.EncodePreferredReplicaElection([]zkstate.TopicPartition{zkstate.TopicPartition(tp)})
			_, _ = s.zk.commit(admin, []zkstate.Op{zkstate.Create(zkstate.PreferredReplicaElectionPath, data)})
		})
	}
	s.Done.Flips++
	prefer(other)
	s.unlessCalm(s.w.between(100*time.Millisecond, 400*time.Millisecond), func() { prefer(replicas) })
}

func electByAPI(s *Sim) {
	req := kmsg.NewPtrElectLeadersRequest()
	req.Version = 2
	s.byAPI(req, func(kmsg.Response) {})
}

// shutDown asks the controller for a controlled shutdown of a node, then stops it and starts it again.
func shutDown(s *Sim) {
	n := pick(s.w, s.nodes)
	c := s.active()
	if !n.up || n.paused || n.broker.epoch == 0 || c == nil || s.quiet() {
		return
	}
	req := kmsg.NewPtrControlledShutdownRequest()
	req.Version, req.BrokerID, req.BrokerEpoch = 3, n.id, n.broker.epoch
	life := n.life
	s.w.tell("node %d: asks for its shutdown", n.id)
	s.net(n, c, func() { c.ask(overTheWire(req), func(kmsg.Response) {}) })
	s.w.in(s.w.between(50*time.Millisecond, time.Second), func() {
		if n.life != life {
			return
		}
		n.resume()
		n.crash(processEnds)
		n.startAgain()
	})
}

// allocateIDs takes a block of producer ids and compares it with all that were given before.
func allocateIDs(s *Sim) {
	n := pick(s.w, s.nodes)
	if !n.up || n.broker.epoch == 0 {
		return
	}
	req := kmsg.NewPtrAllocateProducerIDsRequest()
	req.BrokerID, req.BrokerEpoch = n.id, n.broker.epoch
	s.byAPI(req, func(resp kmsg.Response) {
		r := resp.(*kmsg.AllocateProducerIDsResponse)
		if r.ErrorCode == 0 {
			s.check(!slices.Contains(s.facts.blocks, r.ProducerIDStart), "H52: producer ids from %d are given twice", r.ProducerIDStart)
			s.facts.blocks = append(s.facts.blocks, r.ProducerIDStart)
		}
	})
}

// writeJunk puts what makes no sense where the controller reads.
func writeJunk(s *Sim) {
	junk := []byte(pick(s.w, []string{"", "{", "null", `{"version":1,"partitions":[{"topic":7}]}`, `{"version":1,"partitions":{"0":["1","2"]}}`}))
	path := pick(s.w, []string{zkstate.ReassignPartitionsPath, zkstate.PreferredReplicaElectionPath, zkstate.TopicPath("junk"),
		zkstate.ISRChangeNotificationPath + "/isr_change_x", zkstate.LogDirEventNotificationPath + "/log_dir_event_x", zkstate.DeleteTopicPath("nowhere")})
	_, _ = s.zk.commit(admin, []zkstate.Op{zkstate.Create(path, junk)})
}
