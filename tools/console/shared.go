package console

import (
	"context"
	"sync"
	"time"
)

// shared is something that many ask for at once and that is worth asking brokers for only now and then: whoever comes while it is being read waits for that, and what was read is good for a
// while. A cluster so large that reading takes long is read less often, so that the console never takes more than a part of its brokers' time.
type shared[T any] struct {
	mu      sync.Mutex
	value   T
	err     error
	read    time.Time // when the value had come
	took    time.Duration
	reading chan struct{} // closed when the reading under way has ended; nil: none is
}

const (
	restAfterReading = 4 // times what the reading took
	longestRest      = 15 * time.Second
	readTime         = 30 * time.Second
)

// get returns what is at most so old. load runs on a goroutine of its own, with a context that ends with running rather than with whoever happened to ask first.
func (s *shared[T]) get(ctx context.Context, c *Console, oldest time.Duration, load func(ctx context.Context) (T, error)) (T, error) {
	s.mu.Lock()
	if s.reading == nil && !s.read.IsZero() && time.Since(s.read) < s.good(oldest) {
		defer s.mu.Unlock()
		return s.value, s.err
	}
	if s.reading == nil {
		reading := make(chan struct{})
		if !c.crew.start(func() { s.load(c.running, reading, load) }) {
			defer s.mu.Unlock()
			return s.value, context.Canceled
		}
		s.reading = reading
	}
	done := s.reading
	s.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, s.err
}

// good is for how long what was read will do. A failure may have taken long, and is tried again as soon as somebody wants to know.
func (s *shared[T]) good(oldest time.Duration) time.Duration {
	if s.err != nil {
		return oldest
	}
	return max(oldest, min(restAfterReading*s.took, longestRest))
}

func (s *shared[T]) load(running context.Context, reading chan struct{}, load func(ctx context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(running, readTime)
	defer cancel()
	began := time.Now()
	value, err := load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.err, s.read, s.took = value, err, time.Now(), time.Since(began)
	close(reading)
	s.reading = nil
}

// forget makes the next who asks read anew, such as after a change.
func (s *shared[T]) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = time.Time{}
}
