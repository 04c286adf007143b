package netserver

import (
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/wire"
)

// deep takes as much stack as a produce request does on its way to the log.
//
//go:noinline
func deep(r *wire.Request) {
	var room [4500]byte
	echo(r)
	runtime.KeepAlive(&room)
}

func TestWaitingConnectionsKeepTheStackThatRequestsTake(t *testing.T) {
	const connections, stack = 200, 8 << 10
	s := start(t, testConfig(), handler{handle: deep})
	for range connections {
		c := dial(t, s)
		c.send([]byte("request"))
		c.receive()
	}
	for range 3 {
		runtime.GC() // one halves a stack at most once
	}
	stacks := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(stacks)
	require.GreaterOrEqual(t, stacks[0].Value.Uint64(), uint64(connections*stack))
}
