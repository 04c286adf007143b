package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// pair is a cluster of one broker of Apache Kafka and one of Barnabas, whose internal topics have one partition each.
type pair struct {
	t     *testing.T
	c     *cluster.Cluster
	admin *kadm.Client
}

// startPair starts the two, the first as controller.
func startPair(t *testing.T, ibp string, programs ...cluster.Program) *pair {
	t.Helper()
	p := &pair{t: t}
	p.c = cluster.StartMixed(t, zktest.Real(t).Addr(), programs, map[string]string{
		"inter.broker.protocol.version": ibp, "min.insync.replicas": "1", "default.replication.factor": "2", "zookeeper.session.timeout.ms": "6000", "replica.lag.time.max.ms": "3000",
		"transaction.state.log.num.partitions": "1", "transaction.state.log.replication.factor": "2", "transaction.state.log.min.isr": "1",
		"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "2", "group.initial.rebalance.delay.ms": "100",
		"auto.leader.rebalance.enable": "false", "controlled.shutdown.retry.backoff.ms": "500",
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(p.c.Seeds()...), kgo.MetadataMinAge(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	p.admin = kadm.NewClient(client)
	return p
}

func (p *pair) other(b *cluster.Broker) *cluster.Broker { return p.c.Brokers[2-b.ID] }

// elect moves the one partition of an internal topic to a broker, until what is asked says that it leads.
func (p *pair) elect(topic string, to *cluster.Broker, leads func() bool) {
	p.t.Helper()
	var order kadm.AlterPartitionAssignmentsReq
	order.Assign(topic, 0, []int32{int32(to.ID), int32(p.other(to).ID)})
	_, err := p.admin.AlterPartitionAssignments(lane.Patience(p.t), order)
	require.NoError(p.t, err)
	var only kadm.TopicsSet
	only.Add(topic, 0)
	require.Eventually(p.t, func() bool {
		ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Second)
		defer cancel()
		_, _ = p.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, only)
		return leads()
	}, time.Minute, 100*time.Millisecond, "broker %d becomes coordinator", to.ID)
}

// The coordinator of a group and that of a transaction move from Apache Kafka's broker to ours, and back, whichever of the two is the controller: when somebody asks for it, in the middle of open
// transactions; when the coordinator dies with a decision taken; and when it is stopped. Whoever comes next reads what the other wrote and goes on with it: the members of the group stay in
// and lose nothing that they committed, and no transaction is torn, left open, or ended by a zombie.
func TestCoordinatorsMoveBetweenKafkaAndBarnabas(t *testing.T) {
	type programs = []cluster.Program // the first is the controller
	for _, mix := range []struct {
		name, version, ibp string
		programs           programs
	}{
		{"3.9.1 leads barnabas", "3.9.1", "3.9", programs{cluster.Kafka("3.9.1"), cluster.Barnabas}},
		{"barnabas leads 3.9.1", "3.9.1", "3.9", programs{cluster.Barnabas, cluster.Kafka("3.9.1")}},
		{"2.8.2 leads barnabas", "2.8.2", "2.8", programs{cluster.Kafka("2.8.2"), cluster.Barnabas}},
		{"barnabas leads 2.8.2", "2.8.2", "2.8", programs{cluster.Barnabas, cluster.Kafka("2.8.2")}},
		{"2.4.1 leads barnabas", "2.4.1", "2.4", programs{cluster.Kafka("2.4.1"), cluster.Barnabas}},
		{"barnabas leads 2.4.1", "2.4.1", "2.4", programs{cluster.Barnabas, cluster.Kafka("2.4.1")}},
	} {
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			lane.KafkaJars(t, mix.version)
			p := startPair(t, mix.ibp, mix.programs...)
			g := newMovingGroup(p)
			g.moves(2)
			m := newMovingProducer(p)
			m.openTransactionsMove(4)
			m.fenced()
			m.decisionsMove(2)
			m.judge()
			g.stays()
			g.coordinatorsStop()
			g.finish()
		})
	}
}
