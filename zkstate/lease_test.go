package zkstate

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// packet is what a server sends about what has a number.
func packet(xid int32, body int) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(4+body))
	return append(binary.BigEndian.AppendUint32(p, uint32(xid)), make([]byte, body)...)
}

func TestASessionIsALeaseFromWhenItsLastAnsweredPacketLeft(t *testing.T) {
	const timeout = 6 * time.Second
	began := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	var l lease
	c := conversation{lease: &l}
	require.False(t, l.runs(at(0), timeout), "nothing was answered yet")
	c.leaves(at(0))
	c.comes(packet(0, 32)) // the session is confirmed
	require.True(t, l.runs(at(5), timeout))
	require.False(t, l.runs(at(6), timeout))

	c.leaves(at(1))
	c.comes(packet(notification, 40))
	require.False(t, l.runs(at(6), timeout), "a watch says nothing of what was received")
	answer := packet(-2, 8)
	c.comes(answer[:5])
	require.False(t, l.runs(at(6), timeout), "half an answer")
	c.comes(answer[5:])
	require.True(t, l.runs(at(6), timeout), "however late the answer comes, it counts from when the packet left")
	require.False(t, l.runs(at(7), timeout))

	c.leaves(at(2))
	c.leaves(at(4))
	c.comes(append(packet(9, 100), packet(notification, 0)...))
	require.False(t, l.runs(at(8), timeout), "the first answer is counted for the first packet")
	c.comes(packet(8, 3))
	require.True(t, l.runs(at(9), timeout))

	next := conversation{lease: &l} // the connection is lost, and what was open on it
	next.leaves(at(3))
	next.comes(packet(0, 32))
	require.True(t, l.runs(at(9), timeout), "an earlier packet does not shorten it")
	next.comes(packet(7, 0))
	require.False(t, l.runs(at(10), timeout), "an answer to nothing is none")
}
