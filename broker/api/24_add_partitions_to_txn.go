package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/txn"
)

// AddPartitionsToTxn, key 24, versions 0 to 5.
//
//	2  PRODUCER_FENCED (before: INVALID_PRODUCER_EPOCH)
//	3  flexible
//	4  from other brokers: several transactions, and verification alone (KIP-890)
//	5  errors of KIP-890
//
// Where one partition does not exist none is added: the others are told
// OPERATION_NOT_ATTEMPTED.
func (d *Dispatcher) addPartitionsToTxn(c *call, req *kmsg.AddPartitionsToTxnRequest) {
	if req.Version < 4 {
		d.addPartitionsOfClient(c, req)
		return
	}
	resp := kmsg.NewPtrAddPartitionsToTxnResponse()
	if !d.mayCluster(c, kmsg.ACLOperationClusterAction) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	if len(req.Transactions) == 0 {
		c.answer(resp)
		return
	}
	var mu sync.Mutex
	left := len(req.Transactions)
	for i := range req.Transactions {
		t := &req.Transactions[i]
		ask := &txn.PartitionsRequest{ID: t.TransactionalID, Producer: txn.Producer{ID: t.ProducerID, Epoch: t.ProducerEpoch}}
		for j := range t.Topics {
			ask.Partitions = appendPartitions(ask.Partitions, t.Topics[j].Topic, t.Topics[j].Partitions)
		}
		d.addPartitions(ask, make([]error, len(ask.Partitions)), t.VerifyOnly, func(errs []error) {
			row := transactionRow(ask, errs)
			mu.Lock()
			resp.Transactions = append(resp.Transactions, row)
			left--
			last := left == 0
			mu.Unlock()
			if last {
				c.answer(resp)
			}
		})
	}
}

func (d *Dispatcher) addPartitionsOfClient(c *call, req *kmsg.AddPartitionsToTxnRequest) {
	ask := &txn.PartitionsRequest{ID: req.TransactionalID, Producer: txn.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}}
	for i := range req.Topics {
		ask.Partitions = appendPartitions(ask.Partitions, req.Topics[i].Topic, req.Topics[i].Partitions)
	}
	answer := func(errs []error) {
		resp := kmsg.NewPtrAddPartitionsToTxnResponse()
		for i := range errs {
			errs[i] = fencedSince(errs[i], req.Version, 2)
		}
		for _, t := range transactionRow(ask, errs).Topics {
			topic := kmsg.NewAddPartitionsToTxnResponseTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				topic.Partitions = append(topic.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition(p))
			}
			resp.Topics = append(resp.Topics, topic)
		}
		c.answer(resp)
	}
	errs := make([]error, len(ask.Partitions))
	if !d.mayTransaction(c, kmsg.ACLOperationWrite, ask.ID) {
		for i := range errs {
			errs[i] = kerr.TransactionalIDAuthorizationFailed
		}
		answer(errs)
		return
	}
	rights := d.topicRights(c, kmsg.ACLOperationWrite)
	for i, tp := range ask.Partitions {
		if d.deps.Authorizer != nil && isInternal(tp.Topic) || !rights.allow(tp.Topic) {
			errs[i] = kerr.TopicAuthorizationFailed
		}
	}
	d.addPartitions(ask, errs, false, answer)
}

// addPartitions adds the partitions of one transaction, or verifies that they are
// part of it. errs has an error for those that may not be added, for whose sake none
// is. done gets an error or nil for each.
func (d *Dispatcher) addPartitions(ask *txn.PartitionsRequest, errs []error, verifyOnly bool, done func([]error)) {
	refused := false
	snapshot := d.deps.Metadata.Load()
	for i, tp := range ask.Partitions {
		switch {
		case errs[i] != nil:
			refused = true
		case snapshot.Partition(tp.Topic, tp.Partition) == nil:
			errs[i], refused = kerr.UnknownTopicOrPartition, true
		default:
			errs[i] = kerr.OperationNotAttempted
		}
	}
	switch {
	case refused:
		done(errs)
	case verifyOnly:
		d.deps.Transactions.Verify(ask, done)
	default:
		d.deps.Transactions.AddPartitions(ask, func(err error) {
			d.faults("AddPartitionsToTxn", err)
			for i := range errs {
				errs[i] = err
			}
			done(errs)
		})
	}
}

func appendPartitions(list []txn.TopicPartition, topic string, partitions []int32) []txn.TopicPartition {
	for _, p := range partitions {
		list = append(list, txn.TopicPartition{Topic: topic, Partition: p})
	}
	return list
}

// transactionRow is the part of an answer for one transaction. Partitions that were
// named twice are there once.
func transactionRow(ask *txn.PartitionsRequest, errs []error) kmsg.AddPartitionsToTxnResponseTransaction {
	row := kmsg.NewAddPartitionsToTxnResponseTransaction()
	row.TransactionalID = ask.ID
	at := map[string]int{}
	seen := map[txn.TopicPartition]bool{}
	for i, tp := range ask.Partitions {
		if seen[tp] {
			continue
		}
		seen[tp] = true
		j, known := at[tp.Topic]
		if !known {
			j = len(row.Topics)
			at[tp.Topic] = j
			t := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
			t.Topic = tp.Topic
			row.Topics = append(row.Topics, t)
		}
		p := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
		p.Partition = tp.Partition
		p.ErrorCode, _ = code(errs[i])
		row.Topics[j].Partitions = append(row.Topics[j].Partitions, p)
	}
	return row
}
