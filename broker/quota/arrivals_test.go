package quota

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var here, there = netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")

// arrive lets connections come as fast as they are taken for a minute, and returns how many were.
func arrive(came func(now time.Time) time.Duration) (taken int) {
	start := time.UnixMilli(0)
	for now := start; now.Sub(start) < time.Minute; now = now.Add(time.Millisecond) {
		now = now.Add(came(now))
		taken++
	}
	return taken
}

func TestConnectionsComeAsFastAsTheLimitAllows(t *testing.T) {
	const limit = 5
	for name, limits := range map[string]ArrivalLimits{
		"broker":   {Broker: limit, Listeners: map[string]float64{"A": 1000}},
		"listener": {Broker: 1000, Listeners: map[string]float64{"A": limit}},
	} {
		a := NewArrivals(kafkas)
		a.Limit(limits)
		longest := time.Duration(0)
		taken := arrive(func(now time.Time) time.Duration {
			wait := a.Came("A", false, now)
			longest = max(longest, wait)
			return wait
		})
		assert.InDelta(t, 60*limit, taken, 11*limit, name) // what the windows let through at first
		assert.LessOrEqual(t, longest, kafkas.Size, name)
		assert.Positive(t, longest, name)
	}
}

func TestWithoutALimitNothingWaitsAndEverythingIsCounted(t *testing.T) {
	a := NewArrivals(kafkas)
	now := time.UnixMilli(0)
	for range 1000 {
		require.Zero(t, a.Came("A", false, now))
		require.Zero(t, a.From("A", false, here, now))
	}
	rates := a.Rates(now)
	assert.Equal(t, 100.0, rates.Broker, "a thousand, over ten seconds")
	assert.Equal(t, map[string]GateRate{"A": {PerSecond: 100}}, rates.Listeners)
	assert.Empty(t, rates.Addresses)
	assert.Zero(t, a.Rates(now.Add(time.Minute)).Broker)
}

func TestAProtectedListenerIsHeldByItsOwnLimitAlone(t *testing.T) {
	a := NewArrivals(kafkas)
	a.Limit(ArrivalLimits{Broker: 1, Listeners: map[string]float64{"B": 2}})
	now := time.UnixMilli(0)
	for range 20 {
		require.Zero(t, a.Came("B", true, now))
	}
	assert.Positive(t, a.Came("B", true, now))
	assert.Zero(t, a.Rates(now).Broker, "it is not counted for the broker")
	assert.Zero(t, a.Came("A", false, now))
}

func TestAnAddressOverItsLimitIsTurnedAwayAndCountsNowhere(t *testing.T) {
	a := NewArrivals(kafkas)
	any := 1.0
	a.LimitAddresses(AddressLimits{Any: &any, Own: map[netip.Addr]float64{there: 2}})
	now := time.UnixMilli(0)
	come := func(from netip.Addr, n int) (in int, away time.Duration) {
		for range n {
			assert.Zero(t, a.Came("A", false, now))
			if wait := a.From("A", false, from, now); wait > 0 {
				away = max(away, wait)
			} else {
				in++
			}
		}
		return in, away
	}
	in, away := come(here, 50)
	assert.Equal(t, 10, in, "one a second, over ten seconds")
	assert.Equal(t, kafkas.Size, away)
	in, _ = come(there, 50)
	assert.Equal(t, 20, in, "an address's own limit, and not what others took")
	rates := a.Rates(now)
	assert.Equal(t, 3.0, rates.Broker)
	assert.Equal(t, 3.0, rates.Listeners["A"].PerSecond)
	assert.Equal(t, map[netip.Addr]float64{here: 1, there: 2}, rates.Addresses)
	assert.Positive(t, rates.Listeners["A"].TurnedAwayMs)
	assert.Zero(t, rates.Listeners["A"].WaitMs)

	a.LimitAddresses(AddressLimits{Own: map[netip.Addr]float64{there: 2}})
	in, _ = come(here, 50)
	assert.Equal(t, 50, in, "the limit is gone")
	_, away = come(there, 1)
	assert.Positive(t, away, "that of the other is not, nor what it took")
}

func TestALimitOfNoneLetsNobodyIn(t *testing.T) {
	a := NewArrivals(kafkas)
	none := 0.0
	a.LimitAddresses(AddressLimits{Any: &none})
	for i := range 100 {
		now := time.UnixMilli(int64(i) * 1000)
		assert.Zero(t, a.Came("A", false, now))
		assert.Equal(t, kafkas.Size, a.From("A", false, here, now))
	}
	a.Limit(ArrivalLimits{Broker: math.Inf(1), Listeners: map[string]float64{"A": 0}})
	assert.Equal(t, kafkas.Size, a.Came("A", false, time.UnixMilli(0)), "a listener goes on, slowly")
}

func TestAddressesThatFellSilentAreForgotten(t *testing.T) {
	a := NewArrivals(kafkas)
	any := 1.0
	a.LimitAddresses(AddressLimits{Any: &any})
	now := time.UnixMilli(0)
	from := netip.MustParseAddr("10.0.0.0")
	for range 3 * fewAccounts {
		from = from.Next()
		now = now.Add(time.Second)
		require.Zero(t, a.From("A", false, from, now))
	}
	assert.LessOrEqual(t, len(a.mu.from.accounts), fewAccounts)
}
