package hostile

import (
	"testing"
	"time"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

func TestABrokerWithstandsAStorm(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, nil)
	target := Target{Addr: c.Brokers[0].Addr, PID: c.Brokers[0].PID(), Duration: 10 * time.Second, Malformed: 100_000, Seed: 1}
	if testing.Short() {
		target.Duration, target.Malformed = 2*time.Second, 0
	}
	Storm(t, target)
}
