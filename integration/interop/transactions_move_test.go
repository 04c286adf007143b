package interop

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/history"
	"barnabas/integration/lane"
	"barnabas/integration/wiretap"
)

const (
	movingID    = "moving"
	movingTopic = "moved-over"
)

// movingProducer makes transactions whose coordinator moves in the middle of them, from one kind of broker to the other.
type movingProducer struct {
	*circle
	tap    *wiretap.Tap
	strike atomic.Pointer[func(broker string)] // called once, when EndTxn is answered and the client does not know it

	client *kgo.Client
	number uint64
	done   []history.Transaction
}

func newMovingProducer(r *circle) *movingProducer {
	m := &movingProducer{circle: r}
	m.tap = wiretap.New(wiretap.Hooks{Answered: m.heard}, kmsg.EndTxn)
	_, err := m.admin.CreateTopic(lane.Patience(m.t), 4, int16(len(m.c.Brokers)), nil, movingTopic)
	require.NoError(m.t, err)
	m.c.WaitWhole(m.t, movingTopic, 4, len(m.c.Brokers))
	m.begin()
	m.t.Cleanup(func() { m.client.Close() })
	return m
}

// begin makes a producer, which fences the one before.
func (m *movingProducer) begin() {
	client, err := kgo.NewClient(kgo.SeedBrokers(m.c.Seeds()...), kgo.Dialer(m.tap.DialContext), kgo.TransactionalID(movingID), kgo.TransactionTimeout(10*time.Minute),
		kgo.DefaultProduceTopic(movingTopic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond), kgo.AlwaysRetryEOF(), kgo.UnknownTopicRetries(-1))
	require.NoError(m.t, err)
	m.client = client
}

func (m *movingProducer) heard(x *wiretap.Exchange) {
	if resp, ok := x.Response.(*kmsg.EndTxnResponse); ok && resp.ErrorCode == 0 {
		if strike := m.strike.Swap(nil); strike != nil {
			(*strike)(x.Broker)
		}
	}
}

// write writes one record to each of some partitions, and waits until they are there.
func (m *movingProducer) write(t *history.Transaction, partitions ...int32) error {
	ctx := lane.Patience(m.t)
	var failed atomic.Pointer[error]
	for _, p := range partitions {
		m.number++
		name := history.Name{Producer: 1, Number: m.number}
		t.Records = append(t.Records, history.Placed{Name: name, Partition: p})
		m.client.Produce(ctx, &kgo.Record{Partition: p, Value: name.AppendTo(nil)}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := m.client.Flush(ctx); err != nil || failed.Load() == nil {
		return err
	}
	return *failed.Load()
}

// transaction writes to some partitions, lets something happen, writes to one of them and to others, and ends. A client that finds the coordinator it knew gone from the cluster gives up for
// good ("unknown broker"), whoever the others are; another producer makes the transaction again then, as an application would.
func (m *movingProducer) transaction(commit bool, between func()) {
	m.t.Helper()
	for tries := 1; ; tries++ {
		t := history.Transaction{ID: movingID}
		require.NoError(m.t, m.client.BeginTransaction())
		err := m.write(&t, 0, 1, 0)
		if err == nil {
			between()
			between = func() {}
			err = m.write(&t, 1, 2, 3)
		}
		if err == nil {
			m.end(t, commit)
			return
		}
		require.Less(m.t, tries, 5, "%v", err)
		m.t.Logf("a transaction cannot be written: %v", err)
		t.Fate = history.Refused // nobody has asked for its commit
		m.done = append(m.done, t)
		m.client.Close()
		m.begin()
	}
}

// end ends a transaction, whatever comes of it.
func (m *movingProducer) end(t history.Transaction, commit bool) {
	err := m.client.EndTransaction(lane.Patience(m.t), kgo.TransactionEndTry(commit))
	if err != nil {
		m.t.Logf("the end of a transaction: %v", err)
		m.client.Close()
		m.begin()
	}
	switch {
	case !commit:
		t.Fate = history.Refused
	case err == nil:
		t.Fate = history.Done
	}
	m.done = append(m.done, t)
}

// move makes the next broker the coordinator.
func (m *movingProducer) move() {
	m.t.Helper()
	m.elect(m.next(m.awaitCoordinator(ofTransactions, movingID)), ofTransactions, movingID)
}

// openTransactionsMove goes round twice: each broker takes over transactions that will be committed, and such as will be aborted.
func (m *movingProducer) openTransactionsMove() {
	m.t.Helper()
	for _, commit := range []bool{true, false} {
		for range m.c.Brokers {
			m.transaction(commit, m.move)
		}
	}
}

// fenced lets another producer begin with the same id when the coordinator has moved under an open transaction. The first can do nothing any more.
func (m *movingProducer) fenced() {
	m.t.Helper()
	for range m.c.Brokers {
		open := history.Transaction{ID: movingID, Fate: history.Refused}
		require.NoError(m.t, m.client.BeginTransaction())
		require.NoError(m.t, m.write(&open, 0, 2))
		m.done = append(m.done, open)
		zombie := m.client
		m.move()
		m.begin()
		m.transaction(true, func() {})
		require.Error(m.t, zombie.EndTransaction(lane.Patience(m.t), kgo.TryCommit))
		zombie.Close()
	}
}

// decisionsMove kills each broker when it coordinates and has answered that a transaction is decided, whatever has become of its markers.
func (m *movingProducer) decisionsMove() {
	m.t.Helper()
	var killed []int
	for i, b := range m.c.Brokers {
		m.elect(b, ofTransactions, movingID)
		strike := func(broker string) {
			for _, b := range m.c.Brokers {
				if b.Addr == broker {
					b.Kill(m.t)
					killed = append(killed, b.ID)
				}
			}
		}
		m.strike.Store(&strike)
		m.transaction(true, func() {})
		require.Len(m.t, killed, i+1)
		require.Equal(m.t, b.ID, killed[i], "each in turn")
		m.awaitOther(ofTransactions, movingID, b)
		m.transaction(true, func() {})             // begins at the successor, which has to end the one before first
		waitUnregistered(m.t, m.c.ZooKeeper, b.ID) // Kafka does not wait for itself
		b.Start(m.t)
		b.WaitReady(m.t)
		m.c.WaitWhole(m.t, movingTopic, 4, len(m.c.Brokers))
		m.c.WaitWhole(m.t, "__transaction_state", 1, len(m.c.Brokers))
	}
}

func (m *movingProducer) judge() {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		ctx, cancel := context.WithTimeout(m.t.Context(), 5*time.Second)
		defer cancel()
		stable, err := m.admin.ListCommittedOffsets(ctx, movingTopic)
		ends, endErr := m.admin.ListEndOffsets(ctx, movingTopic)
		if err != nil || endErr != nil {
			return false
		}
		open := 0
		stable.Each(func(o kadm.ListedOffset) {
			if end, _ := ends.Lookup(o.Topic, o.Partition); o.Offset != end.Offset {
				open++
			}
		})
		return open == 0
	}, patience, 100*time.Millisecond, "no transaction stays open")
	logs := map[int32][]history.Read{}
	history.ReadCommitted(m.t, m.c.Seeds(), movingTopic, func(r *kgo.Record) {
		logs[r.Partition] = append(logs[r.Partition], history.Read{Name: history.NameOf(r.Value), Offset: r.Offset})
	})
	assert.Empty(m.t, history.JudgeTransactions(m.done, logs))
	fates := map[history.Fate]int{}
	for _, t := range m.done {
		fates[t.Fate]++
	}
	m.t.Logf("%d transactions committed, %d aborted, %d unknown to their producer", fates[history.Done], fates[history.Refused], fates[history.Unknown])
}
