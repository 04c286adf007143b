package netserver

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/quota"
)

// visit sends a frame and receives it again: from then on the connection is counted.
func (c *client) visit() *client {
	c.t.Helper()
	c.send([]byte("hello"))
	require.Equal(c.t, "hello", string(c.receive()))
	return c
}

// twoListeners is a configuration with a listener between brokers beside that of clients.
func twoListeners() Config {
	cfg := testConfig()
	cfg.Listeners = append(cfg.Listeners, Listener{Name: "BROKERS", Host: "127.0.0.1", Protocol: "PLAINTEXT"})
	cfg.Protected = []string{"BROKERS"}
	return cfg
}

func TestConnectionsOverTheTotalWait(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.Connections = 2
	cfg.Protected = []string{"TEST"} // there is no other listener that could make room for it
	s := start(t, cfg, handler{})
	first, second, third := dial(t, s), dial(t, s), dial(t, s)
	first.visit()
	second.visit()
	third.send([]byte("3"))
	require.Equal(t, 2, s.Connections())
	require.NoError(t, first.Close())
	require.Equal(t, "3", string(third.receive()))
}

func TestAListenerHasALimitOfItsOwn(t *testing.T) {
	cfg := twoListeners()
	cfg.Limits.OnListener = map[string]int{"BROKERS": 1}
	s := start(t, cfg, handler{})
	first := dialListener(t, s, "BROKERS").visit()
	second := dialListener(t, s, "BROKERS")
	second.send([]byte("2"))
	dial(t, s).visit()
	dial(t, s).visit()
	require.Equal(t, 3, s.Connections())
	require.NoError(t, first.Close())
	require.Equal(t, "2", string(second.receive()))
}

// remains waits until so many connections are left.
func remains(t *testing.T, s *Server, n int) {
	t.Helper()
	eventually(t, "the others have left", func() bool { return s.Connections() == n })
}

func TestClientsMakeRoomForBrokers(t *testing.T) {
	cfg := twoListeners()
	cfg.Limits.Connections = 3
	s := start(t, cfg, handler{})
	brokers := []*client{dialListener(t, s, "BROKERS").visit()} // idle for longer than any client, and protected
	dial(t, s).visit()
	dial(t, s).visit()
	for range 3 {
		brokers = append(brokers, dialListener(t, s, "BROKERS").visit())
		remains(t, s, max(3, len(brokers))) // in the end there is nobody left to make room, and brokers come in all the same
	}
	for _, b := range brokers {
		b.visit()
	}
}

func TestALowerLimitClosesSomeClients(t *testing.T) {
	s := start(t, twoListeners(), handler{})
	broker := dialListener(t, s, "BROKERS").visit()
	for range 5 {
		dial(t, s).visit()
	}
	limits := noLimits()
	limits.Connections = 3
	s.Limit(limits)
	remains(t, s, 3)
	broker.visit()
}

func TestWhoIsIdleForLongestMakesRoom(t *testing.T) {
	var all []resident
	for _, second := range []int64{3, 1, 4, 2} {
		all = append(all, resident{lastUse: time.Unix(second, 0)})
	}
	require.Equal(t, []resident{{lastUse: time.Unix(1, 0)}, {lastUse: time.Unix(2, 0)}}, longestIdle(all, 2))
	require.Len(t, longestIdle(all, 5), 4)
	require.Empty(t, longestIdle(all, -1))
}

func TestAHigherLimitLetsIn(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.Connections = 1
	s := start(t, cfg, handler{})
	dial(t, s).visit()
	waiting := dial(t, s)
	waiting.send([]byte("in"))
	s.Limit(noLimits())
	require.Equal(t, "in", string(waiting.receive()))
}

func TestConnectionsOverTheLimitOfAnAddressAreRefused(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.PerIP = 1
	s := start(t, cfg, handler{})
	first := dial(t, s).visit()
	dial(t, s).requireClosed()
	require.NoError(t, first.Close())
	eventually(t, "the first has left", func() bool { return s.Connections() == 0 })
	dial(t, s).visit()
}

func TestAnAddressMayBeAnException(t *testing.T) {
	cfg := testConfig()
	cfg.Limits.PerIP = 0
	cfg.Limits.FromIP = map[netip.Addr]int{netip.MustParseAddr("127.0.0.1"): 2}
	s := start(t, cfg, handler{})
	dial(t, s).visit()
	dial(t, s).visit()
	dial(t, s).requireClosed()
	limits := noLimits()
	limits.PerIP = 0
	s.Limit(limits)
	dial(t, s).requireClosed()
}

func TestDescriptorsAreLeftToTheLogs(t *testing.T) {
	inside := func(listener string, limit, descriptors int) int {
		cfg := twoListeners()
		cfg.Limits.Connections = limit
		g := newGuests(cfg, descriptors)
		g.among(len(cfg.Listeners))
		for !g.full(listener) {
			require.NoError(t, g.enter(listener, netip.IPv4Unspecified()))
		}
		return g.inside
	}
	require.Equal(t, 750, inside("TEST", Unlimited, 1000))
	require.Equal(t, 750, inside("TEST", 800, 1000))
	require.Equal(t, 20, inside("TEST", 20, 1000))
	require.Equal(t, 20, inside("TEST", 20, 0))
	require.Equal(t, 875, inside("BROKERS", 20, 1000), "brokers may come in over the limit, but not without end")
	require.Less(t, start(t, testConfig(), handler{}).guests.total, Unlimited)
}

func TestConnectionsThatComeTooFastWait(t *testing.T) {
	cfg := twoListeners()
	cfg.Arrivals = quota.NewArrivals(quota.Windows{Samples: 2, Size: 100 * time.Millisecond})
	cfg.Arrivals.Limit(quota.ArrivalLimits{Broker: 20})
	s := start(t, cfg, handler{})
	began, waited := time.Now(), 0.0
	for range 20 {
		dial(t, s).visit()
		waited = max(waited, cfg.Arrivals.Rates(time.Now()).Listeners["TEST"].WaitMs)
	}
	require.Greater(t, time.Since(began), 300*time.Millisecond, "20 a second, of which the windows let some through")
	require.Positive(t, waited)
}

func TestAConnectionThatWaitsForItsTimeDoesNotHoldUpTheEnd(t *testing.T) {
	cfg := testConfig()
	cfg.Arrivals = quota.NewArrivals(quota.Windows{Samples: 2, Size: time.Hour})
	cfg.Arrivals.Limit(quota.ArrivalLimits{})
	s := start(t, cfg, handler{})
	dial(t, s)
	eventually(t, "it waits", func() bool { return cfg.Arrivals.Rates(time.Now()).Listeners["TEST"].WaitMs > 0 })
	stop(t, s)
}

func TestAnAddressThatComesTooFastIsHeldAndThenClosed(t *testing.T) {
	const hold = 200 * time.Millisecond
	cfg := testConfig()
	cfg.Arrivals = quota.NewArrivals(quota.Windows{Samples: 2, Size: hold})
	none := 0.0
	cfg.Arrivals.LimitAddresses(quota.AddressLimits{Any: &none})
	s := start(t, cfg, handler{})
	began := time.Now()
	dial(t, s).requireClosed()
	require.GreaterOrEqual(t, time.Since(began), hold)
	cfg.Arrivals.LimitAddresses(quota.AddressLimits{})
	dial(t, s).visit()
}

func TestTheLobbyHoldsSomeAndIsClearedAtTheEnd(t *testing.T) {
	require.Equal(t, 62, newLobby(1000).room)
	require.Equal(t, largestLobby, newLobby(1<<20).room)
	cfg := testConfig()
	cfg.Arrivals = quota.NewArrivals(quota.Windows{Samples: 2, Size: time.Hour})
	none := 0.0
	cfg.Arrivals.LimitAddresses(quota.AddressLimits{Any: &none})
	s := start(t, cfg, handler{})
	s.lobby.mu.Lock()
	s.lobby.room = 2
	s.lobby.mu.Unlock()
	first, second := dial(t, s), dial(t, s)
	eventually(t, "both wait", func() bool {
		s.lobby.mu.Lock()
		defer s.lobby.mu.Unlock()
		return len(s.lobby.mu.waiting) == 2
	})
	dial(t, s).requireClosed()
	require.Zero(t, s.Connections())
	stop(t, s)
	first.requireClosed()
	second.requireClosed()
}

func TestWhoIsTurnedAwayIsCountedNowhere(t *testing.T) {
	cfg := testConfig()
	none := 0.0
	cfg.Arrivals.LimitAddresses(quota.AddressLimits{Any: &none})
	cfg.Limits.PerIP = 1
	g := newGuests(cfg, 0)
	for range 3 {
		early := new(turnedAway)
		require.True(t, errors.As(g.enter("TEST", netip.IPv4Unspecified()), &early))
		require.Equal(t, time.Second, early.after)
	}
	cfg.Arrivals.LimitAddresses(quota.AddressLimits{})
	require.NoError(t, g.enter("TEST", netip.IPv4Unspecified()))
	require.Equal(t, errTooMany, g.enter("TEST", netip.IPv4Unspecified()))
	g.leave("TEST", netip.IPv4Unspecified())
	require.Empty(t, g.perIP)
	require.Zero(t, g.inside)
}
