package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeProducers, key 61, version 0 (KIP-664): what a replica of a partition,
// mostly its leader, knows of its idempotent and transactional producers.
func (d *Dispatcher) describeProducers(c *call, req *kmsg.DescribeProducersRequest) {
	resp := kmsg.NewPtrDescribeProducersResponse()
	for i := range req.Topics {
		t := kmsg.NewDescribeProducersResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, id := range req.Topics[i].Partitions {
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition = id
			if err := d.activeProducers(&p, t.Topic); err != nil {
				p.ErrorCode, p.ErrorMessage = code(err)
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	c.answer(resp)
}

func (d *Dispatcher) activeProducers(to *kmsg.DescribeProducersResponseTopicPartition, topic string) error {
	if !validTopicName(topic) {
		return kerr.InvalidTopicException
	}
	snapshot := d.deps.Metadata.Load()
	if snapshot.Topic(topic) == nil {
		return kerr.UnknownTopicOrPartition
	}
	replica := d.deps.Replicas.Partition(topic, to.Partition)
	if replica == nil {
		return placed(snapshot, topic, to.Partition, kerr.UnknownTopicOrPartition)
	}
	log := replica.Log()
	if log == nil {
		return kerr.NotLeaderForPartition
	}
	for _, s := range log.ProducerStates() {
		p := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		p.ProducerID, p.ProducerEpoch, p.LastSequence, p.LastTimestamp = s.ProducerID, int32(s.Epoch), s.LastSequence, s.LastTimestamp
		p.CoordinatorEpoch, p.CurrentTxnStartOffset = s.CoordinatorEpoch, s.TxnStartOffset
		to.ActiveProducers = append(to.ActiveProducers, p)
	}
	return nil
}
