package partition

import "time"

// What a leader knows from the fetches of the others about its being the leader, and about what a next one would have. A clean election chooses from the ISR; the maximal one is asked, as for
// the high watermark.

// seen tells whether all other members of the ISR have fetched here since a moment. Whoever has another leader does not: so there was none at that moment. A leader that is alone in the ISR
// needs no witness, as nobody else may be elected.
func (c *core) seen(since time.Time) bool {
	if c.role != roleLeader || c.foreign() {
		return false
	}
	for i := range c.remotes {
		if r := &c.remotes[i]; c.counts(r.id) && !r.lastFetch.After(since) {
			return false
		}
	}
	return true
}

// held tells whether all members of the ISR have the log up to an offset, even if they are fewer than the topic asks for: no clean election loses it.
func (c *core) held(upTo int64) bool {
	if c.role != roleLeader || c.foreign() {
		return false
	}
	for i := range c.remotes {
		if r := &c.remotes[i]; c.counts(r.id) && r.end.Offset < upTo {
			return false
		}
	}
	return true
}

// LedAfter tells whether this replica is known to have been the leader after a moment: see core.seen.
func (p *Partition) LedAfter(moment time.Time) bool {
	return p.witness(func(c *core) bool { return c.seen(moment) })
}

// Held tells whether this replica leads and no clean election loses its log up to an offset: see core.held.
func (p *Partition) Held(upTo int64) bool {
	return p.witness(func(c *core) bool { return c.held(upTo) })
}

func (p *Partition) witness(asked func(*core) bool) bool {
	p.role.RLock()
	defer p.role.RUnlock()
	if p.role.dead != nil {
		return false
	}
	p.state.Lock()
	defer p.state.Unlock()
	return asked(&p.state.core)
}
