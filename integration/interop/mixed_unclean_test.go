package interop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/integration/history"
	"barnabas/integration/lane"
	"barnabas/zkstate"
)

// The last in-sync replica is gone for good as far as anybody knows, and an operator chooses the one that was left behind. When the former returns, it gives up what only it had. Leader
// and follower are of the one kind, of the other, and of both.
func TestUncleanElectionInMixedClusters(t *testing.T) {
	for _, mix := range mixes {
		if mix.ibp == "2.4" {
			continue
		}
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			m := startMix(t, mix.ibp, mix.programs, mix.versions, shortSession)
			ctx := lane.Patience(t)
			require.NoError(t, m.createOn(t, "unclean", []int32{2, 3}, map[string]*string{"min.insync.replicas": text("1")}))
			m.WaitWhole(t, "unclean", 1, 2)
			m.write(t, "unclean", 0, 10)
			last, behind := m.Brokers[1], m.Brokers[2]
			behind.Stop(t)
			m.waitISR(t, "unclean", 2)
			m.write(t, "unclean", 0, 10)
			last.Kill(t)
			waitUnregistered(t, m.ZooKeeper, last.ID)
			behind.Start(t)
			behind.WaitReady(t)

			var which kadm.TopicsSet
			which.Add("unclean", 0)
			m.eventually(t, "unclean election", func() error {
				results, err := m.admin.ElectLeaders(ctx, kadm.ElectLiveReplica, which)
				if err == nil {
					err = results["unclean"][0].Err
				}
				return err
			})
			m.waitLeader(t, "unclean", 0, 3)
			require.EqualValues(t, 10, m.end(t, "unclean", 0), "what only the other had is given up")
			m.write(t, "unclean", 0, 5)
			last.Start(t)
			last.WaitReady(t)
			m.waitISR(t, "unclean", 3, 2)
			m.write(t, "unclean", 0, 5)
			require.EqualValues(t, 20, m.end(t, "unclean", 0))
			last.Stop(t)
			behind.Stop(t)
			assert.Empty(t, history.CompareReplicas([]string{last.Dir, behind.Dir}, "unclean-0"))
		})
	}
}

func text(s string) *string { return &s }

// createOn makes a topic with one partition on given brokers.
func (m *mixed) createOn(t *testing.T, topic string, replicas []int32, configs map[string]*string) error {
	node := zkstate.TopicAssignment{Version: 1, Partitions: map[int32]zkstate.ReplicaAssignment{0: {Replicas: replicas}}}
	own := zkstate.EntityConfig{}
	for name, value := range configs {
		own[name] = *value
	}
	ctx := lane.Patience(t)
	if _, err := m.zk.One(ctx, zkstate.Create(zkstate.EntityPath(zkstate.TopicEntity, topic), own.Encode())); err != nil {
		return err
	}
	_, err := m.zk.One(ctx, zkstate.Create(zkstate.TopicPath(topic), node.Encode()))
	return err
}
