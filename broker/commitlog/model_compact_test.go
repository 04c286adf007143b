package commitlog

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// compact runs a cleaning, alone or beside other work, with a map that holds all keys or some, and sometimes cuts the power
// in it.
func (m *model) compact() {
	m.clock.advance(time.Duration(2+m.rng.IntN(1500)) * time.Millisecond)
	segments, now := m.places(), m.nowMs()
	bound, worthIt := m.plain.cleanable(segments, m.log.LastStableOffset(), now, m.config.MinCompactionLagMs)
	room, beside := int64(1<<20), 0
	switch m.rng.IntN(4) {
	case 0:
		room = offsetMapEntry * int64(4+m.rng.IntN(30))
	case 1:
		beside = 1 + m.rng.IntN(3)
	}
	alone, letGo := beside == 0, m.hold()
	truncations, ops := m.log.truncations.Load(), m.fs.Ops()
	m.note("compact to %d with room for %d, %d beside it", bound, room/offsetMapEntry, beside)
	worked := m.m.cleanPaced(room, func(int64) error {
		if beside > 0 && m.rng.IntN(3) == 0 {
			beside--
			m.meanwhile()
		}
		return nil
	})
	letGo()
	require.NoError(m.t, m.log.CleanerError(), "%v", m.trace)
	require.Equal(m.t, worthIt && m.config.CleanupCompact, worked, "%v", m.trace)
	if !worked {
		return
	}
	overtaken, upTo := m.log.truncations.Load() != truncations, m.log.cleaned.Load()
	if overtaken {
		upTo = bound
	}
	require.LessOrEqual(m.t, upTo, bound, "%v", m.trace)
	require.Greater(m.t, upTo, m.plain.cleanTo(), "%v", m.trace)
	require.True(m.t, upTo == bound || room < 1<<20, "%v", m.trace)
	states := m.cleanings(cleaning{
		segments: segments, upTo: upTo, nowMs: now, retainMs: m.config.DeleteRetentionMs, isLast: m.lastOfEach(),
	})
	if overtaken {
		m.counts["overtaken"]++
		m.adopt(states[1:])
		return
	}
	before := m.plain
	m.plain = states[0]
	m.settled("after a compaction")
	m.requireLatest()
	m.count(&before, upTo < bound)
	if alone && m.rng.IntN(5) == 0 {
		m.counts["interrupted"]++
		m.plain = before
		m.crashAt(ops+1+m.rng.IntN(m.fs.Ops()-ops), states)
		m.requireLatest()
		return
	}
	m.synced = max(m.synced, bound)
}

// meanwhile is what others do to a log that is being compacted. Producers with a state are left out: whether an earlier
// batch of theirs stays depends on when the cleaning asks.
func (m *model) meanwhile() {
	switch m.rng.IntN(6) {
	case 0, 1:
		m.produce(0)
	case 2:
		m.commit()
	case 3:
		m.note("roll")
		require.NoError(m.t, roll(m.log))
	case 4:
		m.note("sweep")
		m.m.sweep()
	default:
		m.truncate()
	}
}

// hold reads something committed and keeps it; what it returns requires that the bytes are still there, and lets go of them.
func (m *model) hold() (letGo func()) {
	from := m.plain.start + m.rng.Int64N(m.plain.high-m.plain.start+1)
	r, err := m.log.Read(from, ReadOptions{MaxBytes: 2000, MinOneBatch: true, UpTo: m.plain.high})
	require.NoError(m.t, err, "%v", m.trace)
	before, err := r.Range.ReadAll()
	require.NoError(m.t, err)
	return func() {
		after, err := r.Range.ReadAll()
		require.NoError(m.t, err)
		require.Equal(m.t, before, after, "what a reader holds has changed: %v", m.trace)
		r.Range.Release()
	}
}

// lastOfEach tells which batches hold the last sequence of their producer, or, when no batch is known, a marker of it.
func (m *model) lastOfEach() func(plainHeader) bool {
	states := map[int64]int32{}
	for _, s := range m.log.ProducerStates() {
		states[s.ProducerID] = s.LastSequence
	}
	last := map[int64]int64{}
	for _, b := range m.plain.journal {
		if s, known := states[b.pid]; known && !b.control && b.lastSeq == s {
			last[b.pid] = b.base
		}
	}
	return func(h plainHeader) bool {
		base, known := last[h.pid]
		if !known {
			_, known = states[h.pid]
			return known && h.control
		}
		return base == h.base
	}
}

// cleanings are the states that a cleaning may leave when it is cut off: done and noted, done, done up to one segment after
// the other, from the last one to the first.
func (m *model) cleanings(c cleaning) []plainLog {
	c.untouched = m.plain.end
	var bases []int64
	for _, s := range c.segments {
		if s.base >= c.upTo {
			c.untouched = min(c.untouched, s.base)
		} else {
			bases = append(bases, s.base)
		}
	}
	done := m.plain
	done.clean(c)
	states := []plainLog{done}
	for i := len(bases); i >= 0; i-- {
		upTo := c.untouched
		if i < len(bases) {
			upTo = bases[i]
		}
		partly := m.plain
		partly.decided = done.decided
		partly.batches = nil
		for _, b := range done.batches {
			if b.base < upTo {
				partly.batches = append(partly.batches, b)
			}
		}
		for _, b := range m.plain.batches {
			if b.base >= upTo {
				partly.batches = append(partly.batches, b)
			}
		}
		states = append(states, partly)
	}
	return states
}

// count notes what a cleaning has done, so that the seeds are known to do all of it.
func (m *model) count(before *plainLog, inPart bool) {
	m.counts["done"]++
	if inPart {
		m.counts["in part"]++
	}
	left := map[int64]bool{}
	wrappers := map[int64]int{} // records of each, by the first offset
	latest := map[string]int64{}
	for _, b := range before.batches {
		for _, r := range b.records {
			latest[r.key] = r.offset
		}
	}
	for _, b := range m.plain.batches {
		switch {
		case len(b.records) == 0:
			m.counts["empty batches"]++
		case b.magic < 2:
			wrappers[b.first()] = len(b.records)
		}
		for _, r := range b.records {
			left[r.offset] = true
		}
	}
	for _, b := range before.batches {
		if n := len(b.records); b.magic < 2 && n > 1 && slices.ContainsFunc(b.records, func(r plainRecord) bool { return left[r.offset] }) && wrappers[b.first()] < n {
			m.counts["wrappers made smaller"]++
		}
		for _, r := range b.records {
			switch {
			case left[r.offset]:
			case b.magic < 2 && r.null && latest[r.key] == r.offset:
				m.counts["tombstones in messages gone"]++
			case b.magic < 2:
				m.counts["messages gone"]++
			case b.control:
				m.counts["markers gone"]++
			case r.null && b.horizon >= 0:
				m.counts["tombstones gone"]++
			default:
				m.counts["records gone"]++
			}
		}
	}
}
