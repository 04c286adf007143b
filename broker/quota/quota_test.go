package quota

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var kafkas = Windows{Samples: 11, Size: time.Second}

// KIP-55's order, each with who is counted together.
var order = []struct {
	entity Entity
	shared Client
}{
	{Entity{Named("alice"), Named("app")}, Client{"alice", "app"}},
	{Entity{Named("alice"), Anybody}, Client{"alice", "app"}},
	{Entity{User: Named("alice")}, Client{"alice", ""}},
	{Entity{Anybody, Named("app")}, Client{"alice", "app"}},
	{Entity{Anybody, Anybody}, Client{"alice", "app"}},
	{Entity{User: Anybody}, Client{"alice", ""}},
	{Entity{Client: Named("app")}, Client{"", "app"}},
	{Entity{Client: Anybody}, Client{"", "app"}},
}

func TestTheMostParticularLimitCounts(t *testing.T) {
	all := Limits{
		{Named("bob"), Named("app")}: 1, {User: Named("bob")}: 1, {Named("alice"), Named("other")}: 1, {Client: Named("other")}: 1,
	}
	for i, o := range order {
		all[o.entity] = float64(100 + i)
	}
	for i, o := range order {
		limit, shared, found := all.of(Client{"alice", "app"})
		require.True(t, found)
		assert.EqualValues(t, 100+i, limit, "%+v", o.entity)
		assert.Equal(t, o.shared, shared, "%+v", o.entity)
		delete(all, o.entity)
	}
	_, _, found := all.of(Client{"alice", "app"})
	assert.False(t, found, "what others have is not for everybody")
}

func TestAClientWithoutAnIDHasTheLimitsOfUsersAlone(t *testing.T) {
	all := Limits{}
	for i, o := range order {
		all[o.entity] = float64(100 + i)
	}
	for _, want := range []float64{102, 105} {
		limit, shared, found := all.of(Client{User: "alice"})
		require.True(t, found)
		assert.Equal(t, want, limit)
		assert.Equal(t, Client{User: "alice"}, shared)
		delete(all, Entity{User: Named("alice")})
	}
	delete(all, Entity{User: Anybody})
	_, _, found := all.of(Client{User: "alice"})
	assert.False(t, found)
}

func TestADefaultIsNoName(t *testing.T) {
	all := Limits{{Client: Named("<default>")}: 5}
	_, _, found := all.of(Client{"alice", "app"})
	assert.False(t, found)
}

// testdata/kafka-3.9.1-rates.txt is what Kafka's own Rate says of some sequences: samples, seconds of each, limit;
// time in ms, bytes recorded then; the window in ms and the pause in ms that follow.
func TestRatesAndPausesAreKafkas(t *testing.T) {
	f, err := os.Open("testdata/kafka-3.9.1-rates.txt")
	require.NoError(t, err)
	defer f.Close()
	var before Windows
	var r rate
	lines, pauses := 0, 0
	for scan := bufio.NewScanner(f); scan.Scan(); lines++ {
		var samples, seconds int
		var limit, atMs, bytes, windowMs, pauseMs int64
		_, err := fmt.Sscan(scan.Text(), &samples, &seconds, &limit, &atMs, &bytes, &windowMs, &pauseMs)
		require.NoError(t, err)
		w := Windows{samples, time.Duration(seconds) * time.Second}
		if w != before {
			before, r = w, rate{}
		}
		now := time.UnixMilli(1_000_000 + atMs)
		r.add(w, float64(bytes), now)
		perSecond, over := r.measure(w, now)
		require.Equal(t, windowMs, over.Milliseconds(), "line %d", lines+1)
		require.Equal(t, pauseMs, pause(perSecond, float64(limit), over).Milliseconds(), "line %d", lines+1)
		if pauseMs > 0 {
			pauses++
		}
	}
	require.Equal(t, 240, lines)
	require.Greater(t, pauses, 20)
	require.Less(t, pauses, 220)
}

// drive sends as fast as the pauses let it and returns how much went through in a minute.
func drive(q *Quotas, k Kind, n int64, take func(*Quotas, time.Time) time.Duration) int64 {
	var sent int64
	start := time.UnixMilli(0)
	for now := start; now.Sub(start) < time.Minute; {
		wait := take(q, now)
		if wait == 0 || k == Produce {
			sent += n
		}
		now = now.Add(wait + time.Millisecond)
	}
	return sent
}

func TestAClientThatPausesAsItIsToldStaysAtItsLimit(t *testing.T) {
	const limit, n = 10_000, 3_000
	alice := Client{"alice", "app"}
	for kind, take := range map[Kind]func(*Quotas, time.Time) time.Duration{
		Produce: func(q *Quotas, now time.Time) time.Duration { return q.Took(Produce, alice, n, now) },
		Fetch:   func(q *Quotas, now time.Time) time.Duration { return q.MayTake(Fetch, alice, n, now) },
	} {
		q := New(kafkas, kafkas)
		q.Set(kind, Limits{{User: Named("alice")}: limit})
		assert.InDelta(t, 60*limit, drive(q, kind, n, take), 11*limit, "no more than a window's worth beside it")
	}
}

func TestWhatIsRefusedIsNotCounted(t *testing.T) {
	q := New(kafkas, kafkas)
	q.Set(Fetch, Limits{{User: Anybody}: 1000})
	c := Client{"alice", ""}
	now := time.UnixMilli(0)
	most := q.Most(Fetch, c)
	assert.EqualValues(t, 10_000, most)
	assert.Zero(t, q.MayTake(Fetch, c, most, now), "the most that can be had at once is had")
	assert.Positive(t, q.MayTake(Fetch, c, 1, now))
	assert.Positive(t, q.MayTake(Fetch, c, 1_000_000, now))
	rates := q.Rates(Fetch, now)
	require.Len(t, rates, 1)
	assert.Equal(t, Rate{Client: c, PerSecond: 1000}, rates[0])
}

func TestClientsThatShareALimitAreCountedTogether(t *testing.T) {
	q := New(kafkas, kafkas)
	q.Set(Produce, Limits{{User: Named("alice")}: 1000, {Client: Anybody}: 1000})
	now := time.UnixMilli(0)
	assert.Zero(t, q.Took(Produce, Client{"alice", "a"}, 9000, now))
	assert.Positive(t, q.Took(Produce, Client{"alice", "b"}, 9000, now), "one user, two clients")
	assert.Zero(t, q.Took(Produce, Client{"bob", "a"}, 9000, now))
	assert.Positive(t, q.Took(Produce, Client{"carol", "a"}, 9000, now), "one client id, two users")
	assert.Zero(t, q.Took(Produce, Client{"bob", "c"}, 9000, now))
}

func TestALimitThatChangesHoldsAtOnce(t *testing.T) {
	q := New(kafkas, kafkas)
	c := Client{"alice", "app"}
	now := time.UnixMilli(0)
	assert.False(t, q.Any(Produce))
	assert.Zero(t, q.Took(Produce, c, math.MaxInt32, now))
	assert.EqualValues(t, math.MaxInt64, q.Most(Produce, c))
	q.Set(Produce, Limits{{User: Named("alice")}: 1000})
	assert.True(t, q.Any(Produce))
	assert.False(t, q.Any(Fetch))
	assert.Zero(t, q.Took(Produce, c, 5000, now), "what was before the limit is not held against anybody")
	assert.Positive(t, q.Took(Produce, c, 6000, now))
	q.Set(Produce, Limits{{User: Named("alice")}: 1_000_000})
	assert.Zero(t, q.Took(Produce, c, 5000, now))
	q.Set(Produce, nil)
	assert.False(t, q.Any(Produce))
	assert.Zero(t, q.Took(Produce, c, math.MaxInt32, now))
}

// A request that took long is paid for by a window at most, and then by the next requests.
func TestRequestsPauseForAWindowAtMost(t *testing.T) {
	q := New(kafkas, kafkas)
	c := Client{"alice", ""}
	q.Set(Request, Limits{{User: Named("alice")}: 2 * Request.Unit()}) // 2 %
	now := time.UnixMilli(0)
	assert.Zero(t, q.Took(Request, c, int64(200*time.Millisecond), now), "what may be used in ten seconds")
	assert.Equal(t, 50*time.Millisecond, q.Took(Request, c, int64(time.Millisecond), now))
	assert.Equal(t, time.Second, q.Took(Request, c, int64(time.Minute), now))
	rates := q.Rates(Request, now)
	require.Len(t, rates, 1)
	assert.InDelta(t, 602.01, rates[0].PerSecond, 0.001, "in percent")
}

func TestPausesAndExemptTimeAreShown(t *testing.T) {
	q := New(kafkas, kafkas)
	c := Client{"alice", "app"}
	now := time.UnixMilli(0)
	q.Paused(Request, c, time.Second, now)
	assert.Empty(t, q.Rates(Request, now), "who has no limit is not counted")
	q.Set(Request, Limits{{User: Named("alice")}: 1})
	q.Took(Request, c, 1, now)
	q.Paused(Request, c, 100*time.Millisecond, now)
	q.Paused(Request, c, 200*time.Millisecond, now.Add(5*time.Second))
	q.Took(Request, c, 1, now.Add(40*time.Second))
	at := func(after time.Duration) Rate { return q.Rates(Request, now.Add(after))[0] }
	assert.InDelta(t, 150, at(40*time.Second).PauseMs, 0.001)
	q.Took(Request, c, 1, now.Add(80*time.Second))
	assert.Zero(t, at(80*time.Second).PauseMs, "it is over for a minute")

	q.Exempt(600*time.Millisecond, now)
	assert.InDelta(t, 2, q.ExemptRate(now), 0.001, "in percent, over thirty seconds at least")
	assert.Zero(t, q.ExemptRate(now.Add(2*time.Minute)))
}

func TestClientsThatInventNamesDoNotFillTheMemory(t *testing.T) {
	q := New(kafkas, kafkas)
	q.Set(Produce, Limits{{Client: Anybody}: 1000})
	now := time.UnixMilli(0)
	for i := range 20_000 {
		q.Took(Produce, Client{"", fmt.Sprint("client-", i)}, 1, now)
		now = now.Add(20 * time.Millisecond) // some 550 in a window
	}
	assert.LessOrEqual(t, len(q.kinds[Produce].mu.clients.accounts), 2*fewAccounts)
}

func TestThePauseFitsIntoItsField(t *testing.T) {
	q := New(kafkas, kafkas)
	q.Set(Produce, Limits{{Client: Anybody}: 1})
	assert.EqualValues(t, math.MaxInt32, q.Took(Produce, Client{"", "a"}, math.MaxInt64/2, time.UnixMilli(0)).Milliseconds())
}

func BenchmarkClientWithoutALimit(b *testing.B) {
	q := New(kafkas, kafkas)
	q.Set(Produce, Limits{{User: Named("somebody")}: 1000})
	b.ReportAllocs()
	for b.Loop() {
		q.Took(Produce, Client{"alice", "app"}, 100, time.UnixMilli(0))
	}
}
