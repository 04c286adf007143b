package txn

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// question is one verification on its way to a coordinator.
type question struct {
	req   *PartitionsRequest
	reply func([]error)
}

// Confirm asks the coordinator of a transactional id, wherever it is, whether
// partitions are part of the producer's transaction (KIP-890), and answers with an
// error or nil for each: TRANSACTION_ABORTABLE when it is not,
// INVALID_PRODUCER_EPOCH for a fenced producer, COORDINATOR_NOT_AVAILABLE and
// NETWORK_EXCEPTION while nobody can be asked, and those of Verify.
func (c *Coordinator) Confirm(req *PartitionsRequest, reply func([]error)) {
	told := func(errs []error) {
		for i, err := range errs {
			if errors.Is(err, kerr.ProducerFenced) {
				errs[i] = kerr.InvalidProducerEpoch // which producers expect from a leader
			}
		}
		reply(errs)
	}
	switch broker := c.cluster.Coordinator(c.PartitionFor(req.ID)); broker {
	case NoBroker:
		told(slices.Repeat([]error{kerr.CoordinatorNotAvailable}, len(req.Partitions)))
	case c.cfg.BrokerID:
		c.Verify(req, told)
	default:
		c.asked.add(broker, &question{req, told})
	}
}

// ask is one request of verifications to one broker.
func (c *Coordinator) ask(ctx context.Context, broker int32, items []*question) {
	reqs := make([]*PartitionsRequest, len(items))
	for i, q := range items {
		reqs[i] = q.req
	}
	for i, errs := range c.cluster.Verify(ctx, broker, reqs) {
		items[i].reply(errs)
	}
}
