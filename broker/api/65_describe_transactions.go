package api

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/txn"
)

// DescribeTransactions, key 65, version 0 (KIP-664): transactional ids that are
// coordinated here, with the partitions whose marker is not written yet.
func (d *Dispatcher) describeTransactions(c *call, req *kmsg.DescribeTransactionsRequest) {
	resp := kmsg.NewPtrDescribeTransactionsResponse()
	left := len(req.TransactionalIDs)
	if left == 0 {
		c.answer(resp)
		return
	}
	resp.TransactionStates = make([]kmsg.DescribeTransactionsResponseTransactionState, left)
	var mu sync.Mutex
	for i, id := range req.TransactionalIDs {
		d.describeTransaction(c, id, func(t txn.Description) {
			resp.TransactionStates[i] = describedTransaction(&t)
			mu.Lock()
			left--
			last := left == 0
			mu.Unlock()
			if last {
				c.answer(resp)
			}
		})
	}
}

// describeTransaction leaves out the partitions of topics that the client may not
// describe.
func (d *Dispatcher) describeTransaction(c *call, id string, reply func(txn.Description)) {
	if !d.mayTransaction(c, kmsg.ACLOperationDescribe, id) {
		reply(txn.Description{ID: id, Err: kerr.TransactionalIDAuthorizationFailed})
		return
	}
	d.deps.Transactions.Describe(id, func(t txn.Description) {
		rights := d.topicRights(c, kmsg.ACLOperationDescribe)
		t.Partitions = slices.DeleteFunc(slices.Clone(t.Partitions), func(tp txn.TopicPartition) bool { return !rights.allow(tp.Topic) })
		reply(t)
	})
}

func describedTransaction(t *txn.Description) kmsg.DescribeTransactionsResponseTransactionState {
	row := kmsg.NewDescribeTransactionsResponseTransactionState()
	row.TransactionalID = t.ID
	if t.Err != nil {
		row.ErrorCode, _ = code(t.Err)
		return row
	}
	row.State, row.TimeoutMillis, row.StartTimestamp = t.State.String(), t.TimeoutMs, t.StartMs
	row.ProducerID, row.ProducerEpoch = t.Producer.ID, t.Producer.Epoch
	for i, tp := range t.Partitions {
		if i == 0 || t.Partitions[i-1].Topic != tp.Topic {
			row.Topics = append(row.Topics, kmsg.DescribeTransactionsResponseTransactionStateTopic{Topic: tp.Topic})
		}
		topic := &row.Topics[len(row.Topics)-1]
		topic.Partitions = append(topic.Partitions, tp.Partition)
	}
	return row
}
