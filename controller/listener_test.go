package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"barnabas/zkstate"
)

func TestBrokersAreReachedByTheControlPlaneAndLeadersByTheListenerBetweenBrokers(t *testing.T) {
	c := NewCore(CoreConfig{Listener: "CONTROL", LeaderListener: "BROKERS"})
	c.cluster = newCluster(1, 1)
	c.cluster.brokers[2] = &broker{epoch: 7, info: zkstate.Broker{ID: 2, Endpoints: []zkstate.Endpoint{{Listener: "BROKERS", Host: "a", Port: 1}, {Listener: "CONTROL", Host: "b", Port: 2}}}}
	to, ok := c.endpointOf(2)
	assert.True(t, ok)
	assert.Equal(t, Endpoint{BrokerID: 2, BrokerEpoch: 7, Listener: "CONTROL", Host: "b", Port: 2}, to)
	leader, ok := c.endpointAt(2, c.cfg.leaderListener())
	assert.True(t, ok)
	assert.Equal(t, "a", leader.Host)
	c.cfg.LeaderListener = ""
	assert.Equal(t, "CONTROL", c.cfg.leaderListener())
}
