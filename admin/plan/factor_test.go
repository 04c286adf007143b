package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMoreReplicasGoToOtherRacksThenToTheLeastLoaded(t *testing.T) {
	brokers := []Broker{{1, "a"}, {2, "a"}, {3, "b"}, {4, "b"}}
	p0, p1 := Partition{"t", 0}, Partition{"t", 1}
	placed := []Placed{{p1, []int32{3}, 0}, {p0, []int32{1}, 0}}
	load := map[int32]int{1: 1, 2: 7, 3: 6, 4: 5}
	got, err := WithFactor(placed, brokers, load, 2)
	require.NoError(t, err)
	assert.Equal(t, Assignment{p0: {1, 4}, p1: {3, 1}}, got)
	assert.Equal(t, map[int32]int{1: 1, 2: 7, 3: 6, 4: 5}, load)
	got, err = WithFactor(placed[1:], brokers, load, 3)
	require.NoError(t, err)
	assert.Equal(t, Assignment{p0: {1, 4, 3}}, got, "both racks have one, so that the load decides")
}

func TestFewerReplicasKeepTheLeader(t *testing.T) {
	p := Partition{"t", 0}
	got, err := WithFactor([]Placed{{p, []int32{3, 1, 2}, 0}}, []Broker{{1, ""}, {2, ""}, {3, ""}}, nil, 2)
	require.NoError(t, err)
	assert.Equal(t, Assignment{p: {3, 1}}, got)
}

func TestAFactorNeedsAsManyBrokers(t *testing.T) {
	p := Partition{"t", 0}
	_, err := WithFactor([]Placed{{p, []int32{1}, 0}}, []Broker{{1, ""}, {2, ""}}, nil, 3)
	var few *TooFewBrokersError
	assert.ErrorAs(t, err, &few)
	_, err = WithFactor([]Placed{{p, []int32{1}, 0}}, []Broker{{1, ""}}, nil, 0)
	assert.Error(t, err)
}
