package cluster

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"barnabas/admin/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestARefusalIsNotAnUnreachableCluster(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, err := range []error{dial, fmt.Errorf("unable to dial: %w", dial), io.EOF, context.DeadlineExceeded} {
		assert.True(t, IsUnreachable(err), "%v", err)
	}
	for _, err := range []error{nil, kerr.UnknownTopicOrPartition, Answered(kerr.InvalidConfig.Code, nil), &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, fmt.Errorf("%w after %w", kerr.NotController, io.EOF)} {
		assert.False(t, IsUnreachable(err), "%v", err)
	}
}

func TestAReplicaThatIsBeingAddedIsNotMissing(t *testing.T) {
	p := Partition{Leader: 1, LeaderAlive: true, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2}, Adding: []int32{3}}
	assert.False(t, p.UnderReplicated())
	p.ISR = []int32{1}
	assert.True(t, p.UnderReplicated())
	assert.True(t, p.AtMinISR(1))
	assert.True(t, p.UnderMinISR(2))
	assert.EqualValues(t, -1, Partition{}.Preferred())
	assert.True(t, Partition{Leader: 2}.Unavailable(), "the leader is not alive")
}

func TestTopicsWithoutANameOrWithAnErrorAreNotTold(t *testing.T) {
	name := kmsg.StringPtr("t")
	resp := &kmsg.MetadataResponse{Brokers: []kmsg.MetadataResponseBroker{{NodeID: 2}}, Topics: []kmsg.MetadataResponseTopic{
		{ErrorCode: kerr.UnknownTopicID.Code}, {Topic: kmsg.StringPtr("gone"), ErrorCode: kerr.UnknownTopicOrPartition.Code},
		{Topic: name, Partitions: []kmsg.MetadataResponseTopicPartition{{Partition: 1, Leader: 3, Replicas: []int32{3, 2}}, {Partition: 0, Leader: 2, Replicas: []int32{2}}}},
	}}
	topics := topicsOf(resp)
	require.Len(t, topics, 1)
	addMoves(topics, Moves{{Topic: "t", ID: 0}: {Replicas: []int32{2, 3}, Adding: []int32{3}}})
	assert.Equal(t, []Partition{{ID: 0, Leader: 2, LeaderAlive: true, Replicas: []int32{2}, Adding: []int32{3}}, {ID: 1, Leader: 3, Replicas: []int32{3, 2}}}, topics[0].Partitions)
}

func TestAGroupWithoutMembersKeepsItsLag(t *testing.T) {
	p, q := plan.Partition{Topic: "t", ID: 0}, plan.Partition{Topic: "t", ID: 1}
	list := withEnds(join(map[plan.Partition]int64{q: 9, p: 4}, nil), map[plan.Partition]int64{p: 10, q: 7}, nil)
	require.Len(t, list, 2)
	lag, known := list[0].Lag()
	assert.Equal(t, []any{p, int64(6), true}, []any{list[0].Partition, lag, known})
	lag, known = list[1].Lag()
	assert.Equal(t, []any{int64(0), true}, []any{lag, known}, "a commit beyond the end that was read is no lag, and no negative one")
	total, known := TotalLag(list)
	assert.Equal(t, []any{int64(6), true}, []any{total, known})
}

func TestALagThatIsNotKnownSaysWhy(t *testing.T) {
	for want, p := range map[string]GroupPartition{
		"":                   {Current: 1, End: 2},
		"no_commit":          {Current: -1, End: 2},
		"no_such_partition":  {Current: 1, End: -1, Fault: kerr.UnknownTopicOrPartition},
		"not_authorized":     {Current: 1, End: -1, Fault: kerr.TopicAuthorizationFailed},
		"leader_unreachable": {Current: 1, End: -1, Fault: io.EOF},
		"no_leader":          {Current: 1, End: -1, Fault: kerr.LeaderNotAvailable},
	} {
		assert.Equal(t, want, p.Unknown())
		_, known := p.Lag()
		assert.Equal(t, want == "", known, want)
	}
	_, known := TotalLag([]GroupPartition{{Current: -1, End: 2}})
	assert.False(t, known, "a sum of nothing is not known")
}

func TestAMemberWithoutAConsumersAssignmentHasNothing(t *testing.T) {
	p := plan.Partition{Topic: "t", ID: 0}
	list := join(map[plan.Partition]int64{p: 3}, []kadm.DescribedGroupMember{{MemberID: "m"}})
	assert.Equal(t, []GroupPartition{{Partition: p, Current: 3, End: -1}}, list)
}

func TestAResetStaysWithinThePartition(t *testing.T) {
	p, q, r := plan.Partition{Topic: "t", ID: 0}, plan.Partition{Topic: "t", ID: 1}, plan.Partition{Topic: "t", ID: 2}
	committed := map[plan.Partition]int64{p: 50, q: 12, r: 15}
	asked, err := Reset{Mode: ShiftBy, Number: -10}.asked([]plan.Partition{p, q, r}, committed)
	require.NoError(t, err)
	to, clamped := within(asked, map[plan.Partition]int64{p: 0, q: 10, r: 0}, map[plan.Partition]int64{p: 30, q: 30, r: 30})
	assert.Equal(t, map[plan.Partition]int64{p: 30, q: 10, r: 5}, to)
	assert.Equal(t, []Clamped{{p, 40, 30}, {q, 2, 10}}, clamped)
	assert.Equal(t, "New offset (40) is higher than latest offset for topic partition t-0. Value will be set to 30", clamped[0].String())
	_, err = Reset{Mode: ShiftBy}.asked([]plan.Partition{{Topic: "u"}}, committed)
	assert.EqualError(t, err, "Cannot shift offset for partition u-0 since there is no current committed offset")
}

func TestAScopeNamesTopicsOrPartitions(t *testing.T) {
	whole, some, err := ParseScope([]string{"a", "b:0, 2"})
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, whole)
	assert.Equal(t, []plan.Partition{{Topic: "b", ID: 0}, {Topic: "b", ID: 2}}, some)
	for _, bad := range []string{"b:", "b:x", "b:-1"} {
		_, _, err := ParseScope([]string{bad})
		assert.Error(t, err, bad)
	}
}

func TestDisagreementsNameWhoSaysWhat(t *testing.T) {
	p := plan.Partition{Topic: "t", ID: 0}
	view := func(controller, leader int32) View {
		return View{controller, []Broker{{ID: 1}, {ID: 2}}, map[plan.Partition]Leadership{p: {leader, 4}}}
	}
	s := &Snapshot{Views: map[int32]View{1: view(1, 1), 2: view(1, 1)}}
	assert.Empty(t, s.Disagreements())
	s.Views[2] = view(2, 2)
	assert.Equal(t, []Disagreement{{"controller", map[int32]string{1: "1", 2: "2"}}, {"leader of t-0", map[int32]string{1: "1 (epoch 4)", 2: "2 (epoch 4)"}}}, s.Disagreements())
	s.Views[2] = View{Controller: 1, Brokers: []Broker{{ID: 2}}}
	assert.Equal(t, []Disagreement{{"brokers", map[int32]string{1: "[1 2]", 2: "[2]"}}, {"leader of t-0", map[int32]string{1: "1 (epoch 4)", 2: "not known"}}}, s.Disagreements())
}
