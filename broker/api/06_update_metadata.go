package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/group"
	"barnabas/broker/metadata"
	"barnabas/broker/partition"
)

// UpdateMetadata, key 6, versions 0 to 8, from the controller.
//
//	1  several endpoints for a broker
//	2  racks
//	3  listener names
//	4  offline replicas
//	5  broker epoch (KIP-380); partitions grouped by topic
//	6  flexible
//	7  topic ids
//	8  whether the controller is a KRaft one
//
// Not honoured: updates of a KRaft controller (KIP-866), which are refused.
func (d *Dispatcher) updateMetadata(c *call, req *kmsg.UpdateMetadataRequest) {
	resp := kmsg.NewPtrUpdateMetadataResponse()
	err := error(kerr.ClusterAuthorizationFailed)
	if d.mayCluster(c, kmsg.ACLOperationClusterAction) {
		err = d.applyMetadata(req)
	}
	if err != nil {
		d.log.WithError(err).WithField("controller", req.ControllerID).Info("refused UpdateMetadata")
	}
	resp.ErrorCode, _ = code(err)
	c.answer(resp)
}

func (d *Dispatcher) applyMetadata(req *kmsg.UpdateMetadataRequest) error {
	if req.IsKRaftController {
		return kerr.UnknownServerError
	}
	// An epoch that this broker has not learned yet is accepted: the controller
	// may know of the registration before its owner does.
	if req.BrokerEpoch != partition.None && req.BrokerEpoch < d.deps.BrokerEpoch.BrokerEpoch() {
		return kerr.StaleBrokerEpoch
	}
	if err := d.deps.Replicas.ControllerSeen(req.ControllerEpoch); err != nil {
		return err
	}
	deleted, err := d.deps.Metadata.Apply(req)
	if err != nil {
		return err
	}
	d.forgetOffsets(deleted)
	d.deps.Replicas.TakenAway(assigned(req))
	d.ordered.caughtUp(req)
	d.RegistrationsChanged()
	d.waits.changed()
	return nil
}

// assigned is who has which partition, as an update tells.
func assigned(req *kmsg.UpdateMetadataRequest) []partition.Assigned {
	var told []partition.Assigned
	add := func(topic string, p *kmsg.UpdateMetadataRequestTopicPartition) {
		told = append(told, partition.Assigned{TP: commitlog.TopicPartition{Topic: topic, Partition: p.Partition}, LeaderEpoch: p.LeaderEpoch, Replicas: p.Replicas})
	}
	for i := range req.PartitionStates { // before version 5: not grouped
		add(req.PartitionStates[i].Topic, &req.PartitionStates[i])
	}
	for i := range req.TopicStates {
		for j := range req.TopicStates[i].PartitionStates {
			add(req.TopicStates[i].Topic, &req.TopicStates[i].PartitionStates[j])
		}
	}
	return told
}

// forgetOffsets drops what groups have committed for partitions that are gone.
func (d *Dispatcher) forgetOffsets(deleted []metadata.TopicPartition) {
	if len(deleted) == 0 {
		return
	}
	partitions := make([]group.TopicPartition, len(deleted))
	for i, tp := range deleted {
		partitions[i] = group.TopicPartition{Topic: tp.Topic, Partition: tp.Partition}
	}
	d.deps.Groups.TopicsDeleted(partitions)
}

// RegistrationsChanged tells the replicas of the brokers that are alive, as far
// as this broker has heard, and under which registrations.
func (d *Dispatcher) RegistrationsChanged() {
	d.alive.Lock()
	defer d.alive.Unlock()
	d.deps.Replicas.SetAliveBrokers(d.aliveBrokers(d.deps.Metadata.Load()))
}

// aliveBrokers is what replicas need to know of the other brokers: where to
// fetch from, who is near a consumer, and who has restarted.
func (d *Dispatcher) aliveBrokers(s *metadata.Snapshot) map[int32]partition.BrokerInfo {
	alive := make(map[int32]partition.BrokerInfo, len(s.Brokers))
	for id, b := range s.Brokers {
		info := partition.BrokerInfo{Epoch: d.deps.Registrations.EpochOf(id), Rack: stringOrEmpty(b.Rack)}
		if e, found := b.Endpoint(d.cfg.InterBrokerListener); found {
			info.Endpoint = partition.Endpoint{ID: id, Host: e.Host, Port: e.Port}
		}
		alive[id] = info
	}
	return alive
}
