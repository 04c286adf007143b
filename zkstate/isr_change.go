package zkstate

import "context"

// Before inter.broker.protocol.version 2.7 a leader writes a changed ISR into the partition's state itself, and tells
// the controller by a numbered notification, which the controller deletes when it has read it.

// Paths of the notifications.
const (
	ISRChangeNotificationPath = "/isr_change_notification"
	isrChangePrefix           = "isr_change_"
)

// EncodeISRChange writes the data of a notification.
func EncodeISRChange(partitions []TopicPartition) []byte { return encodePartitions(partitions) }

// DecodeISRChange reads the data of a notification.
func DecodeISRChange(data []byte) ([]TopicPartition, error) {
	return decodePartitions("ISR change notification", data)
}

// NotifyISRChange tells the controller whose ISR was changed.
func (c *Client) NotifyISRChange(ctx context.Context, partitions []TopicPartition) error {
	return c.notify(ctx, ISRChangeNotificationPath+"/"+isrChangePrefix, EncodeISRChange(partitions))
}

func encodePartitions(partitions []TopicPartition) []byte {
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.int(1)
	w.key("partitions")
	w.open('[')
	for _, tp := range partitions {
		w.open('{')
		w.key("topic")
		w.str(tp.Topic)
		w.key("partition")
		w.int(int64(tp.Partition))
		w.close('}')
	}
	w.close(']')
	w.close('}')
	return w.buf
}

func decodePartitions(what string, data []byte) ([]TopicPartition, error) {
	o := parseObject(what, data)
	var out []TopicPartition
	for _, raw := range o.array("partitions") {
		p := parseObject(what, raw)
		out = append(out, TopicPartition{Topic: p.str("topic"), Partition: p.int32("partition")})
		if p.err != nil {
			o.fail("partitions", p.err)
			return nil, o.wrapped()
		}
	}
	return out, o.wrapped()
}
