package quota

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Quotas holds clients to their limits. Its methods may be called from any goroutine.
type Quotas struct {
	windows Windows
	kinds   [kinds]held
}

// held is one kind: the limits, and the rates of those who have one.
type held struct {
	limits atomic.Pointer[Limits] // nil: nobody has one; replaced as a whole

	mu struct {
		sync.Mutex
		rates   map[Client]*rate
		sweepAt int // so many rates that the idle ones are looked for
	}
}

const fewRates = 1000

// New returns Quotas without limits.
func New(w Windows) *Quotas {
	q := &Quotas{windows: w}
	for i := range q.kinds {
		q.kinds[i].mu.rates = map[Client]*rate{}
		q.kinds[i].mu.sweepAt = fewRates
	}
	return q
}

// Set puts the limits of a kind in force. What was counted stays counted. The map is kept.
func (q *Quotas) Set(k Kind, l Limits) {
	if len(l) == 0 {
		q.kinds[k].limits.Store(nil)
		return
	}
	q.kinds[k].limits.Store(&l)
}

// Any tells whether anybody has a limit of a kind.
func (q *Quotas) Any(k Kind) bool { return q.kinds[k].limits.Load() != nil }

func (q *Quotas) limit(k Kind, c Client) (limit float64, shared Client, found bool) {
	l := q.kinds[k].limits.Load()
	if l == nil {
		return 0, Client{}, false
	}
	return l.of(c)
}

// Took counts what a client has sent and returns how long it has to pause; 0 within its limit.
func (q *Quotas) Took(k Kind, c Client, n int64, now time.Time) time.Duration {
	return q.count(k, c, n, now, false)
}

// MayTake is Took for what has not been given yet: what would be too much is not counted, since it will not be given.
func (q *Quotas) MayTake(k Kind, c Client, n int64, now time.Time) time.Duration {
	return q.count(k, c, n, now, true)
}

func (q *Quotas) count(k Kind, c Client, n int64, now time.Time, refusable bool) time.Duration {
	limit, shared, found := q.limit(k, c)
	if !found {
		return 0
	}
	h := &q.kinds[k]
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rateLocked(q.windows, shared, now)
	r.add(q.windows, float64(n), now)
	perSecond, over := r.measure(q.windows, now)
	wait := pause(perSecond, limit, over)
	if wait > 0 && refusable {
		r.add(q.windows, -float64(n), now)
	}
	return wait
}

// rateLocked finds a client's rate or begins one. Clients choose their names, so rates that have run out are dropped as
// others come: one that is begun anew later says the same.
func (h *held) rateLocked(w Windows, c Client, now time.Time) *rate {
	if r := h.mu.rates[c]; r != nil {
		return r
	}
	if len(h.mu.rates) >= h.mu.sweepAt {
		for name, r := range h.mu.rates {
			if r.idle(w, now) {
				delete(h.mu.rates, name)
			}
		}
		h.mu.sweepAt = max(fewRates, 2*len(h.mu.rates))
	}
	r := &rate{}
	h.mu.rates[c] = r
	return r
}

// Most is the most that a client that took nothing lately can take at once without a pause, in bytes. To give more
// would be refused for ever.
func (q *Quotas) Most(k Kind, c Client) int64 {
	limit, _, found := q.limit(k, c)
	most := limit * (q.windows.whole() - q.windows.Size).Seconds()
	if !found || most >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(most)
}

// Rate is how much a client takes.
type Rate struct {
	Client    Client
	PerSecond float64
}

// Rates are those of the clients that have a limit of a kind and were seen lately, in no order.
func (q *Quotas) Rates(k Kind, now time.Time) []Rate {
	h := &q.kinds[k]
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Rate, 0, len(h.mu.rates))
	for c, r := range h.mu.rates {
		if r.idle(q.windows, now) {
			continue
		}
		perSecond, _ := r.measure(q.windows, now)
		all = append(all, Rate{Client: c, PerSecond: max(0, perSecond)})
	}
	return all
}
