package tools

import (
	"barnabas/admin/plan"
)

// reassignmentDoor is one of the two ways to a cluster. Neither decides anything.
type reassignmentDoor interface {
	// brokers lists the brokers that are alive, by id.
	brokers() ([]plan.Broker, error)
	// replicas tells where the partitions of some topics are, and the errors of topics about which nothing can be told.
	replicas(topics []string) (plan.Assignment, map[string]error, error)
	// active lists what is being reassigned.
	active() (map[plan.Partition]moving, error)
	// start starts reassignments; the errors are those of single partitions.
	start(targets plan.Assignment) (map[plan.Partition]error, error)
	// setThrottledReplicas and setRates set throttles of topics and of brokers; a value "" takes them back. Brokers that cannot be reached are left out and returned.
	setThrottledReplicas(throttles map[string]throttledReplicas) error
	setRates(brokers []int32, rates map[string]string) (unreachable []int32, err error)
	close()
}

// moving is a partition that is being reassigned.
type moving struct{ replicas, adding, removing []int32 }

// directories are what only brokers can tell and do: where on a disk replicas are, how large, and moving them there. Through ZooKeeper there is none of it.
type directories interface {
	// stored lists the replicas of some partitions on all brokers that are alive.
	stored(partitions []plan.Partition) ([]storedReplica, error)
	// moveTo asks for replicas to be moved to directories and tells for which the move was taken up; the others are not there yet.
	moveTo(dirs map[replicaOn]string) ([]replicaOn, error)
	// cancelMoves ends started reassignments where they are.
	cancelMoves(partitions []plan.Partition) (map[plan.Partition]error, error)
}

// storedReplica is one directory's copy of a replica.
type storedReplica struct {
	replicaOn
	dir    string
	size   int64
	lag    int64
	future bool // is to replace the replica in another directory of the same broker
}
