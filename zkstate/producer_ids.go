package zkstate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
)

// Producer ids are given out in blocks; /latest_producer_id_block holds the latest. Before
// inter.broker.protocol.version 3.0 each broker takes its blocks here, since then the controller does for all.

// ProducerIDBlockPath is the node of the latest block.
const ProducerIDBlockPath = "/latest_producer_id_block"

// ProducerIDBlockSize is how many ids a block has.
const ProducerIDBlockSize = 1000

// ErrProducerIDsExhausted is the answer when 64 bits are used up.
var ErrProducerIDsExhausted = errors.New("all producer ids are used up")

// ProducerIDBlock is the data of ProducerIDBlockPath: First to Last are given to Broker.
type ProducerIDBlock struct {
	Broker      int32
	First, Last int64
}

// Encode writes the node.
func (b ProducerIDBlock) Encode() []byte {
	var w jsonWriter
	w.open('{')
	w.key("version")
	w.int(1)
	w.key("broker")
	w.int(int64(b.Broker))
	w.key("block_start")
	w.str(fmt.Sprint(b.First))
	w.key("block_end")
	w.str(fmt.Sprint(b.Last))
	w.close('}')
	return w.buf
}

// DecodeProducerIDBlock reads the node.
func DecodeProducerIDBlock(data []byte) (ProducerIDBlock, error) {
	o := parseObject("producer id block", data)
	b := ProducerIDBlock{Broker: o.int32("broker"), First: o.number("block_start"), Last: o.number("block_end")}
	if o.err == nil && (b.First < 0 || b.Last < b.First) {
		o.fail("block_end", errors.New("before block_start"))
	}
	return b, o.wrapped()
}

// after is the block that follows.
func (b ProducerIDBlock) after(broker int32) (ProducerIDBlock, error) {
	if b.Last > math.MaxInt64-ProducerIDBlockSize {
		return ProducerIDBlock{}, ErrProducerIDsExhausted
	}
	return ProducerIDBlock{Broker: broker, First: b.Last + 1, Last: b.Last + ProducerIDBlockSize}, nil
}

// AllocateProducerIDs takes the next block for a broker, by compare-and-set: no two callers, and no Kafka broker beside
// them, ever get the same id. A block whose answer was lost is taken when it is found to be ours, and else skipped.
func (c *Client) AllocateProducerIDs(ctx context.Context, broker int32) (ProducerIDBlock, error) {
	for {
		r, err := c.One(ctx, Get(ProducerIDBlockPath))
		if errors.Is(err, ErrNoNode) {
			if err := c.CreateRecursive(ctx, ProducerIDBlockPath, nil); err != nil {
				return ProducerIDBlock{}, err
			}
			continue
		}
		if err != nil {
			return ProducerIDBlock{}, err
		}
		next, err := nextBlock(r.Data, broker)
		if err != nil {
			return ProducerIDBlock{}, err
		}
		_, err = c.One(ctx, Set(ProducerIDBlockPath, next.Encode(), r.Stat.Version))
		if errors.Is(err, ErrConnectionLoss) && ctx.Err() == nil {
			err = c.readBackBlock(ctx, next, r.Stat.Version+1)
		}
		if !errors.Is(err, ErrBadVersion) {
			return next, err
		}
	}
}

func nextBlock(data []byte, broker int32) (ProducerIDBlock, error) {
	latest := ProducerIDBlock{Last: -1} // there was no block yet
	if len(data) > 0 {
		var err error
		if latest, err = DecodeProducerIDBlock(data); err != nil {
			return ProducerIDBlock{}, err
		}
	}
	return latest.after(broker)
}

// readBackBlock tells whether a write whose answer was lost took effect. The version alone does not say so, since
// somebody else may have made it; version and bytes together do, because the bytes name the broker, and no two
// processes with one broker id are registered at a time.
func (c *Client) readBackBlock(ctx context.Context, want ProducerIDBlock, version int32) error {
	if _, err := c.One(ctx, Sync(ProducerIDBlockPath)); err != nil {
		return err
	}
	r, err := c.One(ctx, Get(ProducerIDBlockPath))
	if err != nil {
		return err
	}
	if r.Stat.Version == version && bytes.Equal(r.Data, want.Encode()) {
		return nil
	}
	return ErrBadVersion
}
