package controller

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// The two doors through which reassignments come: the node /admin/reassign_partitions (kafka-reassign-partitions with
// --zookeeper) and the APIs AlterPartitionReassignments and ListPartitionReassignments (KIP-455).

// resumeReassignments takes up what the node asks for and goes on with what a former controller had begun.
func (c *Core) resumeReassignments() error {
	if err := c.dropStrays(c.cluster.partitionsWhere(func(_ TopicPartition, t *topic, _ *partition) bool { return !t.dying })); err != nil {
		return err
	}
	taken, err := c.takeUpReassignNode()
	if err != nil {
		return err
	}
	return c.resumeReassignmentsWhere(func(tp TopicPartition, _ *partition) bool { return !taken[tp] })
}

func (c *Core) reassignmentNodeChanged() error {
	_, err := c.takeUpReassignNode()
	return err
}

// takeUpReassignNode begins what /admin/reassign_partitions asks for, leaving a watch on it. Entries that cannot be
// carried out are logged and removed. It tells which partitions it began.
func (c *Core) takeUpReassignNode() (map[TopicPartition]bool, error) {
	taken := map[TopicPartition]bool{}
	wanted, exists, err := c.readReassignNode(true)
	if err != nil || !exists {
		return taken, err
	}
	refused := map[TopicPartition]bool{}
	for _, tp := range sortedPartitions(wanted) {
		target := wanted[tp]
		failed := c.checkTarget(tp, target, false)
		if failed == nil {
			p := c.cluster.partition(tp)
			to := p.assignment.reassignTo(target)
			if p.reassigning && p.assignment.equal(to) {
				continue // runs already: the node changed since another partition left it
			}
			if failed, err = c.tryReassign(tp, to); err != nil {
				return taken, err
			}
		}
		if failed != nil {
			c.logf(LogWarn, "the reassignment of %s to %v in %s is refused: %s", tp, target, zkstate.ReassignPartitionsPath, failed.text)
			refused[tp] = true
			continue
		}
		taken[tp] = true
	}
	if len(refused) == 0 && len(wanted) > 0 {
		return taken, nil
	}
	return taken, c.removeFromReassignNode(func(tp TopicPartition, _ []int32) bool { return refused[tp] })
}

// readReassignNode reads what the node asks for. A node that is not readable asks for nothing.
func (c *Core) readReassignNode(watch bool) (wanted map[TopicPartition][]int32, exists bool, err error) {
	if watch {
		if _, err := c.read(zkstate.Exists(zkstate.ReassignPartitionsPath).Watched()); err != nil {
			return nil, false, err
		}
	}
	results, err := c.read(zkstate.Get(zkstate.ReassignPartitionsPath))
	switch {
	case err != nil:
		return nil, false, err
	case errors.Is(results[0].Err, zkstate.ErrNoNode):
		return nil, false, nil
	case results[0].Err != nil:
		return nil, false, results[0].Err
	}
	wanted = map[TopicPartition][]int32{}
	asked, err := zkstate.DecodeReassignments(results[0].Data)
	if err != nil {
		c.logf(LogError, "%s is not readable and will be removed: %v", zkstate.ReassignPartitionsPath, err)
		return wanted, true, nil
	}
	for _, r := range asked {
		wanted[TopicPartition(r.TopicPartition)] = r.Replicas
	}
	return wanted, true, nil
}

// removeFromReassignNode takes entries out of /admin/reassign_partitions, and the node itself when nothing remains.
func (c *Core) removeFromReassignNode(remove func(TopicPartition, []int32) bool) error {
	wanted, exists, err := c.readReassignNode(false)
	if err != nil || !exists {
		return err
	}
	var kept []zkstate.Reassignment
	removed := 0
	for _, tp := range sortedPartitions(wanted) {
		if remove(tp, wanted[tp]) {
			removed++
			continue
		}
		kept = append(kept, zkstate.Reassignment{TopicPartition: zkstate.TopicPartition(tp), Replicas: wanted[tp]})
	}
	if removed == 0 && len(kept) > 0 {
		return nil
	}
	if len(kept) > 0 {
		_, err := c.write(zkstate.Set(zkstate.ReassignPartitionsPath, zkstate.EncodeReassignments(kept), zkstate.AnyVersion))
		return err
	}
	if _, err := c.write(zkstate.Delete(zkstate.ReassignPartitionsPath, zkstate.AnyVersion)); err != nil {
		return err
	}
	// The next one may have been written already: look, and leave a watch.
	c.enqueue(look{zkstate.ReassignPartitionsPath})
	return nil
}

// tryReassign tells apart a reassignment that failed by itself from the end of the controllership.
func (c *Core) tryReassign(tp TopicPartition, to assignment) (*fault, error) {
	err := c.reassign(tp, to)
	switch {
	case errors.Is(err, errWouldLose):
		return &fault{kerr.InvalidReplicaAssignment.Code, err.Error()}, nil
	case errors.Is(err, errReassignment):
		c.logf(LogError, "partition %s: %v", tp, err)
		return faultOf(kerr.UnknownServerError), nil
	}
	return nil, err
}

// checkTarget tells why a partition cannot be moved to these replicas, or nil. Only requests by API demand that added
// replicas are alive.
func (c *Core) checkTarget(tp TopicPartition, target []int32, alive bool) *fault {
	refuse := func(e *kerr.Error, format string, args ...any) *fault {
		return &fault{e.Code, fmt.Sprintf(format, args...)}
	}
	for i, id := range target {
		if slices.Contains(target[:i], id) { // which is looked for in the whole list before anything else is
			return refuse(kerr.InvalidReplicaAssignment, "Duplicate replica ids in partition reassignment replica list: %s", scalaBuffer(target))
		}
	}
	if slices.ContainsFunc(target, func(id int32) bool { return id < 0 }) {
		return refuse(kerr.InvalidReplicaAssignment, "Invalid broker id in replica list: %s", scalaBuffer(target))
	}
	if len(target) == 0 {
		return refuse(kerr.InvalidReplicaAssignment, "Empty replica list specified in partition reassignment.")
	}
	var present assignment
	p := c.cluster.partition(tp)
	if p != nil {
		present = p.assignment
	}
	if adding := present.reassignTo(target).adding; alive && slices.ContainsFunc(adding, func(id int32) bool { return !c.cluster.alive(id) }) {
		return refuse(kerr.InvalidReplicaAssignment, "Replica assignment has brokers that are not alive. Replica list: %s, live broker list: %s",
			scalaBuffer(adding), scalaSet(slices.DeleteFunc(c.cluster.registered(), func(id int32) bool { return !c.cluster.alive(id) })))
	}
	if p == nil || c.cluster.queuedForDeletion(tp.Topic) {
		return noPartition
	}
	return nil
}

// scalaBuffer and scalaSet are collections of ids as Kafka's messages show them.
func scalaBuffer(ids []int32) string { return "ArrayBuffer(" + joinedIDs(ids) + ")" }

func scalaSet(ids []int32) string {
	if len(ids) > 4 {
		return "HashSet(" + joinedIDs(ids) + ")"
	}
	return "Set(" + joinedIDs(ids) + ")"
}

func joinedIDs(ids []int32) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(texts, ", ")
}

// wantedAssignments is what a request asks of each partition, in the order of the request. Of several wishes for one partition the last counts; a topic of which nothing is asked is not there.
func wantedAssignments(req *kmsg.AlterPartitionAssignmentsRequest) (order []TopicPartition, wanted map[TopicPartition][]int32) {
	wanted = map[TopicPartition][]int32{}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			tp := TopicPartition{t.Topic, p.Partition}
			if _, again := wanted[tp]; !again {
				order = append(order, tp)
			}
			wanted[tp] = p.Replicas
		}
	}
	return order, wanted
}

// alterReassignments is AlterPartitionReassignments (api 45): begin, supersede, or with a null list cancel.
func (c *Core) alterReassignments(id uint64, req *kmsg.AlterPartitionAssignmentsRequest) error {
	type change struct {
		tp TopicPartition
		to assignment
	}
	var changes []change
	faults := map[TopicPartition]*fault{}
	order, wanted := wantedAssignments(req)
	for _, tp := range order {
		target := wanted[tp]
		if target == nil {
			known := c.cluster.partition(tp)
			if known == nil || !known.assignment.reassigning() {
				faults[tp] = faultOf(kerr.NoReassignmentInProgress)
				continue
			}
			target = known.assignment.origin()
		} else if refused := c.checkTarget(tp, target, true); refused != nil {
			faults[tp] = refused
			continue
		}
		changes = append(changes, change{tp, c.cluster.partition(tp).assignment.reassignTo(target)})
	}
	// The latest wish wins, whichever door it came through.
	if err := c.removeFromReassignNode(func(tp TopicPartition, _ []int32) bool {
		return slices.ContainsFunc(changes, func(ch change) bool { return ch.tp == tp })
	}); err != nil {
		return err
	}
	for _, ch := range changes {
		if c.cluster.partition(ch.tp) == nil || c.cluster.queuedForDeletion(ch.tp.Topic) {
			faults[ch.tp] = noPartition
			continue
		}
		failed, err := c.tryReassign(ch.tp, ch.to)
		if err != nil {
			return err
		}
		if failed != nil {
			faults[ch.tp] = failed
		}
	}
	resp := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	resp.AllowReplicationFactorChange = req.AllowReplicationFactorChange
	rows := map[string]int{}
	for _, tp := range order {
		at, there := rows[tp.Topic]
		if !there {
			at = len(resp.Topics)
			rows[tp.Topic] = at
			resp.Topics = append(resp.Topics, kmsg.AlterPartitionAssignmentsResponseTopic{Topic: tp.Topic})
		}
		part := kmsg.AlterPartitionAssignmentsResponseTopicPartition{Partition: tp.Partition}
		if failed := faults[tp]; failed != nil {
			part.ErrorCode, part.ErrorMessage = failed.code, &failed.text
		}
		resp.Topics[at].Partitions = append(resp.Topics[at].Partitions, part)
	}
	c.answer(id, resp)
	return nil
}

// listReassignments is ListPartitionReassignments (api 46): what is running, of the partitions named or of all.
func (c *Core) listReassignments(id uint64, req *kmsg.ListPartitionReassignmentsRequest) {
	resp := req.ResponseKind().(*kmsg.ListPartitionReassignmentsResponse)
	list := func(tp TopicPartition, p *partition) {
		if p == nil || !p.assignment.reassigning() {
			return
		}
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != tp.Topic {
			resp.Topics = append(resp.Topics, kmsg.ListPartitionReassignmentsResponseTopic{Topic: tp.Topic})
		}
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, kmsg.ListPartitionReassignmentsResponseTopicPartition{
			Partition: tp.Partition, Replicas: p.assignment.replicas, AddingReplicas: p.assignment.adding, RemovingReplicas: p.assignment.removing,
		})
	}
	if req.Topics == nil {
		c.cluster.each(func(tp TopicPartition, _ *topic, p *partition) { list(tp, p) })
	}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			tp := TopicPartition{t.Topic, p}
			list(tp, c.cluster.partition(tp))
		}
	}
	c.answer(id, resp)
}
