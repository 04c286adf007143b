package group

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestAnEmptyGroupWaitsForMoreMembersAndNotForEver(t *testing.T) {
	d := newDesk(t, deskConfig())
	req := joinRequest("g", "", "t")
	req.RebalanceTimeoutMs = 7000
	first := d.join(req)
	for range 6 { // each comes while the delay runs, and prolongs it
		d.pass(1000)
		d.join(req)
	}
	require.Nil(t, first.value)
	d.pass(1000)
	require.NotNil(t, first.value, "the delay is bounded by the rebalance timeout")
	d.pass(60_000)
}

func TestTheDelayCountsFromTheMemberThatCameLast(t *testing.T) {
	d := newDesk(t, deskConfig())
	joins := []*later[JoinResult]{d.join(joinRequest("g", "", "t"))}
	for range 10 {
		d.pass(100)
		joins = append(joins, d.join(joinRequest("g", "", "t")))
	}
	d.pass(2000)
	d.nowMs -= 3_600_000 // somebody sets the clock
	d.core.Shift(-3_600_000)
	d.pass(999)
	require.Nil(t, joins[0].value)
	d.pass(1)
	for _, j := range joins {
		require.NotNil(t, j.value)
		require.NoError(t, j.value.Err)
		assert.Equal(t, int32(1), j.value.Generation)
	}
	assert.Len(t, joins[0].value.Members, len(joins))
}

func TestWithoutNewMembersTheDelayIsNotProlonged(t *testing.T) {
	d := newDesk(t, deskConfig())
	j := d.join(joinRequest("g", "", "t"))
	d.pass(2999)
	require.Nil(t, j.value)
	d.pass(1)
	require.NotNil(t, j.value)
	assert.Equal(t, int32(1), j.value.Generation)
	assert.Equal(t, j.value.MemberID, j.value.LeaderID)
	assert.Len(t, j.value.Members, 1)
}

// H55: a client that vanishes before it learns of its id.
func TestH55_PendingMembersTimeOut(t *testing.T) {
	d := newDesk(t, deskConfig())
	member, generation := d.stable("g", "t")
	req := joinRequest("g", "", "t")
	req.RequireMemberID = true
	first := d.join(req)
	require.ErrorIs(t, first.value.Err, kerr.MemberIDRequired)
	again := d.join(joinRequest("g", member, "t")) // the leader joins: a rebalance that also waits for the pending one
	require.Nil(t, again.value)
	d.pass(9999)
	require.Nil(t, again.value)
	d.pass(1)
	require.NotNil(t, again.value)
	assert.Equal(t, generation+1, again.value.Generation)
	late := joinRequest("g", first.value.MemberID, "t")
	assert.ErrorIs(t, d.join(late).value.Err, kerr.UnknownMemberID)
}

func TestH55_JoinsOfNewMembersTimeOut(t *testing.T) {
	cfg := deskConfig()
	d := newDesk(t, cfg)
	member, _ := d.stable("g", "t")
	req := joinRequest("g", "", "t")
	req.RebalanceTimeoutMs = 3_600_000
	lost := d.join(req)
	require.Nil(t, lost.value, "waits for the member that is there")
	for range newMemberJoinTimeoutMs / 5000 {
		d.pass(5000)
		_ = d.heartbeat("g", 1, member)
	}
	require.NotNil(t, lost.value)
	assert.ErrorIs(t, lost.value.Err, kerr.UnknownMemberID)
}

func TestASilentMemberIsRemovedAndTheOthersRebalance(t *testing.T) {
	d := newDesk(t, deskConfig())
	a, _ := d.stable("g", "t")
	jb := d.join(joinRequest("g", "", "t"))
	ja := d.join(joinRequest("g", a, "t"))
	b, gen := jb.value.MemberID, ja.value.Generation
	sb := d.sync("g", gen, b)
	sa := d.sync("g", gen, a, Assignment{a, []byte("A")}, Assignment{b, []byte("B")})
	require.Equal(t, []byte("A"), sa.value.Assignment)
	require.Equal(t, []byte("B"), sb.value.Assignment)
	d.pass(9000)
	require.NoError(t, d.heartbeat("g", gen, a))
	d.pass(1000)
	require.ErrorIs(t, d.heartbeat("g", gen, a), kerr.RebalanceInProgress, "b is gone")
	again := d.join(joinRequest("g", a, "t"))
	require.NotNil(t, again.value)
	assert.Len(t, again.value.Members, 1)
	assert.ErrorIs(t, d.heartbeat("g", gen+1, b), kerr.UnknownMemberID)
}

func TestMembersThatDoNotJoinAgainAreDropped(t *testing.T) {
	d := newDesk(t, deskConfig())
	a, gen := d.stable("g", "t")
	jb := d.join(joinRequest("g", "", "t"))
	for range 12 { // it lives, but does not join
		d.pass(4999)
		assert.ErrorIs(t, d.heartbeat("g", gen, a), kerr.RebalanceInProgress)
	}
	require.Nil(t, jb.value)
	d.pass(100)
	require.NotNil(t, jb.value, "the rebalance timeout is over")
	assert.Equal(t, jb.value.MemberID, jb.value.LeaderID)
}

func TestMembersThatDoNotSyncAreDropped(t *testing.T) {
	d := newDesk(t, deskConfig())
	a, _ := d.stable("g", "t")
	jb := d.join(joinRequest("g", "", "t"))
	ja := d.join(joinRequest("g", a, "t"))
	gen := ja.value.Generation
	d.sync("g", gen, a, Assignment{a, nil})
	for range 12 {
		d.pass(4999)
		require.NoError(t, d.heartbeat("g", gen, a))
		require.NoError(t, d.heartbeat("g", gen, jb.value.MemberID))
	}
	d.pass(100)
	assert.ErrorIs(t, d.heartbeat("g", gen, a), kerr.RebalanceInProgress)
	assert.ErrorIs(t, d.heartbeat("g", gen, jb.value.MemberID), kerr.UnknownMemberID)
}

func TestTheAssignmentIsToldWhenItIsInTheLog(t *testing.T) {
	d := newDesk(t, deskConfig())
	j := d.join(joinRequest("g", "", "t"))
	d.pass(3000)
	d.hold = true
	s := d.sync("g", 1, j.value.MemberID, Assignment{j.value.MemberID, []byte("A")})
	require.Nil(t, s.value)
	d.release(nil)
	require.NotNil(t, s.value)
	require.NoError(t, s.value.Err)

	again := d.join(joinRequest("g", j.value.MemberID, "t"))
	s = d.sync("g", again.value.Generation, j.value.MemberID, Assignment{j.value.MemberID, []byte("B")})
	d.release(kerr.NotEnoughReplicas)
	require.NotNil(t, s.value)
	assert.ErrorIs(t, s.value.Err, kerr.CoordinatorNotAvailable)
	assert.ErrorIs(t, d.heartbeat("g", again.value.Generation, j.value.MemberID), kerr.RebalanceInProgress)
}

func TestAnAssignmentThatComesTooLateIsForNobody(t *testing.T) {
	d := newDesk(t, deskConfig())
	a, _ := d.stable("g", "t")
	again := d.join(joinRequest("g", a, "t"))
	d.hold = true
	s := d.sync("g", again.value.Generation, a, Assignment{a, []byte("old")})
	other := d.join(joinRequest("g", "", "t"))
	require.ErrorIs(t, s.value.Err, kerr.RebalanceInProgress)
	d.release(nil)
	j := d.join(joinRequest("g", a, "t"))
	require.NotNil(t, j.value)
	require.NotNil(t, other.value)
	assert.ErrorIs(t, d.commit(commitOne("g", again.value.Generation, a, "t", 1)).value.Errs[0], kerr.IllegalGeneration)
}

func TestAGroupIsBoundedInSize(t *testing.T) {
	cfg := deskConfig()
	cfg.MaxSize = 2
	d := newDesk(t, cfg)
	one, two := d.join(joinRequest("g", "", "t")), d.join(joinRequest("g", "", "t"))
	three := d.join(joinRequest("g", "", "t"))
	require.ErrorIs(t, three.value.Err, kerr.GroupMaxSizeReached)
	d.pass(10_000)
	require.NoError(t, one.value.Err)
	require.NoError(t, two.value.Err)
	assert.ErrorIs(t, d.join(joinRequest("g", "", "t")).value.Err, kerr.GroupMaxSizeReached)
}

func TestALoadedGroupThatIsTooLargeShedsMembers(t *testing.T) {
	d := newDesk(t, deskConfig())
	joins := []*later[JoinResult]{d.join(joinRequest("g", "", "t")), d.join(joinRequest("g", "", "t")), d.join(joinRequest("g", "", "t"))}
	d.pass(10_000)
	d.sync("g", 1, joins[0].value.LeaderID)
	d.core.cfg.MaxSize = 2
	d.restart()
	refused := 0
	for _, j := range joins {
		again := d.join(joinRequest("g", j.value.MemberID, "t"))
		if again.value != nil && again.value.Err == kerr.GroupMaxSizeReached {
			refused++
		}
	}
	assert.Equal(t, 1, refused)
}

func TestTheProtocolThatMostLikeIsChosen(t *testing.T) {
	d := newDesk(t, deskConfig())
	speak := func(names ...string) *later[JoinResult] {
		req := joinRequest("g", "", "t")
		req.Protocols = nil
		for _, n := range names {
			req.Protocols = append(req.Protocols, Protocol{Name: n, Metadata: says(n)})
		}
		return d.join(req)
	}
	a, b, c := speak("x", "y", "z"), speak("y", "x"), speak("y", "z", "x")
	stranger := speak("z")
	require.ErrorIs(t, stranger.value.Err, kerr.InconsistentGroupProtocol, "not all speak it")
	d.pass(10_000)
	for _, j := range []*later[JoinResult]{a, b, c} {
		assert.Equal(t, "y", *j.value.Protocol)
	}
	assert.Equal(t, says("y"), a.value.Members[0].Metadata)
}

// Apache Kafka 3.9.1 counts a name that is given twice as two speakers.
func TestAProtocolThatAMemberNamesTwiceIsChosenIfThereIsNoOther(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{{[]string{"range", "roundrobin", "range"}, "roundrobin"}, {[]string{"range", "roundrobin"}, "range"}, {[]string{"range", "range"}, "range"}} {
		d := newDesk(t, deskConfig())
		req := joinRequest("g", "", "t")
		req.Protocols = nil
		for _, n := range c.names {
			req.Protocols = append(req.Protocols, Protocol{Name: n, Metadata: says(n)})
		}
		j := d.join(req)
		d.pass(10_000)
		require.NoError(t, j.value.Err)
		assert.Equal(t, c.want, *j.value.Protocol, "%v", c.names)
	}
}

func static(group, instance string, topics ...string) *JoinRequest {
	req := joinRequest(group, "", topics...)
	req.InstanceID, req.CanSkipAssignment = &instance, true
	return req
}

// BR-052: the next incarnation of a static member, and a move of the coordinator
// in between.
func TestBR052_AStaticMemberComesAgainAcrossAMove(t *testing.T) {
	d := newDesk(t, deskConfig())
	first := d.join(static("g", "i", "t"))
	d.pass(3000)
	old := first.value.MemberID
	d.sync("g", 1, old, Assignment{old, []byte("A")})
	req := static("g", "i", "t")
	req.SessionTimeoutMs = 50_000
	second := d.join(req)
	require.NoError(t, second.value.Err)
	assert.Equal(t, int32(1), second.value.Generation, "no rebalance")
	assert.True(t, second.value.SkipAssignment)
	assert.NotEqual(t, old, second.value.MemberID)

	d.restart()
	var fenced later[error]
	instance := "i"
	d.core.Heartbeat(d.nowMs, &HeartbeatRequest{Group: "g", Generation: 1, MemberID: old, InstanceID: &instance}, fenced.take)
	d.work()
	assert.ErrorIs(t, *fenced.value, kerr.FencedInstanceID)
	s := d.sync("g", 1, second.value.MemberID)
	assert.Equal(t, []byte("A"), s.value.Assignment)
	d.pass(49_000)
	assert.NoError(t, d.heartbeat("g", 1, second.value.MemberID), "the new timeout counts")
}

func TestBR052_AStaticMemberThatCannotBeWrittenKeepsItsOldID(t *testing.T) {
	d := newDesk(t, deskConfig())
	first := d.join(static("g", "i", "t"))
	d.pass(3000)
	old := first.value.MemberID
	d.sync("g", 1, old, Assignment{old, []byte("A")})
	d.fail = kerr.NotEnoughReplicas
	second := d.join(static("g", "i", "t"))
	require.ErrorIs(t, second.value.Err, kerr.CoordinatorNotAvailable)
	assert.NoError(t, d.heartbeat("g", 1, old))
}

func TestAStaticMemberDuringTheAssignmentBeginsAnotherRebalance(t *testing.T) {
	d := newDesk(t, deskConfig())
	first := d.join(static("g", "i", "t"))
	d.pass(3000)
	second := d.join(static("g", "i", "t"))
	require.NotNil(t, second.value)
	assert.Equal(t, first.value.Generation+1, second.value.Generation)
	assert.ErrorIs(t, d.heartbeat("g", 1, first.value.MemberID), kerr.UnknownMemberID)
}

func TestStaticMembersThatAreAwayKeepTheirPlace(t *testing.T) {
	d := newDesk(t, deskConfig())
	ra, rb := static("g", "a", "t"), static("g", "b", "t")
	ra.SessionTimeoutMs, rb.SessionTimeoutMs = 300_000, 300_000
	a, b := d.join(ra), d.join(rb)
	d.pass(10_000)
	lead := a.value.LeaderID
	d.sync("g", 1, lead, Assignment{a.value.MemberID, []byte("A")}, Assignment{b.value.MemberID, []byte("B")})
	d.sync("g", 1, b.value.MemberID)
	again := joinRequest("g", a.value.MemberID, "t")
	again.SessionTimeoutMs = 300_000
	j := d.join(again)
	require.Nil(t, j.value)
	d.pass(60_000)
	require.NotNil(t, j.value)
	assert.Len(t, j.value.Members, 2, "b is away and still a member")
}

// H56: what the log and the generations do not allow is refused.
func TestH56_CommitsOfThePastAreRefused(t *testing.T) {
	d := newDesk(t, deskConfig())
	a, gen := d.stable("g", "t")
	require.NoError(t, d.commit(commitOne("g", gen, a, "t", 10)).value.Errs[0])
	jb := d.join(joinRequest("g", "", "t"))
	require.NoError(t, d.commit(commitOne("g", gen, a, "t", 11)).value.Errs[0], "while a rebalance is prepared")
	d.join(joinRequest("g", a, "t"))
	assert.ErrorIs(t, d.commit(commitOne("g", gen, a, "t", 12)).value.Errs[0], kerr.IllegalGeneration)
	assert.ErrorIs(t, d.commit(commitOne("g", gen+1, a, "t", 12)).value.Errs[0], kerr.RebalanceInProgress)
	assert.ErrorIs(t, d.commit(commitOne("g", gen+1, "nobody", "t", 12)).value.Errs[0], kerr.UnknownMemberID)
	assert.ErrorIs(t, d.commit(commitOne("g", NoGeneration, "", "t", 12)).value.Errs[0], kerr.UnknownMemberID)
	assert.ErrorIs(t, d.commit(commitOne("other", 1, "m", "t", 12)).value.Errs[0], kerr.IllegalGeneration)
	assert.Equal(t, int64(11), d.fetch("g", "t", true).Offset)
	_ = jb
}

func TestACommitCountsWhenItIsCommittedAndNeverGoesBack(t *testing.T) {
	d := newDesk(t, deskConfig())
	d.hold = true
	one, two := d.commit(commitOne("g", NoGeneration, "", "t", 1)), d.commit(commitOne("g", NoGeneration, "", "t", 2))
	assert.Equal(t, NoOffset, d.fetch("g", "t", false).Offset)
	assert.ErrorIs(t, d.fetch("g", "t", true).Err, kerr.UnstableOffsetCommit)
	first, second := d.held[0], d.held[1]
	second.Ended(d.nowMs, 8, nil) // acknowledged the other way round
	d.work()
	require.NotNil(t, two.value)
	assert.Equal(t, int64(2), d.fetch("g", "t", true).Offset)
	first.Ended(d.nowMs, 7, nil)
	d.work()
	require.NoError(t, one.value.Errs[0])
	assert.Equal(t, int64(2), d.fetch("g", "t", true).Offset, "the later one in the log")

	d.held = nil
	three := d.commit(commitOne("g", NoGeneration, "", "t", 3))
	d.release(kerr.MessageTooLarge)
	assert.ErrorIs(t, three.value.Errs[0], kerr.InvalidCommitOffsetSize)
	assert.Equal(t, int64(2), d.fetch("g", "t", true).Offset)
}

func TestMetadataIsBounded(t *testing.T) {
	d := newDesk(t, deskConfig())
	req := commitOne("g", NoGeneration, "", "t", 1)
	req.Offsets[0].Metadata = strings.Repeat("ä", 4096)
	require.NoError(t, d.commit(req).value.Errs[0])
	req.Offsets[0].Metadata = strings.Repeat("x", 4097)
	require.ErrorIs(t, d.commit(req).value.Errs[0], kerr.OffsetMetadataTooLarge)
	req.Offsets[0].Metadata = strings.Repeat("\U0001F600", 2049)
	require.ErrorIs(t, d.commit(req).value.Errs[0], kerr.OffsetMetadataTooLarge, "two units of UTF-16 each")
}

// BR-062 in all its parts.
func TestBR062_OffsetsExpireWhenNobodyNeedsThem(t *testing.T) {
	gone := func(d *desk, group, topic string) bool {
		d.core.Expire(d.nowMs)
		d.work()
		return d.fetch(group, topic, false).Offset == NoOffset
	}
	alive := func(d *desk, group, member string, gen int32, ms int64) {
		for range ms / 5000 {
			d.pass(5000)
			require.NoError(d.t, d.heartbeat(group, gen, member))
		}
	}
	t.Run("not of a live group that commits nothing", func(t *testing.T) {
		d := newDesk(t, deskConfig())
		a, gen := d.stable("g", "t")
		d.commit(commitOne("g", gen, a, "t", 1))
		alive(d, "g", a, gen, 300_000)
		assert.False(t, gone(d, "g", "t"))
	})
	t.Run("of a topic that a live group has dropped", func(t *testing.T) {
		d := newDesk(t, deskConfig())
		a, gen := d.stable("g", "t")
		d.commit(commitOne("g", gen, a, "dropped", 1))
		alive(d, "g", a, gen, 55_000)
		assert.False(t, gone(d, "g", "dropped"))
		alive(d, "g", a, gen, 5_000)
		assert.True(t, gone(d, "g", "dropped"))
	})
	t.Run("of an empty group, since it is empty", func(t *testing.T) {
		d := newDesk(t, deskConfig())
		a, gen := d.stable("g", "t")
		d.commit(commitOne("g", gen, a, "t", 1))
		alive(d, "g", a, gen, 100_000)
		require.NoError(t, d.leave("g", a))
		d.restart()
		d.pass(59_999)
		assert.False(t, gone(d, "g", "t"))
		d.restart()
		assert.False(t, gone(d, "g", "t"), "a reload does not make it older")
		d.pass(1)
		assert.True(t, gone(d, "g", "t"))
		assert.Equal(t, "Dead", d.core.Describe("g").State)
		d.restart()
		assert.Empty(t, d.core.groups, "tombstones for the offset and the group")
	})
	t.Run("of those who are no members, since the commit", func(t *testing.T) {
		d := newDesk(t, deskConfig())
		d.commit(commitOne("g", NoGeneration, "", "t", 1))
		d.restart()
		d.pass(59_999)
		assert.False(t, gone(d, "g", "t"))
		d.commit(commitOne("g", NoGeneration, "", "t", 2))
		d.pass(59_999)
		assert.False(t, gone(d, "g", "t"))
		d.pass(1)
		assert.True(t, gone(d, "g", "t"))
		d.restart()
		assert.Empty(t, d.core.groups)
	})
	t.Run("as the commit asked", func(t *testing.T) {
		d := newDesk(t, deskConfig())
		req := commitOne("g", NoGeneration, "", "t", 1)
		req.Offsets[0].RetentionMs = 200_000
		d.commit(req)
		d.restart()
		d.pass(199_999)
		assert.False(t, gone(d, "g", "t"))
		d.pass(1)
		assert.True(t, gone(d, "g", "t"))
	})
	t.Run("not while a group rebalances", func(t *testing.T) {
		d := newDesk(t, deskConfig())
		a, gen := d.stable("g", "t")
		d.commit(commitOne("g", gen, a, "t", 1))
		req := joinRequest("g", "", "t")
		req.RebalanceTimeoutMs = 3_600_000
		d.join(req)
		for range 20 {
			d.pass(5000)
			require.ErrorIs(t, d.heartbeat("g", gen, a), kerr.RebalanceInProgress)
		}
		assert.False(t, gone(d, "g", "t"))
	})
}

func TestOffsetsOfDeletedTopicsGo(t *testing.T) {
	d := newDesk(t, deskConfig())
	a, gen := d.stable("g", "t", "u")
	d.commit(commitOne("g", gen, a, "t", 1))
	d.commit(commitOne("g", gen, a, "u", 1))
	d.hold = true
	underway := d.commit(commitOne("g", gen, a, "t", 2))
	d.core.TopicsDeleted(d.nowMs, []TopicPartition{{"t", 0}})
	d.work()
	d.hold = false
	d.release(nil)
	require.NoError(t, underway.value.Errs[0])
	assert.Equal(t, NoOffset, d.fetch("g", "t", false).Offset)
	assert.Equal(t, int64(1), d.fetch("g", "u", false).Offset)
}

func TestOffsetsAndGroupsAreDeletedWhereNobodyUsesThem(t *testing.T) {
	d := newDesk(t, deskConfig())
	a, gen := d.stable("g", "t")
	d.commit(commitOne("g", gen, a, "t", 1))
	d.commit(commitOne("g", gen, a, "u", 1))
	r := d.core.DeleteOffsets(d.nowMs, "g", []TopicPartition{{"t", 0}, {"u", 0}, {"v", 0}})
	d.work()
	assert.Equal(t, []error{kerr.GroupSubscribedToTopic, nil, nil}, r.Errs)
	assert.Equal(t, NoOffset, d.fetch("g", "u", false).Offset)
	assert.ErrorIs(t, d.core.DeleteGroup(d.nowMs, "g"), kerr.NonEmptyGroup)
	require.NoError(t, d.leave("g", a))
	require.NoError(t, d.core.DeleteGroup(d.nowMs, "g"))
	d.work()
	assert.ErrorIs(t, d.core.DeleteGroup(d.nowMs, "g"), kerr.GroupIDNotFound)
	d.restart()
	assert.Empty(t, d.core.groups)
}

func TestTransactionsCountWhenTheyEnd(t *testing.T) {
	for _, commit := range []bool{true, false} {
		t.Run(fmt.Sprint("commit ", commit), func(t *testing.T) {
			d := newDesk(t, deskConfig())
			d.commit(commitOne("g", NoGeneration, "", "t", 1))
			req := commitOne("g", NoGeneration, "", "t", 5)
			req.Producer = &Producer{ID: 7, Epoch: 1}
			require.NoError(t, d.commit(req).value.Errs[0])
			for range 2 { // before and after a move
				assert.Equal(t, int64(1), d.fetch("g", "t", false).Offset)
				assert.ErrorIs(t, d.fetch("g", "t", true).Err, kerr.UnstableOffsetCommit)
				d.restart()
			}
			d.marker(7, commit)
			d.core.EndTransaction(7, commit)
			for range 2 {
				want := int64(1)
				if commit {
					want = 5
				}
				assert.Equal(t, want, d.fetch("g", "t", true).Offset)
				d.restart()
			}
		})
	}
}

func TestATransactionMayHaveOffsetsOfSeveralGroups(t *testing.T) {
	d := newDesk(t, deskConfig())
	commits := func(group string, producer int64) {
		req := commitOne(group, NoGeneration, "", "t", producer)
		req.Producer = &Producer{ID: producer}
		require.NoError(t, d.commit(req).value.Errs[0])
	}
	commits("a", 7)
	commits("b", 7)
	commits("c", 8)
	d.restart()
	d.marker(7, true)
	d.core.EndTransaction(7, true)
	assert.Equal(t, int64(7), d.fetch("a", "t", true).Offset)
	assert.Equal(t, int64(7), d.fetch("b", "t", true).Offset)
	assert.ErrorIs(t, d.fetch("c", "t", true).Err, kerr.UnstableOffsetCommit)
	assert.NotContains(t, d.core.open, int64(7))
	assert.Contains(t, d.core.open, int64(8))
}

func TestATransactionDoesNotOverrideALaterCommit(t *testing.T) {
	d := newDesk(t, deskConfig())
	req := commitOne("g", NoGeneration, "", "t", 5)
	req.Producer = &Producer{ID: 7, Epoch: 1}
	d.commit(req)
	d.commit(commitOne("g", NoGeneration, "", "t", 9))
	d.marker(7, true)
	d.core.EndTransaction(7, true)
	assert.Equal(t, int64(9), d.fetch("g", "t", true).Offset)
	d.restart()
	assert.Equal(t, int64(9), d.fetch("g", "t", true).Offset)
}

func TestMembersSurviveAMove(t *testing.T) {
	d := newDesk(t, deskConfig())
	a, gen := d.stable("g", "t")
	d.commit(commitOne("g", gen, a, "t", 3))
	before := d.core.Describe("g")
	d.restart()
	assert.Equal(t, before, d.core.Describe("g"))
	require.NoError(t, d.heartbeat("g", gen, a))
	require.NoError(t, d.commit(commitOne("g", gen, a, "t", 4)).value.Errs[0])
	assert.Equal(t, FetchedOffset{TopicPartition: TopicPartition{"t", 0}, Offset: 4, LeaderEpoch: 2, Metadata: "m"}, d.fetch("g", "t", true))
	d.pass(10_000)
	assert.ErrorIs(t, d.heartbeat("g", gen, a), kerr.UnknownMemberID, "sessions go on")
}

func TestUnloadAnswersWhoWaits(t *testing.T) {
	d := newDesk(t, deskConfig())
	waits := d.join(joinRequest("g", "", "t"))
	a, gen := "", int32(0)
	j := d.join(joinRequest("h", "", "t"))
	d.pass(3000)
	a, gen = j.value.MemberID, j.value.Generation
	d.hold = true
	s := d.sync("h", gen, a, Assignment{a, nil})
	c := d.commit(commitOne("i", NoGeneration, "", "t", 1))
	waits2 := d.join(joinRequest("k", "", "t"))
	d.core.Unload(d.nowMs)
	d.work()
	d.release(kerr.NotLeaderForPartition)
	require.NotNil(t, waits.value)
	assert.ErrorIs(t, waits2.value.Err, kerr.NotCoordinator)
	assert.ErrorIs(t, s.value.Err, kerr.NotCoordinator)
	assert.ErrorIs(t, c.value.Errs[0], kerr.NotCoordinator)
	_, any := d.core.Next()
	assert.False(t, any, "no timer is left")
}

func TestAClockThatIsSetEndsNoSession(t *testing.T) {
	d := newDesk(t, deskConfig())
	a, gen := d.stable("g", "t")
	d.nowMs += 86_400_000
	d.core.Shift(86_400_000)
	d.core.Tick(d.nowMs)
	d.work()
	assert.NoError(t, d.heartbeat("g", gen, a))
	d.pass(10_000)
	assert.ErrorIs(t, d.heartbeat("g", gen, a), kerr.UnknownMemberID)
}
