package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
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
			if err := d.activeProducers(c, &p, t.Topic); err != nil {
				p.ErrorCode, p.ErrorMessage = described(err)
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	c.answer(resp)
}

// described is the code of an error, and its message if it has one for clients.
func described(err error) (int16, *string) {
	number, _ := code(err)
	if told := (*admin.Error)(nil); errors.As(err, &told) {
		return number, &told.Message
	}
	return number, nil
}

func (d *Dispatcher) activeProducers(c *call, to *kmsg.DescribeProducersResponseTopicPartition, topic string) error {
	if err := admin.ValidateTopicName(topic); err != nil {
		return err
	}
	if !d.mayTopic(c, kmsg.ACLOperationRead, topic) {
		return &admin.Error{Code: kerr.TopicAuthorizationFailed, Message: "Topic authorization failed."}
	}
	snapshot := d.deps.Metadata.Load()
	if snapshot.Topic(topic) == nil {
		return &admin.Error{Code: kerr.UnknownTopicOrPartition, Message: "This server does not host this topic-partition."}
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
