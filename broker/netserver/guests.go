package netserver

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

var (
	errStopping = errors.New("the server is stopping")
	errTooMany  = errors.New("too many connections from this address")
)

// guests counts connections against the two limits: over the total, newcomers wait; over that of one address,
// they are turned away.
type guests struct {
	limit, limitPerIP int // 0: none

	mu      sync.Mutex
	change  sync.Cond
	inside  int
	perIP   map[netip.Addr]int
	stopped bool
}

// connectionLimit is the limit on connections in force. Whatever is configured, a quarter of the descriptors that
// the process may have is not for connections: a flood of them must not keep a log from opening its next segment,
// which would take the whole directory out of service. 0 means no limit, and for descriptors that it is not known.
func connectionLimit(configured, descriptors int) int {
	if descriptors <= 0 {
		return configured
	}
	most := descriptors - descriptors/4
	if configured <= 0 {
		return most
	}
	return min(configured, most)
}

func newGuests(limit, limitPerIP int) *guests {
	g := &guests{limit: limit, limitPerIP: limitPerIP, perIP: make(map[netip.Addr]int)}
	g.change.L = &g.mu
	return g
}

// enter counts a connection in, waiting for room.
func (g *guests) enter(from netip.Addr) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limitPerIP > 0 && g.perIP[from] >= g.limitPerIP {
		return errTooMany
	}
	for g.limit > 0 && g.inside >= g.limit && !g.stopped {
		g.change.Wait()
	}
	if g.stopped {
		return errStopping
	}
	g.inside++
	g.perIP[from]++
	return nil
}

// full tells whether the next one has to wait.
func (g *guests) full() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limit > 0 && g.inside >= g.limit
}

// leave counts a connection out.
func (g *guests) leave(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.perIP[from]--; g.perIP[from] <= 0 {
		delete(g.perIP, from)
	}
	g.change.Broadcast()
}

// stop ends every wait.
func (g *guests) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	g.change.Broadcast()
}

func addressOf(socket net.Conn) netip.Addr {
	if tcp, ok := socket.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
