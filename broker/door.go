package broker

import (
	"errors"
	"sync/atomic"

	"barnabas/broker/wire"
)

// door keeps requests out until the broker is registered for the first time: their connections are closed, so that clients turn to another broker and a controller tries again.
//
// A process that was killed and started again is reached by the controller that still believes in the registration before: what that controller says, a few partitions that changed, would
// be all that this process knows, and clients would be told that a topic has two partitions of six. Without a registration of its own the process cannot tell by the broker epoch whom an
// order is meant for. Apache Kafka's brokers register before they read a single request.
//
// A session that is lost later closes no door: who was served goes on being served (H29).
type door struct {
	wire.Handler
	open atomic.Bool
}

var errNotRegistered = errors.New("this broker is not registered yet")

// Handle implements wire.Handler.
func (d *door) Handle(r *wire.Request) {
	if !d.open.Load() {
		r.Close(errNotRegistered)
		return
	}
	d.Handler.Handle(r)
}
