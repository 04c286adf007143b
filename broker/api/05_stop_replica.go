package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// StopReplica, key 5, versions 0 to 4, from the controller.
//
//	1  broker epoch (KIP-380); partitions grouped by topic
//	2  flexible
//	3  leader epoch, and whether to delete, for each partition (KIP-570)
//	4  whether the controller is a KRaft one
//
// Not honoured: orders of a KRaft controller (KIP-866), which are refused.
func (d *Dispatcher) stopReplica(c *call, req *kmsg.StopReplicaRequest) {
	order := partition.StopReplicas{
		ControllerID:    req.ControllerID,
		ControllerEpoch: req.ControllerEpoch,
		BrokerEpoch:     req.BrokerEpoch,
		Version:         req.Version,
		Partitions:      stopReplicas(req),
	}
	resp := kmsg.NewPtrStopReplicaResponse()
	if !d.mayCluster(c, kmsg.ACLOperationClusterAction) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		for _, p := range order.Partitions {
			tp := commitlog.TopicPartition{Topic: p.Topic, Partition: p.Partition}
			resp.Partitions = append(resp.Partitions, stopReplicaAnswer(tp, kerr.ClusterAuthorizationFailed))
		}
		c.answer(resp)
		return
	}
	if req.IsKRaftController {
		resp.ErrorCode = kerr.UnknownServerError.Code
		c.answer(resp)
		return
	}
	all, each := d.deps.Replicas.StopReplicas(order)
	if all != nil {
		d.log.WithError(all).WithField("controller", req.ControllerID).Info("refused StopReplica")
		each = nil
	}
	resp.ErrorCode, _ = code(all)
	for i := range each {
		resp.Partitions = append(resp.Partitions, stopReplicaAnswer(each[i].TP, each[i].Err))
	}
	c.answer(resp)
}

func stopReplicaAnswer(tp commitlog.TopicPartition, err error) kmsg.StopReplicaResponsePartition {
	p := kmsg.NewStopReplicaResponsePartition()
	p.Topic, p.Partition = tp.Topic, tp.Partition
	p.ErrorCode, _ = code(err)
	return p
}

func stopReplicas(req *kmsg.StopReplicaRequest) []partition.StopReplica {
	var stop []partition.StopReplica
	for i := range req.Topics {
		t := &req.Topics[i]
		switch {
		case req.Version == 0:
			stop = append(stop, stopReplicaByRequest(req, t.Topic, t.Partition))
		case req.Version < 3:
			for _, id := range t.Partitions {
				stop = append(stop, stopReplicaByRequest(req, t.Topic, id))
			}
		default:
			for _, p := range t.PartitionStates {
				stop = append(stop, partition.StopReplica{Topic: t.Topic, Partition: p.Partition, LeaderEpoch: p.LeaderEpoch, Delete: p.Delete})
			}
		}
	}
	return stop
}

func stopReplicaByRequest(req *kmsg.StopReplicaRequest, topic string, id int32) partition.StopReplica {
	return partition.StopReplica{Topic: topic, Partition: id, LeaderEpoch: partition.EpochNotGiven, Delete: req.DeletePartitions}
}
