package plan

import (
	"fmt"
	"slices"
)

// The goals beside an even spread. Each gets all partitions of the cluster, since what brokers have besides counts, moves only those that may move, and answers with those that change.

// World is the cluster that a goal is for.
type World struct {
	Partitions []Placed
	Brokers    []Broker             // that may get replicas
	Moves      func(Partition) bool // whether a partition may be moved; nil: all may
}

func (w World) may(p Partition) bool { return w.Moves == nil || w.Moves(p) }

// movable are the partitions that may move, in order.
func (w World) movable() []Placed {
	list := slices.DeleteFunc(slices.Clone(w.Partitions), func(p Placed) bool { return !w.may(p.Partition) })
	slices.SortFunc(list, func(a, b Placed) int { return a.Compare(b.Partition) })
	return list
}

// with is the world in which an assignment has been carried out.
func (w World) with(to Assignment) World {
	w.Partitions = slices.Clone(w.Partitions)
	for i, p := range w.Partitions {
		if replicas, moves := to[p.Partition]; moves {
			w.Partitions[i].Replicas = replicas
		}
	}
	return w
}

// Changes leaves of an assignment what differs from what is.
func (w World) Changes(to Assignment) Assignment {
	out := Assignment{}
	for _, p := range w.Partitions {
		if replicas, planned := to[p.Partition]; planned && !slices.Equal(replicas, p.Replicas) {
			out[p.Partition] = replicas
		}
	}
	return out
}

// Spread evens out all replicas and leaders, and racks before both: see LeastMovement.
func (w World) Spread() (Assignment, error) {
	to, err := LeastMovement(w.movable(), w.Brokers)
	return w.Changes(to), err
}

// Vacate takes the replicas off brokers that are leaving, which need not be alive, and moves nothing else. They go to the others or, with to, to these alone: to racks without a replica of the
// partition first, then where there are fewest. Who led follows from who leads least.
func (w World) Vacate(leaving, to []int32) (Assignment, error) {
	var open []seats
	for _, p := range w.movable() {
		kept := Without(p.Replicas, leaving)
		if n := len(p.Replicas) - len(kept); n > 0 {
			open = append(open, seats{p, kept, n})
		}
	}
	candidates := slices.DeleteFunc(slices.Clone(w.Brokers), func(b Broker) bool {
		return slices.Contains(leaving, b.ID) || to != nil && !slices.Contains(to, b.ID)
	})
	return w.seat(open, candidates)
}

// seat fills open places, and chooses a leader for the partitions that lose theirs.
func (w World) seat(open []seats, candidates []Broker) (Assignment, error) {
	if err := check(nil, w.Brokers); err != nil {
		return nil, err
	}
	for _, p := range open {
		free := slices.DeleteFunc(slices.Clone(candidates), func(b Broker) bool { return slices.Contains(p.kept, b.ID) })
		if len(free) < p.open {
			return nil, fmt.Errorf("partition %v: %w", p.Partition, &TooFewBrokersError{Partition: p.Partition, Replicas: len(p.Replicas), Brokers: len(free) + len(p.kept)})
		}
	}
	moving := map[Partition][]int32{}
	for _, p := range open {
		moving[p.Partition] = p.kept
	}
	replicas, leaders := newCounts(), newCounts()
	for _, p := range w.Partitions {
		stay, moves := moving[p.Partition]
		if !moves {
			stay = p.Replicas
		}
		for _, id := range stay {
			replicas.add(p.Topic, id)
		}
		if len(stay) > 0 && stay[0] == p.Replicas[0] {
			leaders.add(p.Topic, stay[0])
		}
	}
	out, racks := Assignment{}, racksOf(w.Brokers)
	for some := range slices.Chunk(open, max(1, jointLimit/max(1, len(candidates)))) {
		sets := chooseReplicas(some, candidates, racks, replicas)
		var headless []Placed
		var choices [][]int32
		for i, p := range some {
			for _, id := range sets[i] {
				replicas.add(p.Topic, id)
			}
			set := slices.Concat(p.kept, sets[i])
			if slices.Contains(set, p.Replicas[0]) {
				out[p.Partition] = inOrder(p.Replicas, set, p.Replicas[0])
				continue
			}
			headless = append(headless, p.Placed)
			choices = append(choices, set)
		}
		w.lead(out, headless, choices, leaders)
	}
	return w.Changes(out), nil
}

// lead chooses the first replica of partitions among those that each is to have, so far as they are on brokers of this world, and counts it.
func (w World) lead(out Assignment, partitions []Placed, sets [][]int32, leaders counts) {
	alive := make([][]int32, len(sets))
	for i, set := range sets {
		alive[i] = slices.DeleteFunc(slices.Clone(set), func(id int32) bool { return !slices.ContainsFunc(w.Brokers, func(b Broker) bool { return b.ID == id }) })
	}
	for i, leader := range chooseLeaders(partitions, alive, w.Brokers, leaders) {
		p := partitions[i]
		out[p.Partition] = inOrder(p.Replicas, sets[i], leader)
		leaders.add(p.Topic, leader)
	}
}

// Replace puts one broker in the place of another, which need not be alive: in the same order, so that it leads what the other led. Partitions of which it has a replica already get another broker.
func (w World) Replace(old, by int32) (Assignment, error) {
	to := Assignment{}
	for _, p := range w.movable() {
		if at := slices.Index(p.Replicas, old); at >= 0 && !slices.Contains(p.Replicas, by) {
			to[p.Partition] = slices.Clone(p.Replicas)
			to[p.Partition][at] = by
		}
	}
	rest, err := w.with(to).Vacate([]int32{old}, nil)
	for p, replicas := range rest {
		to[p] = replicas
	}
	return to, err
}

// SpreadRacks moves replicas of partitions that have more of them in one rack than they must, and nothing else. First replicas stay where they can.
func (w World) SpreadRacks() (Assignment, error) {
	racks := racksOf(w.Brokers)
	names := len(rackNames(w.Brokers))
	var open []seats
	for _, p := range w.movable() {
		if kept := spreadOf(p.Replicas, racks, names); len(kept) < len(p.Replicas) {
			open = append(open, seats{p, kept, len(p.Replicas) - len(kept)})
		}
	}
	return w.seat(open, w.Brokers)
}

// spreadOf leaves of a partition's replicas those that are as far apart as they can be; the last of a crowded rack go first. Where a broker that is not alive stands is not known, so it crowds nobody.
func spreadOf(replicas []int32, racks map[int32]string, names int) []int32 {
	if names == 0 {
		return replicas
	}
	kept := slices.Clone(replicas)
	most, apart := (len(replicas)+names-1)/names, min(len(replicas), names)
	for {
		crowd, unknown := map[string]int{}, 0
		for _, id := range kept {
			if racks[id] == "" {
				unknown++
				continue
			}
			crowd[racks[id]]++
		}
		largest := 0
		for _, n := range crowd {
			largest = max(largest, n)
		}
		if largest <= most && (largest <= 1 || len(crowd)+unknown+len(replicas)-len(kept) >= apart) {
			return kept
		}
		for i := len(kept) - 1; i >= 0; i-- {
			if racks[kept[i]] != "" && crowd[racks[kept[i]]] == largest {
				kept = slices.Delete(kept, i, i+1)
				break
			}
		}
	}
}

// EvenLeaders changes only which replica is first, so that brokers lead alike. No data moves.
func (w World) EvenLeaders() (Assignment, error) {
	if err := check(nil, w.Brokers); err != nil {
		return nil, err
	}
	led := slices.DeleteFunc(w.movable(), func(p Placed) bool {
		return !slices.ContainsFunc(p.Replicas, func(id int32) bool { return slices.ContainsFunc(w.Brokers, func(b Broker) bool { return b.ID == id }) })
	})
	out, leaders := Assignment{}, newCounts()
	for _, p := range w.Partitions {
		if !w.may(p.Partition) {
			leaders.add(p.Topic, p.Replicas[0])
		}
	}
	for _, piece := range pieces(led, len(w.Brokers), jointLimit) {
		sets := make([][]int32, len(piece.partitions))
		for i, p := range piece.partitions {
			sets[i] = p.Replicas
		}
		expected := leaders.expecting(piece.later, w.Brokers, firstOf)
		w.lead(out, piece.partitions, sets, expected)
		for _, p := range piece.partitions {
			leaders.add(p.Topic, out[p.Partition][0])
		}
	}
	return w.Changes(out), nil
}

// StepDown puts brokers that are to leave last, so that another replica is preferred to lead: the one that leads when all is done, where it is a replica now, or else the first that stays. Partitions that nobody else
// has a replica of are left alone.
func (w World) StepDown(leaving []int32, to Assignment) Assignment {
	out := Assignment{}
	for _, p := range w.movable() {
		target, changes := to[p.Partition]
		kept := Without(p.Replicas, leaving)
		if !changes || len(kept) == 0 || !slices.Contains(leaving, p.Replicas[0]) {
			continue
		}
		leader := kept[0]
		if slices.Contains(kept, target[0]) {
			leader = target[0]
		}
		out[p.Partition] = slices.Concat(inOrder(p.Replicas, kept, leader), Without(p.Replicas, kept))
	}
	return out
}
