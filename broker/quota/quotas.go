package quota

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Quotas holds clients to their limits. Its methods may be called from any goroutine.
type Quotas struct {
	windows, mutations Windows
	kinds              [kinds]held
	exempt             struct {
		sync.Mutex
		rate rate
	}
}

// held is one kind: the limits, and what those have taken who have one.
type held struct {
	limits atomic.Pointer[Limits] // nil: nobody has one; replaced as a whole

	mu struct {
		sync.Mutex
		clients crowd[Client]
	}
}

// shown are the windows of what limits nobody and is only shown: Kafka's metrics.num.samples and metrics.sample.window.ms.
var shown = Windows{Samples: 2, Size: 30 * time.Second}

// New returns Quotas without limits. Mutations have windows of their own.
func New(w, mutations Windows) *Quotas {
	q := &Quotas{windows: w, mutations: mutations}
	for i := range q.kinds {
		q.kinds[i].mu.clients = newCrowd[Client]()
	}
	return q
}

// windowsOf are those of a kind's rates.
func (q *Quotas) windowsOf(k Kind) Windows {
	if k == Mutation {
		return shown // what limits are the tokens
	}
	return q.windows
}

// Set puts the limits of a kind in force, in its units. What was counted stays counted. The map is kept.
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

// Took counts what a client has sent or used and returns how long it has to pause; 0 within its limit.
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
	r := &h.mu.clients.account(q.windowsOf(k), shared, now).rate
	r.add(q.windows, float64(n), now)
	perSecond, over := r.measure(q.windows, now)
	wait := pause(perSecond, limit, over)
	if wait > 0 && refusable {
		r.add(q.windows, -float64(n), now)
	}
	if k == Request { // one slow request shall not shut a client out for long
		wait = min(wait, q.windows.Size)
	}
	return wait
}

// Exempt counts the time of requests that no limit holds: those between brokers. It is only shown, and only while
// there is a limit on requests.
func (q *Quotas) Exempt(took time.Duration, now time.Time) {
	q.exempt.Lock()
	defer q.exempt.Unlock()
	q.exempt.rate.add(shown, float64(took), now)
}

// ExemptRate is how much of a goroutine's time exempt requests take, in percent.
func (q *Quotas) ExemptRate(now time.Time) float64 {
	q.exempt.Lock()
	defer q.exempt.Unlock()
	perSecond, _ := q.exempt.rate.measure(shown, now)
	return perSecond / Request.Unit()
}

// Paused takes note that a client was told to pause, for Rates.
func (q *Quotas) Paused(k Kind, c Client, pause time.Duration, now time.Time) {
	_, shared, found := q.limit(k, c)
	if !found {
		return
	}
	h := &q.kinds[k]
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.clients.account(q.windowsOf(k), shared, now).pauses.add(shown, float64(pause.Milliseconds()), now)
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
	PerSecond float64 // as configuration counts: of requests in percent
	Tokens    float64 // of mutations: how many more are allowed now
	PauseMs   float64 // of the pauses lately, on average; 0: there was none
}

// Rates are those of the clients that have a limit of a kind and were seen lately, in no order.
func (q *Quotas) Rates(k Kind, now time.Time) []Rate {
	h := &q.kinds[k]
	h.mu.Lock()
	defer h.mu.Unlock()
	w := q.windowsOf(k)
	all := make([]Rate, 0, len(h.mu.clients.accounts))
	for c, a := range h.mu.clients.accounts {
		limit, _, found := q.limit(k, c)
		if !found || a.idle(w, now) {
			continue
		}
		perSecond, _ := a.rate.measure(w, now)
		r := Rate{Client: c, PerSecond: max(0, perSecond) / k.Unit(), PauseMs: a.pauses.measure(shown, now)}
		if k == Mutation {
			a.tokens.fill(limit, q.mutations, now)
			r.Tokens = a.tokens.left
		}
		all = append(all, r)
	}
	return all
}
