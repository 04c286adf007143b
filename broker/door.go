package broker

import (
	"errors"
	"sync"

	"barnabas/broker/wire"
)

// door keeps requests waiting until the broker is registered for the first time, which follows at once when it has begun to listen.
//
// A process that was killed and started again is reached by the controller that still believes in the registration before: what that controller says, a few partitions that changed, would
// be all that this process knows, and clients would be told that a topic has two partitions of six. Without a registration of its own the process cannot tell by the broker epoch whom an
// order is meant for. Apache Kafka's brokers register before they read a single request. To close connections instead would be no kindness: clients take that for a listener with TLS.
//
// A session that is lost later closes no door: who was served goes on being served (H29).
type door struct {
	wire.Handler
	opened, shut signal
}

func newDoor() *door { return &door{opened: newSignal(), shut: newSignal()} }

func (d *door) open()  { d.opened.close() }
func (d *door) close() { d.shut.close() }

// signal is a channel that may be closed more than once.
type signal struct {
	done  chan struct{}
	close func()
}

func newSignal() signal {
	done := make(chan struct{})
	return signal{done, sync.OnceFunc(func() { close(done) })}
}

var errNotRegistered = errors.New("this broker stops before it was registered")

// Handle implements wire.Handler.
func (d *door) Handle(r *wire.Request) {
	select {
	case <-d.opened.done:
		d.Handler.Handle(r)
		return
	default:
	}
	select {
	case <-d.opened.done:
		d.Handler.Handle(r)
	case <-d.shut.done:
		r.Close(errNotRegistered)
	}
}
