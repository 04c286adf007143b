package zkstate

import (
	"fmt"
	"strconv"
)

// Offsets of consumers from before Kafka 0.9, which tools still read.

// ConsumerOffsetPath is the node of one committed offset.
func ConsumerOffsetPath(group, topic string, partition int32) string {
	return fmt.Sprintf("%s/%s/offsets/%s/%d", ConsumersPath, group, topic, partition)
}

// EncodeConsumerOffset writes the data of ConsumerOffsetPath.
func EncodeConsumerOffset(offset int64) []byte { return strconv.AppendInt(nil, offset, 10) }

// DecodeConsumerOffset reads the data of ConsumerOffsetPath.
func DecodeConsumerOffset(data []byte) (int64, error) {
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return 0, &MalformedError{What: "consumer offset", Err: fmt.Errorf("%.40q is no number", data)}
	}
	return n, nil
}
