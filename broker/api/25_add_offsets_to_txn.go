package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
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
	if err := d.addOffsetsRefused(c, req); err != nil {
		resp := kmsg.NewPtrAddOffsetsToTxnResponse()
		resp.ErrorCode, _ = code(err)
		c.answer(resp)
		return
	}
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

func (d *Dispatcher) addOffsetsRefused(c *call, req *kmsg.AddOffsetsToTxnRequest) error {
	switch {
	case !d.mayTransaction(c, kmsg.ACLOperationWrite, req.TransactionalID):
		return kerr.TransactionalIDAuthorizationFailed
	case !d.mayGroup(c, kmsg.ACLOperationRead, req.Group):
		return kerr.GroupAuthorizationFailed
	}
	return nil
}
