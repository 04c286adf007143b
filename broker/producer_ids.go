package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/zkstate"
)

// producerIDs hands out producer ids from blocks taken in ZooKeeper by compare-and-set. Kafka asks the controller for blocks since inter.broker.protocol.version 3.0; the controller
// takes them from the same znode in the same way, so both may go on side by side, and a broker needs no controller to give out ids.
type producerIDs struct {
	zk       *zkstate.Client
	brokerID int32

	mu struct {
		sync.Mutex
		next, last int64 // what is left of the block; next > last: nothing
	}
}

func newProducerIDs(zk *zkstate.Client, brokerID int32) *producerIDs {
	p := &producerIDs{zk: zk, brokerID: brokerID}
	p.mu.next, p.mu.last = 0, -1
	return p
}

// Next implements api.ProducerIDs.
func (p *producerIDs) Next(ctx context.Context) (int64, error) {
	if id, ok := p.take(); ok {
		return id, nil
	}
	// The lock is not held meanwhile: two callers may take a block each, and the rest of one is skipped.
	block, err := p.zk.AllocateProducerIDs(ctx, p.brokerID)
	if err != nil {
		return 0, retriable(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.next, p.mu.last = block.First+1, block.Last
	return block.First, nil
}

// retriable makes ZooKeeper's absence an error that producers wait out: the one that Kafka's brokers answer while they have no block (KIP-730). Anything unknown ends a producer for good.
func retriable(err error) error {
	for _, passing := range []error{zkstate.ErrConnectionLoss, zkstate.ErrSessionExpired, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, passing) {
			return fmt.Errorf("%w: %w", kerr.CoordinatorLoadInProgress, err)
		}
	}
	return err
}

func (p *producerIDs) take() (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.next > p.mu.last {
		return 0, false
	}
	p.mu.next++
	return p.mu.next - 1, true
}
