package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/history"
)

const (
	copied             = "copied"
	copying            = "copying"
	transactionTimeout = 10 * time.Second
	perTransaction     = 100
)

// copiers copy the loaded topic to another one, record by record, in transactions that store the offsets too; partitions keep their numbers. A copied value is the name of the record that
// it was made from, and a name of its own.
type copiers struct {
	w       *world
	l       *listener
	ctx     context.Context
	cancel  context.CancelFunc
	working sync.WaitGroup
	abandon chan struct{} // each makes one copier leave its session behind, with an open transaction

	mu           sync.Mutex
	transactions []history.Transaction
	faults       []string
	zombies      int // that tried to go on where another had taken over
	trouble      map[string]int
}

func startCopiers(t testing.TB, w *world, l *listener, n int) *copiers {
	c := &copiers{w: w, l: l, abandon: make(chan struct{}), trouble: map[string]int{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	t.Cleanup(c.stop)
	for i := range n {
		c.working.Go(func() { (&copier{copiers: c, id: uint32(i + 1)}).run() })
	}
	return c
}

func (c *copiers) stop() {
	c.cancel()
	c.working.Wait()
}

func (c *copiers) ended(t history.Transaction) {
	if len(t.Records) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transactions = append(c.transactions, t)
}

// count is how many transactions there were, by their fates.
func (c *copiers) count() (fates [3]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.transactions {
		fates[t.Fate]++
	}
	return fates
}

// copier is one of them, with one transactional id through all of its sessions.
type copier struct {
	*copiers
	id     uint32
	number uint64
	zombie *life
}

// life is one session of a copier.
type life struct {
	*kgo.GroupTransactSession
	open history.Transaction
}

func (c *copier) run() {
	for c.ctx.Err() == nil {
		s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(c.w.Seeds()...), kgo.Dialer(c.l.tap.DialContext), kgo.TransactionalID(c.name()), kgo.TransactionTimeout(transactionTimeout),
			kgo.ConsumerGroup(copying), kgo.ConsumeTopics(loaded), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(copied), kgo.HeartbeatInterval(memberHeartbeat), kgo.SessionTimeout(memberSession),
			kgo.RebalanceTimeout(10*time.Second), kgo.FetchMaxWait(200*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond), kgo.UnknownTopicRetries(-1),
			kgo.RequestTimeoutOverhead(3*time.Second), kgo.RecordDeliveryTimeout(15*time.Second))
		if err != nil {
			c.fault("%v", err)
			return
		}
		if err := c.copy(&life{GroupTransactSession: s}); err != nil {
			c.mu.Lock()
			c.trouble[err.Error()]++
			c.mu.Unlock()
		}
	}
	if c.zombie != nil {
		c.zombie.Close()
	}
}

func (c *copier) name() string { return "copier-" + strconv.Itoa(int(c.id)) }

func (c *copiers) fault(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

var errAbandoned = errors.New("left behind")

// copy copies until something goes wrong, as an application that lets its supervisor start it again.
func (c *copier) copy(s *life) (err error) {
	defer func() {
		if !errors.Is(err, errAbandoned) {
			s.Close()
		}
	}()
	for c.ctx.Err() == nil {
		polled, done := context.WithTimeout(c.ctx, time.Second)
		fetches := s.PollRecords(polled, perTransaction)
		done()
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := c.transact(s, fetches); err != nil {
			return err
		}
		c.raiseZombie()
	}
	return nil
}

// transact copies what was fetched in one transaction, which it aborts now and then.
func (c *copier) transact(s *life, fetches kgo.Fetches) error {
	if err := s.Begin(); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(c.ctx, 30*time.Second)
	defer done()
	s.open = history.Transaction{ID: c.name()}
	var failed error
	var mu sync.Mutex
	fetches.EachRecord(func(r *kgo.Record) {
		c.number++
		own := history.Name{Producer: c.id, Number: c.number}
		s.open.Records = append(s.open.Records, history.Placed{Name: own, Partition: r.Partition})
		value := own.AppendTo(append([]byte(nil), r.Value[:history.NameSize]...))
		s.Produce(ctx, &kgo.Record{Partition: r.Partition, Value: value}, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if failed == nil {
				failed = err
			}
		})
	})
	if err := s.Client().Flush(ctx); err != nil {
		c.ended(s.open)
		return err
	}
	select {
	case <-c.abandon:
		if c.zombie == nil {
			c.zombie = s
			return errAbandoned
		}
	default:
	}
	committed, err := s.End(ctx, kgo.TransactionEndTry(failed == nil && rand.IntN(8) != 0))
	switch {
	case err != nil: // nobody knows
	case committed:
		s.open.Fate = history.Done
	default:
		s.open.Fate = history.Refused
	}
	c.ended(s.open)
	return errors.Join(err, failed)
}

// raiseZombie lets a session that was left behind try to commit what it had begun. Another has the transactional id by now, and has committed with it: the attempt must fail.
func (c *copier) raiseZombie() {
	if c.zombie == nil {
		return
	}
	ctx, done := context.WithTimeout(c.ctx, 15*time.Second)
	defer done()
	if committed, err := c.zombie.End(ctx, kgo.TryCommit); committed && err == nil {
		c.fault("a zombie of %s could commit", c.name())
	}
	c.zombie.Close()
	c.zombie.open.Fate = history.Refused
	c.ended(c.zombie.open)
	c.zombie = nil
	c.mu.Lock()
	c.zombies++
	c.mu.Unlock()
}

// judge compares the copies with the transactions and with what was to be copied.
func (c *copiers) judge(t testing.TB, in map[int32][]history.Read) []string {
	t.Helper()
	own, from := map[int32][]history.Read{}, map[int32][]history.Read{}
	history.ReadCommitted(t, c.w.Seeds(), copied, func(r *kgo.Record) {
		require.Len(t, r.Value, 2*history.NameSize)
		from[r.Partition] = append(from[r.Partition], history.Read{Name: history.NameOf(r.Value), Offset: r.Offset})
		own[r.Partition] = append(own[r.Partition], history.Read{Name: history.NameOf(r.Value[history.NameSize:]), Offset: r.Offset})
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	faults := append([]string(nil), c.faults...)
	faults = append(faults, history.JudgeTransactions(c.transactions, own)...)
	return append(faults, history.JudgeCopies(in, from)...)
}
