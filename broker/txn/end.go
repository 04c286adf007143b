package txn

import (
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
)

// End commits or aborts a producer's transaction. It is answered when the decision
// is in the log; the markers follow. A repeated request is answered with success
// once the transaction is complete.
//
// Errors: INVALID_REQUEST for the empty id, INVALID_PRODUCER_ID_MAPPING,
// PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE without a
// transaction and for the other direction, and those of the log.
func (c *Core) End(nowMs int64, req *EndRequest, reply func(error)) {
	t, err := c.of(req.ID, req.Producer)
	switch {
	case err != nil:
	case t.next != nil || t.now.state.decided():
		err = kerr.ConcurrentTransactions
	case t.now.state == Ongoing && req.Commit:
		c.decide(nowMs, t, PrepareCommit, func(err error) { c.answer(func() { reply(err) }) })
		return
	case t.now.state == Ongoing:
		c.decide(nowMs, t, PrepareAbort, func(err error) { c.answer(func() { reply(err) }) })
		return
	case t.now.state == CompleteCommit && req.Commit, t.now.state == CompleteAbort && !req.Commit:
	default:
		err = kerr.InvalidTxnState
	}
	c.answer(func() { reply(err) })
}

// decide writes the decision, and sends the markers when it is committed.
func (c *Core) decide(nowMs int64, t *transaction, to State, done func(error)) {
	next := t.now
	next.state, next.updateMs = to, nowMs
	c.write(t, next, func(nowMs int64, err error) {
		done(err)
		if err == nil {
			c.mark(nowMs, t)
		}
	})
}

// fence aborts an open transaction under the next epoch, so that its producer can
// do nothing more. The epoch is raised at once: even if the log cannot be written
// now, what it was raised to may be found there later.
func (c *Core) fence(nowMs int64, t *transaction, done func(error)) {
	mustFollow(t.id, t.now.state, PrepareEpochFence)
	mustFollow(t.id, PrepareEpochFence, PrepareAbort)
	if !t.failedFence && t.now.producer.Epoch < math.MaxInt16 {
		t.now.producer.Epoch++
	}
	t.now.last.Epoch = NoProducerEpoch
	c.decide(nowMs, t, PrepareAbort, func(err error) {
		t.failedFence = err != nil
		if err != nil {
			c.remark("fencing the producer of %q: its epoch is %d now, which may not be in the log: %v", t.id, t.now.producer.Epoch, err)
		}
		done(err)
	})
}

// AbortTimedOut aborts the transactions that are open for longer than their
// producers asked for. It returns how many.
func (c *Core) AbortTimedOut(nowMs int64) int {
	late := c.matching(func(t *transaction) bool {
		return t.now.state == Ongoing && t.next == nil && nowMs-t.openedMs > int64(t.now.timeoutMs)
	})
	for _, t := range late {
		c.fence(nowMs, t, func(error) {}) // the next search comes to what failed
		c.remark("%q has a transaction open since %d ms, its timeout is %d ms: aborted", t.id, nowMs-t.openedMs, t.now.timeoutMs)
	}
	return len(late)
}

// Expire forgets ids that nobody has used for transactional.id.expiration.ms. It
// returns how many.
func (c *Core) Expire(nowMs int64) int {
	idle := c.matching(func(t *transaction) bool {
		return t.now.state.mayExpire() && t.next == nil && nowMs-t.now.updateMs >= c.cfg.IDExpirationMs
	})
	for _, t := range idle {
		mustFollow(t.id, t.now.state, Dead)
		next := t.now
		next.state = Dead
		c.append(t, next, nil, func(_ int64, err error) {
			if err == nil {
				delete(c.ids, t.id)
			}
		})
	}
	return len(idle)
}
