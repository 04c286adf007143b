package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/txn"
)

// EndTxn, key 26, versions 0 to 4.
//
//	2  PRODUCER_FENCED (before: INVALID_PRODUCER_EPOCH)
//	3  flexible
//	4  errors of KIP-890
//
// The answer says that the decision is in the log; readers see it when the markers
// have reached their partitions.
func (d *Dispatcher) endTxn(c *call, req *kmsg.EndTxnRequest) {
	if !d.mayTransaction(c, kmsg.ACLOperationWrite, req.TransactionalID) {
		resp := kmsg.NewPtrEndTxnResponse()
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		c.answer(resp)
		return
	}
	ask := &txn.EndRequest{ID: req.TransactionalID, Producer: txn.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}, Commit: req.Commit}
	d.deps.Transactions.End(ask, func(err error) {
		d.faults("EndTxn", err)
		resp := kmsg.NewPtrEndTxnResponse()
		resp.ErrorCode, _ = code(fencedSince(err, req.Version, 2))
		c.answer(resp)
	})
}
