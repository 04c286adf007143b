package interop

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// circle is a cluster of brokers of two or three kinds, whose internal topics have one partition each. What they coordinate goes from each to the next.
type circle struct {
	t     *testing.T
	c     *cluster.Cluster
	admin *kadm.Client
}

// startCircle starts one broker of each program, the first as controller.
func startCircle(t *testing.T, ibp string, programs ...cluster.Program) *circle {
	t.Helper()
	all := strconv.Itoa(len(programs))
	r := &circle{t: t}
	r.c = cluster.StartMixed(t, zktest.Real(t).Addr(), programs, map[string]string{
		"inter.broker.protocol.version": ibp, "min.insync.replicas": "1", "default.replication.factor": all, "zookeeper.session.timeout.ms": "6000", "replica.lag.time.max.ms": "30000",
		"transaction.state.log.num.partitions": "1", "transaction.state.log.replication.factor": all, "transaction.state.log.min.isr": "1",
		"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": all, "group.initial.rebalance.delay.ms": "100",
		"auto.leader.rebalance.enable": "false", "controlled.shutdown.retry.backoff.ms": "500",
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(r.c.Seeds()...), kgo.MetadataMinAge(50*time.Millisecond), kgo.AlwaysRetryEOF())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	r.admin = kadm.NewClient(client)
	return r
}

func (r *circle) next(b *cluster.Broker) *cluster.Broker { return r.c.Brokers[b.ID%len(r.c.Brokers)] }

// What a coordinator coordinates, as FindCoordinator has it.
const (
	ofGroups       int8 = 0
	ofTransactions int8 = 1
)

// coordinator is whom every broker that runs names when it alone is asked; nil while they differ. Until a broker has heard of an election it names the one before, and whoever
// believes it moves the coordinator once more.
func (r *circle) coordinator(of int8, key string) *cluster.Broker {
	r.t.Helper()
	named := map[int]bool{}
	for _, b := range r.c.Brokers {
		if b.Running() {
			named[r.namedBy(b, of, key)] = true
		}
	}
	if len(named) != 1 {
		return nil
	}
	for _, b := range r.c.Brokers {
		if named[b.ID] {
			return b
		}
	}
	return nil
}

// namedBy asks one broker for a coordinator; 0 if it names none.
func (r *circle) namedBy(b *cluster.Broker, of int8, key string) int {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
	require.NoError(r.t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
	defer cancel()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = of, key, []string{key} // one key before version 4, several from then on
	answer, err := client.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return 0
	}
	resp := answer.(*kmsg.FindCoordinatorResponse)
	for _, found := range resp.Coordinators {
		resp.ErrorCode, resp.NodeID = found.ErrorCode, found.NodeID
	}
	if resp.ErrorCode != 0 {
		return 0
	}
	return int(resp.NodeID)
}

// awaitCoordinator waits until all name the same one.
func (r *circle) awaitCoordinator(of int8, key string) (b *cluster.Broker) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		b = r.coordinator(of, key)
		return b != nil
	}, patience, 50*time.Millisecond, "there is a coordinator")
	return b
}

// awaitOther waits until all name the same one, another than who was it.
func (r *circle) awaitOther(of int8, key string, than *cluster.Broker) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		b := r.coordinator(of, key)
		return b != nil && b != than
	}, patience, 50*time.Millisecond, "another than broker %d takes over", than.ID)
}

// elect moves the one partition of an internal topic to a broker, until all name that as coordinator.
func (r *circle) elect(to *cluster.Broker, of int8, key string) {
	r.t.Helper()
	topic := "__consumer_offsets"
	if of == ofTransactions {
		topic = "__transaction_state"
	}
	replicas := []int32{int32(to.ID)}
	for b := r.next(to); b != to; b = r.next(b) {
		replicas = append(replicas, int32(b.ID))
	}
	var order kadm.AlterPartitionAssignmentsReq
	order.Assign(topic, 0, replicas)
	_, err := r.admin.AlterPartitionAssignments(lane.Patience(r.t), order)
	require.NoError(r.t, err)
	var only kadm.TopicsSet
	only.Add(topic, 0)
	require.Eventually(r.t, func() bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		defer cancel()
		_, _ = r.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, only)
		return r.coordinator(of, key) == to
	}, patience, 100*time.Millisecond, "broker %d becomes coordinator", to.ID)
}

// allMixes tells whether what takes longer than it is worth every time is wanted.
func allMixes() bool { return os.Getenv("BARNABAS_ALL_MIXES") == "1" }

// circles are the mixes of two and of three kinds; the first named is the controller. In a calm one no broker may go, see mixes. Those that are left run only with $BARNABAS_ALL_MIXES=1.
var circles = []struct {
	name     string
	versions []string
	ibp      string
	programs []cluster.Program
	calm     bool
	left     bool
}{
	{"3.9.1 leads barnabas", []string{"3.9.1"}, "3.9", []cluster.Program{cluster.Kafka("3.9.1"), cluster.Barnabas}, false, false},
	{"barnabas leads 3.9.1", []string{"3.9.1"}, "3.9", []cluster.Program{cluster.Barnabas, cluster.Kafka("3.9.1")}, false, false},
	{"2.8.2 leads barnabas", []string{"2.8.2"}, "2.8", []cluster.Program{cluster.Kafka("2.8.2"), cluster.Barnabas}, false, false},
	{"barnabas leads 2.8.2", []string{"2.8.2"}, "2.8", []cluster.Program{cluster.Barnabas, cluster.Kafka("2.8.2")}, false, false},
	{"2.4.1 leads barnabas", []string{"2.4.1"}, "2.4", []cluster.Program{cluster.Kafka("2.4.1"), cluster.Barnabas}, false, false},
	{"barnabas leads 2.4.1", []string{"2.4.1"}, "2.4", []cluster.Program{cluster.Barnabas, cluster.Kafka("2.4.1")}, false, false},

	{"2.8.2 leads barnabas and 3.9.1", []string{"2.8.2", "3.9.1"}, "2.8", []cluster.Program{cluster.Kafka("2.8.2"), cluster.Barnabas, cluster.Kafka("3.9.1")}, true, false},
	{"3.9.1 leads barnabas and 2.8.2", []string{"2.8.2", "3.9.1"}, "2.8", []cluster.Program{cluster.Kafka("3.9.1"), cluster.Barnabas, cluster.Kafka("2.8.2")}, true, true},
	{"barnabas leads 2.8.2 and 3.9.1", []string{"2.8.2", "3.9.1"}, "2.8", []cluster.Program{cluster.Barnabas, cluster.Kafka("2.8.2"), cluster.Kafka("3.9.1")}, true, true},
	{"2.4.1 leads barnabas and 3.9.1", []string{"2.4.1", "3.9.1"}, "2.4", []cluster.Program{cluster.Kafka("2.4.1"), cluster.Barnabas, cluster.Kafka("3.9.1")}, false, true},
	{"3.9.1 leads barnabas and 2.4.1", []string{"2.4.1", "3.9.1"}, "2.4", []cluster.Program{cluster.Kafka("3.9.1"), cluster.Barnabas, cluster.Kafka("2.4.1")}, false, true},
	{"barnabas leads 2.4.1 and 3.9.1", []string{"2.4.1", "3.9.1"}, "2.4", []cluster.Program{cluster.Barnabas, cluster.Kafka("2.4.1"), cluster.Kafka("3.9.1")}, false, true},
	{"2.4.1 leads barnabas and 2.8.2", []string{"2.4.1", "2.8.2"}, "2.4", []cluster.Program{cluster.Kafka("2.4.1"), cluster.Barnabas, cluster.Kafka("2.8.2")}, false, true},
	{"2.8.2 leads barnabas and 2.4.1", []string{"2.4.1", "2.8.2"}, "2.4", []cluster.Program{cluster.Kafka("2.8.2"), cluster.Barnabas, cluster.Kafka("2.4.1")}, false, true},
	{"barnabas leads 2.4.1 and 2.8.2", []string{"2.4.1", "2.8.2"}, "2.4", []cluster.Program{cluster.Barnabas, cluster.Kafka("2.4.1"), cluster.Kafka("2.8.2")}, false, true},
}

// The coordinator of a group and that of a transaction move from Apache Kafka's broker to ours, and back, whichever of them is the controller: when somebody asks for it, in the middle of open
// transactions; when the coordinator dies with a decision taken; and when it is stopped. Whoever comes next reads what the other wrote and goes on with it: the members of the group stay in
// and lose nothing that they committed, and no transaction is torn, left open, or ended by a zombie.
func TestCoordinatorsMoveBetweenKafkaAndBarnabas(t *testing.T) {
	for _, mix := range circles {
		if mix.left && !allMixes() {
			continue
		}
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			for _, v := range mix.versions {
				lane.KafkaJars(t, v)
			}
			r := startCircle(t, mix.ibp, mix.programs...)
			g := newMovingGroup(r)
			g.moves()
			m := newMovingProducer(r)
			m.openTransactionsMove()
			m.fenced()
			if !mix.calm {
				m.decisionsMove()
			}
			m.judge()
			g.stays()
			if !mix.calm {
				g.coordinatorsStop()
			}
			g.finish()
		})
	}
}
