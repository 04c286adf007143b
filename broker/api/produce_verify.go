package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin"
	"barnabas/broker/record"
	"barnabas/broker/txn"
)

// abortable is the first version of Produce whose clients know
// TRANSACTION_ABORTABLE.
const abortable = 11

// The first write of a transaction to a partition waits until the transaction's
// coordinator has confirmed that it knows of the partition (KIP-890): a write that
// was delayed until after the end of its transaction would open one that nobody
// ends. The partition gives a guard before the question, which goes with the
// records; a marker in between makes it worthless.

// firstWrites are the indexes of the partitions to ask about. Those that have the
// transaction open already need no question.
func (op *produceCall) firstWrites() []int {
	if op.producer == nil || !op.d.cfg.VerifyTransactions() {
		return nil
	}
	op.request.RequireVerification = true
	var first []int
	for i := range op.request.Partitions {
		p := &op.request.Partitions[i]
		if p.Err != nil || len(p.Records) < record.HeaderSize {
			continue
		}
		b := record.Batch(p.Records)
		if !b.IsTransactional() {
			continue
		}
		p.Verification, p.Err = op.d.deps.Replicas.VerifyTransaction(p.Topic, p.Partition, b.ProducerID(), b.BaseSequence(), b.ProducerEpoch())
		if p.Verification != nil {
			first = append(first, i)
		}
	}
	return first
}

// confirm asks about partitions, and then goes on, with the errors of those that
// are not part of the transaction in the request.
func (op *produceCall) confirm(first []int, then func()) {
	req := &txn.PartitionsRequest{ID: *op.request.TransactionalID, Producer: *op.producer}
	for _, i := range first {
		p := &op.request.Partitions[i]
		req.Partitions = append(req.Partitions, txn.TopicPartition{Topic: p.Topic, Partition: p.Partition})
	}
	op.d.deps.Transactions.Confirm(req, func(errs []error) {
		for i, err := range errs {
			op.request.Partitions[first[i]].Err = op.unverified(err)
		}
		op.d.resumed.Go(then) // who answers has others to answer
	})
}

// unverified is what a producer is told when its transaction could not be
// verified. What may be repeated is NOT_ENOUGH_REPLICAS, which every producer
// repeats without looking for another leader.
func (op *produceCall) unverified(err error) error {
	var known *kerr.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &known):
		return err
	case known == kerr.TransactionAbortable && op.version < abortable, known == kerr.InvalidTxnState:
		return &admin.Error{Code: kerr.InvalidTxnState, Message: "Partition was not added to the transaction"}
	case passing(known):
		return &admin.Error{Code: kerr.NotEnoughReplicas, Message: "Unable to verify the partition has been added to the transaction. Underlying error: " + known.Message}
	}
	return err
}

// passing tells that a coordinator may say otherwise soon.
func passing(err *kerr.Error) bool {
	switch err {
	case kerr.ConcurrentTransactions, kerr.NetworkException, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator:
		return true
	}
	return false
}
