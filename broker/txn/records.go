package txn

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions of the records of __transaction_state. Values of version 1 have tagged
// fields; they are read but not written (KIP-915).
const (
	keyVersion      = 0
	valueVersion    = 0
	maxValueVersion = 1
)

func recordKey(id string) []byte {
	k := kmsg.TxnMetadataKey{Version: keyVersion, TransactionalID: id}
	return k.AppendTo(make([]byte, 0, 4+len(id)))
}

// recordValue writes a status. Empty ones have null for partitions, others a list,
// as Kafka writes them.
func recordValue(s *status) []byte {
	v := kmsg.TxnMetadataValue{
		Version: valueVersion, ProducerID: s.producer.ID, ProducerEpoch: s.producer.Epoch, TimeoutMillis: s.timeoutMs,
		State: kmsg.TransactionState(s.state), LastUpdateTimestamp: s.updateMs, StartTimestamp: s.startMs,
	}
	if s.state != Empty {
		v.Topics = []kmsg.TxnMetadataValueTopic{}
	}
	for i, tp := range s.partitions {
		if i == 0 || s.partitions[i-1].Topic != tp.Topic {
			v.Topics = append(v.Topics, kmsg.TxnMetadataValueTopic{Topic: tp.Topic})
		}
		topic := &v.Topics[len(v.Topics)-1]
		topic.Partitions = append(topic.Partitions, tp.Partition)
	}
	return v.AppendTo(nil)
}

func readKey(b []byte) (id string, err error) {
	if len(b) < 2 {
		return "", fmt.Errorf("key of %d bytes", len(b))
	}
	if v := int16(binary.BigEndian.Uint16(b)); v != keyVersion {
		return "", fmt.Errorf("key of unknown version %d", v)
	}
	var k kmsg.TxnMetadataKey
	if err := k.ReadFrom(b); err != nil {
		return "", fmt.Errorf("key of a transactional id: %w", err)
	}
	return k.TransactionalID, nil
}

func readValue(b []byte) (status, error) {
	if len(b) < 2 {
		return status{}, fmt.Errorf("value of %d bytes", len(b))
	}
	if v := int16(binary.BigEndian.Uint16(b)); v < 0 || v > maxValueVersion {
		return status{}, fmt.Errorf("value of unknown version %d", v)
	}
	var v kmsg.TxnMetadataValue
	if err := v.ReadFrom(b); err != nil {
		return status{}, fmt.Errorf("value of a transactional id: %w", err)
	}
	s := status{
		producer: Producer{v.ProducerID, v.ProducerEpoch}, last: Producer{NoProducerID, NoProducerEpoch}, timeoutMs: v.TimeoutMillis,
		state: State(v.State), startMs: v.StartTimestamp, updateMs: v.LastUpdateTimestamp,
	}
	if s.state < Empty || s.state > CompleteAbort {
		return status{}, fmt.Errorf("state %d, which is never written", v.State)
	}
	if s.producer.ID < 0 || s.producer.Epoch < 0 {
		return status{}, fmt.Errorf("producer %d of epoch %d", s.producer.ID, s.producer.Epoch)
	}
	if s.state == Empty {
		return s, nil
	}
	var all []TopicPartition
	for i := range v.Topics {
		for _, p := range v.Topics[i].Partitions {
			all = append(all, TopicPartition{v.Topics[i].Topic, p})
		}
	}
	s.partitions = s.with(all)
	return s, nil
}
