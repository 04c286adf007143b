package zkstate

// PartitionState is the data of PartitionStatePath: who leads, and which replicas are in sync. The node's ZooKeeper
// version is the partition epoch of the protocol.
type PartitionState struct {
	ControllerEpoch int32 // of the controller that last chose the leader
	Leader          int32 // -1 when there is none
	LeaderEpoch     int32
	ISR             []int32
	Recovering      bool // KIP-704: the leader was elected uncleanly and has not recovered
}

// Encode writes the node. Kafka writes version 1 since 0.8; the recovery state stands there only while it is set.
func (s PartitionState) Encode() []byte {
	var w jsonWriter
	w.open('{')
	w.key("controller_epoch")
	w.int(int64(s.ControllerEpoch))
	w.key("leader")
	w.int(int64(s.Leader))
	w.key("version")
	w.int(1)
	if s.Recovering {
		w.key("leader_recovery_state")
		w.int(1)
	}
	w.key("leader_epoch")
	w.int(int64(s.LeaderEpoch))
	w.key("isr")
	w.ints(s.ISR)
	w.close('}')
	return w.buf
}

// DecodePartitionState reads the node.
func DecodePartitionState(data []byte) (PartitionState, error) {
	o := parseObject("partition state", data)
	s := PartitionState{ControllerEpoch: o.int32("controller_epoch"), Leader: o.int32("leader"),
		LeaderEpoch: o.int32("leader_epoch"), ISR: o.int32s("isr"), Recovering: o.int32Or("leader_recovery_state", 0) == 1}
	return s, o.wrapped()
}
