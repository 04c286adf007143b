package txn

import (
	"github.com/twmb/franz-go/pkg/kerr"
)

// Init gives a transactional id its producer id and the next epoch. An open
// transaction is aborted first; who asks is told CONCURRENT_TRANSACTIONS and asks
// again until that is done.
//
// Errors: INVALID_REQUEST for the empty id, INVALID_TRANSACTION_TIMEOUT,
// CONCURRENT_TRANSACTIONS, PRODUCER_FENCED when another producer came in between,
// and those of the log.
func (c *Core) Init(nowMs int64, req *InitRequest, reply func(InitResult)) {
	c.init(nowMs, req, NoProducerID, reply)
}

// Identified goes on with a request that needed a producer id.
func (c *Core) Identified(nowMs int64, w *Wanted, id int64, err error) {
	switch {
	case c.gone:
		c.failInit(w.reply, kerr.NotCoordinator)
	case err != nil:
		c.failInit(w.reply, err)
	default:
		c.init(nowMs, w.req, id, w.reply)
	}
}

func (c *Core) failInit(reply func(InitResult), err error) {
	c.answer(func() { reply(InitResult{Err: err, Producer: Producer{NoProducerID, NoProducerEpoch}}) })
}

// init does it. fresh is a producer id that was asked for, NoProducerID at first.
func (c *Core) init(nowMs int64, req *InitRequest, fresh int64, reply func(InitResult)) {
	switch {
	case req.ID == "":
		c.failInit(reply, kerr.InvalidRequest)
		return
	case req.TimeoutMs <= 0 || req.TimeoutMs > c.cfg.MaxTimeoutMs:
		c.failInit(reply, kerr.InvalidTransactionTimeout)
		return
	}
	t := c.ids[req.ID]
	if t == nil {
		if fresh == NoProducerID {
			c.out.Wanted = append(c.out.Wanted, &Wanted{req, reply})
			return
		}
		t = &transaction{id: req.ID, now: status{
			producer: Producer{fresh, NoProducerEpoch}, last: Producer{NoProducerID, NoProducerEpoch},
			timeoutMs: req.TimeoutMs, state: Empty, startMs: NoTime, updateMs: nowMs,
		}}
		c.ids[t.id] = t
	}
	switch {
	case t.next != nil || t.now.state.decided():
		c.failInit(reply, kerr.ConcurrentTransactions)
	case req.Present != nil && !t.accepts(*req.Present):
		c.failInit(reply, kerr.ProducerFenced)
	case t.now.state == Ongoing:
		c.fence(nowMs, t, func(err error) {
			if err == nil {
				err = kerr.ConcurrentTransactions
			}
			c.failInit(reply, err)
		})
	case t.mustRotate(req) && fresh == NoProducerID:
		c.out.Wanted = append(c.out.Wanted, &Wanted{req, reply})
	default:
		c.renew(nowMs, t, req, fresh, reply)
	}
}

func (c *Core) renew(nowMs int64, t *transaction, req *InitRequest, fresh int64, reply func(InitResult)) {
	next, err := t.renewed(nowMs, req, fresh)
	if err != nil {
		c.failInit(reply, err)
		return
	}
	c.write(t, next, func(_ int64, err error) {
		if err != nil {
			c.failInit(reply, err)
			return
		}
		c.answer(func() { reply(InitResult{Producer: next.producer}) })
	})
}
