package broker

import (
	"context"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/netserver"
	"barnabas/broker/quota"
	"barnabas/config"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

var twoListeners = []netserver.Listener{{Name: "CLIENTS"}, {Name: "BROKERS"}}

func TestLimitsOfConnectionsAreTakenFromTheConfiguration(t *testing.T) {
	v, err := config.New(map[string]string{"max.connections": "100", "max.connections.per.ip": "10", "max.connections.per.ip.overrides": "::ffff:10.0.0.1:5,::1:7",
		"listener.name.brokers.max.connections": "20", "max.connection.creation.rate": "50", "listener.name.clients.max.connection.creation.rate": "5"})
	require.NoError(t, err)
	limits, err := connectionLimits(t.Context(), v, twoListeners)
	require.NoError(t, err)
	assert.Equal(t, netserver.Limits{Connections: 100, OnListener: map[string]int{"CLIENTS": 100, "BROKERS": 20}, PerIP: 10,
		FromIP: map[netip.Addr]int{netip.MustParseAddr("10.0.0.1"): 5, netip.MustParseAddr("::1"): 7}}, limits)
	assert.Equal(t, quota.ArrivalLimits{Broker: 50, Listeners: map[string]float64{"CLIENTS": 5, "BROKERS": 50}}, arrivalLimits(v, twoListeners))

	v, err = config.New(nil)
	require.NoError(t, err)
	limits, err = connectionLimits(t.Context(), v, nil)
	require.NoError(t, err)
	assert.Equal(t, netserver.Unlimited, limits.Connections)
	assert.Equal(t, netserver.Unlimited, limits.PerIP)
}

func TestALimitForAHostThatCannotBeFoundIsRefused(t *testing.T) {
	v, err := config.New(map[string]string{"max.connections.per.ip.overrides": "no-such-host.invalid:5"})
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel() // nobody is asked
	_, err = connectionLimits(over, v, twoListeners)
	assert.ErrorContains(t, err, "no-such-host.invalid")
}

func TestQuotasOfAddressesAreTakenFromZooKeeper(t *testing.T) {
	zk := zkClient(t, zktest.Embedded(t))
	ctx := within(t, time.Minute)
	held := quota.NewArrivals(quota.Windows{Samples: 11, Size: time.Second})
	q := newAddressQuotas(zk, held, quietLog())
	require.NoError(t, q.load(ctx), "a cluster without the folder")

	// taken is how many of an address come in at once.
	taken := func(address string) (n int) {
		from := netip.MustParseAddr(address)
		for ; n < 1000 && held.From("A", false, from, time.UnixMilli(0)) == 0; n++ {
		}
		held.LimitAddresses(quota.AddressLimits{}) // forget what came
		q.enforceLocked()
		return n
	}
	set := func(name string, limit string) {
		require.NoError(t, zk.SetEntityConfig(ctx, zkstate.IPEntity, name, zkstate.EntityConfig{"connection_creation_rate": limit}), name)
	}
	set(zkstate.DefaultEntity, "2")
	set("10.0.0.1", "3")
	set("::1", "0")
	set("10.0.0.2", "2147483647")
	set("10.0.0.3", "nonsense")
	require.NoError(t, q.load(ctx))
	assert.Equal(t, 30, taken("10.0.0.1"))
	assert.Equal(t, 0, taken("::1"))
	assert.Equal(t, 1000, taken("10.0.0.2"), "an exception to the default")
	assert.Equal(t, 20, taken("10.0.0.3"), "what is no number does not hold")
	assert.Equal(t, 20, taken("10.0.0.4"))

	q.changed(ctx, "10.0.0.1", zkstate.EntityConfig{"connection_creation_rate": "-1"})
	assert.Equal(t, 30, taken("10.0.0.1"), "what of before holds")
	q.changed(ctx, "10.0.0.1", zkstate.EntityConfig{})
	assert.Equal(t, 20, taken("10.0.0.1"))
	q.changed(ctx, zkstate.DefaultEntity, zkstate.EntityConfig{})
	assert.Equal(t, 1000, taken("10.0.0.1"))
	assert.Equal(t, math.Inf(1), q.mu.own["10.0.0.2"].limit)
}
