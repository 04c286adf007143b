package broker

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/netserver"
	"barnabas/broker/quota"
	"barnabas/config"
)

var twoListeners = []*entrance{{Listener: netserver.Listener{Name: "CLIENTS"}}, {Listener: netserver.Listener{Name: "BROKERS"}}}

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
