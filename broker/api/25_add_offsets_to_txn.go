package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/txn"
)

// AddOffsetsToTxn, key 25, versions 0 to 4.
//
//	2  PRODUCER_FENCED (before: INVALID_PRODUCER_EPOCH)
//	3  flexible
//	4  errors of KIP-890
//
// The offsets of a group are in one partition of the offsets topic, which becomes
// part of the transaction.
func (d *Dispatcher) addOffsetsToTxn(c *call, req *kmsg.AddOffsetsToTxnRequest) {
	ask := &txn.PartitionsRequest{
		ID: req.TransactionalID, Producer: txn.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch},
		Partitions: []txn.TopicPartition{{Topic: offsetsTopic, Partition: d.deps.Groups.PartitionFor(req.Group)}},
	}
	d.deps.Transactions.AddPartitions(ask, func(err error) {
		d.faults("AddOffsetsToTxn", err)
		resp := kmsg.NewPtrAddOffsetsToTxnResponse()
		resp.ErrorCode, _ = code(fencedSince(err, req.Version, 2))
		c.answer(resp)
	})
}
