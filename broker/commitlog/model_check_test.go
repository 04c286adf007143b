package commitlog

// What the model compares: everything that is stored (difference), what users of a log ask of it (check), and what somebody
// who reads all of a compacted topic knows in the end (requireLatest).

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// stored is all batches that the files hold, also those before the log's start.
func (m *model) stored() []plainBatch {
	var out []plainBatch
	for _, s := range m.log.list() {
		f, err := s.open()
		require.NoError(m.t, err)
		data, err := vfs.NewRange(f, 0, s.size.Load(), nil).ReadAll()
		require.NoError(m.t, err)
		s.file.release()
		for len(data) > 0 {
			e, rest, err := record.NextEntry(data)
			require.NoError(m.t, err)
			require.NoError(m.t, checkEntry(e))
			if b, ok := e.Batch(); ok {
				out = append(out, plainOf(m.t, b))
			} else {
				out = append(out, plainOfMessage(m.t, record.Message(e)))
			}
			data = rest
		}
	}
	return out
}

// present is what is left in the segments that there are.
func (m *model) present() []plainBatch {
	first := m.places()[0].base
	return slices.DeleteFunc(slices.Clone(m.plain.batches), func(b plainBatch) bool { return b.last < first })
}

func plainOf(t *testing.T, b record.Batch) plainBatch {
	p := plainBatch{plainHeader: plainHeader{
		2, b.BaseOffset(), b.LastOffset(), b.PartitionLeaderEpoch(), b.ProducerID(), b.LastSequence(), b.IsTransactional(), b.IsControl(),
		b.IsLogAppendTime(), b.MaxTimestamp(), -1,
	}}
	if b.HasDeleteHorizon() {
		p.horizon = b.BaseTimestamp()
	}
	for r, err := range b.Records(record.Limits{}) {
		require.NoError(t, err)
		plain := plainRecord{offset: r.Offset, ts: r.Timestamp}
		if b.IsControl() {
			marker, known, err := record.ParseEndTxnMarker(r)
			require.NoError(t, err)
			require.True(t, known)
			plain.aborts = marker.Type == record.Abort
		} else {
			plain.key, plain.keyless, plain.value, plain.null = string(r.Key), r.Key == nil, string(r.Value), r.Value == nil
		}
		p.records = append(p.records, plain)
	}
	return p
}

// difference compares all that is stored with the list; "" when there is none.
func (m *model) difference() string {
	want, got := m.present(), m.stored()
	if i := firstDifference(want, got); i >= 0 {
		tail := func(list []plainBatch) []plainBatch { return list[min(i, len(list)):min(i+2, len(list))] }
		return fmt.Sprintf("batch %d of %d (%d stored): want %+v, stored %+v", i, len(want), len(got), tail(want), tail(got))
	}
	if clean := firstDirty(m.log.cleaned.Load(), m.log.StartOffset(), m.log.EndOffset()); clean != m.plain.cleanTo() {
		return fmt.Sprintf("clean to %d, should be %d", clean, m.plain.cleanTo())
	}
	return ""
}

func firstDifference(a, b []plainBatch) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || !a[i].equal(b[i]) {
			return i
		}
	}
	return -1
}

// settled requires that the whole log is as the list says.
func (m *model) settled(when string) {
	m.t.Helper()
	if d := m.difference(); d != "" {
		require.Fail(m.t, when, "%s\n%v", d, m.trace)
	}
}

// check looks at the log as its users do: where it begins and ends, some range of it, times, producers.
func (m *model) check() {
	p := &m.plain
	require.Equal(m.t, [3]int64{p.start, p.high, p.end}, [3]int64{m.log.StartOffset(), m.log.HighWatermark(), m.log.EndOffset()}, "%v", m.trace)
	stable := m.log.LastStableOffset()
	present := m.present()
	p.trust(stable, present)
	switch stable {
	case p.stable(p.journal):
	case p.stable(present), p.start:
		require.True(m.t, m.unsure, "last stable offset %d: %v", stable, m.trace)
	default:
		require.Equal(m.t, p.stable(p.journal), stable, "last stable offset: %v", m.trace)
	}
	m.checkProducers()
	if p.end == p.start {
		return
	}
	m.checkRange(p.start + m.rng.Int64N(p.end-p.start))
	m.checkTimes()
	if m.messages && m.plain.high > m.plain.start {
		m.checkDowngraded(m.plain.start + m.rng.Int64N(m.plain.high-m.plain.start))
	}
}

func (m *model) checkRange(from int64) {
	upTo := from + m.rng.Int64N(m.plain.end-from+1)
	got := readAll(m.t, m.log, from, upTo)
	i := 0
	for _, b := range m.plain.batches {
		if b.last < from || b.last >= upTo {
			continue
		}
		for _, r := range b.records {
			if r.offset < from {
				continue
			}
			require.Less(m.t, i, len(got), "offset %d is missing from %d..%d: %v", r.offset, from, upTo, m.trace)
			require.Equal(m.t, [2]int64{r.offset, r.ts}, [2]int64{got[i].Offset, got[i].Timestamp}, "%v", m.trace)
			if !b.control {
				require.Equal(m.t, [2]string{r.key, r.value}, [2]string{string(got[i].Key), string(got[i].Value)}, "%v", m.trace)
				require.Equal(m.t, [2]bool{r.keyless, r.null}, [2]bool{got[i].Key == nil, got[i].Value == nil}, "%v", m.trace)
			}
			m.checkEpoch(b, r.offset)
			i++
		}
	}
	require.Len(m.t, got, i, "%d..%d: %v", from, upTo, m.trace)
}

func (m *model) checkTimes() {
	ts := m.nowMs() + int64(m.rng.IntN(3000)) - 2000
	want, newest, headers := plainRecord{offset: -1, ts: -1}, plainRecord{offset: -1, ts: -1}, int64(-1)
	for _, b := range m.plain.batches {
		if b.last >= m.plain.start {
			headers = max(headers, b.newest)
		}
		for _, r := range b.records {
			if r.offset < m.plain.start {
				continue
			}
			if want.offset < 0 && r.ts >= ts {
				want = r
			}
			if r.ts > newest.ts {
				newest = r
			}
		}
	}
	offset, at, _, found, err := m.log.OffsetForTimestamp(ts)
	require.NoError(m.t, err)
	require.Equal(m.t, want.offset >= 0, found, "time %d: %v", ts, m.trace)
	require.Equal(m.t, [2]int64{want.offset, want.ts}, [2]int64{offset, at}, "time %d: %v", ts, m.trace)
	if newest.ts < headers {
		return // the newest record was cleaned away, and its batch is still there
	}
	offset, at, _, _, err = m.log.MaxTimestampOffset()
	require.NoError(m.t, err)
	require.Equal(m.t, [2]int64{newest.offset, newest.ts}, [2]int64{offset, at}, "%v", m.trace)
}

// checkProducers compares the state of producers with what they sent: all of it, or, when a cut or a power cut came after a
// deletion or a cleaning, what is left of it.
func (m *model) checkProducers() {
	sent, left, open := lastSent(m.plain.journal), lastSent(m.present()), m.plain.undecided()
	for _, s := range m.log.ProducerStates() {
		want, known := sent[s.ProducerID]
		require.True(m.t, known || m.unsure, "producer %d: %v", s.ProducerID, m.trace)
		if m.unsure && s.LastSequence != want {
			if still, ok := left[s.ProducerID]; ok {
				want = still
			} else {
				want = record.NoSequence
			}
		}
		require.Equal(m.t, want, s.LastSequence, "producer %d: %v", s.ProducerID, m.trace)
		first, isOpen := open[s.ProducerID]
		known = s.TxnStartOffset >= 0
		require.True(m.t, known == isOpen || m.unsure && !known && first < m.plain.start, "transaction of producer %d: %v", s.ProducerID, m.trace)
		if known && !m.unsure {
			require.Equal(m.t, first, s.TxnStartOffset, "producer %d: %v", s.ProducerID, m.trace)
		}
		delete(sent, s.ProducerID)
	}
	for pid := range sent {
		_, ok := left[pid]
		require.True(m.t, m.unsure && !ok, "producer %d is forgotten: %v", pid, m.trace)
	}
}

// requireLatest compares what a reader of committed records knows in the end with all that was ever sent: of each key the
// last value, or nothing when that was a tombstone or lies before the log's start.
func (m *model) requireLatest() {
	// A high watermark that fell in a power cut is brought up again soon.
	stable := max(m.log.LastStableOffset(), m.plain.decided)
	batches := allBatches(m.t, m.log)
	have := committedView(m.t, batches, stable, byIndex(m.t, m.log, batches))
	m.seeMessages(have, stable)
	for key, w := range m.plain.latest(stable) {
		h, ok := have[key]
		if !ok && (w.null || w.offset < m.plain.deleted) {
			continue
		}
		require.Equal(m.t, lastRecord{w.offset, w.value, w.null}, h, "key %s: %v", key, m.trace)
		delete(have, key)
	}
	for key, h := range have {
		require.Empty(m.t, key, "came back: %+v: %v", h, m.trace)
	}
}
