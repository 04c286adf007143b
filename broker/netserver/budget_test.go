package netserver

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/wire"
)

// held is what the budget has given out.
func (b *budget) held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

func waitInBackground(b *budget, c *claim, n int64, giveUp chan struct{}) chan error {
	result := make(chan error, 1)
	go func() { result <- b.wait(c, n, giveUp) }()
	return result
}

func (b *budget) queued() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting.Len()
}

func TestBudgetServesThoseWhoWaitInOrder(t *testing.T) {
	b := newBudget(100)
	var a, over, c, d claim
	require.True(t, b.take(&a, 90))
	require.False(t, b.take(&over, 20))
	require.NoError(t, b.wait(&over, 20, nil), "the first to wait goes beyond the limit")
	require.True(t, over.overdraft)
	second := waitInBackground(b, &c, 15, nil)
	eventually(t, "second waits", func() bool { return b.queued() == 1 })
	third := waitInBackground(b, &d, 1, nil)
	eventually(t, "third waits", func() bool { return b.queued() == 2 })
	require.True(t, b.take(&over, 1000), "the one with the overdraft never waits again")
	b.release(&a)
	b.release(&over)
	require.NoError(t, <-second)
	require.NoError(t, <-third)
	require.EqualValues(t, 16, b.held())
	b.release(&c)
	b.release(&d)
	require.Zero(t, b.held())
}

func TestBudgetForgetsThoseWhoGiveUp(t *testing.T) {
	b := newBudget(10)
	var a, over, c, d claim
	require.True(t, b.take(&a, 10))
	require.NoError(t, b.wait(&over, 1, nil))
	giveUp := make(chan struct{})
	quitter := waitInBackground(b, &c, 8, giveUp)
	eventually(t, "it waits", func() bool { return b.queued() == 1 })
	behind := waitInBackground(b, &d, 2, nil)
	eventually(t, "another waits behind it", func() bool { return b.queued() == 2 })
	close(giveUp)
	require.ErrorIs(t, <-quitter, errGivenUp)
	b.release(&over)
	require.NoError(t, <-behind)
	b.release(&a)
	b.release(&d)
	b.release(&c)
	require.Zero(t, b.held())
}

func TestReadingPausesWhileMemoryIsShort(t *testing.T) {
	cfg := testConfig()
	cfg.QueuedMaxBytes = 10_000
	held := make(chan *wire.Request, 10)
	s := start(t, cfg, handler{handle: func(r *wire.Request) { held <- r }})
	var clients []*client
	for i := range 4 {
		c := dial(t, s)
		c.send(append([]byte{byte(i)}, make([]byte, 5_999)...))
		clients = append(clients, c)
		if i < 2 { // the second on the overdraft
			eventually(t, "it is read", func() bool { return len(held) == i+1 })
		}
	}
	first, second := <-held, <-held
	eventually(t, "two wait", func() bool { return s.memory.queued() == 2 })
	require.Empty(t, held)
	require.EqualValues(t, 12_000, s.memory.held())
	for _, r := range []*wire.Request{first, second, nil, nil} {
		if r == nil {
			r = <-held
		}
		from := r.Frame[0]
		echo(r)
		require.Len(t, clients[from].receive(), 6_000)
	}
	eventually(t, "all is given back", func() bool { return s.memory.held() == 0 })
}

func TestManyHalfReadFramesDoNotBlockEachOther(t *testing.T) {
	cfg := testConfig()
	cfg.QueuedMaxBytes = 300_000
	s := start(t, cfg, handler{handle: func(r *wire.Request) { r.Reply(framed(nil)) }})
	const each = 1_000_000 // beyond the whole budget
	var clients []*client
	for range 6 {
		c := dial(t, s)
		_, err := c.Write(binary.BigEndian.AppendUint32(nil, each))
		require.NoError(t, err)
		clients = append(clients, c)
	}
	for _, c := range clients {
		go func() { _, _ = c.Write(make([]byte, each)) }()
	}
	for _, c := range clients {
		require.Empty(t, c.receive())
	}
	eventually(t, "all is given back", func() bool { return s.memory.held() == 0 })
}

func TestStalledSendersLoseTheirMemoryToThoseWhoWait(t *testing.T) {
	cfg := testConfig()
	cfg.QueuedMaxBytes = 2 * firstPiece
	s := start(t, cfg, handler{})
	var stalled []*client
	for range 3 { // two fill the budget, one has the overdraft
		c := dial(t, s)
		_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, 10*firstPiece), 'x'))
		require.NoError(t, err)
		stalled = append(stalled, c)
	}
	eventually(t, "memory is gone", func() bool { return s.memory.held() == 3*firstPiece })
	waiting := dial(t, s)
	waiting.send([]byte("my turn?"))
	eventually(t, "one waits", s.memory.short)
	s.endStalled(time.Now().Add(stallAfter / 2))
	require.Equal(t, 4, s.Connections(), "not yet")
	s.endStalled(time.Now().Add(stallAfter + time.Second))
	require.Equal(t, "my turn?", string(waiting.receive()))
	for _, c := range stalled {
		c.requireClosed()
	}
}

// Else producers that wait for followers could hold all memory, and the followers' fetches would find none.
func TestARequestThatWaitsCanGiveItsMemoryBack(t *testing.T) {
	cfg := testConfig()
	cfg.QueuedMaxBytes = 10_000
	parked := make(chan *wire.Request, 10)
	s := start(t, cfg, handler{handle: func(r *wire.Request) {
		if len(r.Frame) < 100 {
			echo(r)
			return
		}
		r.FreeFrame()
		r.FreeFrame()
		parked <- r
	}})
	producer, follower := dial(t, s), dial(t, s)
	for range cap(parked) {
		producer.send(make([]byte, 9_000))
	}
	eventually(t, "all are handled", func() bool { return len(parked) == cap(parked) })
	require.Zero(t, s.memory.held())
	follower.send([]byte("fetch"))
	require.Equal(t, "fetch", string(follower.receive()))
	for range cap(parked) {
		r := <-parked
		r.Reply(framed([]byte("acked")))
		r.FreeFrame()
		require.Equal(t, "acked", string(producer.receive()))
	}
	require.Zero(t, s.memory.held())
}
