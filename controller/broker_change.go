package controller

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// readBrokers reads registrations by name, leaving a watch on each. One that is not readable is logged and ignored: that
// broker is not part of the cluster.
func (c *Core) readBrokers(names []string) (map[int32]*broker, error) {
	var ids []int32
	var ops []zkstate.Op
	for _, name := range names {
		id, ok := parseID(name)
		if !ok {
			c.logf(LogWarn, "%s/%s is not a broker id; ignored", zkstate.BrokerIDsPath, name)
			continue
		}
		ids = append(ids, id)
		ops = append(ops, zkstate.Get(zkstate.BrokerIDPath(id)).Watched())
	}
	results, err := c.read(ops...)
	if err != nil {
		return nil, err
	}
	found := map[int32]*broker{}
	for i, id := range ids {
		if errors.Is(results[i].Err, zkstate.ErrNoNode) {
			continue
		}
		if results[i].Err != nil {
			return nil, fmt.Errorf("reading %s: %w", ops[i].Path, results[i].Err)
		}
		info, err := zkstate.DecodeBroker(id, results[i].Data)
		if err != nil {
			c.logf(LogError, "the registration of broker %d is not readable; ignored: %v", id, err)
			continue
		}
		found[id] = &broker{id: id, epoch: results[i].Stat.Czxid, info: info}
	}
	return found, nil
}

// brokersChanged acts on the difference between the registrations and the brokers known. A broker whose registration
// has a newer czxid was restarted so fast that nobody saw it go: it is treated as gone and come back.
func (c *Core) brokersChanged() error {
	names, err := c.children(zkstate.BrokerIDsPath)
	if err != nil {
		return err
	}
	found, err := c.readBrokers(names)
	if err != nil {
		return err
	}
	var arrived, bounced, lost []int32
	for _, id := range sortedKeys(found) {
		switch known := c.cluster.brokers[id]; {
		case known == nil:
			arrived = append(arrived, id)
		case found[id].epoch > known.epoch:
			bounced = append(bounced, id)
		}
	}
	for _, id := range c.cluster.registered() {
		if found[id] == nil {
			lost = append(lost, id)
		}
	}
	if len(arrived)+len(bounced)+len(lost) == 0 {
		return nil
	}
	c.logf(LogInfo, "brokers arrived: %v, restarted: %v, gone: %v, alive: %v", arrived, bounced, lost, sortedKeys(found))
	if err := c.brokersArrived(found, arrived); err != nil {
		return err
	}
	if err := c.brokersLost(bounced); err != nil {
		return err
	}
	if err := c.brokersArrived(found, bounced); err != nil {
		return err
	}
	return c.brokersLost(lost)
}

// brokersArrived brings brokers in: everybody learns of them, and they learn everything, before they are given
// partitions; then whatever waited for them is resumed.
func (c *Core) brokersArrived(found map[int32]*broker, ids []int32) error {
	if len(ids) == 0 {
		return nil
	}
	before := c.cluster.registered()
	for _, id := range ids {
		c.cluster.brokers[id] = found[id]
		delete(c.cluster.offlineDirs, id)
		c.connect(id)
	}
	c.outbox.updateMetadata(c, before)
	c.outbox.flush(c)
	c.outbox.updateMetadata(c, ids, c.cluster.partitionsWhere(func(_ TopicPartition, t *topic, p *partition) bool {
		return p.leadership != nil && !t.dying
	})...)
	c.outbox.flush(c)
	theirs := c.cluster.replicasOn(ids)
	if err := c.moveReplicas(theirs, onlineReplica); err != nil {
		return err
	}
	return c.replicasBack(theirs)
}

// replicasBack resumes what waited for replicas that can serve again: elections, reassignments, deletions.
func (c *Core) replicasBack(back []replica) error {
	if _, err := c.bringAllOnline(); err != nil {
		return err
	}
	brokersOf := map[TopicPartition][]int32{}
	for _, r := range back {
		brokersOf[r.TopicPartition] = append(brokersOf[r.TopicPartition], r.broker)
	}
	if err := c.resumeReassignmentsWhere(func(tp TopicPartition, p *partition) bool {
		return slices.ContainsFunc(p.assignment.target(), func(id int32) bool { return slices.Contains(brokersOf[tp], id) })
	}); err != nil {
		return err
	}
	var deleting []string
	for _, r := range back {
		if c.cluster.queuedForDeletion(r.Topic) && !slices.Contains(deleting, r.Topic) {
			deleting = append(deleting, r.Topic)
		}
	}
	return c.resumeDeletionOf(deleting)
}

// brokersLost takes brokers out: their partitions get other leaders, and they leave the ISRs.
func (c *Core) brokersLost(ids []int32) error {
	if len(ids) == 0 {
		return nil
	}
	c.forgetUntold(ids)
	for _, id := range ids {
		c.emit(Disconnect{BrokerID: id, BrokerEpoch: c.cluster.brokers[id].epoch})
		delete(c.cluster.brokers, id)
		delete(c.cluster.shuttingDown, id)
		delete(c.cluster.offlineDirs, id)
	}
	if err := c.replicasLost(c.cluster.replicasOn(ids)); err != nil {
		return err
	}
	return c.resumeDeletions()
}

// replicasLost reacts to replicas that cannot serve any more: new leaders first, then the ISRs, then the deletions
// that they hold up.
func (c *Core) replicasLost(gone []replica) error {
	var deleting, serving []replica
	for _, r := range gone {
		if c.cluster.dying(r.Topic) {
			deleting = append(deleting, r)
		} else {
			serving = append(serving, r)
		}
	}
	c.markPartitions(c.cluster.partitionsWhere(func(tp TopicPartition, t *topic, p *partition) bool {
		return !t.dying && p.leadership != nil && !c.cluster.online(p.leadership.leader, tp)
	}), offlinePartition)
	elected, err := c.bringAllOnline()
	if err != nil {
		return err
	}
	if err := c.moveReplicas(serving, offlineReplica); err != nil {
		return err
	}
	if err := c.failDeletion(deleting); err != nil {
		return err
	}
	anyElected := slices.ContainsFunc(sortedPartitions(elected), func(tp TopicPartition) bool { return elected[tp] == nil })
	if len(serving) == 0 && !anyElected {
		// Nothing above told the brokers who is alive now.
		c.tellEverybody()
	}
	return nil
}

// brokerInfoChanged takes up new endpoints or another rack of a broker that stayed.
func (c *Core) brokerInfoChanged(id int32) error {
	results, err := c.read(zkstate.Get(zkstate.BrokerIDPath(id)).Watched())
	known := c.cluster.brokers[id]
	switch {
	case err != nil:
		return err
	case errors.Is(results[0].Err, zkstate.ErrNoNode) || known == nil:
		return nil // the watch on the list of brokers tells of brokers that come and go
	case results[0].Err != nil:
		return results[0].Err
	case results[0].Stat.Czxid != known.epoch:
		return c.brokersChanged()
	}
	info, err := zkstate.DecodeBroker(id, results[0].Data)
	if err != nil {
		c.logf(LogError, "the registration of broker %d is not readable; the one known is kept: %v", id, err)
		return nil
	}
	if sameBroker(known.info, info) {
		return nil
	}
	c.logf(LogInfo, "broker %d has changed its endpoints, rack or features", id)
	known.info = info
	c.connect(id)
	c.tellEverybody()
	return nil
}

func sameBroker(a, b zkstate.Broker) bool {
	sameRack := a.Rack == b.Rack || a.Rack != nil && b.Rack != nil && *a.Rack == *b.Rack
	sameFeatures := slices.EqualFunc(sortedKeys(a.Features), sortedKeys(b.Features), func(x, y string) bool {
		return x == y && a.Features[x] == b.Features[y]
	})
	return sameRack && sameFeatures && slices.Equal(a.Endpoints, b.Endpoints)
}

// leaderAndISRAnswered learns from a broker's answer which of its replicas are in a failed log directory, and which are not
// any more. For the latter Kafka's controller goes on as before: a partition without a leader stays so until a broker
// starts or somebody asks for an election.
func (c *Core) leaderAndISRAnswered(id int32, req *kmsg.LeaderAndISRRequest, resp *kmsg.LeaderAndISRResponse) error {
	if resp.ErrorCode != 0 {
		c.logf(LogError, "broker %d refused LeaderAndIsr: %v", id, kerr.ErrorForCode(resp.ErrorCode))
		return nil
	}
	known := c.cluster.offlineDirs[id]
	now := map[TopicPartition]bool{}
	for _, tp := range sortedPartitions(known) {
		now[tp] = true
	}
	var newlyLost, back []replica
	for _, p := range leaderAndISRErrors(c, resp) {
		switch p.code {
		case 0:
			if known[p.tp] && c.cluster.partition(p.tp) != nil {
				back = append(back, replica{p.tp, id})
			}
			delete(now, p.tp)
		case kerr.KafkaStorageError.Code:
			at := c.cluster.partition(p.tp)
			if at != nil && at.replicas[id] == deletionStarted {
				continue // the answer to that order tells what came of it, and no other will be given
			}
			if !known[p.tp] && at != nil {
				newlyLost = append(newlyLost, replica{p.tp, id})
			}
			now[p.tp] = true
		case kerr.StaleControllerEpoch.Code:
			// It knows this leader epoch already: the same state is often sent for two reasons.
			c.logf(LogDebug, "broker %d knew the state of partition %s", id, p.tp)
		default:
			c.logf(LogWarn, "broker %d refused LeaderAndIsr of partition %s: %v", id, p.tp, kerr.ErrorForCode(p.code))
		}
	}
	c.cluster.offlineDirs[id] = now
	if err := c.awaitedAnswered(id, req, resp); err != nil {
		return err
	}
	if len(newlyLost) > 0 {
		c.logf(LogWarn, "broker %d lost the log directory of %d replicas", id, len(newlyLost))
		if err := c.replicasLost(newlyLost); err != nil {
			return err
		}
	}
	if len(back) == 0 {
		return nil
	}
	c.logf(LogInfo, "broker %d has %d replicas of a failed log directory again", id, len(back))
	told := leaderEpochsTold(req)
	for _, r := range back {
		c.outbox.updateMetadata(c, c.cluster.registered(), r.TopicPartition)
		if l := c.cluster.partition(r.TopicPartition).leadership; l != nil && l.leaderEpoch != told[r.TopicPartition] {
			// Whoever was elected since was made known to the replicas that were online then.
			c.outbox.leaderAndISR(c, []int32{id}, r.TopicPartition, false)
		}
	}
	c.outbox.flush(c)
	return c.replicasBack(back)
}

func leaderEpochsTold(req *kmsg.LeaderAndISRRequest) map[TopicPartition]int32 {
	told := map[TopicPartition]int32{}
	for _, p := range req.PartitionStates {
		told[TopicPartition{p.Topic, p.Partition}] = p.LeaderEpoch
	}
	for _, t := range req.TopicStates {
		for _, p := range t.PartitionStates {
			told[TopicPartition{t.Topic, p.Partition}] = p.LeaderEpoch
		}
	}
	return told
}

type partitionCode struct {
	tp   TopicPartition
	code int16
}

// leaderAndISRErrors gives the partitions of a response by name; since version 5 it names topics by their ids.
func leaderAndISRErrors(c *Core, resp *kmsg.LeaderAndISRResponse) []partitionCode {
	var found []partitionCode
	for _, p := range resp.Partitions {
		found = append(found, partitionCode{TopicPartition{p.Topic, p.Partition}, p.ErrorCode})
	}
	for _, t := range resp.Topics {
		name, ok := c.cluster.topicNames[t.TopicID]
		if !ok {
			continue
		}
		for _, p := range t.Partitions {
			found = append(found, partitionCode{TopicPartition{name, p.Partition}, p.ErrorCode})
		}
	}
	return found
}

// logDirsFailed asks the brokers that reported a log directory that failed, or came back, for the state of all their
// replicas, by sending them LeaderAndIsr for each; those in a failed directory answer KAFKA_STORAGE_ERROR.
func (c *Core) logDirsFailed() error {
	names, err := c.children(zkstate.LogDirEventNotificationPath)
	if err != nil || len(names) == 0 {
		return err
	}
	ops := make([]zkstate.Op, len(names))
	for i, name := range names {
		ops[i] = zkstate.Get(zkstate.LogDirEventNotificationPath + "/" + name)
	}
	results, err := c.read(ops...)
	if err != nil {
		return err
	}
	var ids []int32
	for i, r := range results {
		if r.Err != nil {
			continue
		}
		id, err := zkstate.DecodeLogDirEvent(r.Data)
		if err != nil {
			c.logf(LogWarn, "%s is not readable; removed: %v", ops[i].Path, err)
			continue
		}
		if !slices.Contains(ids, id) && c.cluster.brokers[id] != nil {
			ids = append(ids, id)
		}
	}
	if err := c.moveReplicas(c.cluster.replicasOn(ids), onlineReplica); err != nil {
		return err
	}
	return c.deleteNodes(zkstate.LogDirEventNotificationPath, names)
}
