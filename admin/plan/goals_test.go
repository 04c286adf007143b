package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func at(topic string, id int32, bytes int64, replicas ...int32) Placed {
	return Placed{Partition{topic, id}, replicas, bytes}
}

func fewest(partitions []Placed) int {
	n := 0
	for _, p := range partitions {
		n = max(n, len(p.Replicas))
	}
	return n
}

func TestABrokerThatLeavesLosesAllAndNothingElseMoves(t *testing.T) {
	vacated := 0
	for seed := range uint64(400) {
		partitions, brokers := world(rand.New(rand.NewPCG(seed, 5)), 7, 12, 3)
		w := World{Partitions: partitions, Brokers: brokers}
		leaving := brokers[0].ID
		to, err := w.Vacate([]int32{leaving}, nil)
		if err != nil {
			require.GreaterOrEqual(t, fewest(partitions)+1, len(brokers), "seed %d: %v", seed, err)
			continue
		}
		for _, p := range partitions {
			replicas, changes := to[p.Partition]
			require.Equal(t, slices.Contains(p.Replicas, leaving), changes, "seed %d: %v", seed, p)
			if !changes {
				continue
			}
			vacated++
			require.NotContains(t, replicas, leaving)
			require.Len(t, replicas, len(p.Replicas))
			requireValid(t, []Placed{{p.Partition, p.Replicas, 0}}, append(slices.Clone(brokers), Broker{ID: int32(len(brokers) + 1)}), Assignment{p.Partition: replicas})
			for _, id := range p.Replicas {
				require.Equal(t, id != leaving, slices.Contains(replicas, id), "seed %d: what is elsewhere stays", seed)
			}
			if p.Replicas[0] != leaving {
				require.Equal(t, p.Replicas[0], replicas[0], "seed %d: whoever leads and stays leads on", seed)
			}
		}
	}
	assert.Greater(t, vacated, 500)
}

// all assignments in which each open place of the partitions is taken by another broker.
func fillings(open []seats, brokers []Broker, to Assignment, look func(Assignment)) {
	if len(open) == 0 {
		look(to)
		return
	}
	p := open[0]
	var take func(set []int32, from int)
	take = func(set []int32, from int) {
		if len(set) == len(p.kept)+p.open {
			to[p.Partition] = set
			fillings(open[1:], brokers, to, look)
			return
		}
		for i := from; i < len(brokers); i++ {
			if !slices.Contains(set, brokers[i].ID) {
				take(append(slices.Clone(set), brokers[i].ID), i+1)
			}
		}
	}
	take(p.kept, 0)
}

func TestWhatLeavesABrokerGoesWhereItIsBest(t *testing.T) {
	judged := 0
	for seed := range uint64(300) {
		partitions, brokers := world(rand.New(rand.NewPCG(seed, 6)), 5, 3, 3)
		leaving := brokers[len(brokers)-1].ID
		rest := brokers[:len(brokers)-1]
		got, err := World{Partitions: partitions, Brokers: brokers}.Vacate([]int32{leaving}, nil)
		if err != nil {
			continue
		}
		whole := func(to Assignment) Assignment {
			out := Assignment{}
			for _, p := range partitions {
				if out[p.Partition] = p.Replicas; to[p.Partition] != nil {
					out[p.Partition] = to[p.Partition]
				}
			}
			return out
		}
		var open []seats
		for _, p := range partitions {
			if slices.Contains(p.Replicas, leaving) {
				kept := Without(p.Replicas, []int32{leaving})
				open = append(open, seats{p, kept, 1})
			}
		}
		have := judge(partitions, brokers, whole(got))
		fillings(open, rest, Assignment{}, func(other Assignment) {
			best := judge(partitions, brokers, whole(other))
			require.LessOrEqual(t, slices.Compare(have[:3], best[:3]), 0, "seed %d: %v is worse than %v", seed, got, other)
		})
		judged++
	}
	assert.Greater(t, judged, 100)
}

func TestOnlySomeBrokersMayTakeWhatLeaves(t *testing.T) {
	w := World{Partitions: []Placed{at("t", 0, 1, 1, 2), at("t", 1, 1, 2, 3), at("u", 0, 1, 1)}, Brokers: []Broker{{1, ""}, {2, ""}, {3, ""}, {4, ""}}}
	to, err := w.Vacate([]int32{1}, []int32{4})
	require.NoError(t, err)
	assert.Equal(t, Assignment{{"t", 0}: {4, 2}, {"u", 0}: {4}}, to, "broker 2 leads already, so that 4 does; and it alone may get u")
	_, err = w.Vacate([]int32{1}, []int32{2})
	assert.EqualError(t, err, "partition t-0: Replication factor: 2 larger than available brokers: 1.")
	w.Moves = func(p Partition) bool { return p.Topic == "u" }
	to, err = w.Vacate([]int32{1}, nil)
	require.NoError(t, err)
	assert.Equal(t, Assignment{{"u", 0}: {4}}, to)
}

func TestADeadBrokerCanBeVacatedAndReplaced(t *testing.T) {
	w := World{Partitions: []Placed{at("t", 0, 1, 9, 2), at("t", 1, 1, 2, 9), at("t", 2, 1, 3, 9)}, Brokers: []Broker{{2, ""}, {3, ""}}}
	to, err := w.Vacate([]int32{9}, nil)
	require.NoError(t, err)
	assert.Equal(t, Assignment{{"t", 0}: {2, 3}, {"t", 1}: {2, 3}, {"t", 2}: {3, 2}}, sorted(to, 0))
	to, err = w.Replace(9, 3)
	require.NoError(t, err)
	assert.Equal(t, Assignment{{"t", 0}: {3, 2}, {"t", 1}: {2, 3}, {"t", 2}: {3, 2}}, to, "in its place; where 3 is already, another comes")
}

// sorted leaves out who leads a partition, where two are as good.
func sorted(to Assignment, id int32) Assignment {
	slices.Sort(to[Partition{"t", id}])
	return to
}

func TestReplicasInOneRackAreMovedApartAndNoOthers(t *testing.T) {
	brokers := []Broker{{1, "a"}, {2, "a"}, {3, "b"}, {4, "c"}}
	w := World{Partitions: []Placed{at("t", 0, 1, 1, 2), at("t", 1, 1, 1, 3), at("t", 2, 1, 2, 1, 3)}, Brokers: brokers}
	to, err := w.SpreadRacks()
	require.NoError(t, err)
	assert.Equal(t, Assignment{{"t", 0}: {1, 4}, {"t", 2}: {2, 3, 4}}, to)
	for seed := range uint64(300) {
		partitions, brokers := world(rand.New(rand.NewPCG(seed, 7)), 7, 10, 4)
		w := World{Partitions: partitions, Brokers: brokers}
		to, err := w.SpreadRacks()
		if err != nil {
			continue // a broker that is not alive has replicas, and too few are left
		}
		before, after := judge(partitions, brokers, w.present()), judge(partitions, brokers, w.with(to).present())
		require.LessOrEqual(t, after[0], before[0], "seed %d", seed)
		again, err := w.with(to).SpreadRacks()
		require.NoError(t, err)
		if PreviewOf(w, to, nil).CrowdedAfter == 0 {
			require.Empty(t, again, "seed %d: done is done", seed)
		}
	}
}

func (w World) present() Assignment {
	out := Assignment{}
	for _, p := range w.Partitions {
		out[p.Partition] = p.Replicas
	}
	return out
}

func TestLeadersAreEvenedOutWithoutMovingAnything(t *testing.T) {
	w := World{Partitions: []Placed{at("t", 0, 5, 1, 2), at("t", 1, 5, 1, 3), at("t", 2, 5, 1, 2), at("t", 3, 5, 1, 3)}, Brokers: []Broker{{1, ""}, {2, ""}, {3, ""}}}
	to, err := w.EvenLeaders()
	require.NoError(t, err)
	preview := PreviewOf(w, to, nil)
	assert.Equal(t, Summary{Replicas: 4, Bytes: 20, Leaders: 2, LeadersChanged: 2}, preview.Summary)
	for _, s := range preview.Shares {
		assert.InDelta(t, 1.5, s.LeadersAfter, 0.5, "broker %d", s.ID)
	}
	for seed := range uint64(200) {
		partitions, brokers := world(rand.New(rand.NewPCG(seed, 8)), 6, 12, 3)
		w := World{Partitions: partitions, Brokers: brokers}
		to, err := w.EvenLeaders()
		require.NoError(t, err)
		for _, p := range partitions {
			if to[p.Partition] != nil {
				require.ElementsMatch(t, p.Replicas, to[p.Partition])
			}
		}
		spread := func(of Assignment) (sum int) {
			leads := map[int32]int{}
			for _, replicas := range of {
				leads[replicas[0]]++
			}
			for _, n := range leads {
				sum += n * n
			}
			return sum
		}
		if !slices.ContainsFunc(partitions, func(p Placed) bool { return slices.Contains(p.Replicas, int32(len(brokers)+1)) }) && partitions[0].Topic == partitions[len(partitions)-1].Topic {
			require.LessOrEqual(t, spread(w.with(to).present()), spread(w.present()), "seed %d", seed)
		}
	}
}

func TestAnEmptyBrokerIsFilledAndNothingMovesBetweenOthers(t *testing.T) {
	var partitions []Placed
	for i := range int32(12) {
		partitions = append(partitions, at("t", i, int64(i), 1+i%3, 1+(i+1)%3))
	}
	w := World{Partitions: partitions, Brokers: []Broker{{1, ""}, {2, ""}, {3, ""}, {4, ""}}}
	to, err := w.Fill([]int32{4})
	require.NoError(t, err)
	preview := PreviewOf(w, to, nil)
	for _, s := range preview.Shares {
		assert.Equal(t, 6, s.ReplicasAfter, "broker %d", s.ID)
		assert.InDelta(t, 3, s.LeadersAfter, 1, "broker %d", s.ID)
	}
	for _, c := range preview.Changes {
		assert.Equal(t, []int32{4}, c.Adds)
	}
	again, err := w.with(to).Fill([]int32{4})
	require.NoError(t, err)
	assert.Empty(t, again)
}

func TestBytesAreEvenedOutWithFewerBytesThanTheDifference(t *testing.T) {
	w := World{Partitions: []Placed{at("t", 0, 500, 1), at("t", 1, 300, 1), at("t", 2, 100, 1), at("t", 3, 100, 2)}, Brokers: []Broker{{1, ""}, {2, ""}}}
	to, err := w.EvenBytes()
	require.NoError(t, err)
	assert.Equal(t, Assignment{{"t", 1}: {2}, {"t", 2}: {2}}, to)
	for seed := range uint64(200) {
		partitions, brokers := world(rand.New(rand.NewPCG(seed, 9)), 6, 12, 3)
		w := World{Partitions: partitions, Brokers: brokers}
		to, err := w.EvenBytes()
		require.NoError(t, err)
		preview := PreviewOf(w, to, nil)
		squares := func(bytes func(Share) int64) (sum int64) {
			for _, s := range preview.Shares {
				if int(s.ID) <= len(brokers) {
					sum += bytes(s) * bytes(s)
				}
			}
			return sum
		}
		before, after := squares(func(s Share) int64 { return s.Bytes }), squares(func(s Share) int64 { return s.BytesAfter })
		require.LessOrEqual(t, after, before, "seed %d", seed)
		require.Equal(t, len(to) > 0, after < before, "seed %d", seed)
		require.LessOrEqual(t, preview.CrowdedAfter, preview.Crowded, "seed %d", seed)
		requireValid(t, partitions, append(slices.Clone(brokers), Broker{ID: int32(len(brokers) + 1)}), w.with(to).present())
	}
}

func TestAPreviewCountsWhatEachBrokerGetsAndGives(t *testing.T) {
	w := World{Partitions: []Placed{at("t", 0, 100, 1, 2), at("t", 1, 50, 2, 3)}, Brokers: []Broker{{1, "a"}, {2, "a"}, {3, "b"}}}
	preview := PreviewOf(w, Assignment{{"t", 0}: {3, 2}}, map[Partition]int{{"t", 0}: 1, {"t", 1}: 2})
	assert.Equal(t, []Change{{Partition: Partition{"t", 0}, From: []int32{1, 2}, To: []int32{3, 2}, Adds: []int32{3}, Removes: []int32{1}, Bytes: 100}}, preview.Changes)
	assert.Equal(t, []Share{
		{Broker: Broker{1, "a"}, Replicas: 1, Leaders: 1, Bytes: 100, Out: 100},
		{Broker: Broker{2, "a"}, Replicas: 2, ReplicasAfter: 2, Leaders: 1, LeadersAfter: 1, Bytes: 150, BytesAfter: 150},
		{Broker: Broker{3, "b"}, Replicas: 1, ReplicasAfter: 2, LeadersAfter: 1, Bytes: 50, BytesAfter: 150, In: 100},
	}, preview.Shares)
	assert.Equal(t, []any{1, 0, 1, Partition{"t", 0}}, []any{preview.Crowded, preview.CrowdedAfter, preview.SmallestISR, preview.SmallestISRAt})
	assert.Equal(t, Summary{Replicas: 2, Moved: 1, Bytes: 200, MovedBytes: 100, Leaders: 1, LeadersChanged: 1}, preview.Summary)
	assert.Equal(t, -1, PreviewOf(w, nil, nil).SmallestISR)
}

func TestABrokerThatLeavesStopsLeadingFirst(t *testing.T) {
	w := World{Partitions: []Placed{at("t", 0, 1, 1, 2, 3), at("t", 1, 1, 2, 1), at("t", 2, 1, 1)}, Brokers: []Broker{{1, ""}, {2, ""}, {3, ""}, {4, ""}}}
	got := w.StepDown([]int32{1}, Assignment{{"t", 0}: {3, 2, 4}, {"t", 1}: {2, 3}, {"t", 2}: {4}})
	assert.Equal(t, Assignment{{"t", 0}: {3, 2, 1}}, got)
	got = w.StepDown([]int32{1}, Assignment{{"t", 0}: {4, 2, 3}})
	assert.Equal(t, Assignment{{"t", 0}: {2, 3, 1}}, got)
}
