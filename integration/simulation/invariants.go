package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"barnabas/broker/commitlog"
	"barnabas/controller"
	"barnabas/zkstate"
)

// facts is what the run has seen, beyond what stands in ZooKeeper now.
type facts struct {
	// controllers is who was the controller of each epoch.
	controllers map[int32]int32
	// leaders is who led a partition in each leader epoch, per incarnation of the topic.
	leaders map[leaderTerm]int32
	// made counts the topics of a name.
	made   map[string]int
	states map[string]zkstate.PartitionState
	blocks []int64
}

type leaderTerm struct {
	path  string
	made  int
	epoch int32
}

func newFacts() facts {
	return facts{controllers: map[int32]int32{}, leaders: map[leaderTerm]int32{}, made: map[string]int{}, states: map[string]zkstate.PartitionState{}}
}

func (f *facts) topicMade(name string) { f.made[name]++ }

// checkBatch holds a batch of the core to its rule: after the election nothing is written without the fence.
func (s *Sim) checkBatch(n *node, b controller.ZKBatch) {
	for _, op := range b.Ops {
		if op.Kind.Writes() && b.Fence < 0 && op.Path != zkstate.ControllerPath && op.Path != zkstate.ControllerEpochPath {
			s.check(false, "node %d writes %s without a fence", n.id, op.Path)
		}
	}
	if b.Fence >= 0 {
		s.check(n.status.Active || len(b.Ops) == 1 && b.Ops[0].Path == zkstate.ControllerPath, "node %d writes as controller and is none", n.id)
	}
}

// judgeWrite sees a write on its way into the log.
func (s *Sim) judgeWrite(n *node, u *unit) {
	if !u.fenced {
		return
	}
	held := u.ops[0].Version == s.zk.leader.nodes[zkstate.ControllerEpochPath].version
	if !held && s.zk.ignoreFence {
		s.check(false, "H23: node %d writes %s though another controller was elected", n.id, u.ops[1].Path)
	}
}

// committed looks at every transaction.
func (s *Sim) committed(author int64, t transaction, _ *tree) {
	s.Done.Transactions++
	for _, c := range t.changes {
		s.w.tell("zxid %d by session %d: %s %s %.200s", t.zxid, author, c.kind, c.path, c.data)
		switch {
		case c.path == zkstate.ControllerEpochPath:
			s.epochRaised(c, t)
		case strings.HasSuffix(c.path, "/state"):
			s.stateChanged(c)
		}
	}
}

// epochRaised: I8, H24: the epoch grows by one, together with the node that says whose it is.
func (s *Sim) epochRaised(c change, t transaction) {
	epoch, err := zkstate.DecodeControllerEpoch(c.data)
	s.check(err == nil, "I19: /controller_epoch is %q", c.data)
	if epoch == 0 {
		return
	}
	i := slices.IndexFunc(t.changes, func(c change) bool { return c.path == zkstate.ControllerPath && c.owner != 0 })
	s.check(i >= 0, "H24: controller epoch %d is made without /controller", epoch)
	if i < 0 {
		return
	}
	owner, err := zkstate.DecodeController(t.changes[i].data)
	s.check(err == nil, "I19: /controller is %q", t.changes[i].data)
	_, taken := s.facts.controllers[epoch]
	s.check(!taken, "I8: epoch %d is made twice", epoch)
	s.facts.controllers[epoch] = owner.BrokerID
	s.Done.Elections++
}

// statusChanged: I8: who says that he is the controller of an epoch is the one who made it.
func (s *Sim) statusChanged(n *node) {
	if n.status.Active {
		s.check(s.facts.controllers[n.status.Epoch] == n.id, "I8: node %d calls itself controller of epoch %d, which node %d made",
			n.id, n.status.Epoch, s.facts.controllers[n.status.Epoch])
	}
}

// stateChanged: what holds of every state of a partition, and of every step from one to the next.
func (s *Sim) stateChanged(c change) {
	if c.kind == zkstate.OpDelete {
		delete(s.facts.states, c.path)
		return
	}
	now, err := zkstate.DecodePartitionState(c.data)
	s.check(err == nil, "I19: %s is %q", c.path, c.data)
	s.Done.ISRChanges++
	s.check(len(now.ISR) > 0, "%s has an empty ISR", c.path)
	s.check(now.Leader == -1 || slices.Contains(now.ISR, now.Leader), "I5: %s has leader %d outside of ISR %v", c.path, now.Leader, now.ISR)
	topic := strings.Split(strings.TrimPrefix(c.path, zkstate.TopicsPath+"/"), "/")
	partition := topic[2]
	if now.Leader >= 0 {
		s.ledIn(c.path, topic[0], now.LeaderEpoch, now.Leader)
	}
	var replicas []int32
	if a, _, ok := s.topicNode(topic[0]); ok {
		for p, r := range a.Partitions {
			if fmt.Sprint(p) == partition {
				replicas = r.Replicas
			}
		}
	}
	before, known := s.facts.states[c.path]
	s.facts.states[c.path] = now
	if !known {
		return
	}
	s.check(now.LeaderEpoch >= before.LeaderEpoch, "I7: %s goes from leader epoch %d to %d", c.path, before.LeaderEpoch, now.LeaderEpoch)
	s.check(now.Leader == before.Leader || now.LeaderEpoch > before.LeaderEpoch, "I7: %s has a new leader in epoch %d", c.path, now.LeaderEpoch)
	s.check(now.ControllerEpoch >= before.ControllerEpoch, "I8: %s is written under controller epoch %d after %d", c.path, now.ControllerEpoch, before.ControllerEpoch)
	common := slices.ContainsFunc(now.ISR, func(id int32) bool { return slices.Contains(before.ISR, id) })
	if !common && s.unclean {
		s.electedUncleanly(c.path, topic[0], partition, now)
	} else {
		s.check(common, "H22: %s: nobody of ISR %v was in %v, and committed records are lost", c.path, now.ISR, before.ISR)
	}
	for _, id := range now.ISR {
		s.check(slices.Contains(before.ISR, id) || replicas == nil || !s.alterPartition || slices.Contains(replicas, id), "%s: %d joins the ISR and is no replica of %v", c.path, id, replicas)
	}
}

// electedUncleanly: who is elected from outside the ISR is alone in it, and known as one who has to recover (KIP-704). What
// its log does not have is lost, as its owner accepts, and it begins anew with what it has (history.parting).
func (s *Sim) electedUncleanly(path, topic, number string, now zkstate.PartitionState) {
	s.Done.Unclean++
	s.check(slices.Equal(now.ISR, []int32{now.Leader}), "H22: %s has leader %d after an unclean election, and ISR %v", path, now.Leader, now.ISR)
	s.check(now.Recovering || !s.ibp.AtLeast(3, 2, 0), "H22: %s has leader %d after an unclean election, who does not recover", path, now.Leader)
	p, err := strconv.Atoi(number)
	s.check(err == nil, "I19: %s", path)
	h := s.history(s.incarnation(controller.TopicPartition{Topic: topic, Partition: int32(p)}))
	h.forgiven, h.lossy, h.elected, h.begins = true, true, true, now.LeaderEpoch
}

func (s *Sim) ledIn(path, topic string, epoch, leader int32) {
	term := leaderTerm{path, s.facts.made[topic], epoch}
	if other, taken := s.facts.leaders[term]; taken {
		s.check(other == leader, "I7: %s is led by %d and by %d in epoch %d", path, other, leader, epoch)
	}
	s.facts.leaders[term] = leader
}

// deletes sees a broker delete a replica: never one that ZooKeeper still counts on. (I6, H27)
func (s *Sim) deletes(n *node, tp controller.TopicPartition, id commitlog.TopicID) {
	a, _, ok := s.topicNode(tp.Topic)
	if !ok || s.zk.leader.nodes[zkstate.DeleteTopicPath(tp.Topic)] != nil || id != commitlog.TopicID(a.ID) {
		return
	}
	state := s.facts.states[zkstate.PartitionStatePath(tp.Topic, tp.Partition)]
	s.check(!slices.Contains(state.ISR, n.id), "H27: broker %d deletes its replica of %s, which is in the ISR %v", n.id, tp, state.ISR)
}

// converged tells what is not as it should be some time after the last fault.
func (s *Sim) converged() error {
	var active []int32
	for _, n := range s.nodes {
		if n.status.Active {
			active = append(active, n.id)
		}
		if n.broker.epoch == 0 || s.zk.leader.nodes[zkstate.BrokerIDPath(n.id)] == nil {
			return fmt.Errorf("broker %d is not registered", n.id)
		}
		if len(n.waiting) > 0 && !n.core.Busy() {
			return fmt.Errorf("node %d has not answered %d requests", n.id, len(n.waiting))
		}
	}
	if len(active) != 1 {
		return fmt.Errorf("the controllers are %v", active)
	}
	for _, path := range []string{zkstate.DeleteTopicsPath, zkstate.ISRChangeNotificationPath, zkstate.LogDirEventNotificationPath} {
		if left := sortedNames(s.zk.leader.nodes[path].children); len(left) > 0 {
			return fmt.Errorf("%s has %v", path, left)
		}
	}
	for _, path := range []string{zkstate.ReassignPartitionsPath, zkstate.PreferredReplicaElectionPath} {
		if n := s.zk.leader.nodes[path]; n != nil {
			return fmt.Errorf("%s is left over: %s", path, n.data)
		}
	}
	known := map[controller.TopicPartition]bool{}
	for _, name := range s.topicNames() {
		a, _, ok := s.topicNode(name)
		if !ok {
			continue // junk
		}
		for p := range int32(len(a.Partitions)) {
			tp := controller.TopicPartition{Topic: name, Partition: p}
			known[tp] = true
			if err := s.partitionConverged(tp, a); err != nil {
				return err
			}
		}
	}
	for _, n := range s.nodes {
		for _, tp := range sortedHosted(n.broker.metadata) {
			if !known[tp] {
				return fmt.Errorf("broker %d has metadata of %s, which does not exist", n.id, tp)
			}
		}
	}
	return s.clientsConverged()
}

func (s *Sim) partitionConverged(tp controller.TopicPartition, a zkstate.TopicAssignment) error {
	r := a.Partitions[tp.Partition]
	if r.Reassigning() {
		return fmt.Errorf("%s is still being reassigned: %+v", tp, r)
	}
	if s.ibp.AtLeast(2, 8, 0) && a.ID == (zkstate.TopicID{}) {
		return fmt.Errorf("topic %s has no id", tp.Topic)
	}
	state, led := s.facts.states[zkstate.PartitionStatePath(tp.Topic, tp.Partition)]
	if !led || state.Leader < 0 {
		return fmt.Errorf("%s has no leader", tp)
	}
	if state.Leader != r.Replicas[0] {
		return fmt.Errorf("%s is led by %d and prefers %d", tp, state.Leader, r.Replicas[0])
	}
	isr, replicas := slices.Sorted(slices.Values(state.ISR)), slices.Sorted(slices.Values(r.Replicas))
	if !slices.Equal(isr, replicas) {
		return fmt.Errorf("%s has replicas %v and ISR %v", tp, replicas, isr)
	}
	for _, n := range s.nodes {
		m, told := n.broker.metadata[tp]
		if !told || m.Leader != state.Leader || m.LeaderEpoch != state.LeaderEpoch || !slices.Equal(m.Replicas, r.Replicas) {
			return fmt.Errorf("broker %d believes of %s: %+v; it is %+v with replicas %v", n.id, tp, m, state, r.Replicas)
		}
		status, hosted := n.broker.status(tp)
		if !slices.Contains(r.Replicas, n.id) {
			continue
		}
		if !hosted {
			return fmt.Errorf("broker %d has no replica of %s", n.id, tp)
		}
		if status.Leader != state.Leader || status.LeaderEpoch != state.LeaderEpoch {
			return fmt.Errorf("broker %d follows %d in epoch %d for %s; it is %+v", n.id, status.Leader, status.LeaderEpoch, tp, state)
		}
	}
	return s.logsConverged(tp, a)
}

// logsConverged: all replicas hold the same, and all of it is committed.
func (s *Sim) logsConverged(tp controller.TopicPartition, a zkstate.TopicAssignment) error {
	in := s.incarnation(tp)
	for _, p := range s.producers {
		if st := p.to[in]; st != nil && st.values != nil {
			return fmt.Errorf("producer %d has no answer for %v to %s", p.id, st.values, tp)
		}
	}
	var end, hw int64 = -1, -1
	for _, id := range a.Partitions[tp.Partition].Replicas {
		log := s.nodes[id-1].broker.logOf(tp, a.ID)
		if log == nil {
			return fmt.Errorf("broker %d has no log of %s", id, tp)
		}
		if end < 0 {
			end, hw = log.EndOffset(), log.HighWatermark()
		}
		if log.LastStableOffset() != log.HighWatermark() {
			return fmt.Errorf("%s has a transaction that does not end, at broker %d: %s, last stable %d", tp, id, ends{log}, log.LastStableOffset())
		}
		if log.EndOffset() != end || log.HighWatermark() != hw || hw != end {
			return fmt.Errorf("%s ends at %d with high watermark %d, and at broker %d: %s", tp, end, hw, id, ends{log})
		}
	}
	return nil
}

func sortedHosted[V any](m map[controller.TopicPartition]V) []controller.TopicPartition {
	keys := make([]controller.TopicPartition, 0, len(m))
	for tp := range m {
		keys = append(keys, tp)
	}
	slices.SortFunc(keys, func(a, b controller.TopicPartition) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
	return keys
}
