package commitlog

// Power cuts while a log is compacted. A script of appends, transactions, truncations, cleanings and restarts runs on a disk
// that keeps its history; the power is cut behind each single operation of the disk. Whatever is left is opened, and a
// consumer that reads committed records must find of each key exactly what one would have found in all that was ever
// appended: the last value, or nothing when that was a tombstone.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// compactionScript is a crashScript on a compacted topic.
type compactionScript struct {
	crashScript
	maxStart  int64
	cleanings int
}

func compactionConfig() Config {
	c := compacted()
	c.SegmentBytes, c.IndexInterval = 700, 200
	c.DeleteRetentionMs = 1000
	c.FileDeleteDelayMs = 500
	return c
}

func bootCompacted(fs vfs.FS, clk *clock) (*Manager, error) {
	return load(still(ManagerConfig{Dirs: []string{crashDir}, FS: fs, Default: compactionConfig()}, clk))
}

func (s *compactionScript) boot() { s.start(bootCompacted(s.fs, s.clock)) }

// produce appends a batch of keyed records; a third of the producers are transactional.
func (s *compactionScript) produce() {
	o := record.BuilderOptions{Codec: record.Codec(s.rng.IntN(5))}
	pid := int64(s.rng.IntN(5))
	if pid > 0 {
		o.Producer = &record.Producer{ID: pid, BaseSequence: s.next[pid], Transactional: pid >= 3}
	}
	b := record.NewBuilder(o)
	n := 1 + s.rng.IntN(4)
	for range n {
		key := fmt.Appendf(nil, "k%d", s.rng.IntN(12))
		var value []byte
		if s.rng.IntN(4) > 0 {
			value = fmt.Appendf(nil, "%d-%s", s.log.EndOffset(), bytes.Repeat([]byte("v"), s.rng.IntN(60)))
		}
		b.Append(s.clock.at.UnixMilli(), key, value)
	}
	s.clock.advance(20 * time.Millisecond)
	s.send(b, pid, n)
	s.done("produce %d by %d", n, pid)
}

func (s *compactionScript) endTransaction(pid int64) {
	if !isOpen(s.log, pid) {
		return
	}
	m := record.EndTxnMarker{Type: record.ControlType(s.rng.IntN(2))}
	batch := record.NewEndTxnBatch(m, pid, 0, s.clock.at.UnixMilli())
	_, err := s.log.AppendAsLeader(batch, s.epoch, AppendOptions{Origin: Coordinator})
	require.NoError(s.t, err)
	s.appended(batch)
	s.done("%s of %d", m.Type, pid)
}

func (s *compactionScript) clean() {
	s.clock.advance(time.Duration(s.rng.IntN(1500)) * time.Millisecond)
	if !s.m.cleanOnce() {
		return
	}
	s.cleanings++
	require.NoError(s.t, s.log.CleanerError())
	s.now.flushed = max(s.now.flushed, min(s.log.RecoveryPoint(), s.log.active().base))
	s.now.settled = true
	s.done("clean to %d", s.log.cleaned.Load())
}

func (s *compactionScript) step() {
	l := s.log
	switch n := s.rng.IntN(100); {
	case n < 50:
		s.produce()
	case n < 62:
		s.endTransaction(int64(3 + s.rng.IntN(2)))
	case n < 72:
		if s.rng.IntN(2) == 0 {
			s.endTransaction(3)
			s.endTransaction(4)
		}
		// What this replica loses of committed records it would be sent again; a lone one has to keep them.
		require.NoError(s.t, l.Flush())
		s.now.flushed, s.now.settled = l.EndOffset(), true
		l.SetHighWatermark(l.EndOffset())
		s.done("high watermark")
	case n < 84:
		s.clean()
	case n < 88:
		s.truncate(l.HighWatermark() + s.rng.Int64N(l.EndOffset()-l.HighWatermark()+1))
	case n < 91:
		if room := (l.HighWatermark() - l.StartOffset()) / 4; room > 0 {
			_, err := l.AdvanceStartOffset(l.StartOffset()+1+s.rng.Int64N(room), "test")
			require.NoError(s.t, err)
			s.maxStart = max(s.maxStart, l.StartOffset())
			s.done("start %d", l.StartOffset())
		}
		require.NoError(s.t, l.applyRetention(s.clock.at.UnixMilli()))
		s.done("retention")
	case n < 94:
		s.now.highKept = max(s.now.highKept, l.HighWatermark())
		s.m.checkpointRecoveryPoints()
		s.m.checkpointStartOffsets()
		s.m.CheckpointHighWatermarks()
		s.now.keptStart = l.StartOffset()
		s.done("checkpoints")
	case n < 97:
		s.clock.advance(2 * time.Second)
		s.m.sweep()
		s.m.removeDue(s.clock.at)
		s.done("sweep")
	default:
		s.now.highKept = max(s.now.highKept, l.HighWatermark())
		require.NoError(s.t, s.m.Close())
		s.now.flushed, s.now.keptStart, s.now.settled = l.EndOffset(), l.StartOffset(), true
		s.done("close")
		s.boot()
		s.done("open")
	}
}

// lastRecord is the last committed record of a key.
type lastRecord struct {
	offset int64
	value  string
	null   bool
}

// committedView is what a consumer of committed records finds, by key; aborted tells of a batch that its transaction was
// aborted. Nothing from stable on is seen.
func committedView(t *testing.T, batches []record.Batch, stable int64, aborted func(record.Batch) bool) map[string]lastRecord {
	view := map[string]lastRecord{}
	for _, b := range batches {
		if b.LastOffset() >= stable || b.IsControl() || b.IsTransactional() && aborted(b) {
			continue
		}
		for r, err := range b.Records(record.Limits{}) {
			require.NoError(t, err)
			view[string(r.Key)] = lastRecord{r.Offset, string(r.Value), r.Value == nil}
		}
	}
	return view
}

// byMarkers tells of transactional batches whether the next marker of their producer aborts.
func byMarkers(t *testing.T, batches []record.Batch) func(record.Batch) bool {
	return func(b record.Batch) bool {
		for _, m := range batches {
			if m.BaseOffset() > b.BaseOffset() && m.IsControl() && m.ProducerID() == b.ProducerID() {
				end, _, found, err := endTxnMarker(m)
				require.NoError(t, err)
				require.True(t, found)
				return end.Type == record.Abort
			}
		}
		return false
	}
}

// byIndex is byMarkers as a consumer knows it: by the list that it is sent and the markers that it meets.
func byIndex(t *testing.T, l *Log, batches []record.Batch) func(record.Batch) bool {
	list, err := abortedNow(l, l.StartOffset(), l.EndOffset())
	require.NoError(t, err)
	return func(b record.Batch) bool {
		for _, a := range list {
			if a.ProducerID != b.ProducerID() || a.FirstOffset > b.BaseOffset() {
				continue
			}
			ended := slices.ContainsFunc(batches, func(m record.Batch) bool {
				end, _, found, err := endTxnMarker(m)
				return m.IsControl() && m.ProducerID() == b.ProducerID() && err == nil && found && end.Type == record.Abort &&
					m.BaseOffset() > a.FirstOffset && m.BaseOffset() < b.BaseOffset()
			})
			if !ended {
				return true
			}
		}
		return false
	}
}

// agrees compares what is left with all that was appended; the first difference.
func (s *compactionScript) agrees(l *Log, got []record.Batch, all []record.Batch) error {
	t, start, end := s.t, l.StartOffset(), l.EndOffset()
	var below []record.Batch
	original := map[int64]record.Batch{}
	for _, b := range all {
		if b.LastOffset() < end {
			below = append(below, b)
			original[b.BaseOffset()] = b
		}
	}
	for _, b := range got {
		o := original[b.BaseOffset()]
		if o == nil || o.LastOffset() != b.LastOffset() || o.LastSequence() != b.LastSequence() || o.PartitionLeaderEpoch() != b.PartitionLeaderEpoch() {
			return fmt.Errorf("batch %d-%d is none that was appended", b.BaseOffset(), b.LastOffset())
		}
	}
	sequences := map[int64]int32{}
	for _, b := range below {
		if b.HasProducerID() && !b.IsControl() {
			sequences[b.ProducerID()] = b.LastSequence()
		}
	}
	for _, p := range l.ProducerStates() {
		if want, ok := sequences[p.ProducerID]; ok && p.LastSequence != want {
			return fmt.Errorf("the last sequence of producer %d is %d, found %d", p.ProducerID, want, p.LastSequence)
		}
		delete(sequences, p.ProducerID)
	}
	if len(sequences) > 0 {
		return fmt.Errorf("producers are forgotten, with sequences %v", sequences)
	}
	stable := l.LastStableOffset()
	want := committedView(t, below, stable, byMarkers(t, below))
	have := committedView(t, got, stable, byIndex(t, l, got))
	for key, w := range want {
		h, ok := have[key]
		switch {
		case ok && h == w:
		case !ok && (w.null || w.offset < max(start, s.maxStart)):
		default:
			return fmt.Errorf("the last of %s is %+v, found %+v (%v)", key, w, h, ok)
		}
	}
	for key, h := range have {
		if w := want[key]; w != h {
			return fmt.Errorf("%s came back: %+v", key, h)
		}
	}
	return nil
}

func (s *compactionScript) cut(cut int, a vfs.Adversary, imageSeed uint64, deep bool) {
	t := s.t
	c := &crashCase{script: &s.crashScript, seed: imageSeed >> 32, cut: cut, adversary: a}
	before, after := c.around()
	clk := &clock{at: s.clock.at}
	disk := s.fs.Image(cut, a, imageSeed)
	m, err := bootCompacted(disk, clk)
	require.NoError(t, err, "%s", c)
	l := m.Get(tp0)
	if l == nil {
		require.False(t, before.settled, "%s", c)
		return
	}
	if err := l.Err(); err != nil {
		require.NotEqual(t, vfs.Everything, a, "%s: %v", c, err)
		require.Greater(t, max(before.highKept, after.highKept), min(before.flushed, after.flushed), "%s: %v", c, err)
		return
	}
	require.GreaterOrEqual(t, l.EndOffset(), min(before.flushed, after.flushed), "%s", c)
	l.SetHighWatermark(l.EndOffset())
	check := func(l *Log) {
		got := storedBatches(t, l, c)
		if err := s.agrees(l, got, before.batches); err != nil {
			if err2 := s.agrees(l, got, after.batches); err2 != nil {
				require.Failf(t, "records are lost or came back", "%v; %v: %s\nfound %s", err, err2, c, offsetsOf(got))
			}
		}
	}
	check(l)
	if !deep {
		return
	}
	clk.advance(5 * time.Second)
	for m.cleanOnce() {
		require.NoError(t, l.CleanerError(), "%s", c)
		check(l)
	}
	require.NoError(t, m.Close(), "%s", c)
	problems, err := Verify(disk, l.Dir())
	require.NoError(t, err, "%s", c)
	require.Empty(t, problems, "%s", c)
	m, err = bootCompacted(disk, clk)
	require.NoError(t, err, "%s", c)
	require.NoError(t, m.Get(tp0).Err(), "%s", c)
	m.Get(tp0).SetHighWatermark(m.Get(tp0).EndOffset())
	check(m.Get(tp0))
}

func TestAPowerCutDuringACleaningKeepsTheLastRecordOfEachKey(t *testing.T) {
	first, last := uint64(1), uint64(4)
	if s := os.Getenv("BARNABAS_SEED"); s != "" { // one seed, or "from-to"
		_, err := fmt.Sscanf(s+"-"+s, "%d-%d", &first, &last)
		require.NoError(t, err)
	}
	cuts, cleanings := 0, 0
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			s := &compactionScript{crashScript: crashScript{
				t: t, rng: rand.New(rand.NewPCG(seed, 48)), fs: vfs.NewCrashFS(), clock: newClock(), next: map[int64]int32{},
			}}
			s.boot()
			s.done("create")
			for range 120 {
				s.step()
			}
			cleanings += s.cleanings
			for cut := range s.fs.Ops() + 1 {
				for k, a := range vfs.Adversaries {
					if (cut+k)%3 != 0 {
						continue // each adversary at every third point
					}
					s.cut(cut, a, seed<<32|uint64(cut), (cut+k)%2 == 0)
					cuts++
				}
			}
		})
	}
	t.Logf("%d power cuts, %d cleanings", cuts, cleanings)
	require.Greater(t, cleanings, 3*int(last-first+1), "the scripts clean next to nothing")
}
