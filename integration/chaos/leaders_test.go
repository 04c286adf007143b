package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// Each of three libraries' idempotent producers counts, a record for each number, into a topic of one partition, so a number's offset is the number itself.
const (
	countedPerSecond = 200
	countedAround    = 20 // numbers that each producer gets through before a kill, and that the one whose leader was killed gets through before that comes back
	leaderKills      = 9  // unless $BARNABAS_CHAOS_LEADERS says otherwise
)

// counter is what one producer was told.
type counter struct {
	topic string
	stop  func() // ends it, when all that it sent is answered

	mu    sync.Mutex
	acked map[int64]int64 // offsets, by number
	said  []string        // what went wrong for good
}

func (c *counter) ack(number, offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked[number] = offset
}

func (c *counter) fail(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, what)
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acked)
}

func (c *counter) progress(t *testing.T, when string) {
	t.Helper()
	from := c.count()
	require.Eventually(t, func() bool { return c.count() >= from+countedAround }, soon, 5*time.Millisecond, "%s %s", c.topic, when)
}

func countWithFranz(t *testing.T, seeds []string, c *counter) {
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.DefaultProduceTopic(c.topic), kgo.MetadataMinAge(50*time.Millisecond), kgo.UnknownTopicRetries(-1), kgo.AlwaysRetryEOF(), kgo.RecordRetries(1<<30))
	require.NoError(t, err)
	c.stop = paced(func(n int64) {
		client.Produce(context.Background(), kgo.StringRecord(strconv.FormatInt(n, 10)), func(r *kgo.Record, err error) {
			if err != nil {
				c.fail(err.Error())
				return
			}
			c.ack(n, r.Offset)
		})
	}, func() {
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if err := client.Flush(ctx); err != nil {
			c.fail(err.Error())
		}
	})
}

func countWithSarama(t *testing.T, seeds []string, c *counter) {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_8_0_0
	cfg.Producer.Idempotent, cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	cfg.Producer.Retry.Max, cfg.Producer.Retry.Backoff = 10_000, 50*time.Millisecond
	cfg.Producer.Return.Successes, cfg.Producer.Return.Errors = true, true
	cfg.Metadata.Retry.Max, cfg.Metadata.Retry.Backoff = 100, 200*time.Millisecond
	cfg.Net.ReadTimeout = 5 * time.Second
	producer, err := sarama.NewAsyncProducer(seeds, cfg)
	require.NoError(t, err)
	var heard sync.WaitGroup
	heard.Go(func() {
		for m := range producer.Successes() {
			c.ack(m.Metadata.(int64), m.Offset)
		}
	})
	heard.Go(func() {
		for err := range producer.Errors() {
			c.fail(err.Error())
		}
	})
	c.stop = paced(func(n int64) {
		producer.Input() <- &sarama.ProducerMessage{Topic: c.topic, Value: sarama.StringEncoder(strconv.FormatInt(n, 10)), Metadata: n}
	}, func() {
		producer.AsyncClose() // when all is answered
		heard.Wait()
	})
}

// countWithJava runs VerifiableProducer, which counts by itself.
func countWithJava(t *testing.T, bootstrap string, c *counter) {
	java, jars := lane.Java(t), lane.KafkaJars(t, "3.9.1")
	config := filepath.Join(t.TempDir(), "producer.properties")
	require.NoError(t, os.WriteFile(config, []byte("enable.idempotence=true\nretries=2147483647\ndelivery.timeout.ms=600000\n"), 0o600)) // it retries nothing by itself
	cmd := exec.Command(java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jars+"/*", "org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", bootstrap, "--topic", c.topic,
		"--throughput", strconv.Itoa(countedPerSecond), "--acks", "-1", "--producer.config", config)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	lane.Bind(cmd)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var said struct {
				Name, Value, Message string
				Offset               int64
			}
			if json.Unmarshal(lines.Bytes(), &said) != nil {
				continue
			}
			switch number, err := strconv.ParseInt(said.Value, 10, 64); {
			case said.Name == "producer_send_success" && err == nil:
				c.ack(number, said.Offset)
			case said.Name == "producer_send_error":
				c.fail(said.Message)
			}
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c.stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it waits for what is under way
		<-heard
		_ = cmd.Wait()
	}
}

// paced calls send for one number after another until it is stopped, and then end.
func paced(send func(n int64), end func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		pace := time.NewTicker(time.Second / countedPerSecond)
		defer pace.Stop()
		for n := int64(0); ctx.Err() == nil; n++ {
			send(n)
			select {
			case <-pace.C:
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		working.Wait()
		end()
	}
}

// judge compares what a topic holds with what its producer sent and was told.
func (c *counter) judge(t *testing.T, values []string) {
	t.Helper()
	for offset, value := range values {
		if value != strconv.Itoa(offset) {
			assert.Fail(t, "a record is lost, doubled or out of order", "%s has %q at offset %d", c.topic, value, offset)
			break
		}
	}
	for number, offset := range c.acked {
		if number != offset || offset >= int64(len(values)) {
			assert.Fail(t, "an answer is not true", "%s: %d was acknowledged at offset %d; the topic ends at %d", c.topic, number, offset, len(values))
			break
		}
	}
	assert.Empty(t, c.said, c.topic)
}

func everyValue(t *testing.T, seeds []string, topic string) (values []string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumeTopics(topic))
	require.NoError(t, err)
	defer client.Close()
	ctx := lane.Patience(t)
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	require.NoError(t, err)
	end, found := ends.Lookup(topic, 0)
	require.True(t, found)
	require.NoError(t, end.Err)
	for int64(len(values)) < end.Offset {
		fetches := client.PollFetches(ctx)
		require.NoError(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

// leaderOf waits for the topic to have one.
func leaderOf(t *testing.T, c *cluster.Cluster, topic string) (leader int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(10*time.Millisecond))
	require.NoError(t, err)
	defer client.Close()
	ctx := lane.Patience(t)
	require.Eventually(t, func() bool {
		topics, err := kadm.NewClient(client).ListTopics(ctx, topic)
		if err != nil || topics[topic].Err != nil || len(topics[topic].Partitions) == 0 {
			return false
		}
		leader = int(topics[topic].Partitions[0].Leader)
		return leader > 0
	}, soon, 10*time.Millisecond, "%s has no leader", topic)
	return leader
}

// The leaders of what idempotent producers of franz-go, sarama and Java write are killed in turn: nothing is lost, nothing is there twice or out of order, and each answer is true.
func TestIdempotentProducersOutliveTheirLeaders(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 3, map[string]string{"min.insync.replicas": "2", "replica.lag.time.max.ms": "10000"})
	counters := []*counter{{topic: "franz-go"}, {topic: "sarama"}, {topic: "java"}}
	for _, producer := range counters {
		producer.acked = map[int64]int64{}
		createTopic(t, c.Seeds(), producer.topic, 1, 3)
	}
	countWithFranz(t, c.Seeds(), counters[0])
	countWithSarama(t, c.Seeds(), counters[1])
	countWithJava(t, c.Bootstrap(), counters[2])
	kills := number("BARNABAS_CHAOS_LEADERS", leaderKills)
	for round := range kills {
		for _, producer := range counters {
			producer.progress(t, fmt.Sprintf("before kill %d", round))
		}
		aim := counters[round%len(counters)]
		b := c.Brokers[leaderOf(t, c, aim.topic)-1]
		b.Kill(t)
		aim.progress(t, fmt.Sprintf("after kill %d", round))
		b.Start(t)
		b.WaitReady(t)
		for _, producer := range counters {
			c.WaitWhole(t, producer.topic, 1, 3)
		}
	}
	records := 0
	for _, producer := range counters {
		producer.stop()
		values := everyValue(t, c.Seeds(), producer.topic)
		producer.judge(t, values)
		records += len(values)
	}
	t.Logf("%d leaders killed, %d records", kills, records)
}
