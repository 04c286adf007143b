package controller

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestWhoIsElected(t *testing.T) {
	led := func(leader int32, isr ...int32) leadership {
		return leadership{leader: leader, leaderEpoch: 5, isr: isr}
	}
	for name, c := range map[string]struct {
		elect  func(candidate) (leadership, bool)
		in     candidate
		leader int32 // -1: nobody
		isr    []int32
	}{
		"offline: the first replica online and in the ISR":        {electOffline, candidate{current: led(1, 1, 2, 3), replicas: []int32{1, 2, 3}, online: []int32{2, 3}}, 2, []int32{2, 3}},
		"offline: nobody of the ISR is there":                     {electOffline, candidate{current: led(1, 1), replicas: []int32{1, 2}, online: []int32{2}}, -1, nil},
		"offline: unclean takes the first online":                 {electOffline, candidate{current: led(1, 1), replicas: []int32{1, 2, 3}, online: []int32{2, 3}, unclean: true}, 2, []int32{2}},
		"offline: unclean is not used while the ISR has somebody": {electOffline, candidate{current: led(1, 1, 3), replicas: []int32{1, 2, 3}, online: []int32{2, 3}, unclean: true}, 3, []int32{3}},
		"offline: unclean takes who was there before whom is being added": {electOffline,
			candidate{current: led(4, 4), replicas: []int32{3, 2, 4}, adding: []int32{3}, online: []int32{2, 3}, unclean: true}, 2, []int32{2}},
		"offline: unclean takes whom is being added rather than nobody": {electOffline,
			candidate{current: led(4, 4), replicas: []int32{3, 2, 4}, adding: []int32{3}, online: []int32{3}, unclean: true}, 3, []int32{3}},
		"offline: unclean takes nobody whose broker has not confirmed": {electOffline,
			candidate{current: led(4, 4), replicas: []int32{3, 2, 4}, adding: []int32{3}, awaited: []int32{3}, online: []int32{3}, unclean: true}, -1, nil},
		"offline: unclean passes over whose broker has not confirmed": {electOffline,
			candidate{current: led(4, 4), replicas: []int32{3, 1, 4}, adding: []int32{3, 1}, awaited: []int32{3}, online: []int32{1, 3}, unclean: true}, 1, []int32{1}},
		"offline: a member of the ISR is not waited for": {electOffline,
			candidate{current: led(4, 4, 3), replicas: []int32{3, 2, 4}, adding: []int32{3}, awaited: []int32{3}, online: []int32{2, 3}, unclean: true}, 3, []int32{3}},
		"offline: nobody is there at all":                       {electOffline, candidate{current: led(1, 1), replicas: []int32{1}, unclean: true}, -1, nil},
		"reassigned: the first of the target in the ISR":        {electReassigned, candidate{current: led(1, 1, 3), replicas: []int32{2, 3}, online: []int32{2, 3}}, 3, []int32{1, 3}},
		"reassigned: none of the target is in the ISR":          {electReassigned, candidate{current: led(1, 1), replicas: []int32{2, 3}, online: []int32{2, 3}}, -1, nil},
		"preferred: the first replica":                          {electPreferred, candidate{current: led(2, 2, 1), replicas: []int32{1, 2}, online: []int32{1, 2}}, 1, []int32{2, 1}},
		"preferred: only the first replica":                     {electPreferred, candidate{current: led(2, 2, 3), replicas: []int32{1, 3, 2}, online: []int32{1, 2, 3}}, -1, nil},
		"shutdown: another of the ISR, the stopping one leaves": {electControlledShutdown, candidate{current: led(1, 1, 2), replicas: []int32{1, 2}, online: []int32{1, 2}, stopping: []int32{1}}, 2, []int32{2}},
		"shutdown: nobody else is in the ISR":                   {electControlledShutdown, candidate{current: led(1, 1), replicas: []int32{1, 2}, online: []int32{1, 2}, stopping: []int32{1}}, -1, nil},
		"shutdown: two at once":                                 {electControlledShutdown, candidate{current: led(1, 1, 2, 3), replicas: []int32{1, 2, 3}, online: []int32{1, 2, 3}, stopping: []int32{1, 2}}, 3, []int32{3}},
		"no-op: all stays":                                      {electNoOp, candidate{current: led(1, 1, 2)}, 1, []int32{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := c.elect(c.in)
			if c.leader < 0 {
				assert.False(t, ok)
				return
			}
			require.True(t, ok)
			assert.Equal(t, c.leader, got.leader)
			assert.Equal(t, c.isr, got.isr)
			assert.Equal(t, int32(6), got.leaderEpoch, "each success opens a new leader epoch")
		})
	}
}

// Whatever goes in: a leader is in its ISR, and a clean election keeps to the old ISR.
func TestElectionsKeepTheirInvariants(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func() (ids []int32) {
		for _, i := range r.Perm(6)[:r.IntN(6)] {
			ids = append(ids, int32(i))
		}
		return ids
	}
	for range 20_000 {
		in := candidate{current: leadership{leader: int32(r.IntN(6)), isr: some()}, replicas: some(), online: some(), stopping: some(), awaited: some(), unclean: r.IntN(2) == 0}
		in.adding = in.replicas[:r.IntN(len(in.replicas)+1)]
		for _, elect := range []func(candidate) (leadership, bool){electOffline, electReassigned, electPreferred, electControlledShutdown} {
			got, ok := elect(in)
			if !ok {
				continue
			}
			require.Contains(t, got.isr, got.leader)
			require.Contains(t, in.replicas, got.leader)
			require.Contains(t, in.online, got.leader)
			clean := subset(got.isr, in.current.isr)
			require.True(t, clean || in.unclean && slices.Equal(got.isr, []int32{got.leader}) && !slices.Contains(in.awaited, got.leader), "%+v", in)
		}
	}
}

func TestReassignmentsAreDescribedAsKIP455Does(t *testing.T) {
	start := assignment{replicas: []int32{1, 2, 3}}
	moving := start.reassignTo([]int32{4, 2})
	assert.Equal(t, assignment{replicas: []int32{4, 2, 1, 3}, adding: []int32{4}, removing: []int32{1, 3}}, moving)
	assert.Equal(t, []int32{4, 2}, moving.target())
	assert.Equal(t, []int32{2, 1, 3}, moving.origin())
	superseded := moving.reassignTo([]int32{5, 1})
	assert.Equal(t, assignment{replicas: []int32{5, 1, 2, 3}, adding: []int32{5}, removing: []int32{2, 3}}, superseded, "4 is not wanted any more")
	cancelled := moving.reassignTo(moving.origin())
	assert.False(t, cancelled.reassigning())
	assert.Equal(t, []int32{2, 1, 3}, cancelled.replicas)
	reordered := start.reassignTo([]int32{3, 2, 1})
	assert.False(t, reordered.reassigning(), "nothing to move")
}

func TestRequestVersionsFollowTheProtocolVersion(t *testing.T) {
	for text, want := range map[string][3]int16{
		"2.4-IV0": {3, 5, 1}, "2.4": {4, 6, 2}, "2.5": {4, 6, 2}, "2.6": {4, 6, 3}, "2.7": {4, 6, 3}, "2.8-IV0": {4, 6, 3}, "2.8": {5, 7, 3},
		"3.0": {5, 7, 3}, "3.1": {5, 7, 3}, "3.2": {6, 7, 3}, "3.3": {6, 7, 3}, "3.4-IV0": {7, 8, 3}, "3.9": {7, 8, 3}, "3.9-IV0": {7, 8, 3},
	} {
		v, err := ParseIBP(text)
		require.NoError(t, err)
		assert.Equal(t, want, [3]int16{v.speaks(leaderAndISRVersions), v.speaks(updateMetadataVersions), v.speaks(stopReplicaVersions)}, text)
		assert.Equal(t, text, v.String())
	}
	for text, want := range map[string]bool{"2.7-IV1": false, "2.7-IV2": true, "2.7": true, "2.6": false} {
		v, err := ParseIBP(text)
		require.NoError(t, err)
		assert.Equal(t, want, v.alterPartition(), text)
	}
	for _, text := range []string{"", "3", "x.y", "2.8-IVx", "2.3", "0.10.2"} {
		_, err := ParseIBP(text)
		assert.Error(t, err, text)
	}
}

func TestOfSeveralReassignmentsOfAPartitionTheLastCounts(t *testing.T) {
	asked := func(id int32, replicas ...int32) kmsg.AlterPartitionAssignmentsRequestTopicPartition {
		return kmsg.AlterPartitionAssignmentsRequestTopicPartition{Partition: id, Replicas: replicas}
	}
	order, wanted := wantedAssignments(&kmsg.AlterPartitionAssignmentsRequest{Topics: []kmsg.AlterPartitionAssignmentsRequestTopic{
		{Topic: "a", Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{asked(1, 1), asked(0, 2)}}, {Topic: "none"},
		{Topic: "a", Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{asked(1, 3, 4)}},
	}})
	assert.Equal(t, []TopicPartition{{"a", 1}, {"a", 0}}, order)
	assert.Equal(t, map[TopicPartition][]int32{{"a", 1}: {3, 4}, {"a", 0}: {2}}, wanted)
}

func TestIDsInMessagesLookAsScalasCollectionsDo(t *testing.T) {
	assert.Equal(t, "ArrayBuffer(1, 1)", scalaBuffer([]int32{1, 1}))
	assert.Equal(t, "Set(1, 2, 3, 4)", scalaSet([]int32{1, 2, 3, 4}))
	assert.Equal(t, "HashSet(1, 2, 3, 4, 5)", scalaSet([]int32{1, 2, 3, 4, 5}))
}
