package controller

import (
	"fmt"
	"slices"
	"strings"
)

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String gives the partition as Kafka's logs and directories name it.
func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

func comparePartitions(a, b TopicPartition) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	return int(a.Partition) - int(b.Partition)
}

// replica is one copy of a partition on one broker.
type replica struct {
	TopicPartition
	broker int32
}

// Values with a meaning of their own in leader fields and epochs on the wire and in ZooKeeper.
const (
	noLeader          int32 = -1
	noEpoch           int32 = -1
	leaderInDeletion  int32 = -2
	epochInDeletion   int32 = -2
	unknownEpoch      int64 = -1
	recovered         int8  = 0
	recovering        int8  = 1
	initialLeaderTerm int32 = 0
)

// assignment is the replica set of a partition. While it is being reassigned, replicas holds the old and the new
// set together: adding and removing say which of them are on their way in and out (KIP-455).
type assignment struct {
	replicas, adding, removing []int32
}

func (a assignment) reassigning() bool { return len(a.adding) > 0 || len(a.removing) > 0 }

// target is the replica set once the reassignment is complete.
func (a assignment) target() []int32 { return without(a.replicas, a.removing) }

// origin is the replica set before the reassignment began, and what a cancelled one returns to.
func (a assignment) origin() []int32 { return without(a.replicas, a.adding) }

// reassignTo gives the assignment that moves the partition to the target set. A running reassignment is superseded:
// replicas that were being added and are not wanted any more are simply absent from the result.
func (a assignment) reassignTo(target []int32) assignment {
	origin := a.origin()
	full := slices.Clone(target)
	for _, id := range origin {
		if !slices.Contains(full, id) {
			full = append(full, id)
		}
	}
	return assignment{replicas: full, adding: without(full, origin), removing: without(full, target)}
}

func (a assignment) removeReplica(id int32) assignment {
	gone := []int32{id}
	return assignment{replicas: without(a.replicas, gone), adding: without(a.adding, gone), removing: without(a.removing, gone)}
}

func (a assignment) equal(b assignment) bool {
	return slices.Equal(a.replicas, b.replicas) && slices.Equal(a.adding, b.adding) && slices.Equal(a.removing, b.removing)
}

func (a assignment) String() string {
	return fmt.Sprintf("replicas=%v adding=%v removing=%v", a.replicas, a.adding, a.removing)
}

// leadership is what /brokers/topics/T/partitions/P/state says: who leads, in which epoch, with which ISR.
type leadership struct {
	leader          int32
	leaderEpoch     int32
	isr             []int32
	recovery        int8
	controllerEpoch int32
	// version is the data version of the znode, called partition epoch on the wire.
	version int32
}

func (l leadership) withLeader(leader int32, isr []int32) leadership {
	l.leader, l.isr, l.leaderEpoch = leader, slices.Clone(isr), l.leaderEpoch+1
	return l
}

// sameState compares what a leader may ask to change, and not the znode's version.
func (l leadership) sameState(o leadership) bool {
	return l.leader == o.leader && l.leaderEpoch == o.leaderEpoch && l.recovery == o.recovery && slices.Equal(l.isr, o.isr)
}

func (l leadership) String() string {
	return fmt.Sprintf("leader=%d epoch=%d isr=%v version=%d", l.leader, l.leaderEpoch, l.isr, l.version)
}

// without gives the members of ids that are not in gone, in their order, in a slice of its own.
func without(ids, gone []int32) []int32 {
	kept := make([]int32, 0, len(ids))
	for _, id := range ids {
		if !slices.Contains(gone, id) {
			kept = append(kept, id)
		}
	}
	return kept
}

func subset(small, big []int32) bool {
	for _, id := range small {
		if !slices.Contains(big, id) {
			return false
		}
	}
	return true
}
