package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// LeaderAndISR, key 4, versions 0 to 7, from the controller.
//
//	1  whether the partition is new
//	2  broker epoch (KIP-380); partitions grouped by topic
//	3  replicas being added and removed (KIP-455)
//	4  flexible
//	5  topic ids, kind of request; the answer is grouped by id
//	6  leader recovery state (KIP-704)
//	7  whether the controller is a KRaft one
//
// It is carried out on the connection's goroutine, so that the controller's
// orders are obeyed in the order in which they were sent.
//
// Not honoured: migration to KRaft (KIP-866); orders of a KRaft controller are
// refused.
func (d *Dispatcher) leaderAndISR(c *call, req *kmsg.LeaderAndISRRequest) {
	order := partition.LeaderAndISR{
		ControllerID:    req.ControllerID,
		ControllerEpoch: req.ControllerEpoch,
		BrokerEpoch:     req.BrokerEpoch,
		Type:            req.Type,
		Version:         req.Version,
		LiveLeaders:     liveLeaders(req),
	}
	for i := range req.PartitionStates { // versions 0 and 1
		p := &req.PartitionStates[i]
		order.Partitions = append(order.Partitions, leaderAndISRPartition(p.Topic, commitlog.TopicID{}, p))
	}
	for i := range req.TopicStates {
		t := &req.TopicStates[i]
		for j := range t.PartitionStates {
			order.Partitions = append(order.Partitions, leaderAndISRPartition(t.Topic, commitlog.TopicID(t.TopicID), &t.PartitionStates[j]))
		}
	}
	if !d.mayCluster(c, kmsg.ACLOperationClusterAction) {
		c.answer(refusedLeaderAndISR(req.Version, order.Partitions, kerr.ClusterAuthorizationFailed))
		return
	}
	if req.IsKRaftController {
		c.answer(refusedLeaderAndISR(req.Version, order.Partitions, kerr.UnknownServerError))
		return
	}
	d.ordered.add(req, d.deps.Metadata.Load())
	all, each := d.deps.Replicas.ApplyLeaderAndISR(order)
	if all != nil {
		d.log.WithError(all).WithField("controller", req.ControllerID).Info("refused LeaderAndISR")
		c.answer(refusedLeaderAndISR(req.Version, order.Partitions, all))
		return
	}
	c.answer(leaderAndISRAnswer(req.Version, each))
}

func liveLeaders(req *kmsg.LeaderAndISRRequest) map[int32]partition.Endpoint {
	live := make(map[int32]partition.Endpoint, len(req.LiveLeaders))
	for _, l := range req.LiveLeaders {
		live[l.BrokerID] = partition.Endpoint{ID: l.BrokerID, Host: l.Host, Port: l.Port}
	}
	return live
}

func leaderAndISRPartition(topic string, id commitlog.TopicID, p *kmsg.LeaderAndISRRequestTopicPartition) partition.LeaderAndISRPartition {
	return partition.LeaderAndISRPartition{
		Topic:           topic,
		TopicID:         id,
		Partition:       p.Partition,
		ControllerEpoch: p.ControllerEpoch,
		Leader:          p.Leader,
		LeaderEpoch:     p.LeaderEpoch,
		ISR:             p.ISR,
		PartitionEpoch:  p.ZKVersion,
		Replicas:        p.Replicas,
		Adding:          p.AddingReplicas,
		Removing:        p.RemovingReplicas,
		IsNew:           p.IsNew,
		LeaderRecovery:  p.LeaderRecoveryState,
	}
}

func refusedLeaderAndISR(version int16, parts []partition.LeaderAndISRPartition, err error) *kmsg.LeaderAndISRResponse {
	each := make([]partition.PartitionError, len(parts))
	for i := range parts {
		each[i] = partition.PartitionError{
			TP:      commitlog.TopicPartition{Topic: parts[i].Topic, Partition: parts[i].Partition},
			TopicID: parts[i].TopicID,
			Err:     err,
		}
	}
	resp := leaderAndISRAnswer(version, each)
	resp.ErrorCode, _ = code(err)
	return resp
}

func leaderAndISRAnswer(version int16, each []partition.PartitionError) *kmsg.LeaderAndISRResponse {
	resp := kmsg.NewPtrLeaderAndISRResponse()
	topicAt := make(map[commitlog.TopicID]int)
	for i := range each {
		p := kmsg.NewLeaderAndISRResponseTopicPartition()
		p.Topic, p.Partition = each[i].TP.Topic, each[i].TP.Partition
		p.ErrorCode, _ = code(each[i].Err)
		if version < 5 {
			resp.Partitions = append(resp.Partitions, p)
			continue
		}
		at, found := topicAt[each[i].TopicID]
		if !found {
			at = len(resp.Topics)
			topicAt[each[i].TopicID] = at
			t := kmsg.NewLeaderAndISRResponseTopic()
			t.TopicID = each[i].TopicID
			resp.Topics = append(resp.Topics, t)
		}
		resp.Topics[at].Partitions = append(resp.Topics[at].Partitions, p)
	}
	return resp
}
