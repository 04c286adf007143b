package txn

import (
	"context"
	"sync"
)

// perRequest bounds what goes to a broker at once.
const perRequest = 1000

// outbox gathers what is to be sent to each broker. One request is underway to a
// broker at a time; what comes meanwhile goes together in the next.
type outbox[T any] struct {
	ctx  context.Context
	send func(ctx context.Context, broker int32, items []T)
	key  func(T) string // of which a request has each only once; nil: all may go together

	tasks sync.WaitGroup
	mu    struct {
		sync.Mutex
		waiting map[int32][]T // a broker that has an entry has a goroutine
		closed  bool
	}
}

func newOutbox[T any](ctx context.Context, send func(context.Context, int32, []T), key func(T) string) *outbox[T] {
	o := &outbox[T]{ctx: ctx, send: send, key: key}
	o.mu.waiting = map[int32][]T{}
	return o
}

// add sends an item soon. After close it is sent with an ended context, at once.
func (o *outbox[T]) add(broker int32, item T) {
	o.mu.Lock()
	if o.mu.closed {
		o.mu.Unlock()
		o.send(o.ctx, broker, []T{item})
		return
	}
	waiting, running := o.mu.waiting[broker]
	o.mu.waiting[broker] = append(waiting, item)
	if !running {
		o.tasks.Go(func() { o.run(broker) })
	}
	o.mu.Unlock()
}

// run sends what waits for a broker until nothing does.
func (o *outbox[T]) run(broker int32) {
	for {
		items := o.next(broker)
		if len(items) == 0 {
			return
		}
		o.send(o.ctx, broker, items)
	}
}

func (o *outbox[T]) next(broker int32) []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting := o.mu.waiting[broker]
	if len(waiting) == 0 {
		delete(o.mu.waiting, broker)
		return nil
	}
	var items, rest []T
	taken := map[string]bool{}
	for _, item := range waiting {
		if len(items) == perRequest || o.key != nil && taken[o.key(item)] {
			rest = append(rest, item)
			continue
		}
		if o.key != nil {
			taken[o.key(item)] = true
		}
		items = append(items, item)
	}
	o.mu.waiting[broker] = rest
	return items
}

// close waits until all is answered; the context must have ended.
func (o *outbox[T]) close() {
	o.mu.Lock()
	o.mu.closed = true
	o.mu.Unlock()
	o.tasks.Wait()
}
