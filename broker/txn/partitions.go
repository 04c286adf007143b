package txn

import "github.com/twmb/franz-go/pkg/kerr"

// AddPartitions makes partitions part of a producer's transaction, and begins one
// if there is none.
//
// Errors: INVALID_REQUEST for the empty id, INVALID_PRODUCER_ID_MAPPING,
// PRODUCER_FENCED, CONCURRENT_TRANSACTIONS while the last transaction is not
// completed, and those of the log.
func (c *Core) AddPartitions(nowMs int64, req *PartitionsRequest, reply func(error)) {
	t, err := c.of(req.ID, req.Producer)
	switch {
	case err != nil:
	case t.next != nil || t.now.state.decided():
		err = kerr.ConcurrentTransactions
	case t.now.state == Ongoing && t.now.hasAll(req.Partitions):
	default:
		next := t.now
		next.state, next.partitions, next.updateMs = Ongoing, t.now.with(req.Partitions), nowMs
		if t.now.state != Ongoing {
			next.startMs, t.openedMs = nowMs, nowMs
		}
		c.write(t, next, func(_ int64, err error) { c.answer(func() { reply(err) }) })
		return
	}
	c.answer(func() { reply(err) })
}

// Verify tells for each partition whether it is part of the producer's
// transaction (KIP-890): TRANSACTION_ABORTABLE if it is not.
func (c *Core) Verify(req *PartitionsRequest, reply func([]error)) {
	errs := make([]error, len(req.Partitions))
	t, err := c.of(req.ID, req.Producer)
	if err == nil && t.now.state.decided() {
		err = kerr.ConcurrentTransactions
	}
	for i, tp := range req.Partitions {
		switch {
		case err != nil:
			errs[i] = err
		case !t.now.has(tp):
			errs[i] = kerr.TransactionAbortable
		}
	}
	c.answer(func() { reply(errs) })
}

// of finds the id of a producer that has the present epoch.
func (c *Core) of(id string, p Producer) (*transaction, error) {
	if id == "" {
		return nil, kerr.InvalidRequest
	}
	t := c.ids[id]
	switch {
	case t == nil, t.now.producer.ID != p.ID:
		return nil, kerr.InvalidProducerIDMapping
	case t.now.producer.Epoch != p.Epoch:
		return nil, kerr.ProducerFenced
	}
	return t, nil
}
