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

// Brokers of both kinds talk to each other by SASL_SSL with SCRAM only, and change places: every partition is led and followed over it, by either, and either is controller over it.
func TestBrokersThatTrustNobodyCanBeReplacedOneByOne(t *testing.T) {
	lane.KafkaJars(t, "3.9.1")
	zk := zktest.Embedded(t).Addr()
	addCredential(t, zk, "broker", "broker-secret")
	settings := with(stores(t, "broker", "PKCS12"), map[string]string{
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_SSL", "inter.broker.listener.name": "BROKERS",
		"sasl.enabled.mechanisms": "SCRAM-SHA-512", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
		"listener.name.brokers.scram-sha-512.sasl.jaas.config": jaas(scramModule, `username="broker"`, `password="broker-secret"`),
		"listener.name.brokers.ssl.client.auth":                "required",
		"listener.name.brokers.connections.max.reauth.ms":      "4000",
		"min.insync.replicas":                                  "2", "controlled.shutdown.retry.backoff.ms": "500", "replica.lag.time.max.ms": "30000",
	})
	kafka := cluster.Kafka("3.9.1")
	c := cluster.Prepare(t, zk, 3, settings, func(int) map[string]string {
		return map[string]string{"listeners": "PLAINTEXT://${addr},BROKERS://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))}
	})
	for i, program := range []cluster.Program{kafka, cluster.Barnabas, kafka} {
		c.Brokers[i].Become(program)
		c.Brokers[i].Start(t)
		if i == 0 {
			c.Brokers[i].WaitReady(t) // and is controller
		}
	}
	for _, b := range c.Brokers {
		b.WaitReady(t)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(20*time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.AlwaysRetryEOF(), kgo.RecordDeliveryTimeout(patienceOfPrograms),
		kgo.ConsumeTopics("t"))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	const partitions = 6
	_, err = kadm.NewClient(client).CreateTopic(lane.Patience(t), partitions, 3, nil, "t")
	require.NoError(t, err)

	sent := 0
	write := func() {
		c.WaitWhole(t, "t", partitions, 3)
		var batch []*kgo.Record
		for p := range int32(partitions) {
			batch = append(batch, &kgo.Record{Topic: "t", Partition: p, Value: fmt.Append(nil, sent)})
			sent++
		}
		require.NoError(t, client.ProduceSync(lane.Patience(t), batch...).FirstErr())
	}
	write()
	for _, change := range []struct {
		broker int
		to     cluster.Program
	}{{0, cluster.Barnabas}, {1, kafka}, {2, cluster.Barnabas}} { // the controller goes each time it is its turn
		b := c.Brokers[change.broker]
		b.Stop(t)
		b.Become(change.to)
		b.Start(t)
		b.WaitReady(t)
		write()
	}
	seen := 0
	for ctx := lane.Patience(t); seen < sent; {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		seen += fetches.NumRecords()
	}
	require.Equal(t, sent, seen)
	for _, b := range c.Brokers {
		require.NotContains(t, b.LogTail(1<<20), "broker-secret")
	}
}
