package plan

import (
	"cmp"
	"slices"
)

// Fill gives brokers that have less than others as many replicas as the others have, and moves nothing between the others. They lead their share of what they get.
func (w World) Fill(ids []int32) (Assignment, error) {
	if err := check(nil, w.Brokers); err != nil {
		return nil, err
	}
	s := newShift(w, func(Placed) int64 { return 1 }, 1)
	s.run(func(b Broker) bool { return slices.Contains(ids, b.ID) })
	out, leaders := Assignment{}, newCounts()
	var moved []Placed
	var sets [][]int32
	for _, p := range w.Partitions {
		to, moves := s.to[p.Partition]
		if !moves {
			leaders.add(p.Topic, p.Replicas[0])
			continue
		}
		moved, sets = append(moved, p), append(sets, to)
	}
	for i := 0; i < len(moved); {
		n := min(len(moved)-i, max(1, jointLimit/max(1, len(w.Brokers))))
		w.lead(out, moved[i:i+n], sets[i:i+n], leaders)
		i += n
	}
	return w.Changes(out), nil
}

// evenEnough is which part of the mean brokers may differ by before bytes are moved to even them out.
const evenEnough = 20 // a twentieth

// EvenBytes moves replicas from the brokers that store most to those that store least. It never moves more bytes than it takes off the difference, and stops where little would be gained.
func (w World) EvenBytes() (Assignment, error) {
	if err := check(nil, w.Brokers); err != nil {
		return nil, err
	}
	var total int64
	for _, p := range w.Partitions {
		total += p.Bytes * int64(len(p.Replicas))
	}
	s := newShift(w, func(p Placed) int64 { return p.Bytes }, total/int64(max(1, len(w.Brokers)))/evenEnough)
	s.run(func(Broker) bool { return true })
	return w.Changes(s.to), nil
}

// shift moves single replicas from where there is much to where there is little. A replica keeps its place in the order.
type shift struct {
	w         World
	weigh     func(Placed) int64
	tolerance int64 // differences up to it are left
	load      map[int32]int64
	topics    counts
	to        Assignment // of what has moved
	racks     map[int32]string
}

func newShift(w World, weigh func(Placed) int64, tolerance int64) *shift {
	s := &shift{w: w, weigh: weigh, tolerance: tolerance, load: map[int32]int64{}, topics: newCounts(), to: Assignment{}, racks: racksOf(w.Brokers)}
	for _, p := range w.Partitions {
		for _, id := range p.Replicas {
			s.load[id] += weigh(p)
			s.topics.add(p.Topic, id)
		}
	}
	return s
}

func (s *shift) run(takes func(Broker) bool) {
	movable := s.w.movable()
	brokers := slices.Clone(s.w.Brokers)
	for s.step(movable, brokers, takes) {
	}
}

// step moves the one replica that brings the fullest broker that can give, and the emptiest that can take, closest together.
func (s *shift) step(movable []Placed, brokers []Broker, takes func(Broker) bool) bool {
	slices.SortFunc(brokers, func(a, b Broker) int { return cmp.Or(cmp.Compare(s.load[b.ID], s.load[a.ID]), cmp.Compare(a.ID, b.ID)) })
	for _, giver := range brokers {
		for i := len(brokers) - 1; i >= 0; i-- {
			taker := brokers[i]
			difference := s.load[giver.ID] - s.load[taker.ID]
			if difference <= s.tolerance {
				break // the ones before it have more
			}
			if takes(taker) && s.give(movable, giver.ID, taker.ID, difference) {
				return true
			}
		}
	}
	return false
}

// give moves the replica of a broker to another that takes off most of their difference, if there is one.
func (s *shift) give(movable []Placed, from, to int32, difference int64) bool {
	best, found := Placed{}, false
	better := func(a, b Placed) int {
		crowd := func(p Placed) int { return s.topics.topics[p.Topic][to] - s.topics.topics[p.Topic][from] }
		return cmp.Or(cmp.Compare(s.weigh(b), s.weigh(a)), cmp.Compare(crowd(a), crowd(b)), cmp.Compare(a.Bytes, b.Bytes), a.Compare(b.Partition))
	}
	for _, p := range movable {
		weight := s.weigh(p)
		if weight <= 0 || weight > difference/2 || !s.fits(p, from, to) {
			continue
		}
		if !found || better(p, best) < 0 {
			best, found = p, true
		}
	}
	if !found {
		return false
	}
	replicas := slices.Clone(s.now(best))
	replicas[slices.Index(replicas, from)] = to
	s.to[best.Partition] = replicas
	s.load[from] -= s.weigh(best)
	s.load[to] += s.weigh(best)
	s.topics.topics[best.Topic][from]--
	s.topics.add(best.Topic, to)
	return true
}

func (s *shift) now(p Placed) []int32 {
	if replicas, moved := s.to[p.Partition]; moved {
		return replicas
	}
	return p.Replicas
}

// fits tells whether a replica is on a broker from the beginning, may go to another, and is not closer to the others there.
func (s *shift) fits(p Placed, from, to int32) bool {
	now := s.now(p)
	if !slices.Contains(p.Replicas, from) || !slices.Contains(now, from) || slices.Contains(now, to) {
		return false
	}
	here, there := 0, 0
	for _, id := range now {
		if id == from {
			continue
		}
		if s.racks[id] != "" && s.racks[id] == s.racks[from] {
			here++
		}
		if s.racks[id] != "" && s.racks[id] == s.racks[to] {
			there++
		}
	}
	return there <= here
}
