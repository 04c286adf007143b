package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"barnabas/admin/plan"
)

func TestThrottledAreAllSourcesAndTheNewReplicasOfAllThatMoves(t *testing.T) {
	a, b, other := plan.Partition{Topic: "t", ID: 0}, plan.Partition{Topic: "t", ID: 10}, plan.Partition{Topic: "u", ID: 2}
	got := ThrottlingOf(
		Moves{other: {Replicas: []int32{5, 4}, Adding: []int32{5}, Removing: []int32{4}}},
		plan.Assignment{a: {3, 2}, b: {2, 1}},
		plan.Assignment{a: {2, 3}, b: {1, 3}})
	assert.Equal(t, map[string]ThrottledReplicas{"t": {"0:2,0:3,10:1,10:3", "10:2"}, "u": {"2:4", "2:5"}}, got.Topics)
	assert.Equal(t, []int32{1, 2, 3, 4, 5}, got.Brokers)

	// Given again with another target, a running move still comes from where it came from.
	got = ThrottlingOf(Moves{a: {Replicas: []int32{2, 1, 3}, Adding: []int32{2}}}, plan.Assignment{a: {4, 3}}, plan.Assignment{a: {2, 1, 3}})
	assert.Equal(t, map[string]ThrottledReplicas{"t": {"0:1,0:3", "0:4"}}, got.Topics)
}

func TestBytesLeftAreWhatNewReplicasLack(t *testing.T) {
	p, q := plan.Partition{Topic: "t", ID: 0}, plan.Partition{Topic: "t", ID: 1}
	stored := []StoredReplica{
		{Replica{p, 1}, "/a", 1000, 0, false}, {Replica{p, 2}, "/a", 900, 0, false}, {Replica{p, 3}, "/a", 400, 0, false},
		{Replica{q, 1}, "/a", 700, 0, false}, {Replica{q, 1}, "/b", 200, 0, true},
	}
	left := BytesLeft(stored, Moves{p: {Replicas: []int32{3, 4, 1, 2}, Adding: []int32{3, 4}}, q: {}})
	assert.Equal(t, map[plan.Partition]int64{p: 600 + 1000, q: 0}, left)
	bytes, moves := DirBytesLeft(stored, func(r Replica) bool { return r == Replica{q, 1} })
	assert.Equal(t, []any{int64(500), 1}, []any{bytes, moves})
	_, moves = DirBytesLeft(stored, func(r Replica) bool { return r == Replica{p, 1} })
	assert.Zero(t, moves, "what nobody asked for")
}

func TestAPaceKnowsItsRateAndEnd(t *testing.T) {
	at := time.Unix(1000, 0)
	var p Pace
	p.See(at, -1)
	assert.Zero(t, p.Rate())
	for i := range 60 {
		p.See(at.Add(time.Duration(i)*time.Second), int64(100_000_000-i*1_000_000))
	}
	assert.LessOrEqual(t, len(p.seen), 22)
	assert.InDelta(t, 1e6, p.Rate(), 1)
	end, known := p.Remaining()
	assert.Equal(t, []any{41 * time.Second, true}, []any{end, known})
	assert.False(t, p.Stalled())
}

func TestAMoveIsStalledWhenForAWhileNothingWasCopied(t *testing.T) {
	at := time.Unix(1000, 0)
	var p Pace
	for i := range 10 {
		p.See(at.Add(time.Duration(i)*time.Second), 500)
		assert.False(t, p.Stalled(), "after %d s", i)
	}
	p.See(at.Add(10*time.Second), 500)
	assert.True(t, p.Stalled())
	p.See(at.Add(11*time.Second), 499)
	assert.False(t, p.Stalled(), "it goes on")
	var done Pace
	done.See(at, 0)
	done.See(at.Add(time.Minute), 0)
	assert.False(t, done.Stalled(), "nothing is left")
}
