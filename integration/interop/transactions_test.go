package interop

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

// exactlyOnce are three brokers on which transactions outlive any one of them.
func exactlyOnce(t *testing.T) *cluster.Cluster {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 3, map[string]string{
		"zookeeper.session.timeout.ms": "2000", "group.initial.rebalance.delay.ms": "0",
		"offsets.topic.replication.factor": "3", "offsets.topic.num.partitions": "5",
		"transaction.state.log.replication.factor": "3", "transaction.state.log.min.isr": "2", "transaction.state.log.num.partitions": "5",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
	})
	client := franz(t, c)
	adm := kadm.NewClient(client)
	minISR := "2"
	for _, topic := range []string{"input", "output"} {
		_, err := adm.CreateTopic(t.Context(), 1, 3, map[string]*string{"min.insync.replicas": &minISR}, topic)
		require.NoError(t, err)
	}
	c.WaitWhole(t, "output", 1, 3)
	return c
}

func franz(t *testing.T, c *cluster.Cluster, opts ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(100 * time.Millisecond), kgo.AlwaysRetryEOF()}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// fill writes 0 to n-1 to the input.
func fill(t *testing.T, c *cluster.Cluster, n int) {
	client := franz(t, c)
	for i := range n {
		client.Produce(t.Context(), &kgo.Record{Topic: "input", Value: []byte(strconv.Itoa(i))}, func(_ *kgo.Record, err error) { assert.NoError(t, err) })
	}
	require.NoError(t, client.Flush(t.Context()))
}

// committed reads a topic of one partition as a read_committed consumer does, until n records are there or nothing more comes.
func committed(t *testing.T, c *cluster.Cluster, topic string, n int) (values []string) {
	client := franz(t, c, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for quiet := 0; quiet < 60 && (quiet == 0 || len(values) < n); {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		fetches := client.PollFetches(ctx)
		cancel()
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
		if quiet++; fetches.NumRecords() > 0 {
			quiet = 0
		}
	}
	return values
}

func requireEachOnceInOrder(t *testing.T, values []string, n int) {
	t.Helper()
	for i := range min(n, len(values)) {
		require.Equal(t, strconv.Itoa(i), values[i], "at %d of %d", i, len(values))
	}
	require.Len(t, values, n)
}

// killInTurn kills whoever coordinates a transactional id, then whoever coordinates a group, then whoever leads the output, and so on, and starts them again, until done. It returns how
// many that were.
func killInTurn(t *testing.T, c *cluster.Cluster, id, group string, done <-chan struct{}) (kills int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(50*time.Millisecond), kgo.AlwaysRetryEOF())
	if !assert.NoError(t, err) {
		return 0
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	for i := 0; ; i++ {
		select {
		case <-done:
			return i
		case <-time.After(1500 * time.Millisecond):
		}
		b := c.Brokers[max(1, roleHolder(adm, i, id, group))-1]
		b.Kill(t)
		b.Start(t)
		b.WaitReady(t)
		c.WaitWhole(t, "output", 1, 3)
	}
}

// roleHolder is the broker that has one of three roles; not above 0 if it cannot be found.
func roleHolder(adm *kadm.Client, role int, id, group string) int32 {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	switch role % 3 {
	case 0:
		return adm.FindTxnCoordinators(ctx, id)[id].NodeID
	case 1:
		return adm.FindGroupCoordinators(ctx, group)[group].NodeID
	default:
		known, _ := adm.Metadata(ctx, "output")
		return known.Topics["output"].Partitions[0].Leader
	}
}

func TestFranzGoTransactionsAreAllOrNothing(t *testing.T) {
	c := exactlyOnce(t)
	client := franz(t, c, kgo.TransactionalID("franz"), kgo.DefaultProduceTopic("output"))
	next := 0
	for i := range 30 {
		commit := i%3 != 1
		require.NoError(t, client.BeginTransaction())
		for j := range 5 {
			value := "aborted"
			if commit {
				value = strconv.Itoa(next + j)
			}
			client.Produce(t.Context(), kgo.StringRecord(value), func(_ *kgo.Record, err error) { assert.NoError(t, err) })
		}
		require.NoError(t, client.Flush(t.Context()))
		require.NoError(t, client.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)))
		if commit {
			next += 5
		}
	}
	requireEachOnceInOrder(t, committed(t, c, "output", next), next)
}

func TestSaramaTransactionsAreAllOrNothing(t *testing.T) {
	c := exactlyOnce(t)
	cfg := ibmSaramaConfig("none")
	cfg.Producer.Idempotent, cfg.Net.MaxOpenRequests = true, 1
	cfg.Producer.Transaction.ID = "sarama"
	cfg.Producer.Return.Successes, cfg.Producer.Return.Errors = true, true
	producer, err := sarama.NewSyncProducer(c.Seeds(), cfg)
	require.NoError(t, err)
	defer producer.Close()
	next := 0
	for i := range 20 {
		commit := i%3 != 1
		require.NoError(t, producer.BeginTxn())
		for j := range 5 {
			value := "aborted"
			if commit {
				value = strconv.Itoa(next + j)
			}
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "output", Value: sarama.StringEncoder(value)})
			require.NoError(t, err)
		}
		if !commit {
			require.NoError(t, producer.AbortTxn())
			continue
		}
		require.NoError(t, producer.CommitTxn())
		next += 5
	}
	requireEachOnceInOrder(t, committed(t, c, "output", next), next)
}

func TestAGroupSessionCopiesEachRecordOnceWhileBrokersAreKilled(t *testing.T) {
	const n = 4000
	c := exactlyOnce(t)
	fill(t, c, n)
	done, nemesis := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(nemesis)
		killInTurn(t, c, "copier", "copiers", done)
	}()
	copyBySession(t, c, n)
	close(done)
	<-nemesis
	requireEachOnceInOrder(t, committed(t, c, "output", n), n)
}

// copyBySession copies the input in transactions of at most 100 records; a session that cannot go on is replaced, as an application would be.
func copyBySession(t *testing.T, c *cluster.Cluster, n int) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	copied := 0
	for copied < n {
		require.NoError(t, ctx.Err(), "%d of %d are copied", copied, n)
		session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(c.Seeds()...), kgo.TransactionalID("copier"), kgo.ConsumerGroup("copiers"), kgo.ConsumeTopics("input"),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.MetadataMinAge(100*time.Millisecond), kgo.AlwaysRetryEOF(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.TransactionTimeout(20*time.Second))
		require.NoError(t, err)
		last, err := copySome(ctx, session, n)
		if last > copied {
			copied = last
		}
		if err != nil {
			t.Logf("after %d: %v", copied, err)
		}
		session.Close()
	}
}

// copySome returns how far the copy has come, by the last value that is committed.
func copySome(ctx context.Context, session *kgo.GroupTransactSession, n int) (last int, err error) {
	for last < n && ctx.Err() == nil {
		fetches := session.PollRecords(ctx, 100)
		if err := session.Begin(); err != nil {
			return last, err
		}
		var failed error
		highest := last
		fetches.EachRecord(func(r *kgo.Record) {
			i, _ := strconv.Atoi(string(r.Value))
			highest = max(highest, i+1)
			session.Produce(ctx, &kgo.Record{Topic: "output", Value: r.Value}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed = err
				}
			})
		})
		if err := session.Client().Flush(ctx); err != nil {
			return last, err
		}
		ended, err := session.End(ctx, kgo.TransactionEndTry(failed == nil))
		if err != nil {
			return last, errors.Join(failed, err)
		}
		if ended {
			last = highest
		}
	}
	return last, ctx.Err()
}
