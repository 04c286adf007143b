package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"barnabas/integration/history"
)

// saramaCopier is one session of a copier of sarama's: a member of the group, with a transactional producer for all partitions that it is given. It implements
// sarama.ConsumerGroupHandler.
type saramaCopier struct {
	*copiers
	number   uint32
	producer sarama.SyncProducer
	end      context.CancelFunc

	mu     sync.Mutex // held over a transaction: a producer has one at a time
	own    *uint64    // the number of its last record, through all sessions
	failed error      // what ended the session
}

// gatherFor is how long a copier of sarama's waits for more to copy in one transaction.
const gatherFor = time.Second

func copyWithSarama(c *copiers, number uint32) {
	var own uint64
	for c.ctx.Err() == nil {
		c.troubled(c.saramaSession(number, &own))
		select {
		case <-c.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// saramaSession copies until something goes wrong.
func (c *copiers) saramaSession(number uint32, own *uint64) error {
	cfg := saramaConfig(c.w, c.l)
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted // offsets are asked for with require_stable, too
	cfg.Consumer.Offsets.AutoCommit.Enable = false
	cfg.Producer.Idempotent, cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	cfg.Producer.Transaction.ID, cfg.Producer.Transaction.Timeout = c.id(number), transactionTimeout
	cfg.Producer.Partitioner = sarama.NewManualPartitioner
	cfg.Producer.Return.Successes, cfg.Producer.Return.Errors = true, true
	producer, err := sarama.NewSyncProducer(c.w.entries(), cfg)
	if err != nil {
		return err
	}
	defer producer.Close()
	group, err := sarama.NewConsumerGroup(c.w.entries(), c.name, cfg)
	if err != nil {
		return err
	}
	defer group.Close()
	ctx, end := context.WithCancel(c.ctx)
	defer end()
	s := &saramaCopier{copiers: c, number: number, producer: producer, end: end, own: own}
	for ctx.Err() == nil && err == nil {
		err = group.Consume(ctx, []string{loaded}, s)
	}
	return errors.Join(s.failed, err)
}

func (s *saramaCopier) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (s *saramaCopier) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (s *saramaCopier) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for first := range claim.Messages() {
		if !s.transact(session, gather(first, claim.Messages())) {
			return nil
		}
	}
	return nil
}

// gather takes what comes in a while together.
func gather(first *sarama.ConsumerMessage, more <-chan *sarama.ConsumerMessage) []*sarama.ConsumerMessage {
	list := []*sarama.ConsumerMessage{first}
	enough := time.After(gatherFor)
	for len(list) < perTransaction {
		select {
		case m, open := <-more:
			if !open {
				return list
			}
			list = append(list, m)
		case <-enough:
			return list
		}
	}
	return list
}

// transact copies messages of one partition in one transaction, which it aborts now and then and makes again. false: the session is over.
func (s *saramaCopier) transact(session sarama.ConsumerGroupSession, list []*sarama.ConsumerMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return false
	}
	for aborted := true; aborted && s.failed == nil; {
		var t history.Transaction
		t, s.failed = s.write(session, list)
		if aborted = s.failed != nil || rand.IntN(8) == 0; aborted {
			t.Fate = history.Refused // nobody has asked for its commit
			s.failed = errors.Join(s.failed, s.producer.AbortTxn())
		} else if s.failed = s.producer.CommitTxn(); s.failed == nil {
			t.Fate = history.Done
		}
		s.ended(t)
	}
	if s.failed != nil {
		s.end()
	}
	return s.failed == nil
}

func (s *saramaCopier) write(session sarama.ConsumerGroupSession, list []*sarama.ConsumerMessage) (t history.Transaction, err error) {
	t.ID = s.id(s.number)
	if err := s.producer.BeginTxn(); err != nil {
		return t, err
	}
	var copies []*sarama.ProducerMessage
	for _, m := range list {
		*s.own++
		own := history.Name{Producer: s.number, Number: *s.own}
		t.Records = append(t.Records, history.Placed{Name: own, Partition: m.Partition})
		copies = append(copies, &sarama.ProducerMessage{Topic: s.name, Partition: m.Partition, Value: sarama.ByteEncoder(copyOf(m.Value, own))})
	}
	if err := s.producer.SendMessages(copies); err != nil {
		return t, err
	}
	last := list[len(list)-1]
	return t, s.producer.AddMessageToTxnWithGroupMetadata(last, sarama.NewConsumerGroupMetadataFromSession(session, s.copiers.name, nil), nil)
}
