package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
)

// Partition names a partition.
type Partition struct {
	Topic string
	ID    int32
}

func (p Partition) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.ID) }

// Compare orders partitions by topic and number.
func (p Partition) Compare(other Partition) int {
	return cmp.Or(cmp.Compare(p.Topic, other.Topic), cmp.Compare(p.ID, other.ID))
}

// Placed is a partition with its replicas in their order, the preferred leader first, and the bytes that a new replica has to copy; 0 where that is not known.
type Placed struct {
	Partition
	Replicas []int32
	Bytes    int64
}

// Broker is one that may hold replicas, with its rack; "" when racks do not matter.
type Broker struct {
	ID   int32
	Rack string
}

// Assignment is what a plan proposes: the replicas of each partition.
type Assignment map[Partition][]int32

// ErrRacks tells that some brokers have a rack and others none, so that neither can be respected.
var ErrRacks = errors.New("not all brokers have rack information")

// jointLimit is up to how many pairs of partition and broker are planned together: beyond it the search takes too long. A larger world is planned topic by topic, each topic knowing what the
// ones before it put where, and a topic that is too large in parts; what is valid and even stays so, and a few more replicas may move than have to.
const jointLimit = 6000

// LeastMovement plans the partitions on the brokers. The number of replicas of each partition stays as it is.
func LeastMovement(partitions []Placed, brokers []Broker) (Assignment, error) {
	return leastMovement(partitions, brokers, jointLimit)
}

func leastMovement(partitions []Placed, brokers []Broker, limit int) (Assignment, error) {
	partitions, brokers = slices.Clone(partitions), slices.Clone(brokers)
	slices.SortFunc(partitions, func(a, b Placed) int { return a.Compare(b.Partition) })
	slices.SortFunc(brokers, func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) })
	if err := check(partitions, brokers); err != nil {
		return nil, err
	}
	out := Assignment{}
	replicas, leaders := newCounts(), newCounts()
	for _, piece := range pieces(partitions, len(brokers), limit) {
		sets := chooseReplicas(allSeats(piece.partitions), brokers, racksOf(brokers), replicas.expecting(piece.later, brokers, allOf))
		chosen := chooseLeaders(piece.partitions, sets, brokers, leaders.expecting(piece.later, brokers, firstOf))
		for i, p := range piece.partitions {
			out[p.Partition] = inOrder(p.Replicas, sets[i], chosen[i])
			for _, id := range sets[i] {
				replicas.add(p.Topic, id)
			}
			leaders.add(p.Topic, chosen[i])
		}
	}
	return out, nil
}

// piece is what is planned together, and what of the same topic comes later.
type piece struct{ partitions, later []Placed }

// pieces are everything at once, or single topics, or parts of them.
func pieces(partitions []Placed, brokers, limit int) []piece {
	if len(partitions)*brokers <= limit {
		return []piece{{partitions, nil}}
	}
	var out []piece
	for len(partitions) > 0 {
		end := 1
		for end < len(partitions) && partitions[end].Topic == partitions[0].Topic {
			end++
		}
		for topic := partitions[:end]; len(topic) > 0; {
			n := min(len(topic), max(1, limit/brokers))
			out = append(out, piece{topic[:n], topic[n:]})
			topic = topic[n:]
		}
		partitions = partitions[end:]
	}
	return out
}

func check(partitions []Placed, brokers []Broker) error {
	racked := 0
	for i, b := range brokers {
		if i > 0 && brokers[i-1].ID == b.ID {
			return fmt.Errorf("broker %d is named twice", b.ID)
		}
		if b.Rack != "" {
			racked++
		}
	}
	if racked != 0 && racked != len(brokers) {
		return ErrRacks
	}
	for i, p := range partitions {
		switch {
		case i > 0 && partitions[i-1].Partition == p.Partition:
			return fmt.Errorf("partition %v is named twice", p.Partition)
		case len(p.Replicas) == 0:
			return fmt.Errorf("partition %v has no replicas", p.Partition)
		case len(p.Replicas) > len(brokers):
			return &TooFewBrokersError{Partition: p.Partition, Replicas: len(p.Replicas), Brokers: len(brokers)}
		}
	}
	return nil
}

// TooFewBrokersError tells that a partition has more replicas than there are brokers to hold them.
type TooFewBrokersError struct {
	Partition         Partition
	Replicas, Brokers int
}

func (e *TooFewBrokersError) Error() string {
	return fmt.Sprintf("Replication factor: %d larger than available brokers: %d.", e.Replicas, e.Brokers)
}

// inOrder lists the replicas of a partition: the leader, then those that stay in the order in which they were, then the new ones by id.
func inOrder(before, set []int32, leader int32) []int32 {
	list := []int32{leader}
	for _, id := range before {
		if id != leader && slices.Contains(set, id) {
			list = append(list, id)
		}
	}
	var added []int32
	for _, id := range set {
		if !slices.Contains(list, id) {
			added = append(added, id)
		}
	}
	slices.Sort(added)
	return append(list, added...)
}

// Summary says what a plan costs.
type Summary struct {
	Replicas, Moved         int // replicas in all, and those that have to be copied to another broker
	Bytes, MovedBytes       int64
	Leaders, LeadersChanged int // partitions, and those whose preferred leader changes
}

// Summarize compares a plan with what is there.
func Summarize(partitions []Placed, to Assignment) Summary {
	var s Summary
	for _, p := range partitions {
		target := to[p.Partition]
		s.Leaders++
		s.Replicas += len(target)
		s.Bytes += p.Bytes * int64(len(target))
		for _, id := range target {
			if !slices.Contains(p.Replicas, id) {
				s.Moved++
				s.MovedBytes += p.Bytes
			}
		}
		if len(p.Replicas) == 0 || len(target) == 0 || target[0] != p.Replicas[0] {
			s.LeadersChanged++
		}
	}
	return s
}

// Partitions lists an assignment's partitions in order.
func (a Assignment) Partitions() []Partition {
	list := slices.Collect(maps.Keys(a))
	sort.Slice(list, func(i, j int) bool { return list[i].Compare(list[j]) < 0 })
	return list
}

// Without is a list of brokers without those of another.
func Without(list, other []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(list), func(id int32) bool { return slices.Contains(other, id) })
}
