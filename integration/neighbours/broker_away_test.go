package neighbours

import (
	"slices"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/lane"
)

// What monitors are for: one of three brokers is away, and they have to see it.
func playBrokerAway(s *scene) {
	lost := s.Brokers[2]
	lost.Stop(s)
	s.until("the remaining brokers know", func() bool { return s.node("/brokers/ids/3") == "none" && s.without(3, 1) && s.without(3, 2) })

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

// without tells whether a broker knows that another is gone, and that the replicas of orders there are out of sync.
func (s *scene) without(gone int32, asked int) bool {
	s.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: kmsg.StringPtr(orders)})
	answer, err := s.client.Broker(asked).RetriableRequest(lane.Patience(s), req)
	require.NoError(s, err)
	resp := answer.(*kmsg.MetadataResponse)
	for _, p := range resp.Topics[0].Partitions {
		if p.Leader == gone || p.Leader < 0 || slices.Contains(p.ISR, gone) {
			return false
		}
	}
	return len(resp.Brokers) == len(s.Brokers)-1
}
