package console

import (
	"net/netip"
	"sync"
	"time"
)

// tries holds back who guesses passwords: after a wrong one nothing that comes from the same place is looked at for a while, right or wrong. To let the guesser wait for an answer would not do: he
// knows a right password by its quick one, and need not wait for others. Who signs in from there too is told to come again in a second.
type tries struct {
	mu    sync.Mutex
	until map[netip.Prefix]time.Time // when passwords are looked at again
}

const (
	afterWrong  = 300 * time.Millisecond
	mostGuesser = 1024 // places that are held back at a time
)

// look has a password checked, unless its place is held back.
func (t *tries) look(from netip.Prefix, now time.Time, check func() bool) (right, looked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.until[from]) {
		return false, false
	}
	delete(t.until, from)
	if len(t.until) >= mostGuesser {
		for place, until := range t.until {
			if !now.Before(until) {
				delete(t.until, place)
			}
		}
		if len(t.until) >= mostGuesser {
			return false, false
		}
	}
	if !check() {
		t.until[from] = now.Add(afterWrong)
		return false, true
	}
	return true, true
}

// placeOf is whose guesses count together: an address, of IPv6 the network that one customer is given.
func placeOf(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	addr := at.Addr().Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	place, _ := addr.Prefix(bits) // the bits fit
	return place
}
