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

// testdata/kafka-3.9.1-tokens.txt is what Kafka's own TokenBucket says of some sequences: samples, seconds of each, limit,
// whether refusal is strict; time in ms, partitions asked for then; whether they may be touched, the tokens left, the pause
// in ms.
func TestTokensAreKafkas(t *testing.T) {
	f, err := os.Open("testdata/kafka-3.9.1-tokens.txt")
	require.NoError(t, err)
	defer f.Close()
	c := Client{"alice", "app"}
	var before string
	var q *Quotas
	lines, refused, pauses := 0, 0, 0
	for scan := bufio.NewScanner(f); scan.Scan(); lines++ {
		var samples, size, strict, n int
		var limit, left float64
		var atMs, pauseMs int64
		var allowed bool
		_, err := fmt.Sscan(scan.Text(), &samples, &size, &limit, &strict, &atMs, &n, &allowed, &left, &pauseMs)
		require.NoError(t, err)
		if sequence := fmt.Sprint(samples, size, limit, strict); sequence != before {
			before, q = sequence, New(kafkas, Windows{samples, time.Duration(size) * time.Second})
			q.Set(Mutation, Limits{{User: Named("alice")}: limit})
		}
		now := time.UnixMilli(1_000_000 + atMs)
		m := q.Mutations(c, strict == 1)
		require.Equal(t, allowed, m.Take(n, now), "line %d", lines+1)
		require.Equal(t, pauseMs, m.Pause(now).Milliseconds(), "line %d", lines+1)
		require.InDelta(t, left, q.Rates(Mutation, now)[0].Tokens, 0.001, "line %d", lines+1)
		if !allowed {
			refused++
		}
		if pauseMs > 0 {
			pauses++
		}
	}
	require.Equal(t, 180, lines)
	require.Greater(t, refused, 20)
	require.Greater(t, pauses, refused)
}

func TestThePauseAfterAMutationRunsWhileItIsCarriedOut(t *testing.T) {
	q := New(kafkas, kafkas)
	q.Set(Mutation, Limits{{Client: Anybody}: 1})
	now := time.UnixMilli(0)
	m := q.Mutations(Client{"", "app"}, false)
	require.True(t, m.Take(14, now))
	assert.Equal(t, 3*time.Second, m.Pause(now))
	assert.Equal(t, time.Second, m.Pause(now.Add(2*time.Second)))
	assert.Zero(t, m.Pause(now.Add(time.Minute)))
}

func TestMutationsWithoutALimitAreNotCounted(t *testing.T) {
	q := New(kafkas, kafkas)
	now := time.UnixMilli(0)
	m := q.Mutations(Client{"alice", "app"}, true)
	assert.True(t, m.Take(math.MaxInt32, now))
	assert.Zero(t, m.Pause(now))
	q.Set(Mutation, Limits{{User: Named("bob")}: 1})
	m = q.Mutations(Client{"alice", "app"}, true)
	assert.True(t, m.Take(math.MaxInt32, now))
	assert.Zero(t, m.Pause(now))
	assert.Empty(t, q.Rates(Mutation, now))
}

func TestWhoMayChangeNothingIsNotShutOut(t *testing.T) {
	q := New(kafkas, kafkas)
	q.Set(Mutation, Limits{{User: Anybody}: 0})
	now := time.UnixMilli(0)
	c := Client{User: "alice"}
	assert.True(t, q.Mutations(c, true).Take(1, now), "nothing is owed yet")
	for range 3 {
		now = now.Add(time.Hour)
		m := q.Mutations(c, true)
		assert.False(t, m.Take(1, now))
		assert.Equal(t, 11*time.Second, m.Pause(now))
	}
}

func TestADebtOfTokensOutlivesTheWindows(t *testing.T) {
	q := New(kafkas, kafkas)
	q.Set(Mutation, Limits{{Client: Anybody}: 1})
	now := time.UnixMilli(0)
	debtor := Client{"", "debtor"}
	require.True(t, q.Mutations(debtor, true).Take(1000, now))
	for i := range 3 * fewAccounts {
		q.Mutations(Client{"", fmt.Sprint("client-", i)}, true).Take(1, now)
		now = now.Add(200 * time.Millisecond) // some 300 that are not idle
	}
	assert.Less(t, len(q.kinds[Mutation].mu.clients.accounts), 2*fewAccounts)
	assert.False(t, q.Mutations(debtor, true).Take(1, now), "it owes another five minutes")
}
