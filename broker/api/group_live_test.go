package api

import (
	"net"
	"os"
	"testing"

	"barnabas/integration/lane"
)

// TestALiveBrokerPlaysGroupsAsKafkaDoes has the plays performed by a whole broker
// of this project, over the network and its own offsets topic, with Apache's
// ZooKeeper behind it. Which program to start is told by the environment.
func TestALiveBrokerPlaysGroupsAsKafkaDoes(t *testing.T) {
	program := os.Getenv("BARNABAS_PROGRAM")
	lane.Need(t, program != "", "the built program, named by BARNABAS_PROGRAM")
	addr := oneBroker(t, func(dir, properties string) { start(t, dir, program, "broker", properties) })
	for _, name := range groupPlayNames() {
		t.Run(name, func(t *testing.T) {
			p := newGroupPlay(t, &network{t: t, addr: addr, conns: map[string]net.Conn{}}, parked)
			groupPlays[name](p)
			comparePlay(t, name, p)
		})
	}
}
