package commitlog

// Power cuts. A script of operations runs on a disk that keeps its history; then the power is cut behind each single
// write, sync, rename and truncation of it, and each adversary decides what the disk had kept. Every such disk is opened,
// and must hold what was promised:
//
//   - everything that was flushed, and nothing but whole batches that were appended, in their order;
//   - nothing that was truncated, once the truncation had returned;
//   - epochs, times and producers that agree with the batches; indexes that Verify has nothing to say about;
//   - a log that can be appended to, closed and opened again.
//
// Some are cut a second time, inside their recovery.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// crashState is what is known of the log when an operation has returned.
type crashState struct {
	ops       int // of the file system, so far
	what      string
	batches   []record.Batch // all that were appended and not truncated, also those before the start
	end       int64
	start     int64
	settled   bool  // the log's creation is durable
	flushed   int64 // everything below is durable
	keptStart int64 // the start is durable up to here
	highKept  int64 // largest high watermark that a checkpoint may hold
	anew      bool  // the operation threw everything away: until it returns, any part of it may be gone
}

// crashScript runs random operations and remembers the state behind each of them.
type crashScript struct {
	t      *testing.T
	rng    *rand.Rand
	fs     *vfs.CrashFS
	clock  *clock
	m      *Manager
	log    *Log
	epoch  int32
	next   map[int64]int32 // next sequence, by producer
	now    crashState
	states []crashState
	hwLags bool // the high watermark never passes what is flushed
}

const crashDir = "/data"

func crashConfig() Config {
	c := smallConfig()
	c.SegmentBytes, c.SegmentIndexBytes, c.IndexInterval = 1500, 64, 300
	c.RetentionMs = -1
	return c
}

// bootOn opens the directory as a broker would, without background work: a seed is one order of events.
func bootOn(fs vfs.FS, clk *clock) (*Manager, error) {
	return load(still(ManagerConfig{Dirs: []string{crashDir}, FS: fs, Default: crashConfig()}, clk))
}

func (s *crashScript) boot() { s.start(bootOn(s.fs, s.clock)) }

// start goes on with a manager that was just opened.
func (s *crashScript) start(m *Manager, err error) {
	require.NoError(s.t, err)
	s.m = m
	s.log, err = m.GetOrCreate(tp0, TopicID{7}, false)
	require.NoError(s.t, err)
}

func (s *crashScript) done(what string, args ...any) {
	s.now.ops, s.now.what = s.fs.Ops(), fmt.Sprintf(what, args...)
	s.now.end, s.now.start = s.log.EndOffset(), s.log.StartOffset()
	s.now.flushed = min(s.now.flushed, s.now.end)
	s.now.keptStart = min(s.now.keptStart, s.now.start)
	s.now.batches = slices.Clip(s.now.batches)
	s.states = append(s.states, s.now)
	s.now.anew = false
}

func (s *crashScript) produce() {
	o := record.BuilderOptions{Codec: record.Codec(s.rng.IntN(5))}
	pid := int64(s.rng.IntN(4))
	if pid > 0 {
		// Producer 3 is transactional, the others are only idempotent.
		o.Producer = &record.Producer{ID: pid, BaseSequence: s.next[pid], Transactional: pid == 3}
	}
	b := record.NewBuilder(o)
	n := 1 + s.rng.IntN(4)
	for range n {
		value := make([]byte, s.rng.IntN(120))
		for i := range value {
			value[i] = byte('a' + s.rng.IntN(26))
		}
		b.Append(s.clock.at.UnixMilli()+s.rng.Int64N(50), nil, value)
	}
	s.clock.advance(10 * time.Millisecond)
	s.send(b, pid, n)
	s.done("produce %d by %d", n, pid)
}

// send appends a batch of n records of a producer, 0 for none.
func (s *crashScript) send(b *record.Builder, pid int64, n int) {
	batch, err := b.Build()
	require.NoError(s.t, err)
	_, err = s.log.AppendAsLeader(batch, s.epoch, AppendOptions{RequireV2: true})
	require.NoError(s.t, err)
	if pid > 0 {
		s.next[pid] += int32(n)
	}
	s.appended(batch)
}

func (s *crashScript) appended(batch record.Batch) {
	s.now.batches = append(s.now.batches, batch)
	s.now.settled = true
}

func (s *crashScript) endTransaction() {
	if !isOpen(s.log, 3) {
		return
	}
	m := record.EndTxnMarker{Type: record.ControlType(s.rng.IntN(2))}
	batch := record.NewEndTxnBatch(m, 3, 0, s.clock.at.UnixMilli())
	_, err := s.log.AppendAsLeader(batch, s.epoch, AppendOptions{Origin: Coordinator})
	require.NoError(s.t, err)
	s.appended(batch)
	s.done("%s", m.Type)
}

// fetch appends several batches at once, as a follower does.
func (s *crashScript) fetch() {
	var all []byte
	at := s.log.EndOffset()
	for range 1 + s.rng.IntN(3) {
		batch := record.Batch(batchSpec{count: 2, size: s.rng.IntN(100), ts: s.clock.at.UnixMilli()}.build(s.t))
		batch.SetBaseOffset(at)
		batch.SetPartitionLeaderEpoch(s.epoch)
		at = batch.NextOffset()
		all = append(all, batch...)
		s.appended(batch)
	}
	_, err := s.log.AppendAsFollower(all)
	require.NoError(s.t, err)
	s.done("fetch to %d", at)
}

func (s *crashScript) truncate(to int64) {
	require.NoError(s.t, s.log.TruncateTo(to))
	s.cut()
	s.done("truncate to %d", to)
}

// cut forgets what the log no longer has, and takes the sequences from it.
func (s *crashScript) cut() {
	end := s.log.EndOffset()
	for len(s.now.batches) > 0 && s.now.batches[len(s.now.batches)-1].LastOffset() >= end {
		s.now.batches = s.now.batches[: len(s.now.batches)-1 : len(s.now.batches)-1]
	}
	s.next = map[int64]int32{}
	for _, p := range s.log.ProducerStates() {
		s.next[p.ProducerID] = nextSequence(p.LastSequence)
	}
}

func (s *crashScript) step() {
	l := s.log
	switch n := s.rng.IntN(100); {
	case n < 45:
		s.produce()
	case n < 52:
		s.endTransaction()
	case n < 58:
		s.fetch()
	case n < 64:
		require.NoError(s.t, l.Flush())
		s.now.flushed = l.EndOffset()
		s.now.settled = true
		s.done("flush")
	case n < 69:
		s.m.dirs[0].flusher.work(false)
		s.now.flushed = max(s.now.flushed, min(l.RecoveryPoint(), l.active().base))
		s.now.settled = true
		s.done("background flush")
	case n < 74:
		to := l.EndOffset()
		if s.hwLags {
			to = s.now.flushed
		}
		if to > l.HighWatermark() {
			l.SetHighWatermark(l.HighWatermark() + 1 + s.rng.Int64N(to-l.HighWatermark()))
		}
		s.done("high watermark")
	case n < 80:
		// Truncation goes down to the high watermark, where there are whole batches.
		s.truncate(l.HighWatermark() + s.rng.Int64N(l.EndOffset()-l.HighWatermark()+1))
	case n < 84:
		if l.HighWatermark() > l.StartOffset() {
			_, err := l.AdvanceStartOffset(l.StartOffset()+1+s.rng.Int64N(l.HighWatermark()-l.StartOffset()), "test")
			require.NoError(s.t, err)
			s.done("start %d", l.StartOffset())
		}
		require.NoError(s.t, l.applyRetention(s.clock.at.UnixMilli()))
		s.done("retention")
	case n < 90:
		s.now.highKept = max(s.now.highKept, l.HighWatermark())
		s.m.checkpointRecoveryPoints()
		s.m.checkpointStartOffsets()
		s.m.CheckpointHighWatermarks()
		s.now.keptStart = l.StartOffset()
		s.done("checkpoints")
	case n < 93:
		s.epoch++
		require.NoError(s.t, l.AssignEpochStart(s.epoch, l.EndOffset()))
		s.done("epoch %d", s.epoch)
	case n < 96:
		s.clock.advance(2 * time.Second)
		s.m.sweep()
		s.m.removeDue(s.clock.at)
		s.done("sweep")
	case n < 98:
		s.restart()
	case n < 99:
		at := l.EndOffset() + s.rng.Int64N(20)
		require.NoError(s.t, l.TruncateFullyAndStartAt(at, -1))
		s.now.batches, s.now.anew = nil, true
		s.next = map[int64]int32{}
		s.done("begin anew at %d", at)
	}
}

func (s *crashScript) restart() {
	s.now.highKept = max(s.now.highKept, s.log.HighWatermark())
	require.NoError(s.t, s.m.Close())
	s.now.flushed, s.now.keptStart, s.now.settled = s.log.EndOffset(), s.log.StartOffset(), true
	s.done("close")
	s.boot()
	s.done("open")
}

// crashCase is one power cut.
type crashCase struct {
	script    *crashScript
	seed      uint64
	cut       int
	adversary vfs.Adversary
	again     string // of a cut inside the recovery
}

func (c *crashCase) String() string {
	from := max(0, c.cut-6)
	var ops []string
	for _, o := range c.script.fs.History(from)[:c.cut-from] {
		ops = append(ops, o.String())
	}
	before, after := c.around()
	return fmt.Sprintf("seed %d, cut behind operation %d, %s%s; in %q, after %q; disk: %s",
		c.seed, c.cut, c.adversary, c.again, after.what, before.what, strings.Join(ops, "; "))
}

// around returns the state that was reached and the one that was under way, the same one between two operations.
func (c *crashCase) around() (before, after crashState) {
	states := c.script.states
	i := 0
	for i < len(states) && states[i].ops <= c.cut {
		i++
	}
	if i > 0 {
		before = states[i-1]
	}
	after = before
	if i < len(states) && before.ops < c.cut {
		after = states[i]
	}
	return before, after
}

// storedBatches reads what a log holds, from its start.
func storedBatches(t *testing.T, l *Log, c *crashCase) []record.Batch {
	t.Helper()
	var out []record.Batch
	for from := l.StartOffset(); from < l.EndOffset(); {
		r, err := l.Read(from, ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: l.EndOffset()})
		require.NoError(t, err, "%s", c)
		data, err := r.Range.ReadAll()
		require.NoError(t, err, "%s", c)
		r.Range.Release()
		require.NotEmpty(t, data, "nothing to read at offset %d of %d: %s", from, l.EndOffset(), c)
		for len(data) > 0 {
			b, rest, err := record.Next(data)
			require.NoError(t, err, "%s", c)
			require.NoError(t, b.CheckCRC(), "%s", c)
			out, data, from = append(out, b), rest, b.NextOffset()
		}
	}
	return out
}

// recovered opens the disk and checks the promises; nil if the log need not exist, or is rightly out of use.
func (c *crashCase) recovered(disk *vfs.CrashFS, clk *clock) (*Manager, *Log) {
	t := c.script.t
	before, after := c.around()
	m, err := bootOn(disk, clk)
	require.NoError(t, err, "%s", c)
	l := m.Get(tp0)
	if l == nil {
		require.False(t, before.settled, "the log is gone: %s", c)
		return m, nil
	}
	flushed, keptStart := min(before.flushed, after.flushed), min(before.keptStart, after.keptStart)
	if after.anew && after.ops != before.ops {
		flushed, keptStart = 0, 0
	}
	if err := l.Err(); err != nil {
		// A hole in what was committed and not flushed: the replica has to be fetched anew, and says so.
		require.NotEqual(t, vfs.Everything, c.adversary, "%s: %v", c, err)
		require.Greater(t, max(before.highKept, after.highKept), flushed, "%s: %v", c, err)
		return m, nil
	}
	start, end := l.StartOffset(), l.EndOffset()
	require.GreaterOrEqual(t, end, flushed, "flushed records are gone: %s", c)
	require.GreaterOrEqual(t, start, keptStart, "the start went back: %s", c)
	require.LessOrEqual(t, start, max(before.start, after.start), "the start ran ahead: %s", c)
	require.True(t, start <= l.LastStableOffset() && l.LastStableOffset() <= l.HighWatermark() && l.HighWatermark() <= end, "%s", c)

	got := storedBatches(t, l, c)
	if !sameLog(got, start, end, &before) && !sameLog(got, start, end, &after) {
		require.Failf(t, "the log is none that ever was", "%s\nfound %s from %d to %d\nbefore %s to %d\nafter %s to %d", c,
			offsetsOf(got), start, end, offsetsOf(before.batches), before.end, offsetsOf(after.batches), after.end)
	}
	if c.adversary == vfs.Everything && before.ops == c.cut {
		require.Equal(t, before.end, end, "a killed process loses nothing: %s", c)
	}
	return m, l
}

// sameLog tells that the batches are those that the state has between start and end.
func sameLog(got []record.Batch, start, end int64, s *crashState) bool {
	if end > s.end {
		return false
	}
	if start == end {
		return len(got) == 0 // records are kept from start on, and the disk had none of them
	}
	last := start
	for _, b := range s.batches {
		if b.LastOffset() < start || b.BaseOffset() >= end {
			continue
		}
		if len(got) == 0 || !bytes.Equal(got[0], b) {
			return false
		}
		got, last = got[1:], b.NextOffset()
	}
	return len(got) == 0 && (last == end || end == s.end)
}

func offsetsOf(batches []record.Batch) string {
	var s []string
	for _, b := range batches {
		s = append(s, fmt.Sprintf("%d-%d", b.BaseOffset(), b.LastOffset()))
	}
	return "[" + strings.Join(s, " ") + "]"
}

// derived checks what is derived from the batches: epochs, times, producers.
func (c *crashCase) derived(l *Log) {
	t := c.script.t
	start := l.StartOffset()
	got := storedBatches(t, l, c)
	type at struct{ offset, ts int64 }
	var all []at
	for _, b := range got {
		epoch, ok := l.EpochAt(max(b.BaseOffset(), start))
		require.True(t, ok, "no epoch of offset %d: %s", b.BaseOffset(), c)
		require.Equal(t, b.PartitionLeaderEpoch(), epoch, "epoch of offset %d: %s", b.BaseOffset(), c)
		for r, err := range b.Records(record.Limits{}) {
			require.NoError(t, err)
			if r.Offset >= start {
				all = append(all, at{r.Offset, r.Timestamp})
			}
		}
	}
	for range 3 {
		if len(all) == 0 {
			break
		}
		ts := all[c.script.rng.IntN(len(all))].ts
		want := all[slices.IndexFunc(all, func(a at) bool { return a.ts >= ts })]
		offset, stamp, _, found, err := l.OffsetForTimestamp(ts)
		require.NoError(t, err, "%s", c)
		require.True(t, found, "%s", c)
		require.Equal(t, want, at{offset, stamp}, "first record at or after time %d: %s", ts, c)
	}
	// A producer that sends its last batch once more is told where it is.
	newest := map[int64]record.Batch{}
	for _, b := range got {
		if b.HasProducerID() && !b.IsControl() {
			newest[b.ProducerID()] = b
		}
	}
	for pid, b := range newest {
		if b.BaseOffset() < start {
			continue
		}
		repeat := bytes.Clone(b)
		record.Batch(repeat).SetBaseOffset(0)
		info, err := l.AppendAsLeader(repeat, 1<<20, AppendOptions{RequireV2: true})
		require.NoError(t, err, "repeat by producer %d: %s", pid, c)
		require.True(t, info.Duplicate, "the last batch of producer %d, at offset %d, was appended again: %s", pid, b.BaseOffset(), c)
		require.Equal(t, b.BaseOffset(), info.FirstOffset, "%s", c)
	}
}

// goesOn appends, closes and opens again, and has Verify look at the directory.
func (c *crashCase) goesOn(disk *vfs.CrashFS, clk *clock, m *Manager, l *Log) {
	t := c.script.t
	info, err := l.AppendAsLeader(batchSpec{count: 2, size: 50, ts: 5}.build(t), 1<<20, AppendOptions{RequireV2: true})
	require.NoError(t, err, "%s", c)
	require.Equal(t, l.EndOffset(), info.LastOffset+1)
	want := storedBatches(t, l, c)
	require.NoError(t, m.Close(), "%s", c)
	problems, err := Verify(disk, crashDir+"/"+tp0.String())
	require.NoError(t, err, "%s", c)
	require.Empty(t, problems, "%s", c)

	again, err := bootOn(disk, clk)
	require.NoError(t, err, "%s", c)
	l = again.Get(tp0)
	require.NotNil(t, l)
	require.NoError(t, l.Err(), "%s", c)
	require.False(t, l.Recovery().Ran, "%s", c)
	require.Equal(t, want, storedBatches(t, l, c), "%s", c)
}

// run cuts the power once, sometimes twice, and returns how many disks were opened.
func (c *crashCase) run(imageSeed uint64, deep, twice bool) (opened int) {
	clk := &clock{at: c.script.clock.at}
	disk := c.script.fs.Image(c.cut, c.adversary, imageSeed)
	m, l := c.recovered(disk, clk)
	opened++
	recovery := disk.Ops()
	if twice && recovery > 0 {
		at := c.script.rng.IntN(recovery + 1)
		a := vfs.Adversaries[c.script.rng.IntN(len(vfs.Adversaries))]
		c.again = fmt.Sprintf(", and again behind operation %d of its recovery, %s", at, a)
		second := *c
		if second.adversary == vfs.Everything {
			second.adversary = a
		}
		second.recovered(disk.Image(at, a, imageSeed+1), clk)
		c.again = ""
		opened++
	}
	if l != nil && deep {
		c.derived(l)
		c.goesOn(disk, clk, m, l)
	}
	return opened
}

func TestWhateverAPowerCutLeavesRecoversToWhatWasPromised(t *testing.T) {
	var seeds []uint64
	first, last := uint64(1), uint64(8)
	if s := os.Getenv("BARNABAS_SEED"); s != "" { // one seed, or "from-to"
		_, err := fmt.Sscanf(s+"-"+s, "%d-%d", &first, &last)
		require.NoError(t, err)
	} else {
		seeds = append(seeds, 41, 70, 110, 159, 167, 220, 291, 975, 1041) // each found something once
	}
	for seed := first; seed <= last; seed++ {
		seeds = append(seeds, seed)
	}
	cuts, disks := 0, 0
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			s := &crashScript{t: t, rng: rand.New(rand.NewPCG(seed, 9)), fs: vfs.NewCrashFS(), clock: newClock(), next: map[int64]int32{}, hwLags: seed%2 == 0}
			s.boot()
			s.done("create")
			for range 80 {
				s.step()
			}
			for cut := range s.fs.Ops() + 1 {
				for k, a := range vfs.Adversaries {
					if (cut+k)%2 == 1 && a != vfs.Synced {
						continue // each adversary at every other point
					}
					c := &crashCase{script: s, seed: seed, cut: cut, adversary: a}
					disks += c.run(seed<<32|uint64(cut), (cut+k)%4 == 0, (cut+k)%6 == 0)
					cuts++
				}
			}
		})
	}
	t.Logf("%d power cuts, %d disks recovered", cuts, disks)
	if !t.Failed() {
		require.Greater(t, cuts, 500*len(seeds), "the scripts do next to nothing")
	}
}
