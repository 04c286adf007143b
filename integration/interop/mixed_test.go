package interop

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

const mixedPartitions = 6

// mixes are clusters of three in which the first is the controller. In a calm one no broker may go while others lead: a leader of 2.8 that asks a controller of 3.9 to let a dead broker
// into the ISR gets an answer (OPERATION_NOT_ATTEMPTED, KIP-841) after which it never changes that ISR again, whoever the third is.
var mixes = []struct {
	name     string
	versions []string
	ibp      string
	programs []cluster.Program
	calm     bool
}{
	{"barnabas leads 3.9.1", []string{"3.9.1"}, "3.9", []cluster.Program{cluster.Barnabas, cluster.Kafka("3.9.1"), cluster.Kafka("3.9.1")}, false},
	{"3.9.1 leads barnabas", []string{"3.9.1"}, "3.9", []cluster.Program{cluster.Kafka("3.9.1"), cluster.Barnabas, cluster.Barnabas}, false},
	{"barnabas leads 2.8.2", []string{"2.8.2"}, "2.8", []cluster.Program{cluster.Barnabas, cluster.Kafka("2.8.2"), cluster.Kafka("2.8.2")}, false},
	{"2.8.2 leads barnabas", []string{"2.8.2"}, "2.8", []cluster.Program{cluster.Kafka("2.8.2"), cluster.Barnabas, cluster.Barnabas}, false},
	{"2.8.2 leads barnabas and 3.9.1", []string{"2.8.2", "3.9.1"}, "2.8", []cluster.Program{cluster.Kafka("2.8.2"), cluster.Barnabas, cluster.Kafka("3.9.1")}, true},
	{"barnabas leads 2.4.1", []string{"2.4.1"}, "2.4", []cluster.Program{cluster.Barnabas, cluster.Kafka("2.4.1"), cluster.Kafka("2.4.1")}, false},
	{"2.4.1 leads barnabas", []string{"2.4.1"}, "2.4", []cluster.Program{cluster.Kafka("2.4.1"), cluster.Barnabas, cluster.Barnabas}, false},
}

// mixed is one of these clusters, running.
type mixed struct {
	*cluster.Cluster
	client *kgo.Client
	admin  *kadm.Client
	zk     *zkstate.Client
}

// Sessions with ZooKeeper: those of brokers that will be killed end while tests wait; the others are to outlive what a busy machine does to a JVM.
const shortSession, longSession = "8000", "20000"

func startMix(t *testing.T, ibp string, programs []cluster.Program, versions []string, session string) *mixed {
	for _, v := range versions {
		lane.KafkaJars(t, v)
	}
	zk := zktest.Real(t)
	c := cluster.StartMixed(t, zk.Addr(), programs, map[string]string{"inter.broker.protocol.version": ibp, "min.insync.replicas": "2", "replica.lag.time.max.ms": "30000",
		"zookeeper.session.timeout.ms": session, "controlled.shutdown.retry.backoff.ms": "500", "auto.leader.rebalance.enable": "false", "file.delete.delay.ms": "500",
		"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"})
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(20*time.Millisecond), kgo.UnknownTopicRetries(-1), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(patience), kgo.AlwaysRetryEOF(), kgo.AllowIdempotentProduceCancellation())
	require.NoError(t, err)
	t.Cleanup(client.Close)
	state := connect(t, zk.Addr())
	t.Cleanup(state.Close)
	m := &mixed{Cluster: c, client: client, admin: kadm.NewClient(client), zk: state}
	controller, err := state.ControllerID(lane.Patience(t))
	require.NoError(t, err)
	require.EqualValues(t, 1, controller)
	return m
}

func (m *mixed) create(t *testing.T, topic string, partitions int) {
	t.Helper()
	m.eventually(t, topic+" is created", func() error { // for Kafka a deleted topic exists until its own metadata know otherwise
		_, err := m.admin.CreateTopic(lane.Patience(t), int32(partitions), 3, nil, topic)
		return err
	})
	m.WaitWhole(t, topic, partitions, 3)
}

// Barnabas and Apache Kafka brokers in one cluster, the controller on either side: brokers of each kind are killed and stopped, and whoever comes back is taken in again. Nothing that was
// acknowledged is lost, doubled or out of order, and no idempotent producer is refused.
func TestMixedClustersKeepWhatTheyAcknowledge(t *testing.T) {
	for _, mix := range mixes {
		if mix.calm {
			continue
		}
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			m := startMix(t, mix.ibp, mix.programs, mix.versions, shortSession)
			m.create(t, "mixed", mixedPartitions)
			load := history.Start(t, history.Config{Seeds: m.Seeds(), Topic: "mixed", Producers: 2, PerSecond: 2000, MaxValue: 200})
			for i, b := range m.Brokers {
				load.Progress(t, 500, "before broker "+strconv.Itoa(b.ID)+" goes")
				if i%2 == 0 {
					b.Kill(t)
					waitUnregistered(t, m.ZooKeeper, b.ID)
				} else {
					b.Stop(t)
				}
				load.Progress(t, 500, "without broker "+strconv.Itoa(b.ID))
				b.Start(t)
				b.WaitReady(t)
				m.WaitWhole(t, "mixed", mixedPartitions, 3)
			}
			m.finish(t, load, "mixed")
		})
	}
}

// finish ends a load and the copying of it, stops the brokers, and compares what they hold.
func (m *mixed) finish(t *testing.T, load *history.Load, topic string, copies ...*copying) {
	t.Helper()
	assert.Empty(t, load.Finish(t, history.Promise{Idempotent: true}))
	assert.Empty(t, load.Refused())
	for _, c := range copies {
		c.judge()
	}
	m.WaitWhole(t, topic, mixedPartitions, 3)
	var dirs []string
	for _, b := range m.Brokers {
		b.Stop(t)
		dirs = append(dirs, b.Dir)
	}
	for p := range mixedPartitions {
		name := topic + "-" + strconv.Itoa(p)
		assert.Empty(t, history.CompareReplicas(dirs, name))
		for _, dir := range dirs {
			assert.Empty(t, history.Verify(dir, name))
		}
	}
	t.Logf("%d records acknowledged; %s", load.Acked(), filepath.Base(t.Name()))
}

// The way users migrate, and the way back: brokers are replaced one at a time by the other kind, which takes over id, address and data directory, while the cluster is under load and an
// application copies all of it in transactions. Controller, coordinators and leaders go from one kind to the other in the middle of them.
func TestRollingMigrationAndBack(t *testing.T) {
	t.Parallel()
	kafka := cluster.Kafka("2.8.2")
	m := startMix(t, "2.8", []cluster.Program{kafka, kafka, kafka}, []string{"2.8.2"}, shortSession)
	m.create(t, "moved", mixedPartitions)
	m.create(t, copiedTopic, mixedPartitions)
	load := history.Start(t, history.Config{Seeds: m.Seeds(), Topic: "moved", Producers: 3, PerSecond: 500, MaxValue: 200})
	copies := startCopying(t, m.Cluster, "moved")
	for _, next := range []cluster.Program{cluster.Barnabas, kafka} {
		for _, b := range m.Brokers {
			load.Progress(t, 500, "before broker "+strconv.Itoa(b.ID)+" changes hands")
			copies.progress("before broker " + strconv.Itoa(b.ID) + " changes hands")
			b.Stop(t)
			b.Become(next)
			b.Start(t)
			b.WaitReady(t)
			m.WaitWhole(t, "moved", mixedPartitions, 3)
		}
		load.Progress(t, 500, "by three brokers of the other kind")
		copies.progress("by three brokers of the other kind")
	}
	m.finish(t, load, "moved", copies)
}
