package field

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

// groupWorks reads a topic as a group of one, commits, and comes back as another member that must find what was committed.
func groupWorks(t *testing.T, addr, topic, group string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(addr))
	require.NoError(t, err)
	defer producer.Close()
	for round := range 2 {
		value := fmt.Sprint("round ", round)
		require.NoError(t, producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr())
		member, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		require.NoError(t, err)
		fetched := member.PollRecords(ctx, 1)
		require.NoError(t, fetched.Err())
		require.Len(t, fetched.Records(), 1)
		assert.Equal(t, value, string(fetched.Records()[0].Value), "the earlier one was committed")
		require.NoError(t, member.CommitRecords(ctx, fetched.Records()...))
		member.Close()
	}
}

// transactionWorks commits one transaction and aborts another; the committed record alone is visible.
func transactionWorks(t *testing.T, addr, topic, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	producer, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(id))
	require.NoError(t, err)
	defer producer.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		require.NoError(t, producer.BeginTransaction())
		require.NoError(t, producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(fmt.Sprint("commit: ", end))}).FirstErr())
		require.NoError(t, producer.EndTransaction(ctx, end))
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer reader.Close()
	fetched := reader.PollRecords(ctx, 10)
	require.NoError(t, fetched.Err())
	require.Len(t, fetched.Records(), 1)
	assert.Equal(t, "commit: true", string(fetched.Records()[0].Value))
}

var lonely = map[string]string{"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1", "offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2", "group.initial.rebalance.delay.ms": "0", "zookeeper.session.timeout.ms": "3000"}

// BR-074: groups and transactions work whatever a broker's defaults say to ordinary topics.
func TestInternalTopicsDoNotObeyTheDefaultsOfOthers(t *testing.T) {
	for _, defaults := range []map[string]string{
		{"log.message.timestamp.type": "LogAppendTime"},
		{"message.max.bytes": "1000"},
		{"log.cleanup.policy": "delete", "log.retention.ms": "1000", "log.retention.check.interval.ms": "100"},
		{"compression.type": "zstd"},
		{"log.segment.bytes": "14"},
		{"log.roll.ms": "1"},
		{"log.index.size.max.bytes": "8"},
		{"log.flush.interval.messages": "1"},
	} {
		t.Run(fmt.Sprint(defaults), func(t *testing.T) {
			settings := maps.Clone(lonely)
			maps.Copy(settings, defaults)
			c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, settings)
			addr := c.Brokers[0].Addr
			createTopic(t, addr, "grouped", 1, 1, "retention.ms", "600000", "segment.bytes", "1000000")
			createTopic(t, addr, "transacted", 1, 1, "retention.ms", "600000", "segment.bytes", "1000000")
			groupWorks(t, addr, "grouped", "g")
			transactionWorks(t, addr, "transacted", "t")
			b := c.Brokers[0]
			b.Kill(t) // what they keep is there after a crash, whatever the retention
			b.Start(t)
			b.WaitReady(t)
			eventually(t, func() bool { return committedOffset(dial(t, addr), "g", "grouped", 0) == 2 }, "the commits are there")
			groupWorks(t, addr, "grouped", "g")
			assert.EqualValues(t, 4, committedOffset(dial(t, addr), "g", "grouped", 0))
		})
	}
}

// committedOffset is -1 where there is none or it cannot be told yet.
func committedOffset(c *conn, group, topic string, partition int32) int64 {
	c.t.Helper()
	req := at(5, kmsg.NewPtrOffsetFetchRequest())
	req.Group = group
	in := kmsg.NewOffsetFetchRequestTopic()
	in.Topic, in.Partitions = topic, []int32{partition}
	req.Topics = append(req.Topics, in)
	resp := ask[*kmsg.OffsetFetchResponse](c, req)
	if resp.ErrorCode != 0 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		return -1
	}
	return resp.Topics[0].Partitions[0].Offset
}

// BR-074: a topic whose segments would never hold a record is refused.
func TestASegmentAgeOfNothingIsRefused(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		for _, age := range []string{"0", "-1"} {
			topic := creation(topicName(t), 1, 1)
			config := kmsg.NewCreateTopicsRequestTopicConfig()
			config.Name, config.Value = "segment.ms", &age
			topic.Configs = append(topic.Configs, config)
			made := create(dialController(t, addr), 5, false, topic)[topic.Topic]
			assert.Equal(t, kerr.InvalidConfig.Code, made.ErrorCode, "segment.ms=%s: %v", age, made.ErrorMessage)
		}
	})
}

// BR-046: with factors meant for three brokers a lone one creates no internal topic, says why once, and everything works by itself when the others have come.
func TestInternalTopicsWaitForEnoughBrokers(t *testing.T) {
	settings := map[string]string{"offsets.topic.replication.factor": "3", "transaction.state.log.replication.factor": "3", "transaction.state.log.min.isr": "2", "default.replication.factor": "1", "group.initial.rebalance.delay.ms": "0"}
	zk := zktest.Embedded(t)
	c := cluster.Prepare(t, zk.Addr(), 3, settings, func(int) map[string]string { return nil })
	first, z := c.Brokers[0], openTree(t, zk.Addr())
	first.Start(t)
	first.WaitReady(t)
	createTopic(t, first.Addr, "plain", 1, 1)
	for kind, hint := range []string{"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1"} {
		find := at(2, kmsg.NewPtrFindCoordinatorRequest())
		find.CoordinatorKey, find.CoordinatorType = "who", int8(kind)
		asker := dial(t, first.Addr)
		eventually(t, func() bool {
			assert.Equal(t, kerr.CoordinatorNotAvailable.Code, ask[*kmsg.FindCoordinatorResponse](asker, find).ErrorCode)
			return strings.Contains(first.LogTail(1<<20), hint)
		}, "the setting is named")
		assert.Equal(t, 1, strings.Count(first.LogTail(1<<20), hint), "once")
	}
	assert.NotContains(t, first.LogTail(1<<20), "goroutine ")
	assert.False(t, z.exists("/brokers/topics/__consumer_offsets"))
	assert.False(t, z.exists("/brokers/topics/__transaction_state"))

	for _, b := range c.Brokers[1:] {
		b.Start(t)
	}
	for _, b := range c.Brokers[1:] {
		b.WaitReady(t)
	}
	groupWorks(t, first.Addr, "plain", "g")
	createTopic(t, first.Addr, "transacted", 1, 1)
	transactionWorks(t, first.Addr, "transacted", "t")
	for _, topic := range describe(dial(t, first.Addr), "__consumer_offsets", "__transaction_state").Topics {
		for _, p := range topic.Partitions {
			assert.Len(t, p.Replicas, 3, topic.Topic)
		}
	}
}
