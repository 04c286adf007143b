package partition

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// coreWorld drives a leader's core: a log end, a clock, followers that fetch.
type coreWorld struct {
	t   *testing.T
	c   core
	now time.Time
	end int64
	min int32
}

const maxLag = 10 * time.Second

func at(offset int64) commitlog.Position {
	return commitlog.Position{Offset: offset, SegmentBase: 0, SegmentPos: offset * 100}
}

// leading returns broker 1 as the leader of replicas 1, 2, 3, all alive, with the
// given ISR, log end and high watermark.
func leading(t *testing.T, isr []int32, end, hw int64) *coreWorld {
	w := &coreWorld{t: t, c: newCore(1, maxLag), now: time.Unix(1000, 0), end: end, min: 1}
	w.c.setBrokers(map[int32]BrokerInfo{1: {Epoch: 10}, 2: {Epoch: 20}, 3: {Epoch: 30}})
	w.lead(5, isr, hw)
	return w
}

func (w *coreWorld) lead(epoch int32, isr []int32, hw int64) {
	w.c.lead(w.now, &LeaderAndISRPartition{
		Topic: "t", Leader: 1, LeaderEpoch: epoch, ISR: isr, PartitionEpoch: 7, Replicas: []int32{1, 2, 3}, ControllerEpoch: 2,
	}, at(w.end), at(hw), 0)
	require.NoError(w.t, w.c.check())
}

func (w *coreWorld) append(n int64) bool {
	w.end += n
	return w.c.advance(w.now, at(w.end), w.min)
}

func (w *coreWorld) fetch(id int32, offset int64) step {
	s := w.c.fetched(w.now, id, at(offset), 0, -1, at(w.end), w.min)
	require.NoError(w.t, w.c.check())
	return s
}

func (w *coreWorld) commit(change *ISRChange) step {
	w.t.Helper()
	require.NotNil(w.t, change)
	return w.answer(change, nil)
}

func (w *coreWorld) answer(change *ISRChange, err error) step {
	got := ISRChanged{LeaderID: 1, LeaderEpoch: change.LeaderEpoch, ISR: ids(change), PartitionEpoch: change.PartitionEpoch + 1}
	if err != nil {
		got = ISRChanged{PartitionEpoch: None, LeaderEpoch: None}
	}
	return w.c.changed(w.now, change.serial, got, err, at(w.end), w.min)
}

func ids(change *ISRChange) []int32 {
	var out []int32
	for _, m := range change.ISR {
		out = append(out, m.ID)
	}
	return out
}

func TestHighWatermarkOfASingleReplicaIsTheLogEndAtOnce(t *testing.T) {
	w := leading(t, []int32{1}, 0, 0)
	w.c.remotes = nil
	require.True(t, w.append(5))
	require.EqualValues(t, 5, w.c.hw.Offset)
	done, enough := w.c.acked(5, w.min)
	require.True(t, done)
	require.True(t, enough)
}

func TestHighWatermarkIsTheSmallestEndInTheISR(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	require.False(t, w.append(10))
	require.False(t, w.fetch(2, 10).highWatermark)
	require.True(t, w.fetch(3, 6).highWatermark)
	require.EqualValues(t, 6, w.c.hw.Offset)
	require.EqualValues(t, 600, w.c.hw.SegmentPos, "the place comes from the follower's fetch")
	require.True(t, w.fetch(3, 10).highWatermark)
	require.EqualValues(t, 10, w.c.hw.Offset)
	require.False(t, w.fetch(3, 4).highWatermark, "never goes back")
	require.EqualValues(t, 10, w.c.hw.Offset)
}

func TestH11_JoinNeedsTheHighWatermarkAndTheStartOfTheEpoch(t *testing.T) {
	w := leading(t, []int32{1, 2}, 100, 60) // epoch begins at 100, the leader's own high watermark lags
	require.Nil(t, w.fetch(3, 60).change, "at the high watermark but below the epoch's start")
	require.Nil(t, w.fetch(3, 99).change)
	s := w.fetch(3, 100)
	require.Equal(t, []int32{1, 2, 3}, ids(s.change))
}

func TestH12_ExpansionInFlightCountsForTheHighWatermark(t *testing.T) {
	w := leading(t, []int32{1, 2}, 10, 10)
	change := w.fetch(3, 10).change
	require.Equal(t, []int32{1, 2, 3}, ids(change))
	w.now = w.now.Add(maxLag * 2) // 3 is not caught up by time any more: only the flight makes it count
	w.append(5)
	require.False(t, w.fetch(2, 15).highWatermark, "3 may be in the committed ISR already")
	done, _ := w.c.acked(15, w.min)
	require.False(t, done)

	s := w.answer(change, kerr.IneligibleReplica)
	require.True(t, s.highWatermark, "looked at again after the change came back")
	require.EqualValues(t, 15, w.c.hw.Offset)
}

func TestH12_ShrinkInFlightKeepsTheOldSetUntilItIsCommitted(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	w.append(10)
	w.fetch(2, 10)
	w.now = w.now.Add(maxLag + time.Second)
	w.fetch(2, 10)
	change := w.c.maybeShrink(w.now, w.end)
	require.Equal(t, []int32{1, 2}, ids(change))
	require.False(t, w.c.advance(w.now, at(w.end), w.min))
	s := w.commit(change)
	require.True(t, s.highWatermark)
	require.EqualValues(t, 10, w.c.hw.Offset)
	require.EqualValues(t, 8, w.c.partitionEpoch)
}

func TestH14_TooSmallAnISRIsNeverASuccess(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	w.min = 2
	w.append(10)
	w.fetch(2, 10)
	w.fetch(3, 10)
	done, enough := w.c.acked(10, w.min)
	require.True(t, done && enough)

	w.c.isr = []int32{1}
	require.True(t, w.c.underMin(w.min))
	require.False(t, w.append(5), "the high watermark stands while the ISR is below the minimum")
	done, enough = w.c.acked(10, w.min)
	require.True(t, done)
	require.False(t, enough)
}

func TestMinimumISRIsNeverMoreThanThereAreReplicas(t *testing.T) {
	w := leading(t, []int32{1}, 0, 0)
	w.c.remotes = nil
	require.False(t, w.c.underMin(2))
	require.Equal(t, 1, w.c.enforceable(2))
}

func TestH15_IdleFollowersStayInSync(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 10, 10)
	w.fetch(2, 10)
	w.fetch(3, 10)
	w.now = w.now.Add(24 * time.Hour)
	require.Nil(t, w.c.maybeShrink(w.now, w.end))
}

func TestH15_FollowerOfABusyLeaderStaysInSync(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	for range 100 {
		w.append(10)
		w.fetch(3, w.end)
		w.fetch(2, w.end-10) // always one fetch behind
		w.now = w.now.Add(time.Second)
		require.Nil(t, w.c.maybeShrink(w.now, w.end))
	}
}

func TestStuckFollowerLeavesAfterTheLag(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	w.append(10)
	w.fetch(2, 10)
	w.now = w.now.Add(maxLag)
	w.fetch(2, 10)
	require.Nil(t, w.c.maybeShrink(w.now, w.end), "not yet: it had the whole time from the election")
	w.now = w.now.Add(time.Millisecond)
	require.Equal(t, []int32{1, 2}, ids(w.c.maybeShrink(w.now, w.end)))
	require.Nil(t, w.c.maybeShrink(w.now, w.end), "one change at a time")
}

func TestH16_AnUncertainAnswerIsAskedAgainAndNeverSticks(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	w.append(10)
	w.fetch(2, 10)
	w.now = w.now.Add(maxLag + 1)
	change := w.c.maybeShrink(w.now, w.end)
	w.answer(change, errors.New("connection lost"))
	require.Nil(t, w.c.due(w.now))
	require.False(t, w.c.advance(w.now, at(w.end), w.min), "may or may not have been applied: the larger set counts")
	w.now = w.now.Add(firstRetry)
	again := w.c.due(w.now)
	require.Equal(t, ids(change), ids(again))
	require.Nil(t, w.c.due(w.now), "sent once")
	require.True(t, w.commit(again).highWatermark)
	require.Nil(t, w.c.inFlight)
}

func TestH16_StateThatWasReadBackIsTakenOver(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	w.append(10)
	w.fetch(2, 10)
	w.now = w.now.Add(maxLag + 1)
	change := w.c.maybeShrink(w.now, w.end)
	w.c.changed(w.now, change.serial, ISRChanged{LeaderID: 1, LeaderEpoch: 5, ISR: []int32{1, 2, 3}, PartitionEpoch: 12}, kerr.InvalidUpdateVersion, at(w.end), w.min)
	require.Nil(t, w.c.inFlight)
	require.EqualValues(t, 12, w.c.partitionEpoch)
	next := w.c.maybeShrink(w.now, w.end)
	require.EqualValues(t, 12, next.PartitionEpoch)
}

func TestH33_TheStateOfBeforeReadBackAfterALostAnswerSaysNothing(t *testing.T) {
	w := leading(t, []int32{1}, 0, 0)
	change := w.fetch(2, 0).change
	require.Equal(t, []int32{1, 2}, ids(change))
	w.append(10)
	before := ISRChanged{LeaderID: 1, LeaderEpoch: 5, ISR: []int32{1}, PartitionEpoch: 7}
	w.c.changed(w.now, change.serial, before, kerr.InvalidUpdateVersion, at(w.end), w.min)
	w.append(1)
	require.Zero(t, w.c.hw.Offset, "the write may have happened: 2 counts")
	w.now = w.now.Add(lastRetry)
	require.NotNil(t, w.c.due(w.now), "it is asked again")
}

func TestH16_ADeposedLeaderDoesNotTakeOverItsSuccessorsState(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	w.append(10)
	w.now = w.now.Add(maxLag + 1)
	change := w.c.maybeShrink(w.now, w.end)
	s := w.c.changed(w.now, change.serial, ISRChanged{LeaderID: 2, LeaderEpoch: 6, ISR: []int32{2, 3}, PartitionEpoch: 12}, kerr.InvalidUpdateVersion, at(w.end), w.min)
	require.False(t, s.highWatermark)
	require.Equal(t, []int32{1, 2, 3}, w.c.isr)
	require.NotNil(t, w.c.inFlight, "nothing is acknowledged on the strength of a guess")
}

func TestNoStateBesideAnErrorIsNoState(t *testing.T) {
	w := &coreWorld{t: t, c: newCore(0, maxLag), now: time.Unix(1000, 0), min: 1} // broker 0, epoch 0: all zero values
	w.c.lead(w.now, &LeaderAndISRPartition{ISR: []int32{0, 1}, Replicas: []int32{0, 1}}, at(0), at(0), 0)
	w.append(5)
	w.now = w.now.Add(maxLag + 1)
	change := w.c.maybeShrink(w.now, w.end)
	for _, err := range []error{errors.New("connection lost"), nil} {
		w.c.changed(w.now, change.serial, ISRChanged{}, err, at(w.end), w.min)
		require.Equal(t, []int32{0, 1}, w.c.isr)
		require.NotNil(t, w.c.inFlight)
		require.NoError(t, w.c.check())
	}
}

func TestAnswerOfAnEarlierEpochIsDropped(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	w.append(10)
	w.now = w.now.Add(maxLag + 1)
	old := w.c.maybeShrink(w.now, w.end)
	w.lead(6, []int32{1, 2, 3}, 0)
	w.commit(old)
	require.Equal(t, []int32{1, 2, 3}, w.c.isr)
	require.EqualValues(t, 7, w.c.partitionEpoch)
}

func TestH17_RebootedFollowersOldOffsetIsForgotten(t *testing.T) {
	w := leading(t, []int32{1, 2}, 100, 60)
	w.fetch(2, 100)
	require.EqualValues(t, 100, w.c.hw.Offset)
	w.append(10)
	w.c.setBrokers(map[int32]BrokerInfo{1: {Epoch: 10}, 2: {Epoch: 21}, 3: {Epoch: 30}})
	require.False(t, w.c.advance(w.now, at(w.end), w.min))

	// It comes back with less than is committed: it must not stay electable.
	s := w.fetch(2, 60)
	require.Equal(t, []int32{1}, ids(s.change))
	require.EqualValues(t, 100, w.c.hw.Offset)
	w.commit(s.change)

	// And joins again when it has everything.
	s = w.fetch(2, 110)
	require.Equal(t, []int32{1, 2}, ids(s.change))
}

func TestH17_WhatARebootedFollowerHeldCommitsNothing(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 0, 0)
	w.append(10)
	w.fetch(2, 10)
	w.c.setBrokers(map[int32]BrokerInfo{1: {Epoch: 10}, 2: {Epoch: 21}, 3: {Epoch: 30}})
	require.False(t, w.fetch(3, 10).highWatermark, "2 may have lost what it had")
	require.True(t, w.fetch(2, 10).highWatermark, "and has it still")
}

func TestH17_RebootIsSeenFromTheFetchToo(t *testing.T) {
	w := leading(t, []int32{1, 2}, 100, 60)
	w.c.fetched(w.now, 2, at(100), 0, 20, at(w.end), w.min)
	require.EqualValues(t, 100, w.c.hw.Offset)
	s := w.c.fetched(w.now, 2, at(60), 0, 21, at(w.end), w.min)
	require.Equal(t, []int32{1}, ids(s.change))
	require.True(t, w.c.stale(2, 20), "a fetch from before the restart is refused")
	require.False(t, w.c.stale(2, 21))
}

func TestH17_CleanRestartStaysInTheISR(t *testing.T) {
	w := leading(t, []int32{1, 2}, 100, 60)
	w.fetch(2, 100)
	w.c.setBrokers(map[int32]BrokerInfo{1: {Epoch: 10}, 2: {Epoch: 21}, 3: {Epoch: 30}})
	require.Nil(t, w.fetch(2, 100).change)
	w.append(5)
	require.True(t, w.fetch(2, 105).highWatermark)
}

// A change that is sent again tells of the registration that fetched, not of what the broker is since: whoever decides can see that it has restarted.
func TestH17_AChangeSentAgainTellsWhoFetched(t *testing.T) {
	w := leading(t, []int32{1, 2}, 10, 10)
	change := w.fetch(3, 10).change
	require.Equal(t, ISRMember{ID: 3, BrokerEpoch: 30}, change.ISR[2])
	w.answer(change, errors.New("the controller is gone"))
	w.c.setBrokers(map[int32]BrokerInfo{1: {Epoch: 10}, 2: {Epoch: 20}, 3: {Epoch: 31}})
	w.now = w.now.Add(lastRetry)
	again := w.c.due(w.now)
	require.NotNil(t, again)
	require.Equal(t, ISRMember{ID: 3, BrokerEpoch: 30}, again.ISR[2])
}

// Apache Kafka's controller takes into the ISR who restarted meanwhile. The leader, who knows, asks for it to leave at once, and commits nothing on its behalf.
func TestH17_WhoRestartedWhileItWasTakenInIsAskedOut(t *testing.T) {
	w := leading(t, []int32{1, 2}, 10, 10)
	w.fetch(2, 10)
	change := w.fetch(3, 10).change
	w.c.setBrokers(map[int32]BrokerInfo{1: {Epoch: 10}, 2: {Epoch: 20}, 3: {Epoch: 31}})
	w.append(5)
	w.fetch(2, 15)
	out := w.commit(change).change
	require.Equal(t, []int32{1, 2}, ids(out))
	require.EqualValues(t, 10, w.c.hw.Offset)
	require.True(t, w.commit(out).highWatermark)
	require.Equal(t, []int32{1, 2, 3}, ids(w.fetch(3, 15).change), "and in again when it has everything")
}

func TestH18_RefusedExpansionIsNotAskedAgainAtOnce(t *testing.T) {
	w := leading(t, []int32{1, 2}, 10, 10)
	change := w.fetch(3, 10).change
	w.answer(change, kerr.IneligibleReplica)
	require.Nil(t, w.fetch(3, 10).change)
	w.now = w.now.Add(afterRefusal)
	require.NotNil(t, w.fetch(3, 10).change)
}

// A broker that shuts down has been taken out of the ISR, has everything, and is not let in again: nobody who waits for acks=all waits for it, though it is alive until it is gone.
func TestTheHighWatermarkDoesNotWaitForWhoWasTurnedAway(t *testing.T) {
	w := leading(t, []int32{1, 2}, 10, 10)
	w.answer(w.fetch(3, 10).change, kerr.IneligibleReplica)
	w.append(5)
	require.True(t, w.fetch(2, 15).highWatermark)
	require.EqualValues(t, 15, w.c.hw.Offset)
	w.fetch(3, 15)
	w.append(5)
	require.True(t, w.fetch(2, 20).highWatermark, "what it fetches too early does not count either")

	w.now = w.now.Add(afterRefusal)
	w.fetch(3, 18) // the next that may ask
	w.append(5)
	require.False(t, w.fetch(2, 25).highWatermark, "it may join, so it is waited for")
	require.True(t, w.fetch(3, 25).highWatermark)
	require.EqualValues(t, 25, w.c.hw.Offset)
}

func TestH18_DeadBrokerIsNotAskedIn(t *testing.T) {
	w := leading(t, []int32{1, 2}, 10, 10)
	w.c.setBrokers(map[int32]BrokerInfo{1: {Epoch: 10}, 2: {Epoch: 20}})
	require.Nil(t, w.fetch(3, 10).change)
}

func TestH19_ForeignMembersOfTheISRAreToleratedAndNotTakenBack(t *testing.T) {
	w := leading(t, []int32{1, 2, 9}, 0, 0) // 9 is being moved away
	w.append(10)
	w.fetch(2, 10)
	require.Equal(t, step{}, w.fetch(9, 10), "its fetches say nothing")
	w.now = w.now.Add(time.Minute)
	w.fetch(2, 10)
	change := w.c.maybeShrink(w.now, w.end)
	require.Equal(t, []int32{1, 2}, ids(change))
}

// A member of the ISR that is being moved away can still be elected, by a controller that takes over in the middle.
func TestH19_NothingIsCommittedPastAForeignMemberOfTheISR(t *testing.T) {
	w := leading(t, []int32{1, 2, 9}, 0, 0)
	w.append(10)
	w.fetch(2, 10)
	require.Zero(t, w.c.hw.Offset, "9 may not have it")
	done, _ := w.c.acked(10, w.min)
	require.False(t, done)
	require.True(t, w.commit(w.c.maybeShrink(w.now, w.end)).highWatermark, "9 has left")
	require.EqualValues(t, 10, w.c.hw.Offset)
}

func TestFollowerCaughtUpButOutOfTheISRHoldsTheHighWatermark(t *testing.T) {
	w := leading(t, []int32{1}, 0, 0)
	w.append(10)
	require.EqualValues(t, 10, w.c.hw.Offset)
	w.c.inFlight = &flight{serial: 99, adds: None} // keeps the expansion out of this test
	w.fetch(2, 10)
	w.append(5)
	require.EqualValues(t, 10, w.c.hw.Offset, "2 is about to join and must be able to")
	w.now = w.now.Add(maxLag + 1)
	require.True(t, w.append(5))
	require.EqualValues(t, 20, w.c.hw.Offset)
}

func TestLowWatermarkWaitsForLiveReplicasOnly(t *testing.T) {
	w := leading(t, []int32{1, 2, 3}, 10, 10)
	require.EqualValues(t, -1, w.c.lowWatermark(5), "3 was not heard of")
	w.c.fetched(w.now, 2, at(10), 4, -1, at(10), 1)
	w.c.fetched(w.now, 3, at(10), 2, -1, at(10), 1)
	require.EqualValues(t, 2, w.c.lowWatermark(5))
	w.c.setBrokers(map[int32]BrokerInfo{1: {}, 2: {}})
	require.EqualValues(t, 4, w.c.lowWatermark(5))
}

func TestH09_FollowersHighWatermarkStaysWithinItsLog(t *testing.T) {
	for _, c := range []struct{ leader, start, end, want int64 }{
		{leader: 10, start: 0, end: 5, want: 5},
		{leader: 3, start: 0, end: 5, want: 3},
		{leader: 3, start: 7, end: 7, want: 7},
	} {
		require.Equal(t, c.want, followed(c.leader, c.start, c.end))
	}
}

func TestRackAwareSelection(t *testing.T) {
	views := []ReplicaView{{ID: 1, Rack: "a", LogEndOffset: 9}, {ID: 2, Rack: "b", LogEndOffset: 5}, {ID: 3, Rack: "b", LogEndOffset: 7}}
	pick := func(rack string) int32 {
		id, ok := RackAware{}.Select(Reader{RackID: rack}, 1, views)
		if !ok {
			return None
		}
		return id
	}
	require.EqualValues(t, 3, pick("b"))
	require.EqualValues(t, 1, pick("a"))
	require.EqualValues(t, None, pick("c"))
	require.EqualValues(t, None, pick(""))
}

func TestH20_ALeaderThatStandsAloneCommitsWhatIsOnItsDisk(t *testing.T) {
	w := leading(t, []int32{1, 2}, 0, 0)
	w.c.flush = FlushThinISR
	w.append(10)
	require.True(t, w.fetch(2, 10).highWatermark, "two hold it: nobody waits for a disk")
	w.now = w.now.Add(maxLag + 1)
	w.append(5)
	change := w.c.maybeShrink(w.now, w.end)
	require.True(t, change.alone, "flush before asking")
	w.commit(change)
	require.EqualValues(t, 10, w.c.hw.Offset)
	require.True(t, w.c.wantsFlush(w.end))
	w.c.flushed(at(12))
	require.True(t, w.c.advance(w.now, at(w.end), w.min))
	require.EqualValues(t, 12, w.c.hw.Offset)
	w.c.flushed(at(15))
	require.True(t, w.c.advance(w.now, at(w.end), w.min))
	require.False(t, w.c.wantsFlush(w.end))

	w.c.remotes = nil
	require.True(t, w.append(5), "a topic of one replica is not degraded")
}

// Who elects leaders may know of the ISR of one before the leader does: what is committed in between, with followers that
// have it too, has to be on the leader's disk as well.
func TestH20_ALeaderThatAsksToStandAloneCommitsWhatIsOnItsDisk(t *testing.T) {
	w := leading(t, []int32{1, 2}, 0, 0)
	w.c.flush = FlushThinISR
	w.append(10)
	require.True(t, w.fetch(2, 10).highWatermark)
	w.now = w.now.Add(maxLag + 1)
	w.append(5)
	require.NotNil(t, w.c.maybeShrink(w.now, w.end))
	require.False(t, w.fetch(2, 15).highWatermark, "it is back, and the change that leaves it out may have been written")
	require.EqualValues(t, 10, w.c.hw.Offset)
	require.True(t, w.c.wantsFlush(w.end))
	w.c.flushed(at(15))
	require.True(t, w.c.advance(w.now, at(w.end), w.min))
	require.EqualValues(t, 15, w.c.hw.Offset)
}
