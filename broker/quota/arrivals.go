package quota

import (
	"maps"
	"math"
	"net/netip"
	"sync"
	"time"
)

// ArrivalLimits are how many connections may come per second.
type ArrivalLimits struct {
	Broker    float64            // on all listeners that are not protected; infinite: no limit [max.connection.creation.rate]
	Listeners map[string]float64 // on each of them; none: no limit [listener.name.X.max.connection.creation.rate]
}

// AddressLimits are how many connections may come per second from an address (KIP-612).
type AddressLimits struct {
	Any *float64 // from each that has none of its own; nil: no limit [connection_creation_rate of the default ip]
	Own map[netip.Addr]float64
}

func (l AddressLimits) of(from netip.Addr) (float64, bool) {
	if own, found := l.Own[from]; found {
		return own, true
	}
	if l.Any != nil {
		return *l.Any, true
	}
	return 0, false
}

// Arrivals holds new connections to their limits: a listener that has too many waits before it takes the next, and an
// address that has too many is turned away. A connection that was turned away for its address counts nowhere. Its
// methods may be called from any goroutine.
type Arrivals struct {
	windows Windows

	mu struct {
		sync.Mutex
		limits    ArrivalLimits
		addresses AddressLimits
		broker    rate
		listeners map[string]*gate
		from      crowd[netip.Addr]
	}
}

// gate is what came by one listener.
type gate struct {
	came                rate
	waits, turnedAwayMs average
}

// NewArrivals returns Arrivals without limits.
func NewArrivals(w Windows) *Arrivals {
	a := &Arrivals{windows: w}
	a.mu.limits.Broker = math.Inf(1)
	a.mu.listeners = map[string]*gate{}
	a.mu.from = newCrowd[netip.Addr]()
	return a
}

// Limit puts limits of broker and listeners in force. What waits already waits as long as it was told.
func (a *Arrivals) Limit(l ArrivalLimits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.limits = l
}

// LimitAddresses puts limits of addresses in force. What was counted of addresses that keep a limit stays counted.
func (a *Arrivals) LimitAddresses(l AddressLimits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.addresses = l
	maps.DeleteFunc(a.mu.from.accounts, func(from netip.Addr, _ *account) bool {
		_, limited := l.of(from)
		return !limited
	})
}

func (a *Arrivals) gateLocked(listener string) *gate {
	g := a.mu.listeners[listener]
	if g == nil {
		g = &gate{}
		a.mu.listeners[listener] = g
	}
	return g
}

// Came counts a connection that has come by a listener and returns how long the listener waits until it takes it. A
// protected listener is held by its own limit alone.
func (a *Arrivals) Came(listener string, protected bool, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.gateLocked(listener)
	var wait time.Duration
	if !protected {
		wait = a.countLocked(&a.mu.broker, a.mu.limits.Broker, now)
	}
	limit, limited := a.mu.limits.Listeners[listener]
	if !limited {
		limit = math.Inf(1)
	}
	wait = max(wait, a.countLocked(&g.came, limit, now))
	if wait > 0 {
		g.waits.add(shown, float64(wait.Milliseconds()), now)
	}
	return wait
}

// countLocked counts one connection; the wait is at most one sample, as with requests.
func (a *Arrivals) countLocked(r *rate, limit float64, now time.Time) time.Duration {
	r.add(a.windows, 1, now)
	perSecond, over := r.measure(a.windows, now)
	return min(pause(perSecond, limit, over), a.windows.Size)
}

// From asks whether a connection that Came may come in from its address. If not, it is taken back out of all counts,
// and it should be closed after the time returned: a client that is refused at once would come again at once.
func (a *Arrivals) From(listener string, protected bool, from netip.Addr, now time.Time) (turnedAway time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit, limited := a.mu.addresses.of(from)
	if !limited {
		return 0
	}
	r := &a.mu.from.account(a.windows, from, now).rate
	turnedAway = a.countLocked(r, limit, now)
	if turnedAway > 0 {
		g := a.gateLocked(listener)
		g.turnedAwayMs.add(shown, float64(turnedAway.Milliseconds()), now)
		r.add(a.windows, -1, now)
		g.came.add(a.windows, -1, now)
		if !protected {
			a.mu.broker.add(a.windows, -1, now)
		}
	}
	return turnedAway
}

// ArrivalRates is what is shown of Arrivals, in connections per second.
type ArrivalRates struct {
	Broker    float64
	Listeners map[string]GateRate
	Addresses map[netip.Addr]float64 // those that have a limit and came lately
}

// GateRate is what is shown of one listener.
type GateRate struct {
	PerSecond    float64
	WaitMs       float64 // of the listener's waits lately, on average; 0: there was none
	TurnedAwayMs float64 // of the times after which connections were closed for their address, on average; 0: there was none
}

// Rates are those of now.
func (a *Arrivals) Rates(now time.Time) ArrivalRates {
	a.mu.Lock()
	defer a.mu.Unlock()
	perSecond := func(r *rate) float64 {
		n, _ := r.measure(a.windows, now)
		return max(0, n)
	}
	rates := ArrivalRates{Broker: perSecond(&a.mu.broker), Listeners: map[string]GateRate{}, Addresses: map[netip.Addr]float64{}}
	for name, g := range a.mu.listeners {
		rates.Listeners[name] = GateRate{PerSecond: perSecond(&g.came), WaitMs: g.waits.measure(shown, now), TurnedAwayMs: g.turnedAwayMs.measure(shown, now)}
	}
	for from, account := range a.mu.from.accounts {
		if !account.idle(a.windows, now) {
			rates.Addresses[from] = perSecond(&account.rate)
		}
	}
	return rates
}
