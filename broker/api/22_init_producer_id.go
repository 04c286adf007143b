package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// InitProducerID, key 22, versions 0 to 5.
//
//	2  flexible
//	3  the producer's present id and epoch (KIP-360)
//	4  PRODUCER_FENCED (before: INVALID_PRODUCER_EPOCH)
//	5  errors of KIP-890
//
// A producer without a transactional id gets a new id with epoch 0, whatever it
// had before.
//
// Not honoured: transactional ids. There is no transaction coordinator yet, so
// FindCoordinator names none; who asks all the same is
// told COORDINATOR_NOT_AVAILABLE.
func (d *Dispatcher) initProducerID(c *call, req *kmsg.InitProducerIDRequest) {
	switch {
	case (req.ProducerID == -1) != (req.ProducerEpoch == -1):
		c.answer(initProducerIDFailed(kerr.InvalidRequest))
	case req.TransactionalID == nil:
		d.work(c, func(ctx context.Context) { c.answer(d.nextProducerID(ctx)) })
	case *req.TransactionalID == "":
		c.answer(initProducerIDFailed(kerr.InvalidRequest))
	default:
		c.answer(initProducerIDFailed(kerr.CoordinatorNotAvailable))
	}
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
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	return resp
}
