package netserver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/broker/wire"
)

func TestAMutedConnectionIsAnsweredAndNotRead(t *testing.T) {
	const pause = time.Second
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if string(r.Frame) == "too much" {
			r.Conn.Mute(time.Now().Add(pause))
			r.Conn.Mute(time.Now().Add(pause / 2)) // the longer one counts
		}
		echo(r)
	}})
	c, other := dial(t, s), dial(t, s)
	began := time.Now()
	c.send([]byte("too much"))
	c.send([]byte("next"))
	assert.Equal(t, "too much", string(c.receive()))
	other.send([]byte("other"))
	assert.Equal(t, "other", string(other.receive()))
	assert.Equal(t, "next", string(c.receive()))
	assert.GreaterOrEqual(t, time.Since(began), pause)
}

func TestAFrameThatWasBeingReadDoesNotHoldMemoryThroughAMute(t *testing.T) {
	parked := make(chan *wire.Request, 3)
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) { parked <- r }})
	c := dial(t, s)
	c.send([]byte("first"))
	first := <-parked // and the connection's goroutine goes on to read
	_, err := c.Write([]byte{0, 0, 0, 6, 's'})
	require.NoError(t, err)
	eventually(t, "the second frame begins", func() bool {
		s.conns.Lock()
		defer s.conns.Unlock()
		for c := range s.conns.open {
			return c.in.began.Load() != 0
		}
		return false
	})
	first.Conn.Mute(time.Now().Add(time.Hour))
	_, err = c.Write([]byte("econd"))
	require.NoError(t, err)
	c.send([]byte("third"))
	for _, r := range []*wire.Request{first, <-parked} {
		echo(r)
		c.receive()
	}
	assert.Empty(t, parked, "the third is not read")
}

func TestAMutedConnectionDoesNotHoldUpTheEnd(t *testing.T) {
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		r.Conn.Mute(time.Now().Add(time.Hour))
		echo(r)
	}})
	c := dial(t, s)
	c.send([]byte("x"))
	c.receive()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, s.Close(ctx), "nobody had to be cut off")
}
