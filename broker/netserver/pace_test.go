package netserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"

	"barnabas/broker/wire"
)

func TestComplaintsAreCountedWhenTheyAreTooMany(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	for range paceLines {
		allowed, skipped := p.allow(now)
		require.True(t, allowed)
		require.Zero(t, skipped)
	}
	for range 7 {
		allowed, _ := p.allow(now.Add(paceWindow - 1))
		require.False(t, allowed)
	}
	allowed, skipped := p.allow(now.Add(paceWindow))
	require.True(t, allowed)
	require.Equal(t, 7, skipped)
}

func TestWhyAClientWasTurnedAwayIsInTheLogHoweverQuicklyItGoes(t *testing.T) {
	log, hook := test.NewNullLogger()
	cfg := testConfig()
	cfg.Log = logrus.NewEntry(log)
	left := make(chan struct{})
	s := start(t, cfg, handler{
		handle: func(r *wire.Request) {
			answer := framed(r.Frame)
			answer.OnSent = func() { <-left } // the client reads the answer and goes, while its sender is held up
			r.FreeFrame()
			go r.ReplyLast(answer, errors.New("that was all"))
		},
		disconnected: func(*wire.Conn) { left <- struct{}{} },
	})
	const clients = paceLines / 2
	for range clients {
		c := dial(t, s)
		c.send([]byte("hello"))
		require.Equal(t, "hello", string(c.receive()))
		require.NoError(t, c.Close())
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, s.Close(ctx))
	told := 0
	for _, e := range hook.AllEntries() {
		if err, _ := e.Data[logrus.ErrorKey].(error); err != nil && err.Error() == "that was all" {
			told++
		}
	}
	require.Equal(t, clients, told)
}
