package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// controlledShutdown is ControlledShutdown (api 7): a broker that is about to stop hands over what it leads and leaves
// the ISRs. The answer names the partitions that it still leads, since nobody else could take them; the broker asks again.
func (c *Core) controlledShutdown(id uint64, req *kmsg.ControlledShutdownRequest) error {
	b := c.cluster.brokers[req.BrokerID]
	switch {
	case b == nil:
		c.answer(id, refusal(req, kerr.BrokerNotAvailable))
		return nil
	case req.BrokerEpoch != unknownEpoch && req.BrokerEpoch < b.epoch:
		c.logf(LogInfo, "controlled shutdown of broker %d with old broker epoch %d is refused", req.BrokerID, req.BrokerEpoch)
		c.answer(id, refusal(req, kerr.StaleBrokerEpoch))
		return nil
	}
	c.logf(LogInfo, "broker %d is shutting down", req.BrokerID)
	c.cluster.shuttingDown[req.BrokerID] = true
	var led, followed []TopicPartition
	c.cluster.each(func(tp TopicPartition, t *topic, p *partition) {
		if t.dying || p.leadership == nil || len(p.assignment.replicas) < 2 ||
			!slices.Contains(p.assignment.replicas, req.BrokerID) {
			return
		}
		if p.leadership.leader == req.BrokerID {
			led = append(led, tp)
		} else {
			followed = append(followed, tp)
		}
	})
	if _, err := c.bringOnline(led, forControlledShutdown); err != nil {
		return err
	}
	var leaving []replica
	for _, tp := range followed {
		leaving = append(leaving, replica{tp, req.BrokerID})
	}
	if err := c.moveReplicas(leaving, offlineReplica); err != nil {
		return err
	}
	resp := req.ResponseKind().(*kmsg.ControlledShutdownResponse)
	c.cluster.each(func(tp TopicPartition, t *topic, p *partition) {
		if !t.dying && p.leadership != nil && p.leadership.leader == req.BrokerID && len(p.assignment.replicas) > 1 {
			resp.PartitionsRemaining = append(resp.PartitionsRemaining, kmsg.ControlledShutdownResponsePartitionsRemaining{
				Topic: tp.Topic, Partition: tp.Partition})
		}
	})
	c.answer(id, resp)
	return nil
}
