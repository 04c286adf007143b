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
		asked := make([]kmsg.AddPartitionsToTxnRequestTopic, len(t.Topics))
		for j := range t.Topics {
			asked[j] = kmsg.AddPartitionsToTxnRequestTopic(t.Topics[j])
		}
		ask.Partitions = allPartitions(asked)
		d.addPartitions(ask, asked, make([]error, len(ask.Partitions)), t.VerifyOnly, func(row kmsg.AddPartitionsToTxnResponseTransaction) {
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
	ask.Partitions = allPartitions(req.Topics)
	answer := func(row kmsg.AddPartitionsToTxnResponseTransaction) {
		resp := kmsg.NewPtrAddPartitionsToTxnResponse()
		for _, t := range row.Topics {
			topic := kmsg.NewAddPartitionsToTxnResponseTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				if p.ErrorCode == kerr.ProducerFenced.Code {
					p.ErrorCode, _ = code(fencedSince(kerr.ProducerFenced, req.Version, 2))
				}
				topic.Partitions = append(topic.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition(p))
			}
			resp.Topics = append(resp.Topics, topic)
		}
		c.answer(resp)
	}
	if !d.mayTransaction(c, kmsg.ACLOperationWrite, ask.ID) {
		answer(rowAsAsked(ask.ID, req.Topics, kerr.TransactionalIDAuthorizationFailed))
		return
	}
	errs := make([]error, len(ask.Partitions))
	rights := d.topicRights(c, kmsg.ACLOperationWrite)
	for i, tp := range ask.Partitions {
		if d.deps.Authorizer != nil && isInternal(tp.Topic) || !rights.allow(tp.Topic) {
			errs[i] = kerr.TopicAuthorizationFailed
		}
	}
	d.addPartitions(ask, req.Topics, errs, false, answer)
}

// addPartitions adds the partitions of one transaction, or verifies that they are
// part of it. errs has an error for those that may not be added, for whose sake none
// is. done gets the answer: what befalls all comes in the rows of the request, also
// those that say the same again or nothing, and judgements come once for each partition.
func (d *Dispatcher) addPartitions(ask *txn.PartitionsRequest, asked []kmsg.AddPartitionsToTxnRequestTopic, errs []error, verifyOnly bool, done func(kmsg.AddPartitionsToTxnResponseTransaction)) {
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
		done(transactionRow(ask, errs))
	case verifyOnly:
		d.deps.Transactions.Verify(ask, func(errs []error) { done(transactionRow(ask, errs)) })
	default:
		d.deps.Transactions.AddPartitions(ask, func(err error) {
			d.faults("AddPartitionsToTxn", err)
			done(rowAsAsked(ask.ID, asked, err))
		})
	}
}

func allPartitions(topics []kmsg.AddPartitionsToTxnRequestTopic) []txn.TopicPartition {
	var list []txn.TopicPartition
	for i := range topics {
		list = appendPartitions(list, topics[i].Topic, topics[i].Partitions)
	}
	return list
}

func appendPartitions(list []txn.TopicPartition, topic string, partitions []int32) []txn.TopicPartition {
	for _, p := range partitions {
		list = append(list, txn.TopicPartition{Topic: topic, Partition: p})
	}
	return list
}

// rowAsAsked is the part of an answer for one transaction that says the same of all
// that was asked, topic by topic.
func rowAsAsked(id string, asked []kmsg.AddPartitionsToTxnRequestTopic, err error) kmsg.AddPartitionsToTxnResponseTransaction {
	row := kmsg.NewAddPartitionsToTxnResponseTransaction()
	row.TransactionalID = id
	for i := range asked {
		t := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
		t.Topic = asked[i].Topic
		for _, partition := range asked[i].Partitions {
			p := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
			p.Partition = partition
			p.ErrorCode, _ = code(err)
			t.Partitions = append(t.Partitions, p)
		}
		row.Topics = append(row.Topics, t)
	}
	return row
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
