package txn

import (
	"fmt"

	"barnabas/broker/record"
)

// Loader gathers what the entries of a partition of __transaction_state say, from
// the first to the last, for a Core to begin with.
type Loader struct {
	limits record.Limits
	ids    map[string]status

	// Bad counts records that could not be read and are left out; First says of
	// the first of them why.
	Bad   int
	First error
	// Records counts all.
	Records int
}

// NewLoader returns a Loader that has seen nothing.
func NewLoader(l record.Limits) *Loader { return &Loader{limits: l, ids: map[string]status{}} }

// Add reads the next entry. A record that cannot be read is counted and left out:
// the other ids must not suffer.
func (l *Loader) Add(e record.Entry) {
	if e.IsControl() {
		return
	}
	for r, err := range e.Records(l.limits) {
		if err != nil {
			l.bad(e.LastOffset(), err)
			return
		}
		l.Records++
		if err := l.record(&r); err != nil {
			l.bad(r.Offset, err)
		}
	}
}

func (l *Loader) record(r *record.Record) error {
	id, err := readKey(r.Key)
	if err != nil {
		return err
	}
	if r.Value == nil {
		delete(l.ids, id)
		return nil
	}
	s, err := readValue(r.Value)
	if err != nil {
		return err
	}
	l.ids[id] = s
	return nil
}

func (l *Loader) bad(offset int64, err error) {
	if l.Bad++; l.First == nil {
		l.First = fmt.Errorf("offset %d: %w", offset, err)
	}
}

// Load implements coordinator.Loader.
func (l *Loader) Load(core *Core, nowMs int64) string {
	core.Loaded(nowMs, l)
	return fmt.Sprintf("%d transactional ids, %d records", len(core.ids), l.Records)
}

// Loaded takes over what a Loader gathered, all of which is committed. The Core
// must be new, and the Loader is not used again. Decisions that are found are
// carried out.
func (c *Core) Loaded(nowMs int64, l *Loader) {
	//purecore:anyorder each id for itself
	for id, s := range l.ids {
		c.ids[id] = &transaction{id: id, now: s, openedMs: min(s.startMs, nowMs)}
	}
	for _, t := range c.matching(func(t *transaction) bool { return t.now.state.decided() }) {
		c.mark(nowMs, t)
	}
	if l.Bad > 0 {
		c.remark("%d records of the transaction topic cannot be read and are left out; the first at %v", l.Bad, l.First)
	}
}
