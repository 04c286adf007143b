package console

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stream is a watcher.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	leave func()
}

func (s *served) watch(view string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+"/events?view="+view, nil)
	require.NoError(s.t, err)
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	assert.Equal(s.t, "no", resp.Header.Get("X-Accel-Buffering"))
	assert.Equal(s.t, "text/event-stream; charset=utf-8", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{s.t, lines, func() { cancel(); resp.Body.Close() }}
}

// until reads to a line that holds a text.
func (s *stream) until(text string) string {
	s.t.Helper()
	for s.lines.Scan() {
		if strings.Contains(s.lines.Text(), text) {
			return s.lines.Text()
		}
	}
	s.t.Fatalf("the stream ended without %q: %v", text, s.lines.Err())
	return ""
}

func TestARowChangesWhenABrokerStops(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	w := s.watch("/brokers")
	defer w.leave()
	w.until("event: seen")
	silent := threeBrokers()
	silent.Silent[3] = errors.New("connection refused")
	delete(silent.Views, 3)
	f.set(silent, nil)
	w.until("event: region")
	assert.Contains(t, w.until("data:"), "does not answer")
}

func TestAFailureIsToldAndTheStreamGoesOn(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	w := s.watch("/")
	defer w.leave()
	w.until("event: seen")
	f.set(nil, errors.New("unable to dial"))
	w.until("event: fault")
	w.until("unable to dial")
	f.set(threeBrokers(), nil)
	w.until("event: seen")
}

func TestOneLoopServesAllWhoWatchAViewAndEndsWithTheLast(t *testing.T) {
	s := serve(t, newFake(), nil)
	one, two := s.watch("/topics"), s.watch("/topics")
	one.until("event: seen")
	two.until("event: region")
	s.console.views.mu.Lock()
	assert.Len(t, s.console.views.byKey, 1)
	s.console.views.mu.Unlock()
	one.leave()
	two.leave()
	assert.Eventually(t, func() bool {
		s.console.views.mu.Lock()
		defer s.console.views.mu.Unlock()
		return len(s.console.views.byKey) == 0 && s.console.views.watchers == 0
	}, time.Minute, 10*time.Millisecond)
}

func TestTooManyWatchersAreToldToComeAgain(t *testing.T) {
	s := serve(t, newFake(), nil)
	s.console.views.mu.Lock()
	s.console.views.watchers = maxWatchers
	s.console.views.mu.Unlock()
	a := s.get("/events?view=/")
	assert.Equal(t, http.StatusServiceUnavailable, a.code)
	assert.NotEmpty(t, a.header.Get("Retry-After"))
	assert.Equal(t, http.StatusNotFound, s.get("/events?view=/topic/messages?name=orders").code, "what stands still cannot be watched")
	assert.Equal(t, http.StatusNotFound, s.get("/events?view=/nope").code)
}

func TestAWatcherWhoDoesNotTakeInIsDropped(t *testing.T) {
	c := &Console{}
	slow := make(chan message, 1)
	v := &view{latest: map[string]message{}, watchers: map[chan message]bool{slow: true}}
	c.tell(v, "verdict", message{"region", "one"})
	c.tell(v, "verdict", message{"region", "two"})
	assert.Empty(t, v.watchers)
	assert.Equal(t, "one", (<-slow).data)
	_, open := <-slow
	assert.False(t, open, "so that he comes back, and is told how things are")
	assert.Equal(t, "two", v.latest["verdict"].data)
}

func TestManyWhoAskAtOnceCostOneLook(t *testing.T) {
	s := serve(t, newFake(), nil)
	var one shared[int]
	looks, proceed := make(chan struct{}, 10), make(chan struct{})
	load := func(context.Context) (int, error) {
		looks <- struct{}{}
		<-proceed
		return 7, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answers := make(chan int, 10)
	for range 10 {
		go func() {
			n, _ := one.get(ctx, s.console, time.Minute, load)
			answers <- n
		}()
	}
	<-looks
	close(proceed)
	for range 10 {
		assert.Equal(t, 7, <-answers)
	}
	assert.Empty(t, looks)
	one.forget()
	_, err := one.get(ctx, s.console, time.Minute, load)
	require.NoError(t, err)
	assert.Len(t, looks, 1)
}

func TestAFailureIsNotKeptForLong(t *testing.T) {
	slow := shared[int]{took: time.Minute, err: errors.New("unable to dial")}
	assert.Equal(t, time.Second, slow.good(time.Second))
	slow.err = nil
	assert.Equal(t, longestRest, slow.good(time.Second))
}

func TestTheKeeperRestsWhenNobodyWasHereForLong(t *testing.T) {
	var k keeper
	k.running = true
	k.last = time.Now().Add(-keepAfter / 2)
	assert.False(t, k.rests())
	k.last = time.Now().Add(-2 * keepAfter)
	assert.True(t, k.rests())
	assert.False(t, k.running, "so that the next who comes starts another")
}
