package neighbours

import (
	"slices"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/integration/lane"
)

// What monitors are for: one of three brokers is away, and they have to see it.
func playBrokerAway(s *scene) {
	lost := s.Brokers[2]
	lost.Stop(s)
	s.until("the remaining brokers lead all orders", func() bool {
		found, err := s.admin.ListTopics(lane.Patience(s), orders)
		require.NoError(s, err)
		for _, p := range found[orders].Partitions {
			if p.Leader == 3 || p.Leader < 0 || slices.Contains(p.ISR, 3) {
				return false
			}
		}
		return s.node("/brokers/ids/3") == "none"
	})

	try := kafkaUtils(s)
	for _, check := range []string{"min_isr", "offline", "replica_unavailability"} {
		out, code := try("kafka-check", "-v", check)
		s.say("kafka-check "+check, sorted(out, "."))
		require.Equal(s, map[string]int{"min_isr": 0, "offline": 0, "replica_unavailability": 2}[check], code, "%s", out)
	}

	lost.Start(s)
	lost.WaitReady(s)
	s.WaitWhole(s.T, orders, 4, 2)
	s.WaitWhole(s.T, payments, 2, 3)
	_, err := s.admin.ElectLeaders(lane.Patience(s), kadm.ElectPreferredReplica, nil)
	require.NoError(s, err)
	s.topic(orders, 4, 2)
	out, code := try("kafka-check", "-v", "replica_unavailability")
	require.Zero(s, code, "%s", out)
	s.say("kafka-check of the whole cluster", out)
}
