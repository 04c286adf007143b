package zkstate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

// The topics: /brokers/topics/NAME holds the assignment, /brokers/topics/NAME/partitions/N/state who leads.

// TopicsPath is the parent of all topics.
const TopicsPath = "/brokers/topics"

// TopicPath is the node of a topic's assignment.
func TopicPath(topic string) string { return TopicsPath + "/" + topic }

// TopicPartitionsPath is the parent of a topic's partitions.
func TopicPartitionsPath(topic string) string { return TopicPath(topic) + "/partitions" }

// TopicPartitionPath is the parent of a partition's state.
func TopicPartitionPath(topic string, partition int32) string {
	return TopicPartitionsPath(topic) + "/" + strconv.Itoa(int(partition))
}

// PartitionStatePath is the node of a partition's state.
func PartitionStatePath(topic string, partition int32) string {
	return TopicPartitionPath(topic, partition) + "/state"
}

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// TopicID is a topic's id (KIP-516); the zero id is "none". Its text is Kafka's: base64 for URLs without padding.
type TopicID [16]byte

func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTopicID reads the text form.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	if len(s) > 24 {
		return id, fmt.Errorf("%d characters are too many for a topic id", len(s))
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return id, fmt.Errorf("topic id %q: %w", s, err)
	}
	if len(b) != len(id) {
		return id, fmt.Errorf("topic id %q has %d bytes instead of 16", s, len(b))
	}
	copy(id[:], b)
	return id, nil
}

// ReplicaAssignment is where a partition's replicas are. Replicas has all of them, those that a reassignment adds and
// removes (KIP-455) included.
type ReplicaAssignment struct {
	Replicas, Adding, Removing []int32
}

// Reassigning tells whether a reassignment is under way.
func (a ReplicaAssignment) Reassigning() bool { return len(a.Adding) > 0 || len(a.Removing) > 0 }

// TopicAssignment is the data of TopicPath.
type TopicAssignment struct {
	Version    int32 // 1 before Kafka 2.4, 2 with adding and removing replicas, 3 since 2.8 (with or without an id)
	ID         TopicID
	Partitions map[int32]ReplicaAssignment
}

// Encode writes the node as the Kafka of that version does.
func (t TopicAssignment) Encode() []byte {
	var w jsonWriter
	partitions := func(key string, of func(ReplicaAssignment) []int32, always bool) {
		chosen := make(map[string][]int32, len(t.Partitions))
		for p, a := range t.Partitions {
			if replicas := of(a); always || len(replicas) > 0 {
				chosen[strconv.Itoa(int(p))] = replicas
			}
		}
		w.key(key)
		w.open('{')
		for _, p := range scalaMutableOrder(keysOf(chosen)) {
			w.key(p)
			w.ints(chosen[p])
		}
		w.close('}')
	}
	all := func(a ReplicaAssignment) []int32 { return a.Replicas }
	adding := func(a ReplicaAssignment) []int32 { return a.Adding }
	removing := func(a ReplicaAssignment) []int32 { return a.Removing }

	w.open('{')
	switch {
	case t.Version <= 1:
		w.key("version")
		w.int(1)
		partitions("partitions", all, true)
	case t.Version == 2:
		w.key("version")
		w.int(2)
		partitions("partitions", all, true)
		partitions("adding_replicas", adding, false)
		partitions("removing_replicas", removing, false)
	default:
		partitions("partitions", all, true)
		if t.ID != (TopicID{}) {
			w.key("topic_id")
			w.str(t.ID.String())
		}
		partitions("adding_replicas", adding, false)
		partitions("removing_replicas", removing, false)
		w.key("version")
		w.int(int64(t.Version))
	}
	w.close('}')
	return w.buf
}

// DecodeTopicAssignment reads any version of the node.
func DecodeTopicAssignment(data []byte) (TopicAssignment, error) {
	o := parseObject("topic", data)
	t := TopicAssignment{Version: o.int32Or("version", 1), Partitions: map[int32]ReplicaAssignment{}}
	if o.has("topic_id") {
		id, err := ParseTopicID(o.str("topic_id"))
		if err != nil {
			o.fail("topic_id", err)
		}
		t.ID = id
	}
	adding, removing := o.child("adding_replicas"), o.child("removing_replicas")
	partitions := o.child("partitions")
	for name, raw := range partitions.fields {
		p, err := strconv.ParseInt(name, 10, 32)
		if err != nil || p < 0 || strconv.FormatInt(p, 10) != name {
			o.fail("partitions", fmt.Errorf("%q is no partition", name))
			break
		}
		var a ReplicaAssignment
		if err := json.Unmarshal(raw, &a.Replicas); err != nil {
			o.fail("partitions", err)
			break
		}
		if adding.has(name) {
			a.Adding = adding.int32s(name)
		}
		if removing.has(name) {
			a.Removing = removing.int32s(name)
		}
		t.Partitions[int32(p)] = a
	}
	for _, c := range []*jsonObject{adding, removing} {
		if c.err != nil {
			o.fail("replicas", c.err)
		}
	}
	return t, o.wrapped()
}
