package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/history"
)

const (
	transactionTimeout = 10 * time.Second
	perTransaction     = 100
)

// copiers copy the loaded topic to another one, record by record, in transactions that store the offsets too; partitions keep their numbers. A copied value is the name of the record that
// it was made from, and a name of its own. Those of one library are a group and have a topic of their own to copy to, both of the same name.
type copiers struct {
	name    string
	library library
	w       *world
	l       *listener
	ctx     context.Context
	cancel  context.CancelFunc
	working sync.WaitGroup
	abandon chan struct{} // each makes one copier leave its session behind, with an open transaction; none where nobody listens

	mu           sync.Mutex
	transactions []history.Transaction
	faults       []string
	zombies      int // that tried to go on where another had taken over
	trouble      map[string]int
}

// library is what copiers are made of.
type library struct {
	topic    string // and group
	copiers  int
	run      func(c *copiers, number uint32) // copies until the context of them all ends
	verbatim bool                            // a copied value is the record as it was, without a name of its own
	perHarm  int                             // transactions that are at least committed for each coordinator that comes to harm
}

var (
	franzCopiers  = library{topic: "copied", copiers: copierCount, run: copyWithFranz, perHarm: 2}
	saramaCopiers = library{topic: "copied-by-sarama", copiers: 2, run: copyWithSarama, perHarm: 2}
)

// startCopiers starts copiers, each of which runs in a goroutine of its own.
func startCopiers(t testing.TB, w *world, l *listener, of library) *copiers {
	name := of.topic
	c := &copiers{name: name, library: of, w: w, l: l, abandon: make(chan struct{}), trouble: map[string]int{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	createTopic(t, w.Seeds(), name, w.partitions, replicas)
	w.WaitWhole(t, name, w.partitions, replicas)
	t.Cleanup(c.stop)
	for i := range of.copiers {
		c.working.Go(func() { of.run(c, uint32(i+1)) })
	}
	return c
}

// id is the transactional id of one copier.
func (c *copiers) id(number uint32) string { return c.name + "-" + strconv.Itoa(int(number)) }

// troubled notes why a session of a copier ended.
func (c *copiers) troubled(err error) {
	if err == nil {
		return
	}
	what := err.Error()
	if lost, ok := errors.AsType[*net.OpError](err); ok {
		what = lost.Op + ": " + lost.Err.Error() // wherever it was
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble[what]++
}

func (c *copiers) stop() {
	c.cancel()
	c.working.Wait()
}

// copyOf is the value of a copy.
func copyOf(value []byte, own history.Name) []byte {
	return own.AppendTo(append([]byte(nil), value[:history.NameSize]...))
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

// copier is one of franz-go's, with one transactional id through all of its sessions.
type copier struct {
	*copiers
	number uint32
	own    uint64 // the number of its last record
	zombie *life
}

// life is one session of a copier.
type life struct {
	*kgo.GroupTransactSession
	open history.Transaction
}

func copyWithFranz(c *copiers, number uint32) { (&copier{copiers: c, number: number}).run() }

func (c *copier) run() {
	for c.ctx.Err() == nil {
		s, err := kgo.NewGroupTransactSession(c.w.throughTap(c.l, kgo.TransactionalID(c.id(c.number)), kgo.TransactionTimeout(transactionTimeout),
			kgo.ConsumerGroup(c.name), kgo.ConsumeTopics(loaded), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(c.name), kgo.HeartbeatInterval(memberHeartbeat), kgo.SessionTimeout(memberSession),
			kgo.RebalanceTimeout(4*time.Second), kgo.FetchMaxWait(200*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond), kgo.UnknownTopicRetries(-1),
			kgo.RequestTimeoutOverhead(3*time.Second), kgo.RecordDeliveryTimeout(15*time.Second))...)
		if err != nil {
			c.fault("%v", err)
			return
		}
		c.troubled(c.copy(&life{GroupTransactSession: s}))
	}
	if c.zombie != nil {
		c.zombie.Close()
	}
}

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
	s.open = history.Transaction{ID: c.id(c.number)}
	var failed error
	var mu sync.Mutex
	fetches.EachRecord(func(r *kgo.Record) {
		c.own++
		own := history.Name{Producer: c.number, Number: c.own}
		s.open.Records = append(s.open.Records, history.Placed{Name: own, Partition: r.Partition})
		s.Produce(ctx, &kgo.Record{Partition: r.Partition, Value: copyOf(r.Value, own)}, func(_ *kgo.Record, err error) {
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
		c.fault("a zombie of %s could commit", c.id(c.number))
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
	history.ReadCommitted(t, c.w.Seeds(), c.name, func(r *kgo.Record) {
		require.GreaterOrEqual(t, len(r.Value), history.NameSize)
		from[r.Partition] = append(from[r.Partition], history.Read{Name: history.NameOf(r.Value), Offset: r.Offset})
		if c.library.verbatim {
			return
		}
		require.Len(t, r.Value, 2*history.NameSize)
		own[r.Partition] = append(own[r.Partition], history.Read{Name: history.NameOf(r.Value[history.NameSize:]), Offset: r.Offset})
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	faults := append([]string(nil), c.faults...)
	if !c.library.verbatim {
		faults = append(faults, history.JudgeTransactions(c.transactions, own)...)
	}
	return append(faults, history.JudgeCopies(in, from)...)
}
