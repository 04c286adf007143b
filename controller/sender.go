package controller

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Sender delivers control requests. The broker's composition implements it with its connections to other brokers.
type Sender interface {
	// Send delivers one request and calls done exactly once, from any goroutine, maybe before it returns. The request
	// carries its version. There is never more than one request in flight to one Endpoint.
	Send(to Endpoint, req kmsg.Request, done func(kmsg.Response, error))
	// Forget says that nothing more is sent to this endpoint: a connection may be closed, and a request in flight
	// should fail soon.
	Forget(to Endpoint)
}

const (
	retryMin = 100 * time.Millisecond
	retryMax = time.Second
)

// lane is the queue of requests to one registration of one broker: one in flight, in order, repeated until it is
// answered or the lane is closed. Control requests are idempotent, so repeating one after a lost answer is right.
type lane struct {
	sender   Sender
	answered func(kmsg.Request, kmsg.Response)
	finished sync.WaitGroup

	mu struct {
		sync.Mutex
		to     Endpoint
		queue  []kmsg.Request
		closed bool
	}
	wake chan struct{} // one token: the queue or closed changed
	done chan struct{} // closed with the lane
}

func newLane(to Endpoint, sender Sender, answered func(kmsg.Request, kmsg.Response)) *lane {
	l := &lane{sender: sender, answered: answered, wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.mu.to = to
	l.finished.Go(l.run)
	return l
}

func (l *lane) endpoint() Endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.to
}

// move changes the address for what is sent from now on.
func (l *lane) move(to Endpoint) {
	l.mu.Lock()
	old := l.mu.to
	l.mu.to = to
	l.mu.Unlock()
	if old != to {
		l.sender.Forget(old)
	}
}

func (l *lane) add(req kmsg.Request) {
	l.mu.Lock()
	if !l.mu.closed {
		l.mu.queue = append(l.mu.queue, req)
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// close drops what waits; wait returns when the lane's goroutine has ended.
func (l *lane) close() {
	l.mu.Lock()
	already := l.mu.closed
	l.mu.closed = true
	l.mu.queue = nil
	to := l.mu.to
	l.mu.Unlock()
	if !already {
		close(l.done)
		l.sender.Forget(to)
	}
}

func (l *lane) wait() { l.finished.Wait() }

// head is the request to send next.
func (l *lane) head() (kmsg.Request, Endpoint, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed || len(l.mu.queue) == 0 {
		return nil, Endpoint{}, false
	}
	return l.mu.queue[0], l.mu.to, true
}

func (l *lane) pop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.queue) > 0 {
		l.mu.queue = l.mu.queue[1:]
	}
}

func (l *lane) run() {
	type answer struct {
		resp kmsg.Response
		err  error
	}
	backoff := retryMin
	for {
		req, to, ok := l.head()
		if !ok {
			select {
			case <-l.wake:
				continue
			case <-l.done:
				return
			}
		}
		answers := make(chan answer, 1)
		l.sender.Send(to, req, func(resp kmsg.Response, err error) { answers <- answer{resp, err} })
		select {
		case <-l.done:
			return
		case a := <-answers:
			if a.err == nil {
				l.pop()
				backoff = retryMin
				l.answered(req, a.resp)
				continue
			}
		}
		select {
		case <-l.done:
			return
		case <-time.After(backoff):
			backoff = min(2*backoff, retryMax)
		}
	}
}
