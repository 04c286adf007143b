package interop

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
)

const (
	copiedTopic          = "copied"
	copyingID            = "copying" // the group and the transactional id
	copyingTimeout       = 20 * time.Second
	recordsPerCopy       = 200
	copyingPatience      = patience
	transactionsPerPhase = 5
)

// copying is an application that copies the records of a load to another topic, in transactions that store its offsets, while the cluster changes under it. It aborts some.
type copying struct {
	t    *testing.T
	c    *cluster.Cluster
	from string
	end  func()

	mu        sync.Mutex
	committed int
	trouble   []error
}

// startCopying starts it; the topic to copy to has as many partitions as the other.
func startCopying(t *testing.T, c *cluster.Cluster, from string) *copying {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	a := &copying{t: t, c: c, from: from}
	var working sync.WaitGroup
	a.end = func() {
		cancel()
		working.Wait()
	}
	t.Cleanup(a.end)
	working.Go(func() {
		for ctx.Err() == nil {
			if err := a.session(ctx); err != nil && ctx.Err() == nil {
				a.mu.Lock()
				a.trouble = append(a.trouble, err)
				a.mu.Unlock()
			}
		}
	})
	return a
}

// session copies until something goes wrong; the next one takes its place, as another process of the application would.
func (a *copying) session(ctx context.Context) error {
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(a.c.Seeds()...), kgo.TransactionalID(copyingID), kgo.TransactionTimeout(copyingTimeout), kgo.ConsumerGroup(copyingID),
		kgo.ConsumeTopics(a.from), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(copiedTopic), kgo.SessionTimeout(10*time.Second), kgo.MetadataMinAge(50*time.Millisecond), kgo.AlwaysRetryEOF(),
		kgo.UnknownTopicRetries(-1), kgo.RecordDeliveryTimeout(30*time.Second))
	if err != nil {
		return err
	}
	defer s.Close()
	for ctx.Err() == nil {
		polled, done := context.WithTimeout(ctx, time.Second)
		fetches := s.PollRecords(polled, recordsPerCopy)
		done()
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := a.transact(ctx, s, fetches); err != nil {
			return err
		}
	}
	return nil
}

func (a *copying) transact(ctx context.Context, s *kgo.GroupTransactSession, fetches kgo.Fetches) error {
	if err := s.Begin(); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, copyingPatience)
	defer done()
	var mu sync.Mutex
	var failed error
	fetches.EachRecord(func(r *kgo.Record) {
		s.Produce(ctx, &kgo.Record{Partition: r.Partition, Value: r.Value}, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	})
	if err := s.Client().Flush(ctx); err != nil {
		return err
	}
	committed, err := s.End(ctx, kgo.TransactionEndTry(failed == nil && rand.IntN(8) != 0))
	if committed && err == nil {
		a.mu.Lock()
		a.committed++
		a.mu.Unlock()
	}
	if err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	return nil
}

// progress waits until some more transactions are committed.
func (a *copying) progress(when string) {
	a.t.Helper()
	done := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.committed
	}
	least := done() + transactionsPerPhase
	if !assert.Eventually(a.t, func() bool { return done() >= least }, copyingPatience, 20*time.Millisecond, "transactions are committed %s", when) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.t.Fatalf("a copier's sessions ended by: %v", a.trouble)
	}
}

// judge waits until all is copied, once the load has ended, and compares.
func (a *copying) judge() {
	a.t.Helper()
	in := history.ReadAll(a.t, a.c.Seeds(), a.from)
	client, err := kgo.NewClient(kgo.SeedBrokers(a.c.Seeds()...), kgo.MetadataMinAge(50*time.Millisecond), kgo.AlwaysRetryEOF())
	require.NoError(a.t, err)
	defer client.Close()
	adm := kadm.NewClient(client)
	assert.Eventually(a.t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stored, err := adm.FetchOffsets(ctx, copyingID)
		for p, log := range in {
			if at, found := stored.Lookup(a.from, p); err != nil || !found || at.At <= log[len(log)-1].Offset {
				return false
			}
		}
		return true
	}, copyingPatience, 100*time.Millisecond, "everything is copied")
	a.end()
	out := map[int32][]history.Read{}
	history.ReadCommitted(a.t, a.c.Seeds(), copiedTopic, func(r *kgo.Record) {
		out[r.Partition] = append(out[r.Partition], history.Read{Name: history.NameOf(r.Value), Offset: r.Offset})
	})
	assert.Empty(a.t, history.JudgeCopies(in, out))
	a.t.Logf("%d transactions committed; sessions ended by: %v", a.committed, a.trouble)
}
