package kerberos

import (
	"crypto/sha256"
	"sync"
	"time"
)

// Replays remembers what clients have shown for as long as it could be shown again (RFC 4120, 3.2.3): who overhears a request cannot use it. It holds what came with a good ticket alone.
type Replays struct {
	mu            sync.Mutex
	began         time.Time
	young, former map[[sha256.Size]byte]struct{} // of the current span of time, and of the one before
}

// seen notes what was shown at now, and tells whether it had been before. Each is remembered for span at least, and for twice that at most.
func (r *Replays) seen(shown []byte, now time.Time, span time.Duration) bool {
	id := sha256.Sum256(shown)
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := now.Sub(r.began); age > span {
		r.former = r.young
		if age > 2*span {
			r.former = nil
		}
		r.young, r.began = map[[sha256.Size]byte]struct{}{}, now
	}
	_, young := r.young[id]
	_, former := r.former[id]
	r.young[id] = struct{}{}
	return young || former
}
