package zkstate

import "sync"

// Subscription is one consumer's queue of events.
type Subscription struct {
	out    chan Event
	wake   chan struct{} // holds one token while the queue may have something
	done   chan struct{}
	ending sync.Once
	client *Client

	mu struct {
		sync.Mutex
		queue   []Event
		waiting map[Event]struct{} // the node events in queue
	}
}

// Subscribe delivers every event from now on, in order, to one consumer. Nothing is dropped: node events that are
// still undelivered are merged when they are equal, so a slow consumer costs no more memory than it has watches.
func (c *Client) Subscribe() *Subscription {
	s := &Subscription{out: make(chan Event), wake: make(chan struct{}, 1), done: make(chan struct{}), client: c}
	s.mu.waiting = map[Event]struct{}{}
	c.mu.Lock()
	if c.mu.closed {
		s.ending.Do(func() { close(s.done) })
	} else {
		c.mu.subscriptions[s] = struct{}{}
	}
	// Counted under mu, so that Close either sees the subscription or refuses it.
	c.stopped.Add(1)
	c.mu.Unlock()
	go s.pump()
	return s
}

// C is where the events arrive; it closes with the client or the subscription.
func (s *Subscription) C() <-chan Event { return s.out }

// Close ends the subscription.
func (s *Subscription) Close() {
	s.ending.Do(func() { close(s.done) })
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	delete(s.client.mu.subscriptions, s)
}

func (s *Subscription) push(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Path != "" {
		if _, ok := s.mu.waiting[e]; ok {
			return
		}
		s.mu.waiting[e] = struct{}{}
	}
	s.mu.queue = append(s.mu.queue, e)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Subscription) pop() (Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.queue) == 0 {
		s.mu.queue = nil
		return Event{}, false
	}
	e := s.mu.queue[0]
	s.mu.queue = s.mu.queue[1:]
	delete(s.mu.waiting, e)
	return e, true
}

func (s *Subscription) pump() {
	defer s.client.stopped.Done()
	defer close(s.out)
	for {
		e, ok := s.pop()
		if !ok {
			select {
			case <-s.wake:
				continue
			case <-s.done:
				return
			}
		}
		select {
		case s.out <- e:
		case <-s.done:
			return
		}
	}
}
