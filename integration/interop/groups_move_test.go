package interop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// A group moves from Apache Kafka's broker to ours and back, as brokers stop and start, and its members stay in: they keep their ids, and nothing that they committed
// is lost.
func TestAGroupMovesBetweenKafkaAndBarnabas(t *testing.T) {
	for _, version := range []string{"3.9.1", "2.8.2"} {
		t.Run(version, func(t *testing.T) {
			lane.KafkaJars(t, version)
			zk := zktest.Real(t)
			settings := map[string]string{"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "100", "zookeeper.session.timeout.ms": "4000",
				"min.insync.replicas": "1", "default.replication.factor": "2", "offsets.topic.replication.factor": "2", "auto.leader.rebalance.enable": "false"}
			if version == "2.8.2" {
				settings["inter.broker.protocol.version"] = "2.8"
			}
			c := cluster.StartMixed(t, zk.Addr(), []cluster.Program{cluster.Kafka(version), cluster.Barnabas}, settings)
			t.Cleanup(func() { logRebalances(t, c) })
			s := newGroupStage(t, c, "moving", 4, 2)
			stops := []func(){franzMember(t, s), franzMember(t, s)}
			s.members(2)
			s.more(50)
			before := s.memberIDs()
			for range 2 {
				for _, b := range c.Brokers {
					c.WaitWhole(t, "__consumer_offsets", 1, 2)
					c.WaitWhole(t, s.topic, 4, 2)
					if s.coordinator() != b.ID {
						continue
					}
					b.Stop(t)
					s.eventually(func() string {
						if s.coordinator() == b.ID {
							return "the coordinator does not move"
						}
						return ""
					})
					s.members(2)
					require.Equal(t, before, s.memberIDs(), "the members stay in")
					s.more(20)
					b.Start(t)
					b.WaitReady(t)
				}
			}
			require.Equal(t, before, s.memberIDs(), "the members stay in")
			for _, stop := range stops {
				stop()
			}
			s.empty()
		})
	}
}

// logRebalances tells, of a failed test, why the brokers began rebalances.
func logRebalances(t *testing.T, c *cluster.Cluster) {
	if !t.Failed() {
		return
	}
	for _, b := range c.Brokers {
		for line := range strings.Lines(b.LogTail(10 << 20)) {
			if strings.Contains(line, "rebalance of generation") || strings.Contains(line, "Preparing to rebalance") || strings.Contains(line, "has failed") {
				t.Logf("broker %d: %s", b.ID, line)
			}
		}
	}
}

// coordinator is the broker that coordinates the group; 0 while there is none.
func (s *groupStage) coordinator() (id int) {
	s.ask(func(ctx context.Context, adm *kadm.Client) {
		if found := adm.FindGroupCoordinators(ctx, s.group); found[s.group].Err == nil {
			id = int(found[s.group].NodeID)
		}
	})
	return id
}

// memberIDs are the ids of the members, sorted.
func (s *groupStage) memberIDs() (ids []string) {
	s.t.Helper()
	s.eventually(func() string {
		g := s.describe()
		if g.Err != nil {
			return g.Err.Error() // whoever was asked first may be the broker that is away
		}
		for _, m := range g.Members {
			ids = append(ids, m.MemberID)
		}
		return ""
	})
	slices.Sort(ids)
	return ids
}
