package hostile

import (
	"testing"
	"time"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

func TestABrokerWithstandsAStorm(t *testing.T) {
	duration := 10 * time.Second
	if testing.Short() {
		duration = 2 * time.Second
	}
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, nil)
	Storm(t, Target{Addr: c.Brokers[0].Addr, PID: c.Brokers[0].PID(), Duration: duration, Seed: 1})
}
