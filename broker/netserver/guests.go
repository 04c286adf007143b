package netserver

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"barnabas/broker/quota"
)

var (
	errStopping = errors.New("the server is stopping")
	errTooMany  = errors.New("too many connections from this address")
)

// turnedAway is what becomes of a connection whose address opens them too fast: it is closed after a while.
type turnedAway struct{ after time.Duration }

func (t *turnedAway) Error() string {
	return fmt.Sprintf("too many new connections from this address: closed after %v", t.after)
}

// Unlimited is the number of a limit that is none, as Kafka writes it.
const Unlimited = math.MaxInt32

// Limits are how many connections there may be at a time. Names in brackets are those of Kafka's broker settings.
type Limits struct {
	Connections int                // on all listeners; on top of it come those of protected ones [max.connections]
	OnListener  map[string]int     // on one; a listener that is not there has no limit of its own [listener.name.X.max.connections]
	PerIP       int                // from each address [max.connections.per.ip]
	FromIP      map[netip.Addr]int // from addresses that are exceptions to it [max.connections.per.ip.overrides]
}

// guests counts connections against the limits: over those of all, of a listener and of time, newcomers wait; over those
// of one address, they are turned away.
//
// A protected listener, that between brokers, is let in over the limit of all: clients of other listeners make room for
// it (KIP-402). The order in which limits are asked, and what counts for which, is Kafka's.
type guests struct {
	between  map[string]bool // the listeners between brokers, protected where there are others
	arrivals *quota.Arrivals
	// Of the descriptors that the process may have: total are for connections, protected ones may take some more.
	total, ceiling int
	stopping       chan struct{}

	mu         sync.Mutex
	change     sync.Cond
	limits     Limits
	listeners  int
	inside     int
	onListener map[string]int
	perIP      map[netip.Addr]int
	stopped    bool
}

// newGuests counts from none; descriptors 0 means that their limit is not known.
func newGuests(cfg Config, descriptors int) *guests {
	g := &guests{
		between: map[string]bool{}, arrivals: cfg.Arrivals, limits: cfg.Limits, total: Unlimited, ceiling: Unlimited,
		stopping: make(chan struct{}), onListener: make(map[string]int), perIP: make(map[netip.Addr]int),
	}
	for _, name := range cfg.Protected {
		g.between[name] = true
	}
	// Whatever is configured, descriptors are left that are not for connections: a flood of them must not keep a log from
	// opening its next segment, which would take the whole directory out of service.
	if descriptors > 0 {
		g.total, g.ceiling = descriptors-descriptors/4, descriptors-descriptors/8
	}
	g.change.L = &g.mu
	return g
}

// among tells how many listeners there are.
func (g *guests) among(listeners int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listeners = listeners
	g.change.Broadcast()
}

// protected tells whether others make room for a listener.
func (g *guests) protected(listener string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.protectedLocked(listener)
}

// protectedLocked tells whether others make room for a listener. Where it is the only one, there is nobody to do so.
func (g *guests) protectedLocked(listener string) bool { return g.listeners > 1 && g.between[listener] }

// enter counts a connection in. It waits for its time and for room.
func (g *guests) enter(listener string, from netip.Addr) error {
	protected := g.protected(listener)
	if wait := g.arrivals.Came(listener, protected, time.Now()); wait > 0 {
		over := time.NewTimer(wait)
		select {
		case <-over.C:
		case <-g.stopping:
			over.Stop()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.roomLocked(listener) && !g.stopped {
		g.change.Wait()
	}
	if g.stopped {
		return errStopping
	}
	if after := g.arrivals.From(listener, protected, from, time.Now()); after > 0 {
		return &turnedAway{after}
	}
	most, exception := g.limits.FromIP[from]
	if !exception {
		most = g.limits.PerIP
	}
	if g.perIP[from] >= most {
		return errTooMany
	}
	g.inside++
	g.onListener[listener]++
	g.perIP[from]++
	return nil
}

func (g *guests) roomLocked(listener string) bool {
	if most, limited := g.limits.OnListener[listener]; limited && g.onListener[listener] >= most {
		return false
	}
	if g.protectedLocked(listener) {
		return g.inside < g.ceiling
	}
	return g.inside < g.mostLocked()
}

// mostLocked is how many may be inside.
func (g *guests) mostLocked() int { return min(g.limits.Connections, g.total) }

// full tells whether the next one by a listener has to wait.
func (g *guests) full(listener string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.roomLocked(listener)
}

// crowded tells whether more are inside than may be, and how many that is.
func (g *guests) crowded() (most int, crowded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	most = g.mostLocked()
	return most, g.inside > most
}

// leave counts a connection out.
func (g *guests) leave(listener string, from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.onListener[listener]--
	if g.perIP[from]--; g.perIP[from] <= 0 {
		delete(g.perIP, from)
	}
	g.change.Broadcast()
}

// limit puts other limits in force.
func (g *guests) limit(l Limits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits = l
	g.change.Broadcast()
}

// stop ends every wait.
func (g *guests) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	close(g.stopping)
	g.change.Broadcast()
}

func addressOf(socket net.Conn) netip.Addr {
	if tcp, ok := socket.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
