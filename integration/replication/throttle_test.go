// Package replication measures how replicas are moved between running brokers.
package replication

import (
	"crypto/rand"
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

const (
	megabyte = 1 << 20
	volume   = 24 * megabyte
	rate     = 4 * megabyte
)

// Two replicas are moved at once, one limited by what its leader may send and one by what its follower may fetch. Each takes as long as its rate says at least (and not several times as long,
// on a machine that may be busy), and an in-sync follower that is not named is not slowed.
func TestThrottledMovesKeepTheirRate(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 2, nil)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(20*time.Millisecond), kgo.UnknownTopicRetries(-1),
		// A fetch ends within a batch, which is sent again with the next: batches that are small beside a fetch make little of that.
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(64<<10))
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx := lane.Patience(t)

	_, err = admin.CreateTopic(ctx, 1, 2, nil, "calm")
	require.NoError(t, err)
	moves := []struct{ topic, names, rate string }{
		{"sent", "leader.replication.throttled.replicas", "leader.replication.throttled.rate"},
		{"fetched", "follower.replication.throttled.replicas", "follower.replication.throttled.rate"},
	}
	for _, m := range moves {
		_, err = admin.CreateTopic(ctx, 1, 1, map[string]*string{m.names: value("*")}, m.topic)
		require.NoError(t, err)
		for range volume / (32 << 10) {
			random := make([]byte, 32<<10)
			_, _ = rand.Read(random)
			client.Produce(ctx, &kgo.Record{Topic: m.topic, Value: random}, func(_ *kgo.Record, err error) { assert.NoError(t, err) })
		}
		require.NoError(t, client.Flush(ctx))
		_, err = admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: m.rate, Value: value(fmt.Sprint(rate))}}, 1, 2)
		require.NoError(t, err)
	}
	c.WaitWhole(t, "calm", 1, 2)
	require.Eventually(t, func() bool { // a broker hears of its rates by ZooKeeper, and without them a move takes a moment
		known := 0
		found, err := admin.DescribeBrokerConfigs(ctx, 1, 2)
		for _, broker := range found {
			for _, c := range broker.Configs {
				if (c.Key == moves[0].rate || c.Key == moves[1].rate) && c.MaybeValue() == fmt.Sprint(rate) {
					known++
				}
			}
		}
		return err == nil && known == 4
	}, 2*time.Minute, 20*time.Millisecond, "both brokers know their rates")

	var moving sync.WaitGroup
	for _, m := range moves {
		moving.Go(func() {
			var req kadm.AlterPartitionAssignmentsReq
			req.Assign(m.topic, 0, []int32{1, 2})
			began := time.Now()
			answers, err := admin.AlterPartitionAssignments(ctx, req)
			if !assert.NoError(t, err) || !assert.NoError(t, answers.Error()) {
				return
			}
			assert.Eventually(t, func() bool {
				topics, err := admin.ListTopics(ctx, m.topic)
				return err == nil && len(topics[m.topic].Partitions[0].ISR) == 2
			}, 2*time.Minute, 20*time.Millisecond)
			took := time.Since(began)
			t.Logf("%s: %d MB at %d MB/s took %v", m.topic, volume/megabyte, rate/megabyte, took)
			assert.Greater(t, took, volume/rate*time.Second*8/10, m.topic)
			assert.Less(t, took, 5*volume/rate*time.Second, m.topic)
		})
	}
	var slowest time.Duration
	done := make(chan struct{})
	go func() {
		moving.Wait()
		close(done)
	}()
	for records := 0; ; records++ {
		began := time.Now()
		require.NoError(t, client.ProduceSync(ctx, &kgo.Record{Topic: "calm", Value: make([]byte, 10<<10)}).FirstErr())
		slowest = max(slowest, time.Since(began))
		select {
		case <-done:
			t.Logf("%d records meanwhile, the slowest in %v", records, slowest)
			assert.Greater(t, records, 10*volume/rate, "held to the rate, a follower waits a good part of a second for each fetch")
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func value(s string) *string { return &s }
