package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/txn"
)

// InitProducerID, key 22, versions 0 to 5.
//
//	2  flexible
//	3  the producer's present id and epoch (KIP-360)
//	4  PRODUCER_FENCED (before: INVALID_PRODUCER_EPOCH)
//	5  errors of KIP-890
//
// A producer without a transactional id gets a new id with epoch 0, whatever it
// had before; one with a transactional id is the coordinator's business.
func (d *Dispatcher) initProducerID(c *call, req *kmsg.InitProducerIDRequest) {
	switch {
	case req.TransactionalID != nil && !d.mayTransaction(c, kmsg.ACLOperationWrite, *req.TransactionalID):
		c.answer(initProducerIDFailed(kerr.TransactionalIDAuthorizationFailed))
	case req.TransactionalID == nil && !d.mayWriteIdempotently(c):
		c.answer(initProducerIDFailed(kerr.ClusterAuthorizationFailed))
	case (req.ProducerID == txn.NoProducerID) != (req.ProducerEpoch == txn.NoProducerEpoch):
		c.answer(initProducerIDFailed(kerr.InvalidRequest))
	case req.TransactionalID == nil:
		d.work(c, func(ctx context.Context) { c.answer(d.nextProducerID(ctx)) })
	default:
		d.initTransactional(c, req)
	}
}

// mayWriteIdempotently asks for a right on the cluster, or, as since KIP-679, for one to
// write to any topic.
func (d *Dispatcher) mayWriteIdempotently(c *call) bool {
	if d.seesCluster(c, kmsg.ACLOperationIdempotentWrite) || d.deps.Authorizer.AllowsAny(*c.who, kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTopic) {
		return true
	}
	return d.mayCluster(c, kmsg.ACLOperationIdempotentWrite) // which says that it is denied
}

func (d *Dispatcher) initTransactional(c *call, req *kmsg.InitProducerIDRequest) {
	ask := &txn.InitRequest{ID: *req.TransactionalID, TimeoutMs: req.TransactionTimeoutMillis}
	if req.ProducerID != txn.NoProducerID {
		ask.Present = &txn.Producer{ID: req.ProducerID, Epoch: req.ProducerEpoch}
	}
	d.deps.Transactions.Init(ask, func(r txn.InitResult) {
		if r.Err != nil {
			d.faults("InitProducerID", r.Err)
			c.answer(initProducerIDFailed(fencedSince(r.Err, req.Version, 4)))
			return
		}
		resp := kmsg.NewPtrInitProducerIDResponse()
		resp.ProducerID, resp.ProducerEpoch = r.Producer.ID, r.Producer.Epoch
		c.answer(resp)
	})
}

// fencedSince is err as clients of a version know it: before PRODUCER_FENCED
// there was INVALID_PRODUCER_EPOCH (KIP-588).
func fencedSince(err error, version, first int16) error {
	if version < first && errors.Is(err, kerr.ProducerFenced) {
		return kerr.InvalidProducerEpoch
	}
	return err
}

func (d *Dispatcher) nextProducerID(ctx context.Context) *kmsg.InitProducerIDResponse {
	id, err := d.deps.ProducerIDs.Next(ctx)
	if err != nil {
		d.log.WithError(err).Warn("no producer id to give")
		return initProducerIDFailed(err)
	}
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp
}

func initProducerIDFailed(err error) *kmsg.InitProducerIDResponse {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ErrorCode, _ = code(err)
	resp.ProducerID, resp.ProducerEpoch = txn.NoProducerID, txn.NoProducerEpoch
	return resp
}
