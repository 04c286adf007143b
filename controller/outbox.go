package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// outbox collects what brokers must be told during one step of a procedure, and sends at most one request of each
// kind to each broker: first who leads (LeaderAndIsr), then the metadata of the same partitions to everybody
// (UpdateMetadata), then what to stop (StopReplica).
type outbox struct {
	leaders map[int32]map[TopicPartition]bool // broker → partition → is new there
	stops   map[int32]map[TopicPartition]bool // broker → partition → delete
	readers map[int32]bool
	states  map[TopicPartition]bool
}

func (o *outbox) clear() { *o = outbox{} }

// leaderAndISR tells brokers, and with them the whole cluster's metadata, of a partition's leadership. A replica that
// isNew may be created in any working log directory; one that is not is expected to exist somewhere. One that is being
// added is new until it has joined, whatever the reason of the request.
func (o *outbox) leaderAndISR(c *Core, to []int32, tp TopicPartition, isNew bool) {
	for _, id := range to {
		if c.cluster.brokers[id] == nil {
			continue
		}
		if o.leaders == nil {
			o.leaders = map[int32]map[TopicPartition]bool{}
		}
		if o.leaders[id] == nil {
			o.leaders[id] = map[TopicPartition]bool{}
		}
		o.leaders[id][tp] = isNew || o.leaders[id][tp] || c.cluster.partition(tp).joining(id)
	}
	o.updateMetadata(c, c.cluster.registered(), tp)
}

func (o *outbox) stopReplica(c *Core, to int32, tp TopicPartition, deleteIt bool) {
	if c.cluster.brokers[to] == nil {
		return
	}
	if o.stops == nil {
		o.stops = map[int32]map[TopicPartition]bool{}
	}
	if o.stops[to] == nil {
		o.stops[to] = map[TopicPartition]bool{}
	}
	o.stops[to][tp] = deleteIt || o.stops[to][tp]
}

// updateMetadata tells brokers who is alive, and the state of the given partitions.
func (o *outbox) updateMetadata(c *Core, to []int32, tps ...TopicPartition) {
	if o.readers == nil {
		o.readers, o.states = map[int32]bool{}, map[TopicPartition]bool{}
	}
	for _, id := range to {
		if c.cluster.brokers[id] != nil {
			o.readers[id] = true
		}
	}
	for _, tp := range tps {
		o.states[tp] = true
	}
}

// flush sends what was collected.
func (o *outbox) flush(c *Core) {
	o.flushLeaders(c)
	o.flushMetadata(c)
	o.flushStops(c)
	o.clear()
}

func (o *outbox) flushLeaders(c *Core) {
	version := c.cfg.IBP.speaks(leaderAndISRVersions)
	for _, id := range sortedKeys(o.leaders) {
		req := &kmsg.LeaderAndISRRequest{
			Version: version, ControllerID: c.cfg.BrokerID, ControllerEpoch: c.cluster.epoch, BrokerEpoch: c.cluster.brokers[id].epoch,
		}
		var leaderIDs []int32
		for _, tp := range sortedPartitions(o.leaders[id]) {
			p := c.cluster.partition(tp)
			if p == nil || p.leadership == nil {
				continue
			}
			if n := len(req.TopicStates); n == 0 || req.TopicStates[n-1].Topic != tp.Topic {
				req.TopicStates = append(req.TopicStates, kmsg.LeaderAndISRRequestTopicState{Topic: tp.Topic, TopicID: c.cluster.topics[tp.Topic].id})
			}
			t := &req.TopicStates[len(req.TopicStates)-1]
			t.PartitionStates = append(t.PartitionStates, leaderAndISRState(tp, p, o.leaders[id][tp]))
			if !slices.Contains(leaderIDs, p.leadership.leader) {
				leaderIDs = append(leaderIDs, p.leadership.leader)
			}
		}
		slices.Sort(leaderIDs)
		for _, leader := range leaderIDs {
			if e, ok := c.endpointAt(leader, c.cfg.leaderListener()); ok {
				req.LiveLeaders = append(req.LiveLeaders, kmsg.LeaderAndISRRequestLiveLeader{BrokerID: leader, Host: e.Host, Port: e.Port})
			}
		}
		if len(req.TopicStates) > 0 {
			c.send(id, req)
		}
	}
}

func leaderAndISRState(tp TopicPartition, p *partition, isNew bool) kmsg.LeaderAndISRRequestTopicPartition {
	return kmsg.LeaderAndISRRequestTopicPartition{
		Topic: tp.Topic, Partition: tp.Partition,
		ControllerEpoch: p.leadership.controllerEpoch, Leader: p.leadership.leader, LeaderEpoch: p.leadership.leaderEpoch,
		ISR: p.leadership.isr, ZKVersion: p.leadership.version,
		Replicas: p.assignment.replicas, AddingReplicas: p.assignment.adding, RemovingReplicas: p.assignment.removing,
		IsNew: isNew, LeaderRecoveryState: p.leadership.recovery,
	}
}

func (o *outbox) flushMetadata(c *Core) {
	if len(o.readers) == 0 {
		return
	}
	// The states are the same for every broker, so they are built once and shared.
	var topics []kmsg.UpdateMetadataRequestTopicState
	for _, tp := range sortedPartitions(o.states) {
		p := c.cluster.partition(tp)
		if p == nil || p.leadership == nil && !c.cluster.dying(tp.Topic) {
			continue
		}
		if n := len(topics); n == 0 || topics[n-1].Topic != tp.Topic {
			topics = append(topics, kmsg.UpdateMetadataRequestTopicState{Topic: tp.Topic, TopicID: c.cluster.topics[tp.Topic].id})
		}
		t := &topics[len(topics)-1]
		t.PartitionStates = append(t.PartitionStates, c.metadataState(tp, p))
	}
	brokers := c.liveBrokers()
	for _, id := range sortedKeys(o.readers) {
		c.send(id, &kmsg.UpdateMetadataRequest{
			Version: c.cfg.IBP.speaks(updateMetadataVersions), ControllerID: c.cfg.BrokerID, ControllerEpoch: c.cluster.epoch,
			BrokerEpoch: c.cluster.brokers[id].epoch, TopicStates: topics, LiveBrokers: brokers,
		})
	}
}

func (c *Core) metadataState(tp TopicPartition, p *partition) kmsg.UpdateMetadataRequestTopicPartition {
	l := leadership{controllerEpoch: c.cluster.epoch}
	if p.leadership != nil {
		l = *p.leadership
	}
	if c.cluster.dying(tp.Topic) {
		// To its readers a topic in deletion has a leader of this value, and no past.
		l.leader, l.leaderEpoch, l.version = leaderInDeletion, initialLeaderTerm, 0
	}
	return kmsg.UpdateMetadataRequestTopicPartition{
		Topic: tp.Topic, Partition: tp.Partition, ControllerEpoch: l.controllerEpoch,
		Leader: l.leader, LeaderEpoch: l.leaderEpoch, ISR: l.isr, ZKVersion: l.version, Replicas: p.assignment.replicas,
		OfflineReplicas: without(p.assignment.replicas, c.cluster.onlineReplicas(tp, p.assignment.replicas)),
	}
}

// securityProtocols are the numbers that the protocols have on the wire.
var securityProtocols = map[string]int16{"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

func (c *Core) liveBrokers() []kmsg.UpdateMetadataRequestLiveBroker {
	var live []kmsg.UpdateMetadataRequestLiveBroker
	for _, id := range c.cluster.registered() {
		info := c.cluster.brokers[id].info
		b := kmsg.UpdateMetadataRequestLiveBroker{ID: id, Rack: info.Rack}
		for _, e := range info.Endpoints {
			b.Endpoints = append(b.Endpoints, kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
				Port: e.Port, Host: e.Host, ListenerName: e.Listener, SecurityProtocol: securityProtocols[e.Protocol],
			})
		}
		live = append(live, b)
	}
	return live
}

func (o *outbox) flushStops(c *Core) {
	version := c.cfg.IBP.speaks(stopReplicaVersions)
	for _, id := range sortedKeys(o.stops) {
		base := kmsg.StopReplicaRequest{
			Version: version, ControllerID: c.cfg.BrokerID, ControllerEpoch: c.cluster.epoch, BrokerEpoch: c.cluster.brokers[id].epoch,
		}
		if version >= 3 {
			base.Topics = o.stopTopics(c, id, func(bool) bool { return true })
			c.send(id, &base)
			continue
		}
		// Before version 3 (KIP-570) to delete or not is one flag of the whole request.
		for _, deleteThem := range []bool{true, false} {
			req := base
			req.DeletePartitions = deleteThem
			req.Topics = o.stopTopics(c, id, func(d bool) bool { return d == deleteThem })
			if len(req.Topics) > 0 {
				c.send(id, &req)
			}
		}
	}
}

func (o *outbox) stopTopics(c *Core, id int32, want func(deleteIt bool) bool) []kmsg.StopReplicaRequestTopic {
	var topics []kmsg.StopReplicaRequestTopic
	for _, tp := range sortedPartitions(o.stops[id]) {
		deleteIt := o.stops[id][tp]
		if !want(deleteIt) {
			continue
		}
		if n := len(topics); n == 0 || topics[n-1].Topic != tp.Topic {
			topics = append(topics, kmsg.StopReplicaRequestTopic{Topic: tp.Topic})
		}
		t := &topics[len(topics)-1]
		t.Partitions = append(t.Partitions, tp.Partition)
		t.PartitionStates = append(t.PartitionStates, kmsg.StopReplicaRequestTopicPartitionState{
			Partition: tp.Partition, LeaderEpoch: c.cluster.leaderEpochForStop(tp), Delete: deleteIt,
		})
	}
	return topics
}

// send queues a request for a registered broker.
func (c *Core) send(id int32, req kmsg.Request) {
	c.emit(Send{BrokerID: id, BrokerEpoch: c.cluster.brokers[id].epoch, Request: req})
}

// endpointOf is where a broker is reached for control requests.
func (c *Core) endpointOf(id int32) (Endpoint, bool) { return c.endpointAt(id, c.cfg.Listener) }

func (c *Core) endpointAt(id int32, listener string) (Endpoint, bool) {
	b := c.cluster.brokers[id]
	if b == nil {
		return Endpoint{}, false
	}
	for _, e := range b.info.Endpoints {
		if e.Listener == listener {
			return Endpoint{BrokerID: id, BrokerEpoch: b.epoch, Listener: e.Listener, Protocol: e.Protocol, Host: e.Host, Port: e.Port}, true
		}
	}
	return Endpoint{}, false
}

// connect makes a broker reachable for what is sent to it from now on.
func (c *Core) connect(id int32) {
	e, ok := c.endpointOf(id)
	if !ok {
		c.logf(LogError, "broker %d has no listener %q and cannot be reached", id, c.cfg.Listener)
		return
	}
	c.emit(Connect{To: e})
}

// tellEverybody sends every broker the list of live brokers and the state of these partitions.
func (c *Core) tellEverybody(tps ...TopicPartition) {
	c.outbox.updateMetadata(c, c.cluster.registered(), tps...)
	c.outbox.flush(c)
}
