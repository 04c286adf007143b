package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// WithFactor gives partitions another number of replicas. Those that stay do so in their order, so that no leader changes. A replica that is added goes to a rack without one where there is such a
// rack, then to the broker with the fewest replicas in load, which counts those of the whole cluster by broker; what is taken away is taken from the end. load is not changed.
func WithFactor(partitions []Placed, brokers []Broker, load map[int32]int, factor int) (Assignment, error) {
	partitions, brokers = slices.Clone(partitions), slices.Clone(brokers)
	slices.SortFunc(partitions, func(a, b Placed) int { return a.Compare(b.Partition) })
	slices.SortFunc(brokers, func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) })
	if err := check(partitions, brokers); err != nil {
		return nil, err
	}
	if factor < 1 {
		return nil, fmt.Errorf("the replication factor must be at least 1, not %d", factor)
	}
	has, racks := map[int32]int{}, map[int32]string{}
	for _, b := range brokers {
		has[b.ID], racks[b.ID] = load[b.ID], b.Rack
	}
	out := Assignment{}
	for _, p := range partitions {
		if factor > len(brokers) {
			return nil, &TooFewBrokersError{Partition: p.Partition, Replicas: factor, Brokers: len(brokers)}
		}
		replicas := slices.Clone(p.Replicas)
		for _, id := range replicas[min(factor, len(replicas)):] {
			has[id]--
		}
		replicas = replicas[:min(factor, len(replicas))]
		for len(replicas) < factor {
			crowd := func(b Broker) int { // how many replicas of this partition its rack has
				n := 0
				for _, id := range replicas {
					if b.Rack != "" && racks[id] == b.Rack {
						n++
					}
				}
				return n
			}
			free := slices.DeleteFunc(slices.Clone(brokers), func(b Broker) bool { return slices.Contains(replicas, b.ID) })
			chosen := slices.MinFunc(free, func(a, b Broker) int {
				return cmp.Or(cmp.Compare(crowd(a), crowd(b)), cmp.Compare(has[a.ID], has[b.ID]), cmp.Compare(a.ID, b.ID))
			})
			replicas = append(replicas, chosen.ID)
			has[chosen.ID]++
		}
		out[p.Partition] = replicas
	}
	return out, nil
}
