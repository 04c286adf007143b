package powercut

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	topic     = "orders"
	kafka     = "3.9.1"
	diskBytes = 512 << 20
	each      = 200 // records produced at a time
)

var settings = map[string]string{
	"min.insync.replicas": "1", "auto.create.topics.enable": "false", "auto.leader.rebalance.enable": "false", "offsets.topic.num.partitions": "1",
	"replica.lag.time.max.ms": "120000", "controller.socket.timeout.ms": "120000", "replica.socket.timeout.ms": "120000",
	"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT", "inter.broker.listener.name": "INSIDE",
}

// neverFlushes makes Barnabas trust replication alone.
var neverFlushes = map[string]string{"barnabas.flush.policy": "kafka"}

// scene is three brokers whose conversations pass gates, one of them on a disk whose power can be cut, and what was acknowledged of one partition.
type scene struct {
	*cluster.Cluster
	t        *testing.T
	registry *cluster.Registry
	gates    map[int]*gate
	disk     *lane.Disk
	victim   *cluster.Broker // whose disk it is
	acked    []string
}

// newScene starts the brokers, the first as the controller, and makes a topic of one partition.
func newScene(t *testing.T, programs [3]cluster.Program, victim int, replicas []int32, more map[string]string) *scene {
	s := &scene{t: t, gates: map[int]*gate{}, disk: lane.NewDisk(t, diskBytes)}
	s.Cluster = cluster.Prepare(t, zktest.Embedded(t).Addr(), 3, settings, func(id int) map[string]string {
		inside := fmt.Sprintf("127.0.0.1:%d", cluster.Port(t))
		s.gates[id] = newGate(t, inside)
		own := map[string]string{"listeners": "PLAINTEXT://${addr},INSIDE://" + inside, "advertised.listeners": "PLAINTEXT://${addr},INSIDE://" + s.gates[id].addr}
		if id == victim {
			own["log.dirs"] = filepath.Join(s.disk.Dir, "logs")
		}
		return own
	})
	s.victim, s.registry = s.broker(victim), cluster.OpenRegistry(t, s.ZooKeeper)
	for i, b := range s.Brokers {
		for name, value := range more {
			b.Set(name, value)
		}
		b.Become(programs[i])
		b.Start(t)
		if i == 0 {
			b.WaitReady(t)
		}
	}
	s.WaitTogether(t)
	s.createTopic(replicas)
	s.WaitWhole(t, topic, 1, len(replicas))
	s.produce(1)
	s.disk.Sync() // the partition has been there for long
	return s
}

func (s *scene) createTopic(replicas []int32) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Seeds()...))
	require.NoError(s.t, err)
	defer client.Close()
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = topic, -1, -1
	made.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: replicas}}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 60_000, append(req.Topics, made)
	resp, err := req.RequestWith(lane.Patience(s.t), client)
	require.NoError(s.t, err)
	require.Zero(s.t, resp.Topics[0].ErrorCode)
}

func (s *scene) broker(id int) *cluster.Broker { return s.Brokers[id-1] }

// awaitISR waits until these replicas are in sync, in ZooKeeper: what brokers tell may be older.
func (s *scene) awaitISR(isr ...int32) {
	s.t.Helper()
	for ctx := lane.Patience(s.t); !slices.Equal(s.registry.ISR(s.t, topic, 0), isr); time.Sleep(10 * time.Millisecond) { // the pace of looking
		require.NoError(s.t, ctx.Err(), "ISR %v", isr)
	}
}

// produce sends records, each once and acknowledged by all in sync.
func (s *scene) produce(n int) {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Seeds()...), kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()))
	require.NoError(s.t, err)
	defer client.Close()
	var batch []*kgo.Record
	for i := range n {
		batch = append(batch, kgo.StringRecord(fmt.Sprintf("order %d", len(s.acked)+i)))
	}
	require.NoError(s.t, client.ProduceSync(lane.Patience(s.t), batch...).FirstErr())
	for _, r := range batch {
		s.acked = append(s.acked, string(r.Value))
	}
}

// cutPower takes the victim's power, and gives it back once nobody knows the broker any more, without starting the broker.
func (s *scene) cutPower() {
	s.t.Helper()
	s.victim.Pause(s.t)
	s.disk.CutPower()
	s.victim.Kill(s.t)
	s.disk.Restore()
	s.registry.AwaitGone(s.t, s.victim) // Apache Kafka's broker does not start beside what is left of it
}

// lost are the acknowledged records that a reader of the whole partition is not given.
func (s *scene) lost() (lost []string) {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Seeds()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(s.t, err)
	defer client.Close()
	ctx := lane.Patience(s.t)
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	require.NoError(s.t, err)
	end, _ := ends.Lookup(topic, 0)
	require.NoError(s.t, end.Err)
	there := map[string]bool{}
	for n := int64(0); n < end.Offset; {
		fetched := client.PollFetches(ctx)
		require.NoError(s.t, fetched.Err0())
		fetched.EachRecord(func(r *kgo.Record) { there[string(r.Value)], n = true, r.Offset+1 })
	}
	for _, r := range s.acked {
		if !there[r] {
			lost = append(lost, r)
		}
	}
	s.t.Logf("%d records acknowledged, %d lost", len(s.acked), len(lost))
	return lost
}

// All followers leave, the last replica in sync acknowledges more, and loses its power. When it has come back, it leads, and the others follow it. (KIP-966 names this the last replica standing.)
func TestTheLastReplicaStandingLosesItsPower(t *testing.T) {
	for _, who := range []struct {
		name    string
		program cluster.Program
		more    map[string]string
		loses   bool
	}{{"Barnabas", cluster.Barnabas, nil, false}, {"Barnabas that never flushes", cluster.Barnabas, neverFlushes, true}, {kafka, cluster.Kafka(kafka), nil, true}} {
		t.Run(who.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, [3]cluster.Program{who.program, who.program, who.program}, 1, []int32{1, 2, 3}, who.more)
			s.produce(each) // held by all three
			s.broker(2).Stop(t)
			s.broker(3).Stop(t)
			s.awaitISR(1)
			s.produce(each) // held by the last alone
			s.cutPower()
			for _, b := range s.Brokers {
				b.Start(t)
				b.WaitReady(t)
			}
			s.WaitWhole(t, topic, 1, 3)
			assert.Equal(t, who.loses, len(s.lost()) > 0)
		})
	}
}

// A follower has caught up, and its leader's wish to have it in the ISR is slow to reach the controller. Meanwhile the follower loses its power, comes back without what it had, and the leader
// dies before the follower has fetched that anew. Taken into the ISR on what it had, it would lead without it. (KIP-903 names this for KRaft.)
func TestAFollowerReturnsShorterThanItsLeaderBelieves(t *testing.T) {
	for _, who := range []struct {
		name                         string
		controller, leader, follower cluster.Program
		more                         map[string]string
		isr                          []int32 // before the leader dies
	}{
		{"Barnabas", cluster.Barnabas, cluster.Barnabas, cluster.Barnabas, nil, []int32{2}},
		{"Barnabas that never flushes", cluster.Barnabas, cluster.Barnabas, cluster.Barnabas, neverFlushes, []int32{2}},
		{"Barnabas with a follower of " + kafka, cluster.Barnabas, cluster.Barnabas, cluster.Kafka(kafka), nil, []int32{2}},
		// This controller takes it in, and the leader asks it out at once.
		{"Barnabas under " + kafka, cluster.Kafka(kafka), cluster.Barnabas, cluster.Barnabas, neverFlushes, []int32{2}},
		{kafka, cluster.Kafka(kafka), cluster.Kafka(kafka), cluster.Kafka(kafka), nil, []int32{2, 3}},
	} {
		t.Run(who.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, [3]cluster.Program{who.controller, who.leader, who.follower}, 3, []int32{2, 3}, who.more)
			leader, follower := s.broker(2), s.victim
			follower.Stop(t)
			s.awaitISR(2)
			s.produce(each)
			s.gates[1].hold(kmsg.AlterPartition)
			follower.Start(t)
			s.gates[1].await(t, kmsg.AlterPartition)
			s.gates[2].hold(kmsg.Fetch)
			s.cutPower()
			follower.Start(t)
			follower.WaitReady(t)
			s.gates[2].await(t, kmsg.Fetch)
			s.gates[1].release(kmsg.AlterPartition)
			s.gates[1].awaitAnswer(t, kmsg.AlterPartition)
			s.awaitISR(who.isr...)
			leader.Kill(t)
			s.registry.AwaitGone(t, leader)
			leader.Start(t)
			leader.WaitReady(t)
			s.gates[2].release(kmsg.Fetch)
			s.WaitWhole(t, topic, 1, 2)
			assert.Equal(t, len(who.isr) > 1, len(s.lost()) > 0)
		})
	}
}
