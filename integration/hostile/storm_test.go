package hostile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	report := Storm(t, Target{Addr: c.Brokers[0].Addr, PID: c.Brokers[0].PID(), Duration: duration, Seed: 1})
	if testing.Short() {
		return
	}
	malformed := int64(0)
	for kind, frames := range report.Frames {
		if kind != "never reading" && kind != "connecting and leaving" { // which send what is whole
			malformed += frames
		}
	}
	require.GreaterOrEqual(t, malformed, int64(100_000), "frames that no client would send")
}
