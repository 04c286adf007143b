package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/group"
	"barnabas/broker/record"
	"barnabas/broker/txn"
)

// TxnOffsetCommit, key 28, versions 0 to 4.
//
//	2  leader epochs; COORDINATOR_LOAD_IN_PROGRESS (before: COORDINATOR_NOT_AVAILABLE)
//	3  flexible; generation, member id and group instance id (KIP-447)
//	4  errors of KIP-890
//
// The offsets count when the transaction commits. The first ones of a transaction
// are written after its coordinator has confirmed that it knows of them (KIP-890).
func (d *Dispatcher) txnOffsetCommit(c *call, req *kmsg.TxnOffsetCommitRequest) {
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	rows := &txnOffsetRows{resp: resp, version: req.Version, at: map[string]int{}}
	producer := &group.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}
	ask := &group.CommitRequest{Group: req.Group, Generation: group.NoGeneration, Producer: producer}
	if req.Version >= 3 {
		ask.Generation, ask.MemberID, ask.InstanceID = req.Generation, req.MemberID, req.InstanceID
	}
	snapshot := d.deps.Metadata.Load()
	mayTransaction := d.mayTransaction(c, kmsg.ACLOperationWrite, req.TransactionalID)
	mayGroup := mayTransaction && d.mayGroup(c, kmsg.ACLOperationRead, req.Group)
	rights := d.topicRights(c, kmsg.ACLOperationRead)
	for i := range req.Topics {
		t := &req.Topics[i]
		if topicRefused(mayGroup, &rights, snapshot, t.Topic) {
			rows.topic(t.Topic) // also if nothing of it is asked
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			tp := group.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			if !mayTransaction {
				rows.add(tp, kerr.TransactionalIDAuthorizationFailed)
				continue
			}
			if err := commitRefused(mayGroup, &rights, snapshot, tp); err != nil {
				rows.add(tp, err)
				continue
			}
			epoch := int32(-1)
			if req.Version >= 2 {
				epoch = p.LeaderEpoch
			}
			ask.Offsets = append(ask.Offsets, group.Commit{
				TopicPartition: tp, Offset: p.Offset, LeaderEpoch: epoch, Metadata: stringOrEmpty(p.Metadata), TimeMs: group.NoTime, RetentionMs: group.NoTime,
			})
		}
	}
	ask.Offsets = lastOfEach(ask.Offsets)
	if len(ask.Offsets) == 0 {
		c.answer(resp)
		return
	}
	d.verifyOffsets(req, producer, func(err error) {
		if err != nil {
			for i := range ask.Offsets {
				rows.add(ask.Offsets[i].TopicPartition, err)
			}
			c.answer(resp)
			return
		}
		d.deps.Groups.Commit(ask, func(r group.CommitResult) {
			for i, err := range r.Errs {
				d.faults("TxnOffsetCommit", err)
				rows.add(ask.Offsets[i].TopicPartition, err)
			}
			c.answer(resp)
		})
	})
}

// verifyOffsets asks the transaction's coordinator before the first offsets of a
// transaction are written, and leaves the partition's guard with the producer.
func (d *Dispatcher) verifyOffsets(req *kmsg.TxnOffsetCommitRequest, producer *group.Producer, done func(error)) {
	if !d.cfg.VerifyTransactions() || req.Group == "" {
		done(nil)
		return
	}
	p := d.deps.Groups.PartitionFor(req.Group)
	guard, err := d.deps.Replicas.VerifyTransaction(offsetsTopic, p, producer.ID, record.NoSequence, producer.Epoch)
	if err != nil || guard == nil {
		done(unverifiedOffsets(err, req.Version))
		return
	}
	producer.Guard = guard
	ask := &txn.PartitionsRequest{
		ID: req.TransactionalID, Producer: txn.Producer{ID: producer.ID, Epoch: producer.Epoch},
		Partitions: []txn.TopicPartition{{Topic: offsetsTopic, Partition: p}},
	}
	d.deps.Transactions.Confirm(ask, func(errs []error) { done(unverifiedOffsets(errs[0], req.Version)) })
}

// unverifiedOffsets is what clients are told when offsets could not be verified.
// NETWORK_EXCEPTION is between brokers: theirs is COORDINATOR_LOAD_IN_PROGRESS,
// which they repeat at the same coordinator.
func unverifiedOffsets(err error, version int16) error {
	switch {
	case errors.Is(err, kerr.NetworkException):
		return kerr.CoordinatorLoadInProgress
	case errors.Is(err, kerr.TransactionAbortable) && version < 4:
		return kerr.InvalidTxnState
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return kerr.CoordinatorNotAvailable
	case errors.Is(err, kerr.NotLeaderForPartition), errors.Is(err, kerr.KafkaStorageError):
		return kerr.NotCoordinator
	}
	return err
}

// txnOffsetRows adds rows to an answer, those of a topic together.
type txnOffsetRows struct {
	resp    *kmsg.TxnOffsetCommitResponse
	version int16
	at      map[string]int
}

// topic is the index of a topic's row.
func (r *txnOffsetRows) topic(name string) int {
	i, known := r.at[name]
	if !known {
		i = len(r.resp.Topics)
		r.at[name] = i
		t := kmsg.NewTxnOffsetCommitResponseTopic()
		t.Topic = name
		r.resp.Topics = append(r.resp.Topics, t)
	}
	return i
}

func (r *txnOffsetRows) add(tp group.TopicPartition, err error) {
	i := r.topic(tp.Topic)
	if r.version < 2 && errors.Is(err, kerr.CoordinatorLoadInProgress) {
		err = kerr.CoordinatorNotAvailable // old clients crash over the other (KAFKA-7296)
	}
	p := kmsg.NewTxnOffsetCommitResponseTopicPartition()
	p.Partition = tp.Partition
	p.ErrorCode, _ = code(err)
	r.resp.Topics[i].Partitions = append(r.resp.Topics[i].Partitions, p)
}
