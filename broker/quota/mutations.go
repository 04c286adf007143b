package quota

import (
	"math"
	"time"
)

// bucket has a token for each partition that may be created or deleted at once, and fills up steadily. The last that was
// taken may have overdrawn it. A rate would not do: what goes over it at once stays in the window, and would be paid for
// much longer than it took (KIP-599).
type bucket struct {
	left       float64
	at, fullAt time.Time
}

// fill brings the bucket up to now. A new one is full: windows times the limit.
func (b *bucket) fill(limit float64, w Windows, now time.Time) {
	full := limit * w.whole().Seconds()
	if b.at.IsZero() {
		b.left = full
	} else {
		b.left = min(full, b.left+limit*max(0, now.Sub(b.at).Seconds()))
	}
	b.at = now
}

// take takes tokens out of a filled bucket.
func (b *bucket) take(n, limit float64, w Windows) {
	b.left -= n
	missing := w.whole()
	if limit > 0 {
		missing = seconds(limit*w.whole().Seconds()-b.left, limit)
	}
	b.fullAt = b.at.Add(missing)
}

// pause is how long the client has to wait until nothing is overdrawn. At a limit of nothing that would be for ever; it is
// refused all the same if it comes back after a window.
func (b *bucket) pause(limit float64, w Windows) time.Duration {
	switch {
	case b.left >= 0:
		return 0
	case limit <= 0:
		return w.whole()
	}
	return seconds(-b.left, limit)
}

// seconds is how long so many tokens take to come, to the millisecond and as far as a field of 32 bits has them.
func seconds(tokens, limit float64) time.Duration {
	return time.Duration(min(math.Round(tokens/limit*1000), math.MaxInt32)) * time.Millisecond
}

// Mutations are the partitions that one request creates or deletes. It is used by one goroutine at a time; nil is a
// client without a limit.
type Mutations struct {
	quotas *Quotas
	client Client
	strict bool
	pause  time.Duration // as of
	at     time.Time
}

// Mutations begins with a request. A strict one is refused what it asks for while the client owes tokens; another is given
// it and has to pause.
func (q *Quotas) Mutations(c Client, strict bool) *Mutations {
	if !q.Any(Mutation) {
		return nil
	}
	return &Mutations{quotas: q, client: c, strict: strict}
}

// Take counts n partitions and tells whether they may be touched.
func (m *Mutations) Take(n int, now time.Time) bool {
	if m == nil {
		return true
	}
	q := m.quotas
	limit, shared, found := q.limit(Mutation, m.client)
	if !found {
		return true
	}
	h := &q.kinds[Mutation]
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.mu.clients.account(shown, shared, now)
	a.tokens.fill(limit, q.mutations, now)
	if m.strict && a.tokens.left < 0 {
		m.pause, m.at = a.tokens.pause(limit, q.mutations), now
		return false
	}
	a.tokens.take(float64(n), limit, q.mutations)
	a.rate.add(shown, float64(n), now)
	if !m.strict {
		m.pause, m.at = a.tokens.pause(limit, q.mutations), now
	}
	return true
}

// Pause is how long the client still has to pause: the answer may come long after.
func (m *Mutations) Pause(now time.Time) time.Duration {
	if m == nil {
		return 0
	}
	return max(0, m.pause-now.Sub(m.at))
}
