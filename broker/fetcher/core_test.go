package fetcher

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

var (
	tp0 = commitlog.TopicPartition{Topic: "t", Partition: 0}
	tp1 = commitlog.TopicPartition{Topic: "t", Partition: 1}
	idT = commitlog.TopicID{1}
)

func mustVersions(t testing.TB, ibp string) versions {
	v, err := versionsFor(ibp)
	require.NoError(t, err)
	return v
}

// fixture is a core with a clock.
type fixture struct {
	t   testing.TB
	c   *core
	now time.Time
}

func newFixture(t testing.TB, ibp string) *fixture {
	return &fixture{t: t, now: time.Unix(1000, 0), c: newCore(mustVersions(t, ibp), 2, time.Second, limits{maxBytes: 1 << 20, partitionMax: 1 << 20, minBytes: 1, maxWait: time.Second})}
}

func (f *fixture) add(tp commitlog.TopicPartition, epoch int32, s partition.FollowerState) {
	f.c.add(nil, tp, idT, epoch, s)
}

func (f *fixture) fetchNow() *fetchRequest {
	f.t.Helper()
	a := f.c.next(f.now)
	require.NotNil(f.t, a.fetch, "%+v", a)
	return a.fetch
}

// answer makes a fetch response for some partitions.
func answer(req *fetchRequest, session int32, parts ...kmsg.FetchResponseTopicPartition) *kmsg.FetchResponse {
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = req.req.Version
	resp.SessionID = session
	if len(parts) > 0 {
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic, topic.TopicID = "t", idT
		topic.Partitions = parts
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

func part0(change func(*kmsg.FetchResponseTopicPartition)) kmsg.FetchResponseTopicPartition {
	p := kmsg.NewFetchResponseTopicPartition()
	change(&p)
	return p
}

func TestFetchBeginsAtTheLogEndWithItsLastEpoch(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 7, partition.FollowerState{Start: 3, End: 10, HighWatermark: 8, LatestEpoch: 5})
	req := f.fetchNow().req
	require.EqualValues(t, 17, req.Version)
	q := req.Topics[0].Partitions[0]
	require.Equal(t, idT, commitlog.TopicID(req.Topics[0].TopicID))
	require.EqualValues(t, 10, q.FetchOffset)
	require.EqualValues(t, 7, q.CurrentLeaderEpoch)
	require.EqualValues(t, 5, q.LastFetchedEpoch)
	require.EqualValues(t, 3, q.LogStartOffset)
}

func TestWithoutTopicIDsTheLastVersionWithNamesIsUsed(t *testing.T) {
	f := newFixture(t, "3.9")
	f.c.add(nil, tp0, commitlog.TopicID{}, 7, partition.FollowerState{End: 10, LatestEpoch: 5})
	require.EqualValues(t, 12, f.fetchNow().req.Version)
}

func TestSessionNamesOnlyWhatChanged(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 7, partition.FollowerState{End: 10, LatestEpoch: 5})
	f.add(tp1, 7, partition.FollowerState{End: 20, LatestEpoch: 5})
	first := f.fetchNow()
	require.EqualValues(t, 0, first.req.SessionEpoch)
	require.Len(t, first.req.Topics[0].Partitions, 2)
	ops, _ := f.c.answerFetch(f.now, first, answer(first, 44, part0(func(p *kmsg.FetchResponseTopicPartition) { p.RecordBatches = []byte{1} })), nil)
	require.Len(t, ops, 1)
	f.c.done(f.now, &ops[0], partition.FollowerState{End: 12, LatestEpoch: 7}, true, nil)

	second := f.fetchNow()
	require.EqualValues(t, 44, second.req.SessionID)
	require.EqualValues(t, 1, second.req.SessionEpoch)
	require.Len(t, second.req.Topics[0].Partitions, 1)
	require.EqualValues(t, 12, second.req.Topics[0].Partitions[0].FetchOffset)
	f.c.answerFetch(f.now, second, answer(second, 44), nil)

	f.c.remove(tp1)
	third := f.fetchNow()
	require.EqualValues(t, 2, third.req.SessionEpoch)
	require.Empty(t, third.req.Topics)
	require.Equal(t, []int32{1}, third.req.ForgottenTopics[0].Partitions)
}

func TestLostSessionBeginsAnew(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 7, partition.FollowerState{End: 10, LatestEpoch: 5})
	req := f.fetchNow()
	f.c.answerFetch(f.now, req, answer(req, 44), nil)
	req = f.fetchNow()
	lost := answer(req, 0)
	lost.ErrorCode = kerr.FetchSessionIDNotFound.Code
	f.c.answerFetch(f.now, req, lost, nil)
	req = f.fetchNow()
	require.EqualValues(t, 0, req.req.SessionID)
	require.EqualValues(t, 0, req.req.SessionEpoch)
	require.Len(t, req.req.Topics, 1)
}

func TestH03_EveryNewEpochCutsAgainAlsoAtTheSameLeader(t *testing.T) {
	f := newFixture(t, "2.6")
	f.add(tp0, 5, partition.FollowerState{End: 10, HighWatermark: 4, LatestEpoch: 5})
	a := f.c.next(f.now)
	require.NotNil(t, a.epochs)
	req := f.c.epochRequest(a.epochs)
	resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
	rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
	rt.Topic = "t"
	rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
	rp.LeaderEpoch, rp.EndOffset = 5, 10
	rt.Partitions = append(rt.Partitions, rp)
	resp.Topics = append(resp.Topics, rt)
	ops, _ := f.c.answerEpochs(f.now, req, resp, nil)
	require.Len(t, ops, 1)
	f.c.done(f.now, &ops[0], partition.FollowerState{End: 10, HighWatermark: 4, LatestEpoch: 5}, true, nil)
	f.fetchNow()

	f.add(tp0, 7, partition.FollowerState{End: 10, HighWatermark: 4, LatestEpoch: 5})
	require.NotNil(t, f.c.next(f.now).epochs, "an epoch was missed: what the leader has must be asked again")
}

func TestH04_AnswerOfAnEarlierEpochIsDropped(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 5, partition.FollowerState{End: 10, LatestEpoch: 5})
	req := f.fetchNow()
	f.add(tp0, 6, partition.FollowerState{End: 10, LatestEpoch: 5})
	ops, bad := f.c.answerFetch(f.now, req, answer(req, 44, part0(func(p *kmsg.FetchResponseTopicPartition) { p.RecordBatches = []byte{1} })), nil)
	require.Empty(t, ops)
	require.Empty(t, bad)
}

func TestH04_AnswerAfterRemovalIsDropped(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 5, partition.FollowerState{End: 10, LatestEpoch: 5})
	req := f.fetchNow()
	f.c.remove(tp0)
	ops, _ := f.c.answerFetch(f.now, req, answer(req, 44, part0(func(p *kmsg.FetchResponseTopicPartition) { p.RecordBatches = []byte{1} })), nil)
	require.Empty(t, ops)
}

func TestH05_DivergingAnswerOnlyCuts(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 9, partition.FollowerState{End: 10, HighWatermark: 4, LatestEpoch: 5})
	req := f.fetchNow()
	ops, _ := f.c.answerFetch(f.now, req, answer(req, 44, part0(func(p *kmsg.FetchResponseTopicPartition) {
		p.HighWatermark = 100
		p.RecordBatches = []byte{1}
		p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = 4, 6
	})), nil)
	require.Len(t, ops, 1)
	require.Equal(t, cutByEpoch, ops[0].kind)
	require.Zero(t, ops[0].fetched.HighWatermark)
}

func TestH08_EmptyAnswerKeepsTheLastEpoch(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 9, partition.FollowerState{End: 10, LatestEpoch: 5})
	req := f.fetchNow()
	ops, _ := f.c.answerFetch(f.now, req, answer(req, 44, part0(func(p *kmsg.FetchResponseTopicPartition) { p.HighWatermark = 10 })), nil)
	f.c.done(f.now, &ops[0], partition.FollowerState{End: 10, LatestEpoch: -1}, true, nil)
	require.EqualValues(t, 5, f.c.parts[tp0].lastEpoch)
}

func TestH40_OnePartitionsErrorDelaysOnlyThatOne(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 7, partition.FollowerState{End: 10, LatestEpoch: 5})
	f.add(tp1, 7, partition.FollowerState{End: 20, LatestEpoch: 5})
	req := f.fetchNow()
	ops, bad := f.c.answerFetch(f.now, req, answer(req, 44,
		part0(func(p *kmsg.FetchResponseTopicPartition) { p.ErrorCode = kerr.NotLeaderForPartition.Code }),
		part0(func(p *kmsg.FetchResponseTopicPartition) { p.Partition = 1; p.RecordBatches = []byte{1} })), nil)
	require.Len(t, bad, 1)
	require.Len(t, ops, 1)
	f.c.done(f.now, &ops[0], partition.FollowerState{End: 22, LatestEpoch: 7}, true, nil)
	req = f.fetchNow()
	require.Len(t, req.req.Topics[0].Partitions, 1)
	require.EqualValues(t, 1, req.req.Topics[0].Partitions[0].Partition)
	require.Equal(t, []int32{0}, req.req.ForgottenTopics[0].Partitions, "the session does not ask for the delayed one")
	f.c.answerFetch(f.now, req, answer(req, 44), nil)

	f.now = f.now.Add(time.Second)
	req = f.fetchNow()
	require.EqualValues(t, 0, req.req.Topics[0].Partitions[0].Partition)
}

func TestH40_FailedAppendIsTriedAgainFromWhereTheLogStands(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 7, partition.FollowerState{End: 10, LatestEpoch: 5})
	req := f.fetchNow()
	ops, _ := f.c.answerFetch(f.now, req, answer(req, 44, part0(func(p *kmsg.FetchResponseTopicPartition) { p.RecordBatches = []byte{1} })), nil)
	f.c.done(f.now, &ops[0], partition.FollowerState{}, false, errors.New("corrupt"))
	require.Nil(t, f.c.next(f.now).resync)
	f.now = f.now.Add(time.Second)
	a := f.c.next(f.now)
	require.Len(t, a.resync, 1)
	f.c.start(a.resync[0], partition.FollowerState{End: 11, LatestEpoch: 7})
	require.EqualValues(t, 11, f.fetchNow().req.Topics[0].Partitions[0].FetchOffset)
}

func TestWholeRequestsErrorDelaysAllAndRestartsTheSession(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 7, partition.FollowerState{End: 10, LatestEpoch: 5})
	req := f.fetchNow()
	f.c.answerFetch(f.now, req, answer(req, 44), nil)
	req = f.fetchNow()
	f.c.answerFetch(f.now, req, nil, errors.New("connection lost"))
	a := f.c.next(f.now)
	require.NotNil(t, a.sleep)
	require.Equal(t, time.Second, *a.sleep)
	f.now = f.now.Add(time.Second)
	req = f.fetchNow()
	require.EqualValues(t, 44, req.req.SessionID, "the old session is given back")
	require.EqualValues(t, 0, req.req.SessionEpoch)
}

// outOfRange brings a partition to where the leader's log end and start are asked.
func outOfRange(f *fixture, end int64) {
	f.add(tp0, 7, partition.FollowerState{End: end, LatestEpoch: 5})
	req := f.fetchNow()
	f.c.answerFetch(f.now, req, answer(req, 44, part0(func(p *kmsg.FetchResponseTopicPartition) { p.ErrorCode = kerr.OffsetOutOfRange.Code })), nil)
}

func (f *fixture) offsets(ends bool, offset int64) []op {
	a := f.c.next(f.now)
	require.NotNil(f.t, a.locate)
	require.Equal(f.t, ends, a.latest)
	req := f.c.offsetsRequest(a.locate, ends)
	resp := kmsg.NewPtrListOffsetsResponse()
	rt := kmsg.NewListOffsetsResponseTopic()
	rt.Topic = "t"
	rp := kmsg.NewListOffsetsResponseTopicPartition()
	rp.Offset = offset
	rt.Partitions = append(rt.Partitions, rp)
	resp.Topics = append(resp.Topics, rt)
	ops, bad := f.c.answerOffsets(f.now, req, ends, resp, nil)
	require.Empty(f.t, bad)
	return ops
}

func TestH09_FollowerBelowTheLeadersStartBeginsAnew(t *testing.T) {
	f := newFixture(t, "3.9")
	outOfRange(f, 10)
	require.Empty(t, f.offsets(true, 500))
	ops := f.offsets(false, 300)
	require.Len(t, ops, 1)
	require.Equal(t, emptyAt, ops[0].kind)
	require.EqualValues(t, 300, ops[0].offset)
	f.c.done(f.now, &ops[0], partition.FollowerState{Start: 300, End: 300, HighWatermark: 300, LatestEpoch: -1}, true, nil)
	require.EqualValues(t, 300, f.fetchNow().req.Topics[0].Partitions[0].FetchOffset)
}

func TestFollowerBeyondTheLeadersEndCuts(t *testing.T) {
	f := newFixture(t, "3.9")
	outOfRange(f, 100)
	ops := f.offsets(true, 60)
	require.Len(t, ops, 1)
	require.Equal(t, cutAt, ops[0].kind)
	require.EqualValues(t, 60, ops[0].offset)
}

func TestH01_WithoutEpochsOnlyTheHighWatermarkIsLeft(t *testing.T) {
	f := newFixture(t, "3.9")
	f.add(tp0, 7, partition.FollowerState{End: 10, HighWatermark: 6, LatestEpoch: -1})
	a := f.c.next(f.now)
	require.Len(t, a.cut, 1)
	require.EqualValues(t, 6, a.cut[0].offset)
}

func TestCutPoint(t *testing.T) {
	for _, c := range []struct {
		name                string
		leaderFound         int32
		leaderEnd           int64
		ownFound            int32
		ownEnd, logEnd, fbk int64
		offset              int64
		finished            bool
	}{
		{"leader knows nothing so old", -1, -1, -1, -1, 10, 4, 4, true},
		{"leader of the days before epochs", -1, 7, -1, -1, 10, 4, 7, true},
		{"same epoch, leader shorter", 5, 7, 5, 10, 10, 4, 7, true},
		{"same epoch, follower shorter", 5, 20, 5, 8, 10, 4, 8, true},
		{"follower never had the epoch", 5, 7, 3, 6, 10, 4, 6, false},
		{"follower has nothing so old", 5, 7, -1, -1, 10, 4, 7, true},
		{"never beyond the log", 5, 20, 5, 20, 10, 4, 10, true},
	} {
		offset, finished := cutPoint(c.leaderFound, c.leaderEnd, c.ownFound, c.ownEnd, c.logEnd, c.fbk)
		require.Equal(t, c.offset, offset, c.name)
		require.Equal(t, c.finished, finished, c.name)
	}
}

// modelLog is a log as the epochs of its records.
type modelLog []int32

func (l modelLog) latest() int32 {
	if len(l) == 0 {
		return -1
	}
	return l[len(l)-1]
}

// endOf is OffsetForLeaderEpoch as a log answers it; led is the epoch the log's
// owner leads in, -1 for a follower.
func (l modelLog) endOf(epoch, led int32) (int32, int64) {
	if led >= 0 && epoch == led {
		return epoch, int64(len(l))
	}
	found, end, higher := int32(-1), int64(-1), led > epoch
	for i, e := range l {
		if e <= epoch {
			found, end = e, int64(i)+1
		} else {
			higher = true
		}
	}
	switch {
	case epoch < 0, !higher && epoch != l.latest():
		return -1, -1
	case found < 0:
		return epoch, 0 // older than all that is here
	}
	return found, end
}

// Two logs with a common prefix and different tails, of any epochs: the follower
// ends up equal to the leader, and never cuts into what is common beyond need.
func TestH02_DivergedLogsConverge(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		grow := func(l modelLog, epoch *int32, n int) modelLog {
			for range n {
				if rng.IntN(3) == 0 {
					*epoch += int32(1 + rng.IntN(2))
				}
				l = append(l, *epoch)
			}
			return l
		}
		epoch := int32(1)
		common := grow(nil, &epoch, rng.IntN(8))
		// One epoch has one leader, so the tails have no epoch in common.
		leader, follower := append(modelLog{}, common...), append(modelLog{}, common...)
		for range rng.IntN(6) {
			epoch++
			if rng.IntN(2) == 0 {
				leader = grow(leader, &epoch, 1+rng.IntN(3))
			} else {
				follower = grow(follower, &epoch, 1+rng.IntN(3))
			}
		}
		epoch++
		ibp := []string{"3.9", "2.6"}[seed%2]
		f := newFixture(t, ibp)
		f.add(tp0, epoch, partition.FollowerState{End: int64(len(follower)), LatestEpoch: follower.latest(), HighWatermark: min(int64(len(common)), int64(rng.IntN(9)))})
		lowest := len(follower)
		for step := 0; ; step++ {
			require.Less(t, step, 60, "seed %d: does not converge: leader %v follower %v", seed, leader, follower)
			carry := func(ops []op) {
				for i := range ops {
					o := &ops[i]
					finished := true
					switch o.kind {
					case appendRecords:
						follower = append(follower, leader[len(follower):min(len(leader), len(follower)+2)]...)
					case cutAt:
						follower = follower[:min(o.offset, int64(len(follower)))]
					case cutByEpoch:
						ownFound, ownEnd := follower.endOf(o.leaderFound, -1)
						var offset int64
						offset, finished = cutPoint(o.leaderFound, o.leaderEnd, ownFound, ownEnd, int64(len(follower)), min(o.offset, int64(len(follower))))
						follower = follower[:offset]
					}
					lowest = min(lowest, len(follower))
					f.c.done(f.now, o, partition.FollowerState{End: int64(len(follower)), LatestEpoch: follower.latest()}, finished, nil)
				}
			}
			a := f.c.next(f.now)
			switch {
			case a.cut != nil:
				carry(a.cut)
				continue
			case a.epochs != nil:
				req := f.c.epochRequest(a.epochs)
				resp := kmsg.NewPtrOffsetForLeaderEpochResponse()
				rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
				rt.Topic = "t"
				rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				rp.LeaderEpoch, rp.EndOffset = leader.endOf(req.Topics[0].Partitions[0].LeaderEpoch, epoch)
				rt.Partitions = append(rt.Partitions, rp)
				resp.Topics = append(resp.Topics, rt)
				ops, _ := f.c.answerEpochs(f.now, req, resp, nil)
				carry(ops)
				continue
			case a.locate != nil:
				if ops := f.offsets(a.latest, map[bool]int64{true: int64(len(leader)), false: 0}[a.latest]); ops != nil {
					carry(ops)
				}
				f.now = f.now.Add(time.Minute)
				continue
			}
			if a.fetch == nil {
				f.now = f.now.Add(time.Minute)
				continue
			}
			asked := f.c.session.sent[tp0]
			got := part0(func(p *kmsg.FetchResponseTopicPartition) {
				found, end := leader.endOf(asked.lastEpoch, epoch)
				switch {
				case asked.lastEpoch >= 0 && (found < 0 || end < 0), asked.offset > int64(len(leader)):
					p.ErrorCode = kerr.OffsetOutOfRange.Code
				case asked.lastEpoch >= 0 && (found < asked.lastEpoch || end < asked.offset):
					p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = found, end
				}
			})
			ops, _ := f.c.answerFetch(f.now, a.fetch, answer(a.fetch, 44, got), nil)
			carry(ops)
			if len(ops) == 1 && ops[0].kind == appendRecords && len(follower) == len(leader) {
				break
			}
		}
		require.Equal(t, leader, follower, "seed %d", seed)
		require.GreaterOrEqual(t, lowest, len(common), "seed %d: cut into what both have: %v", seed, common)
	}
}

func TestVersionsFollowTheProtocolVersion(t *testing.T) {
	for _, c := range []struct {
		ibp                 string
		fetch, list, epochs int16
		cut                 bool
	}{
		{"3.9", 17, 9, 4, true},
		{"3.9-IV0", 17, 9, 4, true},
		{"3.7", 16, 8, 4, true},
		{"3.7-IV3", 15, 8, 4, true},
		{"3.5-IV0", 14, 8, 4, true},
		{"3.1", 13, 7, 4, true},
		{"3.0", 12, 7, 4, true},
		{"2.8", 12, 6, 4, true},
		{"2.7", 12, 5, 3, true},
		{"2.7-IV0", 11, 5, 3, false},
		{"2.4", 11, 5, 3, false},
		{"1.1", 7, 2, 0, false},
		{"0.11.0-IV2", 5, 2, 0, false},
		{"0.10.2", 3, 1, 0, false},
	} {
		v := mustVersions(t, c.ibp)
		require.Equal(t, [3]int16{c.fetch, c.list, c.epochs}, [3]int16{v.fetch, v.listOffsets, v.epochs}, c.ibp)
		require.Equal(t, c.cut, v.cutByFetch, c.ibp)
	}
	for _, bad := range []string{"", "x", "3", "3.9-IVx", "3.-1"} {
		_, err := versionsFor(bad)
		require.Error(t, err, bad)
	}
}

// Kafka 3.9 closes the connection of a follower that names itself in the tagged
// field before Fetch v15 (KIP-903).
func TestReplicaStateIsToldFromItsVersionOn(t *testing.T) {
	for ibp, told := range map[string]bool{"2.4": false, "2.8": false, "3.1": false, "3.9": true} {
		f := newFixture(t, ibp)
		f.add(tp0, 1, partition.FollowerState{End: 5, LatestEpoch: 1})
		req := f.c.next(f.now)
		if req.fetch == nil { // before 2.7 the leader is first asked where its epochs end
			continue
		}
		require.Equal(t, told, req.fetch.req.ReplicaState.ID == 2, "IBP %s", ibp)
	}
}
