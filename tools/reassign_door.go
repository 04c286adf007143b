package tools

import (
	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// reassignmentDoor is one of the two ways to a cluster. Neither decides anything.
type reassignmentDoor interface {
	// brokers lists the brokers that are alive, by id.
	brokers() ([]plan.Broker, error)
	// replicas tells where the partitions of some topics are, and the errors of topics about which nothing can be told.
	replicas(topics []string) (plan.Assignment, map[string]error, error)
	// active lists what is being reassigned.
	active() (cluster.Moves, error)
	// start starts reassignments; the errors are those of single partitions.
	start(targets plan.Assignment) (map[plan.Partition]error, error)
	// setThrottledReplicas and setRates set throttles of topics and of brokers; a value "" takes them back. Brokers that cannot be reached are left out and returned.
	setThrottledReplicas(throttles map[string]cluster.ThrottledReplicas) error
	setRates(brokers []int32, rates map[string]string) (unreachable []int32, err error)
	close()
}

// directories are what only brokers can tell and do: where on a disk replicas are, how large, and moving them there. Through ZooKeeper there is none of it.
type directories interface {
	// stored lists the replicas of some partitions on all brokers that are alive.
	stored(partitions []plan.Partition) ([]cluster.StoredReplica, error)
	// moveTo asks for replicas to be moved to directories and tells for which the move was taken up; the others are not there yet.
	moveTo(dirs map[cluster.Replica]string) ([]cluster.Replica, error)
	// cancelMoves ends started reassignments where they are.
	cancelMoves(partitions []plan.Partition) (map[plan.Partition]error, error)
}
