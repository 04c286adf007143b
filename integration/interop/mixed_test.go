package interop

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
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

const mixedPartitions = 6

// Barnabas and Apache Kafka brokers in one cluster, the controller on either side: records are acknowledged by all in-sync replicas, brokers of each kind are killed and stopped, and nothing
// acknowledged is lost.
func TestMixedClustersKeepWhatTheyAcknowledge(t *testing.T) {
	kafka391, kafka282, kafka241 := cluster.Kafka("3.9.1"), cluster.Kafka("2.8.2"), cluster.Kafka("2.4.1")
	for _, mix := range []struct {
		name     string
		versions []string
		ibp      string
		programs []cluster.Program // the first becomes controller
	}{
		{"barnabas leads 3.9.1", []string{"3.9.1"}, "3.9", []cluster.Program{cluster.Barnabas, kafka391, kafka391}},
		{"3.9.1 leads barnabas", []string{"3.9.1"}, "3.9", []cluster.Program{kafka391, cluster.Barnabas, cluster.Barnabas}},
		{"barnabas leads 2.8.2", []string{"2.8.2"}, "2.8", []cluster.Program{cluster.Barnabas, kafka282, kafka282}},
		{"2.8.2 leads barnabas and 3.9.1", []string{"2.8.2", "3.9.1"}, "2.8", []cluster.Program{kafka282, cluster.Barnabas, kafka391}},
		{"barnabas leads 2.4.1", []string{"2.4.1"}, "2.4", []cluster.Program{cluster.Barnabas, kafka241, kafka241}},
		{"2.4.1 leads barnabas", []string{"2.4.1"}, "2.4", []cluster.Program{kafka241, cluster.Barnabas, cluster.Barnabas}},
	} {
		t.Run(mix.name, func(t *testing.T) {
			for _, v := range mix.versions {
				lane.KafkaJars(t, v)
			}
			zk := zktest.Real(t)
			c := cluster.StartMixed(t, zk.Addr(), mix.programs, map[string]string{"inter.broker.protocol.version": mix.ibp, "min.insync.replicas": "2", "replica.lag.time.max.ms": "3000",
				"zookeeper.session.timeout.ms": "3000", "controlled.shutdown.retry.backoff.ms": "500"})
			client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(50*time.Millisecond), kgo.DefaultProduceTopic("mixed"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
			require.NoError(t, err)
			defer client.Close()
			_, err = kadm.NewClient(client).CreateTopics(context.Background(), mixedPartitions, 3, nil, "mixed")
			require.NoError(t, err)
			awaitWhole(t, client)

			ctx, stop := context.WithCancel(context.Background())
			load := startLoad(ctx, client)
			for i, b := range c.Brokers {
				load.progress(t, 500)
				if i%2 == 0 {
					b.Kill(t)
					waitUnregistered(t, zk.Addr(), b.ID)
				} else {
					b.Stop(t)
				}
				load.progress(t, 500)
				b.Start(t)
				b.WaitReady(t)
				awaitWhole(t, client)
			}
			stop()
			load.judge(t, c.Seeds())
		})
	}
}

// awaitWhole waits until every partition has a leader and three replicas in sync.
func awaitWhole(t *testing.T, client *kgo.Client) {
	t.Helper()
	var last kadm.TopicDetails
	ok := assert.Eventually(t, func() bool {
		topics, err := kadm.NewClient(client).ListTopics(context.Background(), "mixed")
		if err != nil {
			return false
		}
		last = topics
		whole := 0
		topics.EachPartition(func(p kadm.PartitionDetail) {
			if p.Leader >= 0 && len(p.ISR) == 3 {
				whole++
			}
		})
		return whole == mixedPartitions
	}, time.Minute, 100*time.Millisecond)
	if !ok {
		last.EachPartition(func(p kadm.PartitionDetail) { t.Logf("partition %d: leader %d, ISR %v", p.Partition, p.Leader, p.ISR) })
		t.FailNow()
	}
}

// load is one idempotent producer that waits for all in-sync replicas, and what was acknowledged to it.
type load struct {
	mu      sync.Mutex
	acked   map[uint64]bool
	failed  map[uint64]error
	flushed chan struct{}
}

func startLoad(ctx context.Context, client *kgo.Client) *load {
	l := &load{acked: map[uint64]bool{}, failed: map[uint64]error{}, flushed: make(chan struct{})}
	go func() {
		defer close(l.flushed)
		for n := uint64(1); ctx.Err() == nil; n++ {
			value := binary.BigEndian.AppendUint64(nil, n)
			client.Produce(context.Background(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
				l.mu.Lock()
				defer l.mu.Unlock()
				if err != nil {
					l.failed[n] = err
				} else {
					l.acked[n] = true
				}
			})
			if n%100 == 0 {
				time.Sleep(10 * time.Millisecond) // a steady load, not a flood
			}
		}
		_ = client.Flush(context.Background())
	}()
	return l
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

func (l *load) progress(t *testing.T, n int) {
	t.Helper()
	from := l.count()
	require.Eventually(t, func() bool { return l.count() >= from+n }, time.Minute, 10*time.Millisecond, "records are acknowledged")
}

// judge reads everything back: each acknowledged record is there once.
func (l *load) judge(t *testing.T, seeds []string) {
	t.Helper()
	<-l.flushed
	reader, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumeTopics("mixed"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer reader.Close()
	ends, err := kadm.NewClient(reader).ListEndOffsets(context.Background(), "mixed")
	require.NoError(t, err)
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	seen := map[uint64]int{}
	for left > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		fetches := reader.PollFetches(ctx)
		cancel()
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			seen[binary.BigEndian.Uint64(r.Value)]++
			left--
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var wrong []string
	for n := range l.acked {
		if seen[n] != 1 {
			wrong = append(wrong, fmt.Sprintf("record %d is there %d times", n, seen[n]))
		}
	}
	assert.Empty(t, wrong, "of %d acknowledged records", len(l.acked))
	why := map[string]int{}
	for _, err := range l.failed {
		why[err.Error()]++
	}
	t.Logf("%d acknowledged, refused: %v", len(l.acked), why)
}
