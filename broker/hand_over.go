package broker

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// handOver asks the controller to move leaderships away (controlled shutdown), as often as configured.
func (b *Broker) handOver(ctx context.Context) {
	retries := b.values.Int("controlled.shutdown.max.retries")
	for attempt := int64(0); ; attempt++ {
		remaining, err := b.askToStop(ctx)
		if err == nil && remaining == 0 {
			return
		}
		if err != nil {
			b.log.WithError(err).Warn("controlled shutdown was not possible")
		} else {
			b.log.Warnf("controlled shutdown: %d partitions are still led from here", remaining)
		}
		if attempt >= retries {
			b.log.Warn("stopping without handing everything over; the controller will see this broker's session end")
			return
		}
		if !b.registeredAfter(ctx, b.values.Millis("controlled.shutdown.retry.backoff.ms")) {
			return
		}
	}
}

// registeredAfter waits, and tells whether it is worth asking the controller again: without a registration there is nothing to hand over, since the others see this broker gone.
func (b *Broker) registeredAfter(ctx context.Context, pause time.Duration) bool {
	over := time.NewTimer(pause)
	defer over.Stop()
	look := time.NewTicker(lookForRegistration)
	defer look.Stop()
	for b.epoch.Load() != noBrokerEpoch {
		select {
		case <-look.C:
		case <-over.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return false
}

func (b *Broker) askToStop(ctx context.Context) (remaining int, err error) {
	req := kmsg.NewPtrControlledShutdownRequest()
	req.BrokerID, req.BrokerEpoch = b.brokerID, b.epoch.Load()
	ctx, cancel := context.WithTimeout(ctx, b.values.Millis("controller.socket.timeout.ms"))
	defer cancel()
	answer, err := b.peers.askController(ctx, req, 3)
	if err != nil {
		return 0, err
	}
	resp := answer.(*kmsg.ControlledShutdownResponse)
	return len(resp.PartitionsRemaining), kerr.ErrorForCode(resp.ErrorCode)
}
