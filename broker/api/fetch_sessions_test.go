package api

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/metadata"
	"barnabas/broker/partition"
	"barnabas/broker/vfs"
)

// sessionWorld drives the table of sessions with a clock of its own.
type sessionWorld struct {
	t     *testing.T
	table *fetchSessions
	now   time.Time
	last  int32
	empty namer // knows no topic
}

func newSessionWorld(t *testing.T, slots int) *sessionWorld {
	w := &sessionWorld{t: t, now: time.Unix(1000, 0), empty: func(metadata.TopicID) string { return "" }}
	w.table = newFetchSessions(slots, func() int32 {
		w.last++
		return w.last
	})
	return w
}

func asksFor(names ...string) (asks []partition.FetchPartition) {
	for _, name := range names {
		asks = append(asks, partition.FetchPartition{Topic: name, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1})
	}
	return asks
}

// result is what a partition answers: its high watermark, and bytes of records.
func result(name string, hw int64, bytes int64) partition.FetchResult {
	r := failedFetch(&partition.FetchPartition{Topic: name}, nil)
	r.HighWatermark, r.LogStartOffset = hw, 0
	r.Records = vfs.NewRange(nil, 0, bytes, nil)
	return r
}

// open makes a session over topics, for a follower or a consumer; 0 if refused.
func (w *sessionWorld) open(follower bool, names ...string) int32 {
	turn := w.table.begin(w.now, sessionRequest{follower: follower, asks: asksFor(names...)}, w.empty)
	require.NoError(w.t, turn.err)
	var results []partition.FetchResult
	for _, name := range names {
		results = append(results, result(name, 0, 0))
	}
	id, told, err := w.table.finish(w.now, &turn, results)
	require.NoError(w.t, err)
	require.Len(w.t, told, len(names), "a first answer tells everything")
	return id
}

func (w *sessionWorld) next(id, epoch int32, asks []partition.FetchPartition, forget ...string) fetchTurn {
	req := sessionRequest{id: id, epoch: epoch, asks: asks}
	for _, name := range forget {
		req.forgotten = append(req.forgotten, forgottenPartition{topic: name})
	}
	return w.table.begin(w.now, req, w.empty)
}

func asked(turn fetchTurn) (names []string) {
	for i := range turn.asks {
		names = append(names, turn.asks[i].Topic)
	}
	return names
}

func told(results []partition.FetchResult) (names []string) {
	for i := range results {
		names = append(names, results[i].Topic)
	}
	return names
}

func TestASessionFetchesAllItsPartitionsAndTellsOnlyNews(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, "a", "b", "c")
	turn := w.next(id, 1, nil)
	require.Equal(t, []string{"a", "b", "c"}, asked(turn))
	_, news, err := w.table.finish(w.now, &turn, []partition.FetchResult{result("a", 0, 0), result("b", 5, 0), result("c", 0, 0)})
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, told(news), "a high watermark that moved is news")
	turn = w.next(id, 2, nil)
	_, news, _ = w.table.finish(w.now, &turn, []partition.FetchResult{result("a", 0, 0), result("b", 5, 0), result("c", 0, 0)})
	require.Empty(t, news)
	turn = w.next(id, 3, nil)
	moved := result("c", 0, 0)
	moved.LogStartOffset = 4
	diverged := result("b", 5, 0)
	diverged.DivergingEpoch = 1
	preferred := result("a", 0, 0)
	preferred.PreferredReadReplica = 2
	_, news, _ = w.table.finish(w.now, &turn, []partition.FetchResult{preferred, diverged, moved})
	require.Equal(t, []string{"a", "b", "c"}, told(news))
}

func TestAPartitionThatGaveRecordsIsServedLastNextTime(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, "a", "b", "c")
	turn := w.next(id, 1, nil)
	_, _, err := w.table.finish(w.now, &turn, []partition.FetchResult{result("a", 1, 100), result("b", 0, 0), result("c", 1, 100)})
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a", "c"}, asked(w.next(id, 2, nil)))
}

func TestAnAnswerThatIsWithheldLeavesTheSessionAsItWas(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, "a", "b")
	turn := w.next(id, 1, nil)
	same, err := w.table.passOver(&turn)
	require.NoError(t, err)
	require.Equal(t, id, same)
	turn = w.next(id, 2, nil)
	require.Equal(t, []string{"a", "b"}, asked(turn), "nobody was served")
	_, news, err := w.table.finish(w.now, &turn, []partition.FetchResult{result("a", 1, 100), result("b", 0, 0)})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, told(news), "what was withheld is still news")

	late := w.next(id, 3, nil)
	w.next(id, 4, nil)
	_, err = w.table.passOver(&late)
	require.ErrorIs(t, err, kerr.InvalidFetchSessionEpoch)
	first := w.table.begin(w.now, sessionRequest{asks: asksFor("a")}, w.empty)
	none, err := w.table.passOver(&first)
	require.NoError(t, err)
	require.Zero(t, none, "no session is made of nothing")
}

func TestAnErrorIsToldEachTimeAndItsEndToo(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, "a")
	failed := failedFetch(&partition.FetchPartition{Topic: "a"}, kerr.NotLeaderForPartition)
	for epoch := int32(1); epoch < 4; epoch++ {
		turn := w.next(id, epoch, nil)
		_, news, _ := w.table.finish(w.now, &turn, []partition.FetchResult{failed})
		require.Len(t, news, 1)
	}
	turn := w.next(id, 4, nil)
	_, news, _ := w.table.finish(w.now, &turn, []partition.FetchResult{result("a", 0, 0)})
	require.Len(t, news, 1, "the error is over")
	turn = w.next(id, 5, nil)
	_, news, _ = w.table.finish(w.now, &turn, []partition.FetchResult{result("a", 0, 0)})
	require.Empty(t, news)
}

func TestPartitionsAreAddedChangedAndForgotten(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, "a", "b")
	changed := asksFor("b", "c")
	changed[0].FetchOffset = 77
	turn := w.next(id, 1, changed, "a", "never there")
	require.Equal(t, []string{"b", "c"}, asked(turn))
	require.Equal(t, int64(77), turn.asks[0].FetchOffset)
}

func TestASessionWithoutPartitionsIsOver(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, "a")
	turn := w.next(id, 1, nil, "a")
	require.NoError(t, turn.err)
	got, _, err := w.table.finish(w.now, &turn, nil)
	require.NoError(t, err)
	require.Equal(t, noSession, got)
	require.ErrorIs(t, w.next(id, 2, nil).err, kerr.FetchSessionIDNotFound)
}

func TestEpochsOfASessionAreHeldTo(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, "a")
	require.ErrorIs(t, w.next(id, 2, nil).err, kerr.InvalidFetchSessionEpoch)
	first := w.next(id, 1, nil)
	require.NoError(t, first.err)
	require.ErrorIs(t, w.next(id, 1, asksFor("b")).err, kerr.InvalidFetchSessionEpoch, "repeated")
	second := w.next(id, 2, nil)
	require.Equal(t, []string{"a"}, asked(second), "the repeated one changed nothing")
	_, _, err := w.table.finish(w.now, &first, []partition.FetchResult{result("a", 9, 0)})
	require.ErrorIs(t, err, kerr.InvalidFetchSessionEpoch, "overtaken")
	_, news, err := w.table.finish(w.now, &second, []partition.FetchResult{result("a", 9, 0)})
	require.NoError(t, err)
	require.Len(t, news, 1, "the overtaken answer is not counted as told")
}

func TestEpochsWrapToOneAndTheFinalOneStays(t *testing.T) {
	require.Equal(t, int32(1), nextFetchEpoch(0))
	require.Equal(t, int32(1), nextFetchEpoch(1<<31-1))
	require.Equal(t, finalFetchEpoch, nextFetchEpoch(finalFetchEpoch))
}

func TestAWholeListClosesTheSessionItNames(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, "a")
	turn := w.table.begin(w.now, sessionRequest{id: id, epoch: finalFetchEpoch, asks: asksFor("a")}, w.empty)
	got, _, err := w.table.finish(w.now, &turn, []partition.FetchResult{result("a", 0, 0)})
	require.NoError(t, err)
	require.Equal(t, noSession, got)
	require.ErrorIs(t, w.next(id, 1, nil).err, kerr.FetchSessionIDNotFound)
	sessions, partitions := w.table.counts()
	require.Zero(t, sessions)
	require.Zero(t, partitions)
}

func TestNamesAndIDsDoNotMixInOneSession(t *testing.T) {
	w := newSessionWorld(t, 10)
	id := w.open(false, "a")
	turn := w.table.begin(w.now, sessionRequest{id: id, epoch: 1, usesIDs: true}, w.empty)
	require.ErrorIs(t, turn.err, kerr.FetchSessionTopicIDError)
}

func TestAnUnknownIDGetsItsNameWhenTheTopicAppears(t *testing.T) {
	w := newSessionWorld(t, 10)
	ask := partition.FetchPartition{TopicID: commitlog.TopicID{7}, CurrentLeaderEpoch: -1}
	turn := w.table.begin(w.now, sessionRequest{usesIDs: true, asks: []partition.FetchPartition{ask}}, w.empty)
	id, _, err := w.table.finish(w.now, &turn, []partition.FetchResult{failedFetch(&ask, kerr.UnknownTopicID)})
	require.NoError(t, err)
	turn = w.table.begin(w.now, sessionRequest{id: id, epoch: 1, usesIDs: true}, w.empty)
	require.Empty(t, turn.asks[0].Topic)
	late := func(metadata.TopicID) string { return "late" }
	turn = w.table.begin(w.now, sessionRequest{id: id, epoch: 2, usesIDs: true}, late)
	require.Equal(t, "late", turn.asks[0].Topic)
}

func TestYoungSessionsInUseDoNotGiveWayToConsumers(t *testing.T) {
	w := newSessionWorld(t, 3)
	var ids []int32
	for i := range 3 {
		ids = append(ids, w.open(false, fmt.Sprint("t", i)))
	}
	require.Equal(t, noSession, w.open(false, "a", "b", "c", "d"), "however much it would hold")
	for _, id := range ids {
		require.NoError(t, w.next(id, 1, nil).err)
	}
}

func TestAFollowersSessionTakesTheSmallestConsumersPlace(t *testing.T) {
	w := newSessionWorld(t, 2)
	big, small := w.open(false, "a", "b"), w.open(false, "c")
	require.NotEqual(t, noSession, w.open(true, "d"))
	require.ErrorIs(t, w.next(small, 1, nil).err, kerr.FetchSessionIDNotFound)
	require.NoError(t, w.next(big, 1, nil).err)
}

func TestFollowersSessionsInUseDoNotGiveWay(t *testing.T) {
	w := newSessionWorld(t, 1)
	id := w.open(true, "a")
	require.Equal(t, noSession, w.open(true, "b", "c"))
	require.Equal(t, noSession, w.open(false, "b", "c"))
	require.NoError(t, w.next(id, 1, nil).err)
}

func TestASessionNobodyUsedForTwoMinutesGivesWay(t *testing.T) {
	w := newSessionWorld(t, 2)
	idle := w.open(true, "a", "b", "c")
	busy := w.open(false, "d")
	w.now = w.now.Add(fetchSessionEviction)
	require.NoError(t, w.next(busy, 1, nil).err)
	require.Equal(t, noSession, w.open(false, "e"), "not yet")
	w.now = w.now.Add(time.Millisecond)
	require.NotEqual(t, noSession, w.open(false, "e"))
	require.ErrorIs(t, w.next(idle, 1, nil).err, kerr.FetchSessionIDNotFound)
	require.NoError(t, w.next(busy, 2, nil).err)
}

func TestAnOldSessionInUseGivesWayToOneAsLarge(t *testing.T) {
	w := newSessionWorld(t, 1)
	old := w.open(false, "a", "b")
	w.now = w.now.Add(fetchSessionEviction + time.Second)
	require.NoError(t, w.next(old, 1, nil).err) // touched when old: may be taken now
	require.Equal(t, noSession, w.open(false, "c"), "a smaller newcomer is worth less")
	require.NotEqual(t, noSession, w.open(false, "c", "d"))
	require.ErrorIs(t, w.next(old, 2, nil).err, kerr.FetchSessionIDNotFound)
}

func TestSessionsHoldNoMoreThanTheirShareOfPartitions(t *testing.T) {
	w := newSessionWorld(t, 2)
	var many []string
	for i := range 2 * partitionsPerSlot {
		many = append(many, fmt.Sprint("t", i))
	}
	small := w.open(false, "a")
	require.Equal(t, noSession, w.open(false, many...), "one too many")
	require.ErrorIs(t, w.next(small, 1, asksFor(many...)).err, kerr.FetchSessionIDNotFound)
	_, partitions := w.table.counts()
	require.Zero(t, partitions)
	full := w.open(false, many...)
	require.NotEqual(t, noSession, full)
	require.NoError(t, w.next(full, 1, nil).err)
	require.ErrorIs(t, w.next(full, 2, asksFor("b")).err, kerr.FetchSessionIDNotFound)
}

func TestNoSessionsWithoutSlots(t *testing.T) {
	w := newSessionWorld(t, 0)
	require.Equal(t, noSession, w.open(false, "a"))
}

// TestManySessionsStayWithinTheirSlots draws requests against a plain model of
// what each session has to fetch.
func TestManySessionsStayWithinTheirSlots(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	w := newSessionWorld(t, 20)
	type known struct {
		epoch int32
		parts map[string]bool
	}
	sessions := map[int32]*known{}
	for range 5000 {
		w.now = w.now.Add(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		if rnd.IntN(4) == 0 {
			names := []string{fmt.Sprint("t", rnd.IntN(5)), fmt.Sprint("u", rnd.IntN(5))}[:1+rnd.IntN(2)]
			if id := w.open(rnd.IntN(5) == 0, names...); id != noSession {
				sessions[id] = &known{epoch: 1, parts: map[string]bool{}}
				for _, name := range names {
					sessions[id].parts[name] = true
				}
			}
		} else {
			for id, k := range sessions {
				name := fmt.Sprint("t", rnd.IntN(5))
				add := rnd.IntN(2) == 0
				turn := fetchTurn{}
				if add {
					turn = w.next(id, k.epoch, asksFor(name))
					k.parts[name] = true
				} else {
					turn = w.next(id, k.epoch, nil, name)
					delete(k.parts, name)
				}
				if turn.err != nil {
					require.ErrorIs(t, turn.err, kerr.FetchSessionIDNotFound)
					delete(sessions, id)
					break
				}
				require.Len(t, turn.asks, len(k.parts))
				for i := range turn.asks {
					require.True(t, k.parts[turn.asks[i].Topic])
				}
				if k.epoch++; len(k.parts) == 0 {
					delete(sessions, id)
				}
				break
			}
		}
		count, partitions := w.table.counts()
		require.GreaterOrEqual(t, partitions, count)
		require.LessOrEqual(t, count, 20)
		require.LessOrEqual(t, count, len(sessions))
	}
}
