package quotas

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

const (
	limit  = 256 << 10 // bytes per second
	volume = 4 * limit
	batch  = 32 << 10
	// With two samples of a second each, what came in the last two seconds at most counts: so much is not held back.
	burst = 2 * limit
	least = time.Duration(float64(volume-burst) / limit * float64(time.Second))
	// A machine that is busy makes it longer.
	most = 30 * least
)

// throttles is what a client is told of its pauses.
type throttles struct{ told, longest atomic.Int64 }

func (h *throttles) OnBrokerThrottle(_ kgo.BrokerMetadata, pause time.Duration, _ bool) {
	h.told.Add(1)
	for {
		longest := h.longest.Load()
		if int64(pause) <= longest || h.longest.CompareAndSwap(longest, int64(pause)) {
			return
		}
	}
}

func dial(t *testing.T, c *cluster.Cluster, id string, more ...kgo.Opt) (*kgo.Client, *throttles) {
	t.Helper()
	h := &throttles{}
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Seeds()...), kgo.ClientID(id), kgo.WithHooks(h), kgo.MetadataMinAge(10 * time.Millisecond),
		kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(batch + 4096)}, more...)...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client, h
}

func produce(ctx context.Context, t *testing.T, client *kgo.Client) time.Duration {
	t.Helper()
	began := time.Now()
	for range volume / batch {
		require.NoError(t, client.ProduceSync(ctx, &kgo.Record{Topic: "data", Value: make([]byte, batch)}).FirstErr())
	}
	return time.Since(began)
}

func consume(ctx context.Context, t *testing.T, client *kgo.Client) time.Duration {
	t.Helper()
	began := time.Now()
	for got := 0; got < volume; {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) { got += len(r.Value) })
	}
	return time.Since(began)
}

// Clients are held to the same limits by Barnabas and by Kafka.
func TestClientsAreHeldToTheirLimits(t *testing.T) {
	for name, program := range map[string]cluster.Program{"Barnabas": cluster.Barnabas, "Kafka": cluster.Kafka("3.9.1")} {
		t.Run(name, func(t *testing.T) {
			if name == "Kafka" {
				lane.KafkaJars(t, "3.9.1")
			}
			brokers := net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t)))
			c := cluster.StartProgram(t, program, zktest.Embedded(t).Addr(), 1, map[string]string{"quota.window.num": "2", "controller.quota.window.num": "5", "zookeeper.session.timeout.ms": "30000",
				"listeners": "PLAINTEXT://${addr},BROKERS://" + brokers, "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT", "inter.broker.listener.name": "BROKERS",
				"listener.name.brokers.max.connections": "1000"},
				func(int) map[string]string { return nil })
			ctx := lane.Patience(t)
			t.Run("bytes", func(t *testing.T) { byteRates(ctx, t, c) })
			t.Run("time", func(t *testing.T) { requestTime(ctx, t, c) })
			t.Run("partitions", func(t *testing.T) { mutations(ctx, t, c) })
			t.Run("connections", func(t *testing.T) { connections(ctx, t, c.Seeds()[0], brokers) })
		})
	}
}

// byteRates: who has a limit is held to it and told of it, who has none is not slowed, and a
// limit that is lifted holds nobody any more.
func byteRates(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	free, told := dial(t, c, "free")
	admin := kadm.NewClient(free)
	_, err := admin.CreateTopic(ctx, 1, 1, nil, "data")
	require.NoError(t, err)
	alter := func(remove bool) {
		for _, key := range []string{"producer_byte_rate", "consumer_byte_rate"} {
			set(ctx, t, admin, key, limit, remove)
		}
	}
	alter(false)

	producer, producerTold := dial(t, c, "limited")
	require.NoError(t, producer.ProduceSync(ctx, &kgo.Record{Topic: "data", Value: []byte("warm")}).FirstErr())
	took := produce(ctx, t, producer)
	assert.GreaterOrEqual(t, took, least, "producer")
	assert.Less(t, took, most, "producer")
	assert.Positive(t, producerTold.told.Load(), "the producer was told")

	consumer, consumerTold := dial(t, c, "limited", kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"data": {0: kgo.NewOffset().AtStart()}}))
	read := consume(ctx, t, consumer)
	assert.GreaterOrEqual(t, read, least, "consumer")
	assert.Less(t, read, most, "consumer")
	assert.Positive(t, consumerTold.told.Load(), "the consumer was told")
	t.Logf("%d bytes at %d a second: sent in %s (%d pauses, at most %s), read in %s (%d, %s)", volume, limit,
		took, producerTold.told.Load(), time.Duration(producerTold.longest.Load()), read, consumerTold.told.Load(), time.Duration(consumerTold.longest.Load()))

	produce(ctx, t, free)
	assert.Zero(t, told.told.Load(), "who has no limit does not pause")

	alter(true)
	for deadline := time.Now().Add(most); ; { // brokers learn of it from ZooKeeper
		again, pauses := dial(t, c, "limited")
		produce(ctx, t, again)
		if pauses.told.Load() == 0 {
			break
		}
		require.True(t, time.Now().Before(deadline), "the limit was lifted")
	}
}
