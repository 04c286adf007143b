package controller

import (
	"errors"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

// allocateProducerIDs is AllocateProducerIds (api 67): the next block of ids, by compare-and-set on the znode, since
// brokers of an older inter.broker.protocol.version take blocks from it by themselves. A block whose write has an
// unclear outcome may be lost, but is never given twice.
func (c *Core) allocateProducerIDs(id uint64, req *kmsg.AllocateProducerIDsRequest) error {
	switch b := c.cluster.brokers[req.BrokerID]; {
	case b == nil:
		c.answer(id, refusal(req, kerr.BrokerIDNotRegistered))
		return nil
	case b.epoch != req.BrokerEpoch:
		c.answer(id, refusal(req, kerr.StaleBrokerEpoch))
		return nil
	}
	for {
		block, write, err := c.nextProducerIDs(req.BrokerID)
		if err != nil {
			return err
		}
		results, err := c.batch(ZKBatch{Ops: []zkstate.Op{write}, Fence: c.cluster.epochVersion})
		switch {
		case err != nil:
			return err
		case results[0].Err == nil:
			resp := req.ResponseKind().(*kmsg.AllocateProducerIDsResponse)
			resp.ProducerIDStart, resp.ProducerIDLen = block.First, zkstate.ProducerIDBlockSize
			c.answer(id, resp)
			return nil
		case errors.Is(results[0].Err, zkstate.ErrBadVersion), errors.Is(results[0].Err, zkstate.ErrNodeExists),
			errors.Is(results[0].Err, zkstate.ErrNoNode), errors.Is(results[0].Err, zkstate.ErrConnectionLoss):
		default:
			return results[0].Err
		}
	}
}

// nextProducerIDs reads the last block given out and makes the write that takes the one after it.
func (c *Core) nextProducerIDs(broker int32) (zkstate.ProducerIDBlock, zkstate.Op, error) {
	next := zkstate.ProducerIDBlock{Broker: broker, First: 0, Last: zkstate.ProducerIDBlockSize - 1}
	results, err := c.read(zkstate.Get(zkstate.ProducerIDBlockPath))
	if err != nil {
		return next, zkstate.Op{}, err
	}
	switch r := results[0]; {
	case errors.Is(r.Err, zkstate.ErrNoNode):
		return next, zkstate.Create(zkstate.ProducerIDBlockPath, next.Encode()), nil
	case r.Err != nil:
		return next, zkstate.Op{}, r.Err
	case len(r.Data) > 0: // made empty by a broker that starts
		last, err := zkstate.DecodeProducerIDBlock(r.Data)
		if err != nil {
			return next, zkstate.Op{}, err
		}
		if last.Last > math.MaxInt64-zkstate.ProducerIDBlockSize {
			return next, zkstate.Op{}, zkstate.ErrProducerIDsExhausted
		}
		next.First, next.Last = last.Last+1, last.Last+zkstate.ProducerIDBlockSize
	}
	return next, zkstate.Set(zkstate.ProducerIDBlockPath, next.Encode(), results[0].Stat.Version), nil
}
