package field

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

const (
	uncommitted = int8(0)
	committed   = int8(1)
)

// behind is the time of the records behind the open transaction: later than its own, and near enough to be in the same segment.
var behind = time.Now().Add(30 * time.Minute).UnixMilli()

// seenEnd is what a reader of one isolation level is told of the end of a partition, or of the first offset of a time.
func seenEnd(c *conn, topic string, isolation int8, timestamp int64) int64 {
	c.t.Helper()
	req := at(5, kmsg.NewPtrListOffsetsRequest())
	req.ReplicaID, req.IsolationLevel = -1, isolation
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Timestamp, part.CurrentLeaderEpoch = timestamp, -1
	in := kmsg.NewListOffsetsRequestTopic()
	in.Topic, in.Partitions = topic, append(in.Partitions, part)
	req.Topics = append(req.Topics, in)
	got := ask[*kmsg.ListOffsetsResponse](c, req).Topics[0].Partitions[0]
	if got.ErrorCode == kerr.OffsetNotAvailable.Code { // a new leader that does not know yet what all have
		return -2
	}
	require.Zero(c.t, got.ErrorCode)
	return got.Offset
}

func fetchIsolated(c *conn, topic string, isolation int8, offset int64, wait int32) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	req := fetchRequest(11, topic, 0, offset, 10<<20)
	req.IsolationLevel, req.MaxWaitMillis = isolation, wait
	got := ask[*kmsg.FetchResponse](c, req).Topics[0].Partitions[0]
	require.Zero(c.t, got.ErrorCode)
	return got
}

// lastOffset is the last offset of the batches in a fetch, or -1.
func lastOffset(t *testing.T, records []byte) int64 {
	t.Helper()
	last := int64(-1)
	for len(records) > 0 {
		var b kmsg.RecordBatch
		require.NoError(t, b.ReadFrom(records))
		last = b.FirstOffset + int64(b.LastOffsetDelta)
		records = records[12+b.Length:]
	}
	return last
}

// openTransaction writes five records into a transaction that stays open, and three behind it that belong to none: offsets 0 to 4 and 5 to 7.
func openTransaction(t *testing.T, addr, topic string) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.AlwaysRetryEOF(), kgo.TransactionalID(topic), kgo.TransactionTimeout(10*time.Minute), kgo.DefaultProduceTopic(topic))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	require.NoError(t, client.BeginTransaction())
	for range 5 {
		require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Value: []byte("open")}).FirstErr())
	}
	require.EqualValues(t, 5, stored(dial(t, addr), topic, 0, batch{records: plainly(behind, "a", "b", "c")}))
	return client
}

// requireHidden holds that read_committed ends where the open transaction begins, whichever way it is asked.
func requireHidden(t *testing.T, addr, topic string) {
	t.Helper()
	c := dial(t, addr)
	assert.EqualValues(t, 0, seenEnd(c, topic, committed, latest))
	assert.EqualValues(t, 8, seenEnd(c, topic, uncommitted, latest))
	assert.EqualValues(t, -1, seenEnd(c, topic, committed, behind), "a time beyond the last stable offset")
	assert.EqualValues(t, 5, seenEnd(c, topic, uncommitted, behind))
	for offset := range int64(8) {
		got := fetchIsolated(c, topic, committed, offset, 1)
		assert.Empty(t, got.RecordBatches, "offset %d", offset)
		assert.EqualValues(t, 0, got.LastStableOffset)
		assert.EqualValues(t, 8, got.HighWatermark)
		assert.EqualValues(t, 7, lastOffset(t, fetchIsolated(c, topic, uncommitted, offset, 1).RecordBatches))
	}
}

// requireAborted holds that the records of the aborted transaction are given together with its name, and everything is readable.
func requireAborted(t *testing.T, addr, topic string) {
	t.Helper()
	c := dial(t, addr)
	assert.EqualValues(t, 9, seenEnd(c, topic, committed, latest), "eight records and a marker")
	got := fetchIsolated(c, topic, committed, 0, 1)
	assert.EqualValues(t, 8, lastOffset(t, got.RecordBatches))
	require.Len(t, got.AbortedTransactions, 1)
	assert.EqualValues(t, 0, got.AbortedTransactions[0].FirstOffset)
	p := kgo.ProcessFetchPartitionOpts{Topic: topic, Partition: 0, IsolationLevel: kgo.ReadCommitted()}
	fetched, _ := kgo.ProcessFetchPartition(p, &got, kgo.DefaultDecompressor(), nil)
	var all []string
	for _, r := range fetched.Records {
		all = append(all, string(r.Value))
	}
	assert.Equal(t, []string{"a", "b", "c"}, all)
}

// BR-022: nothing of an open transaction, and nothing behind its first record, is visible to read_committed.
func TestReadCommittedEndsWhereAnOpenTransactionBegins(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		topic := newTopic(t, addr, 1)
		waiting := dial(t, addr)
		parked := fetchRequest(11, topic, 0, 0, 10<<20)
		parked.IsolationLevel, parked.MaxWaitMillis = committed, 1500
		correlation := waiting.send(parked)
		client := openTransaction(t, addr, topic)
		woken, err := waiting.answer(parked, correlation)
		require.NoError(t, err)
		assert.Empty(t, woken.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches, "a fetch that waited")
		requireHidden(t, addr, topic)
		require.NoError(t, client.EndTransaction(t.Context(), kgo.TryAbort))
		eventually(t, func() bool { return seenEnd(dial(t, addr), topic, committed, latest) == 9 }, "the marker is there")
		requireAborted(t, addr, topic)
	})
}

// BR-022: a restart, clean or not, and a change of leader change nothing in what is visible, before anything new is written.
func TestAnOpenTransactionStaysHiddenOverRestartsAndLeaders(t *testing.T) {
	settings := map[string]string{"transaction.state.log.replication.factor": "2", "transaction.state.log.min.isr": "1", "transaction.state.log.num.partitions": "1", "zookeeper.session.timeout.ms": "3000", "offsets.topic.num.partitions": "1", "auto.leader.rebalance.enable": "false"}
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 2, settings)
	const topic = "held"
	createTopic(t, c.Brokers[0].Addr, topic, 1, 2)
	client := openTransaction(t, leaderOf(t, c, topic).Addr, topic)
	for _, end := range []func(*cluster.Broker){func(b *cluster.Broker) { b.Stop(t) }, func(b *cluster.Broker) { b.Kill(t) }} {
		old := leaderOf(t, c, topic)
		awaitISR(t, old.Addr, 2)
		end(old)
		now := leaderOf(t, c, topic)
		require.NotEqual(t, old.ID, now.ID)
		eventually(t, func() bool { return seenEnd(dial(t, now.Addr), topic, uncommitted, latest) == 8 }, "the new leader knows what all have")
		requireHidden(t, now.Addr, topic)
		old.Start(t)
		old.WaitReady(t)
		awaitISR(t, now.Addr, 2)
	}
	require.NoError(t, client.EndTransaction(t.Context(), kgo.TryAbort))
	eventually(t, func() bool { return seenEnd(dial(t, leaderOf(t, c, topic).Addr), topic, committed, latest) == 9 }, "the marker is there")
	for _, b := range c.Brokers {
		b.Kill(t)
	}
	for _, b := range c.Brokers {
		b.Start(t)
	}
	for _, b := range c.Brokers {
		b.WaitReady(t)
	}
	leader := leaderOf(t, c, topic)
	eventually(t, func() bool { return seenEnd(dial(t, leader.Addr), topic, uncommitted, latest) == 9 }, "the followers have it")
	requireAborted(t, leader.Addr, topic)
}

// leaderOf waits until a running broker leads partition 0 of a topic, by its own word.
func leaderOf(t *testing.T, c *cluster.Cluster, topic string) *cluster.Broker {
	t.Helper()
	var leader *cluster.Broker
	eventually(t, func() bool {
		for _, b := range c.Brokers {
			if !b.Running() {
				continue
			}
			conn := dial(t, b.Addr)
			first := func(p kmsg.MetadataResponseTopicPartition) bool { return p.Partition == 0 && p.Leader == int32(b.ID) }
			if known := describe(conn, topic).Topics; !slices.ContainsFunc(known[0].Partitions, first) {
				continue
			}
			if got := listOffset(conn, 5, topic, 0, latest).ErrorCode; got == 0 || got == kerr.OffsetNotAvailable.Code {
				leader = b
				return true
			}
		}
		return false
	}, "%s has a leader", topic)
	return leader
}
