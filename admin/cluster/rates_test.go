package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/admin/plan"
)

func TestRatesAreWhatTwoReadingsDifferBy(t *testing.T) {
	p, q, lost := plan.Partition{Topic: "t", ID: 0}, plan.Partition{Topic: "t", ID: 1}, plan.Partition{Topic: "u", ID: 0}
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	reading := func(seconds int, ends, sizes [2]int64, committed int64) *Reading {
		return &Reading{
			CommittedAt: at(seconds), EndsAt: at(seconds), SizesAt: at(seconds), Leaders: map[plan.Partition]int32{p: 1, q: 2},
			Starts: map[plan.Partition]int64{p: 0, q: 0}, Ends: map[plan.Partition]int64{p: ends[0], q: ends[1]},
			Sizes:     map[int32]map[plan.Partition]int64{1: {p: sizes[0], q: sizes[1]}, 2: {p: sizes[0], q: sizes[1]}},
			Committed: map[string]map[plan.Partition]int64{"g": {p: committed, lost: 3}},
		}
	}
	before, after := reading(100, [2]int64{100, 50}, [2]int64{1000, 5000}, 20), reading(110, [2]int64{200, 100}, [2]int64{2000, 400}, 80)
	brokers, topics, groups := Rates(before, after)
	known := func(n float64) Rate { return Rate{n, true} }
	// q lost its oldest segment: what came in is its 5 messages a second, of 4 bytes each.
	assert.Equal(t, []Traffic{{Name: "t", Messages: known(15), BytesIn: known(120), BytesOut: known(60), Size: 4800, Lag: -1}}, topics)
	assert.Equal(t, []Traffic{
		{Broker: 1, Messages: known(10), BytesIn: known(100), BytesOut: known(60), Size: 2400, Lag: -1},
		{Broker: 2, Messages: known(5), BytesIn: known(100), Size: 2400, Lag: -1},
	}, brokers)
	require.Len(t, groups, 1)
	assert.Equal(t, Traffic{Name: "g", Messages: known(6), BytesOut: known(60), Size: -1, Lag: 120, LagRate: known(4)}, groups[0])
	_, clears := groups[0].Clears()
	assert.False(t, clears, "it falls behind")
	in, clears := Traffic{Lag: 100, LagRate: known(-5)}.Clears()
	assert.Equal(t, []any{20 * time.Second, true}, []any{in, clears})
	_, clears = Traffic{Lag: -1, LagRate: known(-5)}.Clears()
	assert.False(t, clears)
}

func TestWhatAReadingLacksIsNotKnown(t *testing.T) {
	p := plan.Partition{Topic: "t", ID: 0}
	before := &Reading{EndsAt: time.Unix(1, 0), SizesAt: time.Unix(1, 0), Leaders: map[plan.Partition]int32{p: 1}}
	after := &Reading{EndsAt: time.Unix(2, 0), SizesAt: time.Unix(2, 0), Leaders: map[plan.Partition]int32{p: 1}, Ends: map[plan.Partition]int64{p: 9}, Committed: map[string]map[plan.Partition]int64{"g": {p: 4}, "h": {}}}
	brokers, topics, groups := Rates(before, after)
	assert.Empty(t, brokers, "the only one does not answer")
	assert.Equal(t, []Traffic{{Name: "t", Size: -1, Lag: -1}}, topics)
	assert.Equal(t, []Traffic{{Name: "g", Size: -1, Lag: 5}, {Name: "h", Size: -1, Lag: -1}}, groups)
	_, _, groups = Rates(after, after)
	assert.False(t, groups[0].LagRate.Known, "no time has passed")
}
