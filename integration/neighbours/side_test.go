package neighbours

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

const kafkaVersion = "3.9.1"

// Nothing is left to chance or to time where the programs could tell the difference: leaders stay where they are put, records stay, groups do not wait for members, and nobody is given up whom a
// busy machine holds up.
var settings = map[string]string{
	"auto.leader.rebalance.enable": "false", "auto.create.topics.enable": "false", "log.retention.ms": "-1", "offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0",
	"zookeeper.session.timeout.ms": "60000", "replica.lag.time.max.ms": "120000", "controlled.shutdown.retry.backoff.ms": "500", "log.segment.delete.delay.ms": "500",
}

// side is one of two clusters of three brokers that are asked the same; broker 1 is the controller.
type side struct {
	name string
	*cluster.Cluster
	client *kgo.Client
	admin  *kadm.Client
	tree   *zkstate.Client
	places *strings.Replacer // of its directories
	ports  map[string]string
}

// What the programs find in both clusters.
const (
	orders   = "orders"   // four partitions, ten records in each
	payments = "payments" // two partitions with settings of their own, read by a living member of the group live
	billing  = "billing"  // a group without members that has read all orders
	audit    = "audit"    // one that has not, and stopped
	live     = "live"
)

var began = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) // the time of the first record; one a second follows

const recordsEach = 10

func startSide(t *testing.T, name string, program cluster.Program, zk zktest.Server) *side {
	t.Helper()
	c := cluster.Prepare(t, zk.Addr(), 3, settings, func(id int) map[string]string { return map[string]string{"broker.rack": "rack-" + strconv.Itoa(id)} })
	for i, b := range c.Brokers {
		b.Become(program)
		b.Start(t)
		if i == 0 {
			b.WaitReady(t)
		}
	}
	c.WaitTogether(t)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	tree, err := zkstate.Connect(zkstate.Config{Servers: zk.Addr(), SessionTimeout: 20 * time.Second, Log: logrus.NewEntry(quiet)})
	require.NoError(t, err)
	t.Cleanup(tree.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(20*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s := &side{name: name, Cluster: c, client: client, admin: kadm.NewClient(client), tree: tree}
	s.places, s.ports = s.addresses(zk.Addr())
	s.create(t, "__consumer_offsets", [][]int32{{1, 2, 3}, {2, 3, 1}, {3, 1, 2}}, map[string]string{"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"})
	s.create(t, orders, [][]int32{{1, 2}, {2, 3}, {3, 1}, {1, 3}}, nil)
	s.create(t, payments, [][]int32{{1, 2, 3}, {2, 3, 1}}, map[string]string{"min.insync.replicas": "2", "retention.ms": "86400000", "cleanup.policy": "compact"})
	s.fill(t, orders, 4)
	s.fill(t, payments, 2)
	for range 3 { // what an evaluation of lag wants to see
		s.commit(t, billing, orders, 4, recordsEach)
		s.commit(t, audit, orders, 4, recordsEach-6)
	}
	s.join(t, live, "till-1")
	return s
}

// addresses tells what stands for the directories and ports of this side in what programs print. The ports stay numbers of five digits.
func (s *side) addresses(zookeeper string) (places *strings.Replacer, ports map[string]string) {
	_, port, _ := strings.Cut(zookeeper, ":")
	ports = map[string]string{port: "99999"}
	var pairs []string
	for _, b := range s.Brokers {
		_, port, _ := strings.Cut(b.Addr, ":")
		pairs, ports[port] = append(pairs, b.Dir, "DIR"), strings.Repeat(strconv.Itoa(b.ID), 5)
	}
	return strings.NewReplacer(pairs...), ports
}

// create makes a topic whose replicas lie where they are told to.
func (s *side) create(t *testing.T, topic string, replicas [][]int32, configs map[string]string) {
	t.Helper()
	wanted := kmsg.NewCreateTopicsRequestTopic()
	wanted.Topic, wanted.NumPartitions, wanted.ReplicationFactor = topic, -1, -1
	for i, brokers := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), brokers
		wanted.ReplicaAssignment = append(wanted.ReplicaAssignment, a)
	}
	for name, value := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, kmsg.StringPtr(value)
		wanted.Configs = append(wanted.Configs, c)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 60_000, append(req.Topics, wanted)
	resp, err := req.RequestWith(lane.Patience(t), s.client)
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
	s.WaitWhole(t, topic, len(replicas), len(replicas[0]))
}

// fill sends records, each in a batch of its own, so that logs are as long on both sides.
func (s *side) fill(t *testing.T, topic string, partitions int) {
	t.Helper()
	for i := range recordsEach {
		for p := range partitions {
			r := &kgo.Record{Topic: topic, Partition: int32(p), Key: []byte("key-" + strconv.Itoa(i)), Value: []byte("value"), Timestamp: began.Add(time.Duration(i) * time.Second)}
			require.NoError(t, s.client.ProduceSync(lane.Patience(t), r).FirstErr())
		}
	}
}

func (s *side) commit(t *testing.T, group, topic string, partitions int, at int64) {
	t.Helper()
	var offsets kadm.Offsets
	for p := range partitions {
		offsets.Add(kadm.Offset{Topic: topic, Partition: int32(p), At: at, LeaderEpoch: -1, Metadata: "by hand"})
	}
	require.NoError(t, s.admin.CommitAllOffsets(lane.Patience(t), group, offsets))
}

// join makes a member of a group that has read and committed all payments; it stays until it is closed or the test ends. With an instance of a name it is a static member.
func (s *side) join(t *testing.T, group, instance string) *kgo.Client {
	t.Helper()
	opts := []kgo.Opt{kgo.SeedBrokers(s.Seeds()...), kgo.ClientID("shop"), kgo.ConsumerGroup(group), kgo.ConsumeTopics(payments), kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(5 * time.Minute)}
	if instance != "" {
		opts = append(opts, kgo.InstanceID(instance))
	}
	member, err := kgo.NewClient(opts...)
	require.NoError(t, err)
	t.Cleanup(member.Close)
	ctx := lane.Patience(t)
	for seen := 0; seen < 2*recordsEach; {
		got := member.PollFetches(ctx)
		require.NoError(t, got.Err())
		seen += got.NumRecords()
	}
	require.NoError(t, member.CommitUncommittedOffsets(ctx))
	return member
}

// pair is both sides. The embedded ZooKeeper stands behind Barnabas, Apache's behind Kafka.
type pair []*side

func startPair(t *testing.T) pair {
	t.Helper()
	lane.KafkaJars(t, kafkaVersion)
	return pair{startSide(t, "barnabas", cluster.Barnabas, zktest.Embedded(t)), startSide(t, "kafka", cluster.Kafka(kafkaVersion), zktest.Real(t))}
}

// ask plays the same scene on both sides and compares what was taken down.
func (p pair) ask(t *testing.T, play func(s *scene)) {
	t.Helper()
	said := make([][]line, len(p))
	played := t.Run("played", func(t *testing.T) {
		for i, s := range p {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel() // most of the time is the programs' own waiting
				sc := newScene(t, s)
				play(sc)
				said[i] = sc.said
			})
		}
	})
	if !played {
		return
	}
	ours, kafkas := said[0], said[1]
	require.NotEmpty(t, kafkas)
	for i, l := range kafkas {
		require.Less(t, i, len(ours), "after %s", l.what)
		require.Equal(t, l.what, ours[i].what)
		assert.Equal(t, l.text, ours[i].text, "%s: first Apache Kafka, then Barnabas", l.what)
		if testing.Verbose() {
			t.Logf("%s:\n%s", l.what, l.text)
		}
	}
	assert.Len(t, ours, len(kafkas))
}

func TestNeighboursSayTheSameOfBothBrokers(t *testing.T) {
	plays := []struct {
		name string
		play func(s *scene)
	}{
		{"znodes by hand", playZnodes},
		{"kafka-utils", playKafkaUtils},
		{"kafka-assigner", playKafkaAssigner},
		{"Burrow", playBurrow},
		{"kafka-console", playKafkaConsole},
		{"librdkafka's admin client", playAdminClient},
		{"kafka-python's admin client", playKafkaPython},
		{"a broker is away", playBrokerAway},
	}
	programs(t) // said before anything is started
	both := startPair(t)
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) { both.ask(t, p.play) })
	}
}
