package admin

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Where the replicas of new partitions go. The rules are those of Kafka, so that a cluster of both kinds of brokers
// spreads its load in one way: first replicas go round the brokers from a random one on; each later replica of a
// partition is shifted against the first by an amount that grows after each round, so that the followers of one
// broker's partitions are spread too. With racks the round is one that alternates between racks, and a replica goes to
// a rack without one as long as there is such a rack.

// BrokerRack is a broker that may hold replicas.
type BrokerRack struct {
	ID   int32
	Rack *string
}

// AssignmentStart is where an assignment begins: Index is the broker of the first replica of partition 0, Shift the
// first distance to the second replicas. Both are random for a new topic, and both are the index of partition 0's
// leader when a topic is enlarged, so that the new partitions continue the round.
type AssignmentStart struct{ Index, Shift int }

// maxPartitions is more than fits in the node of a topic, even where the server's limit on its size was raised to three
// times the usual; an assignment is not worked out for more.
const maxPartitions = 250_000

// AssignReplicas places partitions of a topic, numbered from first on, on brokers. All brokers have a rack, or none.
func AssignReplicas(brokers []BrokerRack, partitions, replicas, first int, start AssignmentStart) (map[int32][]int32, error) {
	switch {
	case partitions <= 0:
		return nil, failed(kerr.InvalidPartitions, "Number of partitions must be larger than 0.")
	case replicas <= 0:
		return nil, failed(kerr.InvalidReplicationFactor, "Replication factor must be larger than 0.")
	case replicas > len(brokers):
		return nil, failed(kerr.InvalidReplicationFactor, "Replication factor: %d larger than available brokers: %d.", replicas, len(brokers))
	case partitions > maxPartitions || first+partitions > maxPartitions:
		return nil, failed(kerr.InvalidPartitions, "Number of partitions must not be larger than %d: their assignment has to fit in one ZooKeeper node.", maxPartitions)
	}
	racked := 0
	for _, b := range brokers {
		if b.Rack != nil {
			racked++
		}
	}
	switch racked {
	case 0:
		return assignWithoutRacks(brokers, partitions, replicas, first, start), nil
	case len(brokers):
		return assignOverRacks(brokers, partitions, replicas, first, start), nil
	}
	return nil, failed(kerr.UnknownServerError, "Not all brokers have rack information for replica rack aware assignment.")
}

// shifted is the place of the n-th further replica of a partition whose first is at place first.
func shifted(first, shift, n, brokers int) int { return (first + 1 + (shift+n)%(brokers-1)) % brokers }

func assignWithoutRacks(brokers []BrokerRack, partitions, replicas, first int, start AssignmentStart) map[int32][]int32 {
	out := make(map[int32][]int32, partitions)
	shift := start.Shift
	for p := max(first, 0); p < max(first, 0)+partitions; p++ {
		if p > 0 && p%len(brokers) == 0 {
			shift++
		}
		leader := (p + start.Index) % len(brokers)
		list := append(make([]int32, 0, replicas), brokers[leader].ID)
		for n := range replicas - 1 {
			list = append(list, brokers[shifted(leader, shift, n, len(brokers))].ID)
		}
		out[int32(p)] = list
	}
	return out
}

func assignOverRacks(brokers []BrokerRack, partitions, replicas, first int, start AssignmentStart) map[int32][]int32 {
	round, racks := alternate(brokers)
	out := make(map[int32][]int32, partitions)
	shift := start.Shift
	for p := max(first, 0); p < max(first, 0)+partitions; p++ {
		if p > 0 && p%len(round) == 0 {
			shift++
		}
		leader := (p + start.Index) % len(round)
		list := append(make([]int32, 0, replicas), round[leader].ID)
		usedRacks := map[string]bool{*round[leader].Rack: true}
		for n := 0; len(list) < replicas; n++ {
			b := round[shifted(leader, shift*racks, n, len(round))]
			rackIsFree := !usedRacks[*b.Rack] || len(usedRacks) == racks
			if rackIsFree && !slices.Contains(list, b.ID) {
				list = append(list, b.ID)
				usedRacks[*b.Rack] = true
			}
		}
		out[int32(p)] = list
	}
	return out
}

// alternate orders brokers so that neighbours are in different racks as far as possible: the first broker of each rack,
// racks by name, then the second of each, and so on. It also says how many racks there are.
func alternate(brokers []BrokerRack) (round []BrokerRack, racks int) {
	byRack := map[string][]BrokerRack{}
	var names []string
	for _, b := range brokers {
		if _, known := byRack[*b.Rack]; !known {
			names = append(names, *b.Rack)
		}
		byRack[*b.Rack] = append(byRack[*b.Rack], b)
	}
	slices.Sort(names)
	for _, of := range byRack {
		slices.SortFunc(of, func(a, b BrokerRack) int { return int(a.ID) - int(b.ID) })
	}
	for i := 0; len(round) < len(brokers); i++ {
		for _, name := range names {
			if of := byRack[name]; i < len(of) {
				round = append(round, of[i])
			}
		}
	}
	return round, len(names)
}
