package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/group"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/txn"
	"barnabas/controller"
)

// What coordinators of transactions and leaders ask each other.

// sendMarker sends a marker to the leaders of its partitions, as this broker knows them.
func (s *shard) sendMarker(m *txn.Marker) {
	n := s.b.n
	parts := map[int32]*txn.Marker{}
	told := func(part *txn.Marker, err error) {
		n.later(0, func() {
			if !s.deposed {
				s.do(func(nowMs int64) {
					s.k.(*txnKeeper).Marked(nowMs, part, slices.Repeat([]error{err}, len(part.Partitions)))
				})
			}
		})
	}
	for _, tp := range m.Partitions {
		known, exists := s.b.metadata[controller.TopicPartition(tp)]
		part := *m
		part.Partitions = []txn.TopicPartition{tp}
		switch {
		case !exists:
			told(&part, txn.ErrNoPartition)
		case known.Leader <= 0:
			told(&part, kerr.LeaderNotAvailable)
		case parts[known.Leader] == nil:
			parts[known.Leader] = &part
		default:
			parts[known.Leader].Partitions = append(parts[known.Leader].Partitions, tp)
		}
	}
	for _, id := range sortedKeys(parts) {
		part := parts[id]
		n.s.Done.Markers++
		whileHeard(n, n.s.nodes[id-1], controlTimeout, func(target *node, answer func([]error)) {
			target.broker.writeMarker(part, answer)
		}, func(errs []error) {
			switch {
			case s.deposed:
				return
			case errs == nil && n.s.planted("markers are sent once"):
				errs = make([]error, len(part.Partitions))
			case errs == nil:
				errs = slices.Repeat([]error{kerr.NetworkException}, len(part.Partitions))
			}
			s.do(func(nowMs int64) { s.k.(*txnKeeper).Marked(nowMs, part, errs) })
		})
	}
}

// whileHeard asks a node something over a connection that breaks when the answer is late: then what was sent is lost, and
// it never comes twice. Only a later epoch could tell a marker that comes after its transaction from one of the next, and
// the classic protocol has none (KIP-890, part 2).
func whileHeard[R any](n, target *node, timeout time.Duration, do func(*node, func(R)), answered func(R)) {
	life, over, came := n.life, false, false
	finish := func(r R) {
		if !over && n.life == life {
			over = true
			answered(r)
		}
	}
	n.s.net(n, target, func() {
		if !over && !came && n.life == life {
			came = true
			do(target, func(r R) { n.s.net(target, n, func() { finish(r) }) })
		}
	})
	n.later(timeout, func() {
		var none R
		finish(none)
	})
}

// writeMarker appends a marker to partitions that this broker leads, and answers when it is committed in all.
func (b *broker) writeMarker(m *txn.Marker, answer func([]error)) {
	if b.epoch == 0 || b.logs == nil || b.failed {
		return
	}
	kind := record.Abort
	if m.Commit {
		kind = record.Commit
	}
	end := record.EndTxnMarker{Type: kind, CoordinatorEpoch: m.CoordinatorEpoch}
	req := &partition.ProduceRequest{Acks: -1, Timeout: farAway, Version: 3, Origin: commitlog.Coordinator}
	for _, tp := range m.Partitions {
		p := partition.ProducePartition{Topic: tp.Topic, Partition: tp.Partition}
		if b.replicas.Partition(tp.Topic, tp.Partition) == nil {
			p.Err = kerr.UnknownTopicOrPartition
		} else {
			p.Records = record.NewEndTxnBatch(end, m.Producer.ID, m.Producer.Epoch, b.n.clock().UnixMilli())
		}
		req.Partitions = append(req.Partitions, p)
	}
	life := b.n.life
	b.replicas.Produce(req, func(written []partition.ProduceResult) {
		errs := make([]error, len(written))
		for i := range written {
			errs[i] = written[i].Err
		}
		b.n.later(0, func() {
			if b.n.life != life || b.failed {
				return
			}
			for i := range written {
				if errs[i] == nil && written[i].Topic == offsetsTopic {
					b.coordinators.endTransaction(written[i].Partition, m.Producer.ID, m.Commit)
				}
			}
			answer(errs)
		})
	})
	b.afterwards()
}

// verifies tells that the first write of a transaction to a partition needs the word of its coordinator (KIP-890).
func (s *Sim) verifies() bool {
	return !s.planted("late writes of a transaction are not noticed")
}

// confirm asks the coordinator of a transactional id, wherever this broker believes it to be, whether a partition is part
// of the producer's transaction.
func (b *broker) confirm(id string, p txn.Producer, tp txn.TopicPartition, answered func(error)) {
	req := &txn.PartitionsRequest{ID: id, Producer: p, Partitions: []txn.TopicPartition{tp}}
	known, exists := b.metadata[coordinates(transactionTopic, id)]
	if !exists || known.Leader <= 0 {
		answered(kerr.CoordinatorNotAvailable)
		return
	}
	call(b.n, b.n.s.nodes[known.Leader-1], controlTimeout, func(target *node, answer func([]error)) {
		if target.broker.epoch == 0 || target.broker.logs == nil || target.broker.failed {
			return
		}
		target.broker.coordinators.ofID(id, func(core *txn.Core, _ int64) { core.Verify(req, answer) }, func(err error) { answer([]error{err}) })
	}, func(errs []error) {
		switch {
		case errs == nil:
			answered(kerr.NetworkException)
		case errors.Is(errs[0], kerr.ProducerFenced):
			answered(kerr.InvalidProducerEpoch)
		default:
			answered(errs[0])
		}
	})
}

// produceInTransaction is a Produce request of a transactional producer: its first write waits until the coordinator has
// confirmed that it knows of the partition.
func (b *broker) produceInTransaction(id string, p txn.Producer, sequence int32, in partition.ProducePartition, reply func(partition.ProduceResult)) {
	req := &partition.ProduceRequest{Acks: -1, Timeout: farAway, TransactionalID: &id, Version: 11, Origin: commitlog.Client, RequireVerification: b.n.s.verifies()}
	write := func(in partition.ProducePartition) {
		req.Partitions = []partition.ProducePartition{in}
		b.replicas.Produce(req, func(rs []partition.ProduceResult) { reply(rs[0]) })
		b.afterwards()
	}
	if b.n.s.verifies() {
		guard, err := b.replicas.VerifyTransaction(in.Topic, in.Partition, p.ID, sequence, p.Epoch)
		if err != nil || guard != nil {
			in.Err, in.Verification = err, guard
			if err == nil {
				b.confirm(id, p, txn.TopicPartition{Topic: in.Topic, Partition: in.Partition}, func(err error) {
					if in.Err = err; !b.failed {
						write(in)
					}
				})
				return
			}
		}
	}
	write(in)
}

// commitInTransaction is a TxnOffsetCommit request.
func (b *broker) commitInTransaction(id string, req *group.CommitRequest, reply func(error)) {
	commit := func() {
		b.coordinators.ofGroup(req.Group, func(core *group.Core, nowMs int64) {
			core.Commit(nowMs, req, func(r group.CommitResult) { reply(errors.Join(r.Errs...)) })
		}, reply)
	}
	if !b.n.s.verifies() {
		commit()
		return
	}
	tp := coordinates(offsetsTopic, req.Group)
	guard, err := b.replicas.VerifyTransaction(tp.Topic, tp.Partition, req.Producer.ID, record.NoSequence, req.Producer.Epoch)
	switch {
	case err != nil:
		reply(err)
	case guard == nil:
		commit()
	default:
		req.Producer.Guard = guard
		b.confirm(id, txn.Producer{ID: req.Producer.ID, Epoch: req.Producer.Epoch}, txn.TopicPartition(tp), func(err error) {
			if err != nil {
				reply(err)
			} else if !b.failed {
				commit()
			}
		})
	}
}
