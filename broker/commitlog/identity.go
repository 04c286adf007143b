package commitlog

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strconv"
)

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the name Kafka gives the partition and its directory: topic-partition.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// compare orders by topic, then by partition.
func (tp TopicPartition) compare(other TopicPartition) int {
	return cmp.Or(cmp.Compare(tp.Topic, other.Topic), cmp.Compare(tp.Partition, other.Partition))
}

// hash spreads partitions evenly (FNV-1a).
func (tp TopicPartition) hash() uint32 {
	h := uint32(2166136261)
	for i := range len(tp.Topic) {
		h = (h ^ uint32(tp.Topic[i])) * 16777619
	}
	return h + uint32(tp.Partition)
}

// TopicID is the unique id of a topic (KIP-516). The zero value means that the topic has none.
type TopicID [16]byte

// IsZero tells that no id is known.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// String is the form that Kafka writes: URL-safe base64 without padding.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// parseTopicID reads the form that String writes.
func parseTopicID(s string) (TopicID, error) {
	var id TopicID
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("topic id %q is not 16 bytes in base64", s)
	}
	copy(id[:], b)
	return id, nil
}
