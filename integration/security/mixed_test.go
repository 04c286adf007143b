package security

import (
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// mixed is a cluster of Apache Kafka, Barnabas and Apache Kafka, in which the first is controller, with a topic whose partitions each of them has.
type mixed struct {
	*cluster.Cluster
	client *kgo.Client
	sent   int
}

const mixedPartitions = 6

// startMixed starts one whose brokers talk to each other by a listener BROKERS; clients come by another, in the open.
func startMixed(t *testing.T, zk string, settings map[string]string) *mixed {
	lane.KafkaJars(t, "3.9.1")
	m := &mixed{Cluster: cluster.Prepare(t, zk, 3, with(settings, map[string]string{"inter.broker.listener.name": "BROKERS", "min.insync.replicas": "2", "replica.lag.time.max.ms": "30000"}), func(int) map[string]string {
		return map[string]string{"listeners": "PLAINTEXT://${addr},BROKERS://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))}
	})}
	kafka := cluster.Kafka("3.9.1")
	for i, program := range []cluster.Program{kafka, cluster.Barnabas, kafka} {
		m.Brokers[i].Become(program)
		m.Brokers[i].Start(t)
		if i == 0 {
			m.Brokers[i].WaitReady(t) // and is controller
		}
	}
	for _, b := range m.Brokers {
		b.WaitReady(t)
	}
	var err error
	m.client, err = kgo.NewClient(kgo.SeedBrokers(m.Seeds()...), kgo.MetadataMinAge(20*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.AlwaysRetryEOF(), kgo.RecordDeliveryTimeout(patienceOfPrograms),
		kgo.ConsumeTopics("t"))
	require.NoError(t, err)
	t.Cleanup(m.client.Close)
	_, err = kadm.NewClient(m.client).CreateTopic(lane.Patience(t), mixedPartitions, 3, nil, "t")
	require.NoError(t, err)
	return m
}

// write writes to every partition, once all brokers follow it.
func (m *mixed) write(t *testing.T) {
	m.WaitWhole(t, "t", mixedPartitions, 3)
	var batch []*kgo.Record
	for p := range int32(mixedPartitions) {
		batch = append(batch, &kgo.Record{Topic: "t", Partition: p, Value: fmt.Append(nil, m.sent)})
		m.sent++
	}
	require.NoError(t, m.client.ProduceSync(lane.Patience(t), batch...).FirstErr())
}

// comesBack starts a broker that is down as the program to, and writes with it.
func (m *mixed) comesBack(t *testing.T, b *cluster.Broker, to cluster.Program) {
	b.Become(to)
	b.Start(t)
	b.WaitReady(t)
	m.write(t)
}

// holdsAll reads what was written, and looks for secrets in the logs of the brokers.
func (m *mixed) holdsAll(t *testing.T, secrets ...string) {
	seen := 0
	for ctx := lane.Patience(t); seen < m.sent; {
		fetches := m.client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		seen += fetches.NumRecords()
	}
	require.Equal(t, m.sent, seen)
	for _, b := range m.Brokers {
		log := b.LogTail(1 << 20)
		for _, secret := range secrets {
			require.NotContains(t, log, secret)
		}
	}
}

// Brokers of both kinds talk to each other by SASL_SSL with SCRAM only, and change places: every partition is led and followed over it, by either, and either is controller over it.
func TestBrokersThatTrustNobodyCanBeReplacedOneByOne(t *testing.T) {
	zk := zktest.Embedded(t).Addr()
	addCredential(t, zk, "broker", "broker-secret")
	m := startMixed(t, zk, with(stores(t, "broker", "PKCS12"), map[string]string{
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_SSL",
		"sasl.enabled.mechanisms":        "SCRAM-SHA-512", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
		"listener.name.brokers.scram-sha-512.sasl.jaas.config": jaas(scramModule, `username="broker"`, `password="broker-secret"`),
		"listener.name.brokers.ssl.client.auth":                "required",
		"listener.name.brokers.connections.max.reauth.ms":      "4000",
		"controlled.shutdown.retry.backoff.ms":                 "500",
	}))
	m.write(t)
	for i, to := range []cluster.Program{cluster.Barnabas, cluster.Kafka("3.9.1"), cluster.Barnabas} { // the controller goes each time it is its turn
		m.Brokers[i].Stop(t)
		m.comesBack(t, m.Brokers[i], to)
	}
	m.holdsAll(t, "broker-secret")
}
