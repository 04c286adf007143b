package netserver

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/wire"
)

func TestAListenerIsOpenedWhileOthersServe(t *testing.T) {
	s := start(t, testConfig(), handler{})
	before := dial(t, s)
	require.NoError(t, s.Open(Listener{Name: "MORE", Host: "127.0.0.1", Protocol: "PLAINTEXT"}))
	more := dialListener(t, s, "MORE")
	for _, c := range []*client{before, more} {
		c.send([]byte("asked"))
		require.Equal(t, "asked", string(c.receive()))
	}
	require.Error(t, s.Open(Listener{Name: "BUSY", Host: "127.0.0.1", Port: s.Addr("MORE").(*net.TCPAddr).Port, Protocol: "PLAINTEXT"}))
	require.Nil(t, s.Addr("BUSY"))
}

func TestAListenerIsShutWhileOthersServe(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	s := start(t, testConfig(), handler{handle: func(r *wire.Request) {
		if string(r.Frame) == "slow" {
			close(asked)
			<-answer
		}
		echo(r)
	}})
	require.NoError(t, s.Open(Listener{Name: "MORE", Host: "127.0.0.1", Protocol: "PLAINTEXT"}))
	stays, idle, busy := dial(t, s), dialListener(t, s, "MORE"), dialListener(t, s, "MORE")
	addr := s.Addr("MORE").String()
	idle.send([]byte("in"))
	require.Equal(t, "in", string(idle.receive()))
	busy.send([]byte("slow"))
	<-asked

	s.Shut("MORE")
	require.Nil(t, s.Addr("MORE"))
	_, err := net.Dial("tcp", addr)
	require.Error(t, err)
	idle.requireClosed()
	close(answer)
	require.Equal(t, "slow", string(busy.receive()), "what was asked is answered")
	busy.requireClosed()
	stays.send([]byte("still here"))
	require.Equal(t, "still here", string(stays.receive()))

	s.Shut("MORE") // it is gone
	require.NoError(t, s.Open(Listener{Name: "MORE", Host: "127.0.0.1", Protocol: "PLAINTEXT"}))
	again := dialListener(t, s, "MORE")
	again.send([]byte("again"))
	require.Equal(t, "again", string(again.receive()))
}

func TestBrokersAreMadeRoomForOnceThereIsAnotherListener(t *testing.T) {
	cfg := testConfig()
	cfg.Protected = []string{"TEST"}
	s := start(t, cfg, handler{})
	require.False(t, s.guests.protected("TEST"))
	require.NoError(t, s.Open(Listener{Name: "MORE", Host: "127.0.0.1", Protocol: "PLAINTEXT"}))
	require.True(t, s.guests.protected("TEST"))
	s.Shut("MORE")
	require.False(t, s.guests.protected("TEST"))
}

func TestAClosedServerOpensNothing(t *testing.T) {
	s, err := Listen(testConfig())
	require.NoError(t, err)
	s.Serve(handler{})
	require.NoError(t, s.Close(t.Context()))
	require.ErrorIs(t, s.Open(Listener{Name: "MORE", Host: "127.0.0.1", Protocol: "PLAINTEXT"}), errStopping)
}
