package plan

import "slices"

// Weights of what makes a shape bad. Each is larger than all that the ones below it can add up to on one way through the network.
const (
	totalWeight = 1
	topicWeight = 1 << 20
	rackWeight  = 1 << 40
)

// seats is a partition with the replicas that it keeps, whatever comes, and how many places there are beside them.
type seats struct {
	Placed
	kept []int32
	open int
}

func allSeats(partitions []Placed) []seats {
	list := make([]seats, len(partitions))
	for i, p := range partitions {
		list[i] = seats{Placed: p, open: len(p.Replicas)}
	}
	return list
}

// chooseReplicas picks, of brokers, those that take the open places of each partition. settled is what the brokers have beside them, what is kept included; racks are those of all brokers.
func chooseReplicas(partitions []seats, brokers []Broker, racks map[int32]string, settled counts) [][]int32 {
	var n network
	source, sink := n.node(), n.node()
	spread := newSpread(&n, brokers, settled, sink, len(partitions))
	names := rackNames(brokers)
	type choice struct {
		broker int32
		edge   int
	}
	choices := make([][]choice, len(partitions))
	units := 0
	for i, p := range partitions {
		at := n.node()
		units += p.open
		n.connect(edge{from: source, to: at, capacity: p.open})
		crowd, inRack := map[string]int{}, map[string]int{}
		for _, id := range p.kept {
			crowd[racks[id]]++
		}
		for _, rack := range names {
			inRack[rack] = n.node()
			n.connect(edge{from: at, to: inRack[rack], capacity: p.open, step: rackWeight, offset: crowd[rack]})
		}
		for _, b := range brokers {
			if slices.Contains(p.kept, b.ID) {
				continue
			}
			from := at
			if b.Rack != "" {
				from = inRack[b.Rack]
			}
			e := n.connect(edge{from: from, to: spread.node(p.Topic, b.ID), capacity: 1, base: placing(p.Placed, b.ID)})
			choices[i] = append(choices[i], choice{b.ID, e})
		}
	}
	n.push(source, sink, units)
	sets := make([][]int32, len(partitions))
	for i := range partitions {
		for _, c := range choices[i] {
			if n.edges[c.edge].flow > 0 {
				sets[i] = append(sets[i], c.broker)
			}
		}
	}
	return sets
}

// placing is what a replica on a broker costs: nothing for the preferred leader that stays, next to nothing for another replica that stays.
func placing(p Placed, broker int32) cost {
	const move, notLeader = 1 << 20, 1
	switch at := slices.Index(p.Replicas, broker); {
	case at == 0:
		return cost{}
	case at > 0:
		return cost{moves: notLeader}
	}
	return cost{bytes: p.Bytes, moves: move + notLeader}
}

// chooseLeaders picks the first replica of each partition among those that it has.
func chooseLeaders(partitions []Placed, sets [][]int32, brokers []Broker, settled counts) []int32 {
	var n network
	source, sink := n.node(), n.node()
	spread := newSpread(&n, brokers, settled, sink, len(partitions))
	choices := make([][]int, len(partitions)) // edges, in the order of the partition's set
	for i, p := range partitions {
		at := n.node()
		n.connect(edge{from: source, to: at, capacity: 1})
		for _, id := range sets[i] {
			c := cost{moves: 1}
			if p.Replicas[0] == id {
				c.moves = 0
			}
			choices[i] = append(choices[i], n.connect(edge{from: at, to: spread.node(p.Topic, id), capacity: 1, base: c}))
		}
	}
	n.push(source, sink, len(partitions))
	chosen := make([]int32, len(partitions))
	for i := range partitions {
		for j, id := range sets[i] {
			if n.edges[choices[i][j]].flow > 0 {
				chosen[i] = id
			}
		}
	}
	return chosen
}

// spread is the part of a network that counts what each broker gets, of each topic and in all, and makes it dearer the more it is.
type spread struct {
	n        *network
	brokers  map[int32]int
	topics   map[string]map[int32]int
	settled  counts
	capacity int
}

func newSpread(n *network, brokers []Broker, settled counts, sink, capacity int) *spread {
	s := &spread{n: n, brokers: map[int32]int{}, topics: map[string]map[int32]int{}, settled: settled, capacity: capacity}
	for _, b := range brokers {
		s.brokers[b.ID] = n.node()
		n.connect(edge{from: s.brokers[b.ID], to: sink, capacity: capacity, step: totalWeight, offset: settled.total[b.ID]})
	}
	return s
}

// node is where a unit of a topic comes to a broker.
func (s *spread) node(topic string, broker int32) int {
	if s.topics[topic] == nil {
		s.topics[topic] = map[int32]int{}
	}
	if at, known := s.topics[topic][broker]; known {
		return at
	}
	at := s.n.node()
	s.topics[topic][broker] = at
	s.n.connect(edge{from: at, to: s.brokers[broker], capacity: s.capacity, step: topicWeight, offset: s.settled.topics[topic][broker]})
	return at
}

func rackNames(brokers []Broker) []string {
	var names []string
	for _, b := range brokers {
		if b.Rack != "" && !slices.Contains(names, b.Rack) {
			names = append(names, b.Rack)
		}
	}
	slices.Sort(names)
	return names
}

func racksOf(brokers []Broker) map[int32]string {
	racks := map[int32]string{}
	for _, b := range brokers {
		racks[b.ID] = b.Rack
	}
	return racks
}
