package zkstate

import "errors"

// What administrators ask of the controller by creating a node.

// Paths of requests to the controller.
const (
	AdminPath                    = "/admin"
	DeleteTopicsPath             = "/admin/delete_topics"
	ReassignPartitionsPath       = "/admin/reassign_partitions"
	PreferredReplicaElectionPath = "/admin/preferred_replica_election"
)

// DeleteTopicPath is the node, without data, that asks for a topic to be deleted.
func DeleteTopicPath(topic string) string { return DeleteTopicsPath + "/" + topic }

// Reassignment is one partition of a reassignment request.
type Reassignment struct {
	TopicPartition
	Replicas []int32
}

// EncodeReassignments writes the data of ReassignPartitionsPath.
func EncodeReassignments(rs []Reassignment) []byte {
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.int(1)
	w.key("partitions")
	w.open('[')
	for _, r := range rs {
		w.open('{')
		w.key("topic")
		w.str(r.Topic)
		w.key("partition")
		w.int(int64(r.Partition))
		w.key("replicas")
		w.ints(r.Replicas)
		w.close('}')
	}
	w.close(']')
	w.close('}')
	return w.buf
}

// DecodeReassignments reads the data of ReassignPartitionsPath, in the order of the node. It judges the form only.
func DecodeReassignments(data []byte) ([]Reassignment, error) {
	o := parseObject("reassignment", data)
	var out []Reassignment
	for _, raw := range o.array("partitions") {
		p := parseObject("reassignment", raw)
		r := Reassignment{TopicPartition{p.str("topic"), p.int32("partition")}, p.int32s("replicas")}
		if p.err == nil && r.Partition < 0 {
			p.fail("partition", errors.New("negative"))
		}
		if p.err != nil {
			o.fail("partitions", p.err)
			return nil, o.wrapped()
		}
		out = append(out, r)
	}
	return out, o.wrapped()
}

// EncodePreferredReplicaElection writes the data of PreferredReplicaElectionPath.
func EncodePreferredReplicaElection(partitions []TopicPartition) []byte {
	return encodePartitions(partitions)
}

// DecodePreferredReplicaElection reads the data of PreferredReplicaElectionPath.
func DecodePreferredReplicaElection(data []byte) ([]TopicPartition, error) {
	return decodePartitions("preferred replica election", data)
}
