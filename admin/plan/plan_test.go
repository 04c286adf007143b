package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world makes a cluster and what is on it now, out of balance and partly on brokers that are not among those to be used.
func world(r *rand.Rand, maxBrokers, maxPartitions, maxReplicas int) ([]Placed, []Broker) {
	var brokers []Broker
	racks := r.IntN(4) // 0: none
	for id := range 1 + r.IntN(maxBrokers) {
		b := Broker{ID: int32(id + 1)}
		if racks > 0 {
			b.Rack = fmt.Sprintf("r%d", r.IntN(racks))
		}
		brokers = append(brokers, b)
	}
	var partitions []Placed
	sized := r.IntN(2) == 0
	for topic := range 1 + r.IntN(2) {
		replicas := 1 + r.IntN(min(maxReplicas, len(brokers)))
		for id := range 1 + r.IntN(maxPartitions) {
			p := Placed{Partition: Partition{fmt.Sprintf("t%d", topic), int32(id)}}
			for _, at := range r.Perm(len(brokers) + 1)[:replicas] { // the last is a broker that goes
				p.Replicas = append(p.Replicas, int32(at+1))
			}
			if sized {
				p.Bytes = int64(r.IntN(5)) * 100
			}
			partitions = append(partitions, p)
		}
	}
	return partitions, brokers
}

// score is what a plan is judged by, the weightiest first: replicas of a partition in one rack, unevenness of each topic and of all, bytes, replicas, leaders that lose their replica.
type score [6]int64

func judge(partitions []Placed, brokers []Broker, to Assignment) score {
	var s score
	rack := map[int32]string{}
	for _, b := range brokers {
		rack[b.ID] = b.Rack
	}
	byTopic, total := map[string]map[int32]int64{}, map[int32]int64{}
	for _, p := range partitions {
		racks := map[string]int64{}
		if byTopic[p.Topic] == nil {
			byTopic[p.Topic] = map[int32]int64{}
		}
		for _, id := range to[p.Partition] {
			if rack[id] != "" {
				s[0] += racks[rack[id]]
				racks[rack[id]]++
			}
			s[1] += byTopic[p.Topic][id]
			byTopic[p.Topic][id]++
			s[2] += total[id]
			total[id]++
			if !slices.Contains(p.Replicas, id) {
				s[3] += p.Bytes
				s[4]++
			}
		}
		if !slices.Contains(to[p.Partition], p.Replicas[0]) {
			s[5]++
		}
	}
	return s
}

func requireValid(t *testing.T, partitions []Placed, brokers []Broker, to Assignment) {
	t.Helper()
	require.Len(t, to, len(partitions))
	for _, p := range partitions {
		list := to[p.Partition]
		require.Len(t, list, len(p.Replicas), "%v", p)
		for i, id := range list {
			require.NotContains(t, list[:i], id, "%v", p)
			require.True(t, slices.ContainsFunc(brokers, func(b Broker) bool { return b.ID == id }), "%v on %d", p, id)
		}
	}
}

func TestEveryPlanIsValidAndEven(t *testing.T) {
	for seed := range uint64(600) {
		partitions, brokers := world(rand.New(rand.NewPCG(seed, 1)), 7, 14, 4)
		to, err := LeastMovement(partitions, brokers)
		require.NoError(t, err, "seed %d", seed)
		requireValid(t, partitions, brokers, to)
		if brokers[0].Rack != "" {
			continue // racks of different sizes may forbid an even spread
		}
		replicas, leaders := map[int32]int{}, map[int32]int{}
		for _, list := range to {
			leaders[list[0]]++
			for _, id := range list {
				replicas[id]++
			}
		}
		for name, counts := range map[string]map[int32]int{"replicas": replicas, "leaders": leaders} {
			low, high := 1<<30, 0
			for _, b := range brokers {
				low, high = min(low, counts[b.ID]), max(high, counts[b.ID])
			}
			assert.LessOrEqual(t, high-low, 1, "seed %d: %s %v", seed, name, counts)
		}
	}
}

func TestNoOtherPlanIsBetterInSmallWorlds(t *testing.T) {
	for seed := range uint64(250) {
		partitions, brokers := world(rand.New(rand.NewPCG(seed, 2)), 4, 2, 3)
		to, err := LeastMovement(partitions, brokers)
		require.NoError(t, err)
		got, best := judge(partitions, brokers, to), score{1 << 62}
		everyAssignment(partitions, brokers, Assignment{}, func(a Assignment) {
			if s := judge(partitions, brokers, a); slices.Compare(s[:], best[:]) < 0 {
				best = s
			}
		})
		require.Equal(t, best, got, "seed %d: %v on %v became %v", seed, partitions, brokers, to)
	}
}

func everyAssignment(partitions []Placed, brokers []Broker, a Assignment, visit func(Assignment)) {
	if len(partitions) == 0 {
		visit(a)
		return
	}
	p := partitions[0]
	for bits := range 1 << len(brokers) {
		var set []int32
		for i, b := range brokers {
			if bits&(1<<i) != 0 {
				set = append(set, b.ID)
			}
		}
		if len(set) == len(p.Replicas) {
			a[p.Partition] = set
			everyAssignment(partitions[1:], brokers, a, visit)
		}
	}
}

func TestAPlanOfAPlanMovesNothing(t *testing.T) {
	for seed := range uint64(200) {
		partitions, brokers := world(rand.New(rand.NewPCG(seed, 3)), 7, 10, 4)
		to, err := LeastMovement(partitions, brokers)
		require.NoError(t, err)
		for i := range partitions {
			partitions[i].Replicas = to[partitions[i].Partition]
		}
		again, err := LeastMovement(partitions, brokers)
		require.NoError(t, err)
		require.Zero(t, Summarize(partitions, again).Moved, "seed %d", seed)
	}
}

func TestTheSameClusterGivesTheSamePlanInWhateverOrderItIsTold(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		partitions, brokers := world(r, 7, 10, 4)
		first, err := LeastMovement(partitions, brokers)
		require.NoError(t, err)
		r.Shuffle(len(partitions), func(i, j int) { partitions[i], partitions[j] = partitions[j], partitions[i] })
		r.Shuffle(len(brokers), func(i, j int) { brokers[i], brokers[j] = brokers[j], brokers[i] })
		second, err := LeastMovement(partitions, brokers)
		require.NoError(t, err)
		require.True(t, maps.EqualFunc(first, second, slices.Equal), "seed %d", seed)
	}
}

func TestANewBrokerGetsItsShareAndNothingElseMoves(t *testing.T) {
	var partitions []Placed
	for id := range int32(12) {
		partitions = append(partitions, Placed{Partition{"orders", id}, []int32{id%3 + 1, (id+1)%3 + 1}, 10})
	}
	to, err := LeastMovement(partitions, []Broker{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}})
	require.NoError(t, err)
	s := Summarize(partitions, to)
	assert.Equal(t, 6, s.Moved)
	assert.EqualValues(t, 60, s.MovedBytes)
	for _, list := range to {
		assert.LessOrEqual(t, len(slices.DeleteFunc(slices.Clone(list), func(id int32) bool { return id != 4 })), 1)
	}
}

func TestALargeClusterIsPlannedPieceByPiece(t *testing.T) {
	for _, world := range []struct{ topics, partitions, brokers int }{{40, 50, 12}, {1, 2500, 20}} {
		var partitions []Placed
		for topic := range world.topics {
			for id := range world.partitions {
				p := Placed{Partition{fmt.Sprintf("t%02d", topic), int32(id)}, nil, 1}
				for n := range 3 {
					p.Replicas = append(p.Replicas, int32((topic+id+n)%world.brokers+1))
				}
				partitions = append(partitions, p)
			}
		}
		var brokers []Broker
		for id := range world.brokers {
			brokers = append(brokers, Broker{ID: int32(id + 2)}) // broker 1 goes, one comes
		}
		to, err := LeastMovement(partitions, brokers)
		require.NoError(t, err)
		requireValid(t, partitions, brokers, to)
		s := Summarize(partitions, to)
		assert.LessOrEqual(t, s.Moved, s.Replicas/world.brokers+5*world.topics, "%+v", world)
		replicas := newCounts()
		for p, list := range to {
			for _, id := range list {
				replicas.add(p.Topic, id)
			}
		}
		least, most := s.Replicas, 0
		for _, b := range brokers {
			least, most = min(least, replicas.total[b.ID]), max(most, replicas.total[b.ID])
		}
		assert.LessOrEqual(t, most-least, 1, "%+v", world)
	}
}

func TestPiecesMakeAPlanThatIsValidAndEven(t *testing.T) {
	for seed := range uint64(200) {
		partitions, brokers := world(rand.New(rand.NewPCG(seed, 5)), 6, 14, 3)
		to, err := leastMovement(partitions, brokers, 3*len(brokers))
		require.NoError(t, err)
		requireValid(t, partitions, brokers, to)
		joint, err := LeastMovement(partitions, brokers)
		require.NoError(t, err)
		inPieces, together := judge(partitions, brokers, to), judge(partitions, brokers, joint)
		assert.Equal(t, together[0], inPieces[0], "seed %d: racks", seed)
		assert.LessOrEqual(t, inPieces[1], together[1]+4, "seed %d: evenness of topics", seed)
	}
}

func TestWhatCannotBePlannedIsRefused(t *testing.T) {
	p := []Placed{{Partition{"a", 0}, []int32{1, 2}, 0}}
	_, err := LeastMovement(p, []Broker{{ID: 1}})
	assert.EqualError(t, err, "Replication factor: 2 larger than available brokers: 1.")
	_, err = LeastMovement(p, []Broker{{ID: 1, Rack: "a"}, {ID: 2}})
	assert.ErrorIs(t, err, ErrRacks)
	_, err = LeastMovement(p, []Broker{{ID: 1}, {ID: 1}})
	assert.ErrorContains(t, err, "twice")
	_, err = LeastMovement(append(p, p...), []Broker{{ID: 1}, {ID: 2}})
	assert.ErrorContains(t, err, "twice")
	_, err = LeastMovement([]Placed{{Partition{"a", 0}, nil, 0}}, []Broker{{ID: 1}})
	assert.ErrorContains(t, err, "no replicas")
}
