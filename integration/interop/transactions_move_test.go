package interop

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/integration/lane"
	"barnabas/integration/wiretap"
	"barnabas/zkstate/zktest"
)

const (
	movingID    = "moving"
	movingTopic = "moved-over"
)

// mover makes transactions whose coordinator moves in the middle of them, from one kind of broker to the other.
type mover struct {
	t      *testing.T
	c      *cluster.Cluster
	admin  *kadm.Client
	tap    *wiretap.Tap
	strike atomic.Pointer[func(broker string)] // called once, when EndTxn is answered and the client does not know it

	client *kgo.Client
	number uint64
	done   []history.Transaction
}

// A transaction's coordinator moves from Apache Kafka's broker to ours, and back, in the middle of open transactions, and dies when it has decided: whoever comes next reads what the other wrote
// and ends what it began, with markers to brokers of both kinds.
func TestATransactionsCoordinatorMovesBetweenKafkaAndBarnabas(t *testing.T) {
	for _, mix := range []struct {
		name, version, ibp string
		programs           []cluster.Program // the first is the controller
	}{
		{"3.9.1 is controller", "3.9.1", "3.9", []cluster.Program{cluster.Kafka("3.9.1"), cluster.Barnabas}},
		{"beside 2.8.2, as controller", "2.8.2", "2.8", []cluster.Program{cluster.Barnabas, cluster.Kafka("2.8.2")}},
	} {
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			lane.KafkaJars(t, mix.version)
			m := newMover(t, mix.ibp, mix.programs)
			m.openTransactionsMove(4)
			m.fenced()
			m.decisionsMove(2)
			m.judge()
		})
	}
}

func newMover(t *testing.T, ibp string, programs []cluster.Program) *mover {
	m := &mover{t: t}
	m.tap = wiretap.New(wiretap.Hooks{Answered: m.heard}, kmsg.EndTxn)
	m.c = cluster.StartMixed(t, zktest.Real(t).Addr(), programs, map[string]string{
		"inter.broker.protocol.version": ibp, "min.insync.replicas": "1", "zookeeper.session.timeout.ms": "3000", "replica.lag.time.max.ms": "3000",
		"transaction.state.log.num.partitions": "1", "transaction.state.log.replication.factor": "2", "transaction.state.log.min.isr": "1", "auto.leader.rebalance.enable": "false",
		"controlled.shutdown.retry.backoff.ms": "500",
	})
	adm, err := kgo.NewClient(kgo.SeedBrokers(m.c.Seeds()...), kgo.MetadataMinAge(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(adm.Close)
	m.admin = kadm.NewClient(adm)
	_, err = m.admin.CreateTopic(t.Context(), 4, 2, nil, movingTopic)
	require.NoError(t, err)
	m.c.WaitWhole(t, movingTopic, 4, 2)
	m.begin()
	t.Cleanup(func() { m.client.Close() })
	return m
}

// begin makes a producer, which fences the one before.
func (m *mover) begin() {
	client, err := kgo.NewClient(kgo.SeedBrokers(m.c.Seeds()...), kgo.Dialer(m.tap.DialContext), kgo.TransactionalID(movingID), kgo.TransactionTimeout(time.Minute),
		kgo.DefaultProduceTopic(movingTopic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond), kgo.UnknownTopicRetries(-1))
	require.NoError(m.t, err)
	m.client = client
}

func (m *mover) heard(x *wiretap.Exchange) {
	if resp, ok := x.Response.(*kmsg.EndTxnResponse); ok && resp.ErrorCode == 0 {
		if strike := m.strike.Swap(nil); strike != nil {
			(*strike)(x.Broker)
		}
	}
}

// write writes one record to each of some partitions, and waits until they are there.
func (m *mover) write(t *history.Transaction, partitions ...int32) error {
	var failed atomic.Pointer[error]
	for _, p := range partitions {
		m.number++
		name := history.Name{Producer: 1, Number: m.number}
		t.Records = append(t.Records, history.Placed{Name: name, Partition: p})
		m.client.Produce(m.t.Context(), &kgo.Record{Partition: p, Value: name.AppendTo(nil)}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := m.client.Flush(m.t.Context()); err != nil || failed.Load() == nil {
		return err
	}
	return *failed.Load()
}

// transaction writes to some partitions, lets something happen, writes to one of them and to others, and ends.
func (m *mover) transaction(commit bool, between func()) {
	m.t.Helper()
	t := history.Transaction{ID: movingID}
	require.NoError(m.t, m.client.BeginTransaction())
	require.NoError(m.t, m.write(&t, 0, 1, 0))
	between()
	require.NoError(m.t, m.write(&t, 1, 2, 3))
	err := m.client.EndTransaction(m.t.Context(), kgo.TransactionEndTry(commit))
	switch {
	case err != nil: // nobody knows
		m.t.Logf("the end of a transaction: %v", err)
		m.client.Close()
		m.begin()
	case commit:
		t.Fate = history.Done
	default:
		t.Fate = history.Refused
	}
	m.done = append(m.done, t)
}

func (m *mover) coordinator() *cluster.Broker {
	m.t.Helper()
	var b *cluster.Broker
	require.Eventually(m.t, func() bool {
		ctx, cancel := context.WithTimeout(m.t.Context(), 5*time.Second)
		defer cancel()
		found := m.admin.FindTxnCoordinators(ctx, movingID)[movingID]
		if found.Err != nil {
			return false
		}
		b = m.c.Brokers[found.NodeID-1]
		return true
	}, time.Minute, 50*time.Millisecond, "there is a coordinator")
	return b
}

// move makes the other broker the coordinator.
func (m *mover) move() {
	m.t.Helper()
	from := m.coordinator()
	to := m.c.Brokers[2-from.ID]
	var order kadm.AlterPartitionAssignmentsReq
	order.Assign("__transaction_state", 0, []int32{int32(to.ID), int32(from.ID)})
	var only kadm.TopicsSet
	only.Add("__transaction_state", 0)
	_, err := m.admin.AlterPartitionAssignments(m.t.Context(), order)
	require.NoError(m.t, err)
	require.Eventually(m.t, func() bool {
		_, _ = m.admin.ElectLeaders(m.t.Context(), kadm.ElectPreferredReplica, only)
		return m.coordinator() == to
	}, time.Minute, 100*time.Millisecond, "broker %d becomes coordinator", to.ID)
}

func (m *mover) openTransactionsMove(n int) {
	m.t.Helper()
	for i := range n {
		m.transaction(i%3 != 2, m.move)
	}
}

// fenced lets another producer begin with the same id when the coordinator has moved under an open transaction. The first can do nothing any more.
func (m *mover) fenced() {
	m.t.Helper()
	for range 2 {
		open := history.Transaction{ID: movingID, Fate: history.Refused}
		require.NoError(m.t, m.client.BeginTransaction())
		require.NoError(m.t, m.write(&open, 0, 2))
		m.done = append(m.done, open)
		zombie := m.client
		m.move()
		m.begin()
		m.transaction(true, func() {})
		require.Error(m.t, zombie.EndTransaction(m.t.Context(), kgo.TryCommit))
		zombie.Close()
	}
}

// decisionsMove kills the coordinator when it has answered that a transaction is decided, whatever has become of its markers.
func (m *mover) decisionsMove(n int) {
	m.t.Helper()
	var killed []int
	for i := range n {
		if m.coordinator().ID != 1+i%2 {
			m.move()
		}
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
		require.Equal(m.t, 1+i%2, killed[i], "each in turn")
		b := m.c.Brokers[killed[i]-1]
		require.Eventually(m.t, func() bool { return m.coordinator() != b }, time.Minute, 50*time.Millisecond, "the other takes over")
		m.transaction(true, func() {})             // the next one begins at the other, which has to end this one first
		waitUnregistered(m.t, m.c.ZooKeeper, b.ID) // Kafka does not wait for itself
		b.Start(m.t)
		b.WaitReady(m.t)
		m.c.WaitWhole(m.t, movingTopic, 4, 2)
		m.c.WaitWhole(m.t, "__transaction_state", 1, 2)
	}
}

func (m *mover) judge() {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		stable, err := m.admin.ListCommittedOffsets(m.t.Context(), movingTopic)
		ends, endErr := m.admin.ListEndOffsets(m.t.Context(), movingTopic)
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
	}, time.Minute, 100*time.Millisecond, "no transaction stays open")
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
