package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/zkstate"
)

// CreatePartitions enlarges topics. A topic that is marked for deletion or being reassigned is left alone: the
// controller works on its assignment.
func (a *Admin) CreatePartitions(ctx context.Context, specs []PartitionsSpec, validateOnly bool) []PartitionsResult {
	brokers, err := a.Brokers(ctx)
	results := make([]PartitionsResult, len(specs))
	for i, spec := range specs {
		results[i].Name = spec.Name
		if err == nil {
			results[i].Err = a.createPartitions(ctx, spec, brokers, validateOnly)
		} else {
			results[i].Err = err
		}
		if results[i].Err = unavailable(results[i].Err); results[i].Err == nil {
			results[i].Count = spec.Count
		}
	}
	return results
}

// createPartitions repeats from reading on when somebody else wrote the assignment meanwhile.
func (a *Admin) createPartitions(ctx context.Context, spec PartitionsSpec, brokers []BrokerRack, validateOnly bool) error {
	path := zkstate.TopicPath(spec.Name)
	unknown := failed(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", spec.Name)
	if ValidateTopicName(spec.Name) != nil {
		return unknown
	}
	for {
		marked, err := a.exists(ctx, zkstate.DeleteTopicPath(spec.Name))
		if err != nil {
			return err
		}
		if marked {
			return failed(kerr.InvalidTopicException, "The topic is queued for deletion.")
		}
		r, err := a.zk.One(ctx, zkstate.Get(path))
		if errors.Is(err, zkstate.ErrNoNode) {
			return unknown
		}
		if err != nil {
			return err
		}
		node, err := zkstate.DecodeTopicAssignment(r.Data)
		if err != nil {
			return fmt.Errorf("topic %s: %w", spec.Name, err)
		}
		added, err := newPartitions(spec, node.Partitions, brokers)
		if err != nil || validateOnly {
			return err
		}
		if err := spec.Permit.ask(len(added)); err != nil {
			return err
		}
		spec.Permit = nil // it is asked once, however often the writing is tried
		for p, replicas := range added {
			node.Partitions[p] = zkstate.ReplicaAssignment{Replicas: replicas}
		}
		node.Version = 3
		data := node.Encode()
		_, err = a.zk.One(ctx, zkstate.Set(path, data, r.Stat.Version))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zkstate.ErrBadVersion):
		case errors.Is(err, zkstate.ErrConnectionLoss) && ctx.Err() == nil:
			if a.isWritten(ctx, spec.Name, data) {
				return nil
			}
		case errors.Is(err, zkstate.ErrTooLarge):
			return failed(kerr.InvalidPartitions, "The assignment of %d partitions does not fit in one ZooKeeper node.", spec.Count)
		default:
			return err
		}
	}
}

// newPartitions is the assignment of the partitions to add.
func newPartitions(spec PartitionsSpec, existing map[int32]zkstate.ReplicaAssignment, brokers []BrokerRack) (map[int32][]int32, error) {
	for _, p := range existing {
		if p.Reassigning() {
			return nil, failed(kerr.ReassignmentInProgress, "A partition reassignment is in progress for the topic '%s'.", spec.Name)
		}
	}
	have := int32(len(existing))
	switch {
	case have == 0:
		return nil, failed(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", spec.Name)
	case spec.Count < have:
		return nil, failed(kerr.InvalidPartitions, "Topic currently has %d partitions, which is higher than the requested %d.", have, spec.Count)
	case spec.Count == have:
		return nil, failed(kerr.InvalidPartitions, "Topic already has %d partitions.", have)
	}
	zero, ok := existing[0]
	if !ok || len(zero.Replicas) == 0 {
		return nil, failed(kerr.UnknownServerError, "Unexpected existing replica assignment for topic '%s', partition id 0 is missing.", spec.Name)
	}
	if spec.Assignment != nil {
		return givenPartitions(spec, have, len(zero.Replicas), brokers)
	}
	index := slices.IndexFunc(brokers, func(b BrokerRack) bool { return b.ID >= zero.Replicas[0] })
	start := AssignmentStart{Index: max(index, 0), Shift: max(index, 0)}
	return AssignReplicas(brokers, int(spec.Count-have), len(zero.Replicas), int(have), start)
}

// givenPartitions judges the assignment that the request brings.
func givenPartitions(spec PartitionsSpec, have int32, replicationFactor int, brokers []BrokerRack) (map[int32][]int32, error) {
	var unknown []int32
	for _, replicas := range spec.Assignment {
		for _, id := range replicas {
			if !slices.ContainsFunc(brokers, func(b BrokerRack) bool { return b.ID == id }) && !slices.Contains(unknown, id) {
				unknown = append(unknown, id)
			}
		}
	}
	if len(unknown) > 0 {
		return nil, failed(kerr.InvalidReplicaAssignment, "Unknown broker(s) in replica assignment: %s.", joinIDs(unknown, ", "))
	}
	if int32(len(spec.Assignment)) != spec.Count-have {
		return nil, failed(kerr.InvalidReplicaAssignment, "Increasing the number of partitions by %d but %d assignments provided.", spec.Count-have, len(spec.Assignment))
	}
	out := make(map[int32][]int32, len(spec.Assignment))
	var badPartitions, badFactors []string
	for i, replicas := range spec.Assignment {
		p := have + int32(i)
		switch {
		case len(replicas) == 0:
			return nil, failed(kerr.InvalidReplicaAssignment, "Cannot have replication factor of 0 for partition id %d.", p)
		case duplicate(replicas):
			return nil, failed(kerr.InvalidReplicaAssignment, "Duplicate brokers not allowed in replica assignment: %s for partition id %d.", joinIDs(replicas, ", "), p)
		case len(replicas) != replicationFactor:
			badPartitions = append(badPartitions, fmt.Sprint(p))
			badFactors = append(badFactors, fmt.Sprint(len(replicas)))
		}
		out[p] = replicas
	}
	if len(badPartitions) > 0 {
		return nil, failed(kerr.InvalidReplicaAssignment, "Inconsistent replication factor between partitions, partition 0 has %d while partitions [%s] have replication factors [%s], respectively.",
			replicationFactor, strings.Join(badPartitions, ", "), strings.Join(badFactors, ", "))
	}
	return out, nil
}
