package zkstate

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// A session is a lease: no server ends it before its timeout has passed since the last packet that reached one. When that was, the client cannot know; but a packet that was answered reached a
// server after it had left here. So the session cannot be over before the last answered packet left and the timeout has passed, by this process's monotonic clock, however long the process
// slept, the answer lay in a buffer, or the network was cut. Who ends another process's session sooner (EndSession) knows that process to be dead.

// lease is that of one session.
type lease struct{ left atomic.Pointer[time.Time] }

func (l *lease) extend(left time.Time) {
	for {
		known := l.left.Load()
		if known != nil && !left.After(*known) || l.left.CompareAndSwap(known, &left) {
			return
		}
	}
}

func (l *lease) runs(now time.Time, timeout time.Duration) bool {
	left := l.left.Load()
	return left != nil && now.Sub(*left) < timeout
}

// conversation tells which packets of one connection are answered. Answers may come in another order than the packets left; each is counted for the oldest that is open, so that the lease is
// at most too short.
type conversation struct {
	lease *lease

	mu   sync.Mutex
	open []time.Time // when the packets left that are not answered

	// Of the reader: what is known of the packet that is coming.
	head [packetHead]byte
	have int
	skip int
}

// A packet of a server begins with its length and the number of what it answers, or -1 if it tells of a watch. The first one of a connection has the version of the protocol there, which is 0.
const (
	packetHead   = 4 + 4
	notification = -1
)

func (c *conversation) leaves(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, now)
}

// comes takes the next bytes that a server sent.
func (c *conversation) comes(p []byte) {
	for len(p) > 0 {
		if n := min(c.skip, len(p)); n > 0 {
			c.skip -= n
			p = p[n:]
			continue
		}
		n := copy(c.head[c.have:], p)
		p = p[n:]
		if c.have += n; c.have < packetHead {
			return
		}
		c.have = 0
		c.skip = max(int(int32(binary.BigEndian.Uint32(c.head[:])))-4, 0)
		if int32(binary.BigEndian.Uint32(c.head[4:])) != notification {
			c.answered()
		}
	}
}

func (c *conversation) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) > 0 {
		c.lease.extend(c.open[0])
		c.open = c.open[1:]
	}
}

// Alive tells whether the session of a generation is the one of now and cannot be over yet. While it is, nobody else is elected in the place of a broker that is registered in it.
func (c *Client) Alive(generation int) bool {
	g := c.current()
	return g.number == generation && g.wire.alive(time.Now())
}
