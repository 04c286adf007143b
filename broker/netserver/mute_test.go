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
	assert.Less(t, time.Since(began), pause, "the answer does not wait")
	other.send([]byte("other"))
	assert.Equal(t, "other", string(other.receive()))
	assert.Equal(t, "next", string(c.receive()))
	assert.GreaterOrEqual(t, time.Since(began), pause)
}

func TestARequestThatWasBeingReadWaitsForTheEndOfAMute(t *testing.T) {
	const pause = 200 * time.Millisecond
	parked := make(chan *wire.Request, 2)
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) { parked <- r }})
	c := dial(t, s)
	c.send([]byte("first"))
	first := <-parked // and the connection's goroutine goes on to read
	muted := time.Now()
	first.Conn.Mute(muted.Add(pause))
	c.send([]byte("second"))
	echo(first)
	assert.Equal(t, "first", string(c.receive()))
	second := <-parked
	assert.GreaterOrEqual(t, time.Since(muted), pause)
	echo(second)
	c.receive()
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
