package netserver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/wire"
)

func TestASmallLateAnswerIsOutWhenReplyReturns(t *testing.T) {
	parked, behind := make(chan *wire.Request, 1), make(chan struct{})
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if string(r.Frame) == "park" {
			parked <- r
			return
		}
		echo(r)
		behind <- struct{}{}
	}})
	c := dial(t, s)
	for range 20 {
		c.send([]byte("park"))
		c.send([]byte("behind")) // once it is handled, the connection's goroutine has left the parked one
		r := <-parked
		<-behind
		sent := false // not shared: another goroutine that set it would be a race
		answer := framed([]byte("late"))
		answer.OnSent = func() { sent = true }
		r.Reply(answer)
		require.True(t, sent)
		require.Equal(t, "late", string(c.receive()))
		require.Equal(t, "behind", string(c.receive()))
	}
}
