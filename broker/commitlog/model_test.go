package commitlog

// Random operations on a real log and on a plain list (model_log_test.go), which must agree after each: appends of all kinds
// and formats (model_formats_test.go), transactions, cuts at both ends, retention, compaction, other settings, restarts, power
// cuts, also in the middle of a compaction. A seed is one order of events: BARNABAS_SEED=7 (or 7-20) runs it again.

import (
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

const (
	modelDir      = "/data"
	modelSteps    = 400 // operations of a seed
	modelSeeds    = 250
	modelSeedsFew = 12 // with -short
)

type model struct {
	t      *testing.T
	rng    *rand.Rand
	fs     *vfs.CrashFS
	clock  *clock
	m      *opened
	log    *Log
	plain  plainLog
	config Config
	epoch  int32
	synced int64 // everything below was flushed
	// committed is the largest high watermark so far: what lies below is cut off by nobody.
	committed int64
	sent      map[int64][]byte // batches as they were appended, by base offset
	// unsure: the log was read again after records were cleaned or deleted, and they may have been all that told of a producer.
	unsure bool
	// messages: the log's format changes, and clients of all ages write to it. Messages have stood before forgotten, which may
	// have ended the history of epochs there.
	messages  bool
	forgotten int64
	counts    map[string]int
	trace     []string
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), fs: vfs.NewCrashFS(), clock: newClock(), counts: map[string]int{},
		sent: map[int64][]byte{}, plain: plainLog{dirty: -1},
	}
	// Small, so that a few operations roll.
	m.config = smallConfig()
	m.config.SegmentBytes, m.config.IndexInterval, m.config.SegmentIndexBytes = 3000, 300, 64
	m.config.DeleteRetentionMs, m.config.MinCleanableDirtyRatio = 2000, 0
	m.config.LogAppendTime = m.rng.IntN(5) == 0
	if m.messages = seed%2 == 0; m.messages {
		m.config.DeleteRetentionMs = 100 // the times of files, which a restart forgets here, have to be that far apart
	}
	m.policy()
	m.open()
	return m
}

// policy chooses what becomes of old records.
func (m *model) policy() {
	c := &m.config
	c.CleanupCompact = m.rng.IntN(4) > 0
	c.CleanupDelete = !c.CleanupCompact || m.rng.IntN(3) == 0
	c.RetentionMs, c.RetentionBytes, c.MinCompactionLagMs = -1, -1, 0
	switch m.rng.IntN(6) {
	case 0:
		c.RetentionMs = 6000
	case 1:
		c.RetentionBytes = 12_000
	case 2:
		c.MinCompactionLagMs = 1500
	}
	m.format()
	m.note("policy compact %v, delete %v, %d ms, %d bytes, lag %d, magic %d", c.CleanupCompact, c.CleanupDelete, c.RetentionMs, c.RetentionBytes, c.MinCompactionLagMs, c.Format.Magic())
	if m.log != nil {
		m.log.SetConfig(m.config)
	}
}

func (m *model) open() {
	// Without background work, so that a seed is one order of events.
	loaded, err := load(still(ManagerConfig{Dirs: []string{modelDir}, FS: m.fs, Default: m.config}, m.clock))
	require.NoError(m.t, err)
	m.m = &opened{loaded, m.t, m.clock}
	l, err := m.m.GetOrCreate(tp0, TopicID{1}, false)
	require.NoError(m.t, err)
	m.log = l
}

// note keeps the last operations, for the message of a failure.
func (m *model) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
	m.trace = m.trace[max(0, len(m.trace)-30):]
}

func (m *model) nowMs() int64 { return m.clock.at.UnixMilli() }

// places is where the log's segments lie.
func (m *model) places() []segmentPlace {
	var out []segmentPlace
	for _, s := range m.log.list() {
		out = append(out, segmentPlace{s.base, s.size.Load(), s.modified})
	}
	return out
}

// producer says with which sequence a producer goes on, and whether in a transaction.
func (m *model) producer(pid int64) record.Producer {
	p := record.Producer{ID: pid, Transactional: m.rng.IntN(2) == 0}
	for _, s := range m.log.ProducerStates() {
		if s.ProducerID == pid {
			p.Transactional = p.Transactional || s.TxnStartOffset >= 0
			p.BaseSequence = nextSequence(s.LastSequence)
		}
	}
	return p
}

func nextSequence(last int32) int32 {
	if last == record.NoSequence {
		return 0
	}
	return record.AddSequence(last, 1)
}

func (m *model) produce(pid int64) {
	w := m.wording(pid)
	n := 1 + m.rng.IntN(5)
	var producer *record.Producer
	if w.magic == 2 && w.kept == 2 && pid > 0 {
		p := m.producer(pid)
		producer = &p
	} else {
		pid = record.NoProducerID
	}
	var list []record.Record
	for i := range n {
		r := record.Record{Offset: m.plain.end + int64(i), Timestamp: m.nowMs() + int64(m.rng.IntN(1000))}
		if m.config.CleanupCompact || m.rng.IntN(2) == 0 {
			r.Key = fmt.Append(nil, "k", m.rng.IntN(25))
		}
		if r.Key == nil || m.rng.IntN(5) > 0 {
			r.Value = fmt.Append(nil, r.Offset, "-", strings.Repeat("v", m.rng.IntN(200)))
		}
		list = append(list, r)
	}
	m.note("produce %d-%d of pid %d, magic %d kept as %d, %v kept as %v", m.plain.end, m.plain.end+int64(n-1), pid, w.magic, w.kept, w.codec, w.keptCodec)
	info, err := m.log.AppendAsLeader(w.say(m.t, list, producer), m.epoch, AppendOptions{RequireV2: w.magic == 2})
	require.NoError(m.t, err, "%v", m.trace)
	require.Equal(m.t, [2]int64{m.plain.end, m.plain.end + int64(n-1)}, [2]int64{info.FirstOffset, info.LastOffset}, "%v", m.trace)
	m.appended(w.plain(m, list, producer))
	m.clock.advance(time.Duration(m.rng.IntN(40)) * time.Millisecond)
}

// endTxn writes a marker.
func (m *model) endTxn() {
	pid := int64(1 + m.rng.IntN(3))
	if _, open := m.plain.undecided()[pid]; !open || !isOpen(m.log, pid) || m.config.Format != FormatV2 {
		return // a log of messages takes no markers
	}
	kind := record.ControlType(m.rng.IntN(2))
	m.note("%v of pid %d at %d", kind, pid, m.plain.end)
	batch := record.NewEndTxnBatch(record.EndTxnMarker{Type: kind}, pid, 0, m.nowMs())
	info, err := m.log.AppendAsLeader(batch, m.epoch, AppendOptions{Origin: Coordinator})
	require.NoError(m.t, err, "%v", m.trace)
	require.Equal(m.t, m.plain.end, info.LastOffset)
	m.appended([]plainBatch{{
		plainHeader{2, m.plain.end, m.plain.end, m.epoch, pid, record.NoSequence, true, true, m.config.LogAppendTime, m.nowMs(), -1},
		[]plainRecord{{offset: m.plain.end, ts: m.nowMs(), aborts: kind == record.Abort}},
	}})
}

// appended takes note of what was appended, and keeps it as it is stored now.
func (m *model) appended(batches []plainBatch) {
	r, err := m.log.Read(m.plain.end, ReadOptions{MaxBytes: 1 << 20, UpTo: m.log.EndOffset()})
	require.NoError(m.t, err, "%v", m.trace)
	data, err := r.Range.ReadAll()
	require.NoError(m.t, err)
	r.Range.Release()
	for _, b := range batches {
		e, rest, err := record.NextEntry(data)
		require.NoError(m.t, err, "%v", m.trace)
		m.sent[b.base], data = e, rest
		m.plain.append(b)
	}
	require.Empty(m.t, data, "%v", m.trace)
	m.forget()
}

func (m *model) commit() {
	m.plain.high = m.log.SetHighWatermark(m.plain.high + m.rng.Int64N(m.plain.end-m.plain.high+1))
	m.committed = max(m.committed, m.plain.high)
	m.note("high watermark %d", m.plain.high)
}

// truncate cuts off what is not committed.
func (m *model) truncate() {
	floor := m.plain.boundary(m.committed)
	at := floor + m.rng.Int64N(m.plain.end-floor+1)
	m.note("truncate to %d of %d", at, m.plain.end)
	require.NoError(m.t, m.log.TruncateTo(at), "%v", m.trace)
	m.plain.cut(at)
	m.synced = min(m.synced, m.plain.end)
	m.reloaded()
}

func (m *model) deleteRecords() {
	if m.plain.high <= m.plain.start {
		return
	}
	to := m.plain.start + m.rng.Int64N(m.plain.high-m.plain.start+1)
	m.note("start at %d", to)
	_, err := m.log.AdvanceStartOffset(to, "test")
	require.NoError(m.t, err)
	m.plain.startAt(to)
	m.retention()
}

// retention deletes segments, the oldest first: those before the start, those above the size, those whose records have had
// their time. Nothing that is not committed goes.
func (m *model) retention() {
	segments, c := m.places(), m.config
	var rest int64
	for _, s := range segments {
		rest += s.size
	}
	var allowed []int64 // where the log may begin then
	for i, s := range segments {
		last, next := i == len(segments)-1, m.plain.end
		if !last {
			next = segments[i+1].base
		}
		newest, old := m.plain.newest(s.base, next), c.CleanupDelete && c.RetentionMs >= 0
		goes := !last && next <= m.plain.start || c.CleanupDelete && c.RetentionBytes >= 0 && rest-s.size >= c.RetentionBytes ||
			old && newest >= 0 && m.nowMs()-newest > c.RetentionMs
		mayGo := goes || old && newest < 0 // a segment without records goes by the age of its file
		if next > m.plain.high || last && s.size == 0 {
			goes, mayGo = false, false
		}
		if !goes {
			allowed = append(allowed, s.base)
		}
		if !mayGo {
			break
		}
		if last {
			allowed = append(allowed, m.plain.end)
		}
		rest -= s.size
	}
	require.NoError(m.t, m.log.applyRetention(m.nowMs()))
	first := m.places()[0].base
	m.note("retention: the log begins at %d", first)
	require.Contains(m.t, allowed, first, "%v", m.trace)
	m.plain.startAt(first)
}

// restart ends the process in order and begins another.
func (m *model) restart() {
	m.note("restart")
	states := m.log.ProducerStates()
	require.NoError(m.t, m.m.Close())
	m.open()
	require.Equal(m.t, states, m.log.ProducerStates(), "%v", m.trace)
	require.False(m.t, m.log.Recovery().Ran)
	m.synced = m.plain.end
	m.reloaded()
	m.settled("restart")
}

// crash cuts the power.
func (m *model) crash() {
	if m.rng.IntN(2) == 0 {
		m.m.checkpointRecoveryPoints()
		m.m.checkpointStartOffsets()
		m.m.CheckpointHighWatermarks()
	}
	m.crashAt(m.fs.Ops(), nil)
}

// crashAt cuts the power behind an operation of the disk. mixes are the states that a compaction, in which that is, may
// leave.
func (m *model) crashAt(cut int, mixes []plainLog) {
	a := vfs.Adversaries[m.rng.IntN(len(vfs.Adversaries))]
	m.note("crash: %s at %d of %d", a, cut, m.fs.Ops())
	image := m.fs.Image(cut, a, m.rng.Uint64())
	_ = m.m.Close()
	m.fs = image
	m.open()
	if err := m.log.Err(); err != nil {
		// What was committed and never synced has a hole: the replica is fetched anew from another one.
		require.NotEqual(m.t, vfs.Everything, a, "%v: %v", err, m.trace)
		require.Greater(m.t, m.plain.high, m.synced, "%v: %v", err, m.trace)
		m.refetch()
		return
	}
	end := m.log.EndOffset()
	require.LessOrEqual(m.t, end, m.plain.end, "%v", m.trace)
	require.GreaterOrEqual(m.t, end, m.synced, "flushed records are gone: %v", m.trace)
	if a == vfs.Everything {
		require.Equal(m.t, m.plain.end, end, "%v", m.trace)
	}
	require.LessOrEqual(m.t, m.log.StartOffset(), m.plain.start, "%v", m.trace)
	lost := m.plain.journal
	mixes = append(mixes, m.plain)
	for i := range mixes {
		mixes[i].recovered(end, m.places()[0].base, m.log.StartOffset(), m.log.HighWatermark())
		require.Equal(m.t, end, mixes[i].end, "%v", m.trace)
	}
	m.log.SetHighWatermark(mixes[0].high)
	m.adopt(mixes)
	m.resend(lost)
	m.reloaded()
	m.epoch++ // as the controller would have it
	require.NoError(m.t, m.log.AssignEpochStart(m.epoch, m.plain.end))
}

// reloaded is called when the log may have forgotten which of its markers are not below the high watermark. Decisions are
// kept elsewhere too: what may be taken for decided is cut off by nobody.
func (m *model) reloaded() {
	m.plain.trusted, m.plain.trustable = 0, m.plain.end
	m.unsure = m.unsure || m.plain.deleted > 0 || m.plain.decided > 0
	for _, b := range m.plain.batches {
		if b.control {
			m.committed = max(m.committed, b.base+1)
		}
	}
}

// resend brings back what was committed and is lost, as the leader would.
func (m *model) resend(batches []plainBatch) {
	for _, b := range batches {
		if b.last < m.plain.end || b.first() >= m.committed { // the first one may begin before the log does
			continue
		}
		m.note("%d-%d again", b.base, b.last)
		_, err := m.log.AppendAsFollower(slices.Clone(m.sent[b.base]))
		require.NoError(m.t, err, "%v", m.trace)
		m.plain.append(b)
		m.forget()
	}
}

// adopt goes on from the one of several states that the log is in.
func (m *model) adopt(states []plainLog) {
	for _, p := range states {
		m.plain = p
		if m.difference() == "" {
			return
		}
	}
	m.settled("none of the states is that of the log")
}

// refetch begins the log anew where the leader's would end.
func (m *model) refetch() {
	end := m.plain.end
	m.note("begin anew at %d", end)
	require.NoError(m.t, m.log.TruncateFullyAndStartAt(end, -1))
	require.NoError(m.t, m.log.Err())
	m.plain = plainLog{start: end, high: end, end: end, dirty: -1}
	m.committed, m.unsure = end, false
	m.epoch++
	require.NoError(m.t, m.log.AssignEpochStart(m.epoch, end))
}

func (m *model) step() {
	switch n := m.rng.IntN(100); {
	case n < 52:
		m.produce(int64(m.rng.IntN(4)))
	case n < 61:
		m.endTxn()
	case n < 68:
		m.commit()
	case n < 71:
		m.truncate()
	case n < 73:
		m.deleteRecords()
	case n < 75:
		m.retention()
	case n < 78:
		m.note("roll")
		require.NoError(m.t, roll(m.log))
	case n < 81:
		m.note("flush")
		require.NoError(m.t, m.log.Flush())
		m.synced = m.plain.end
	case n < 83:
		m.epoch++
		m.note("epoch %d", m.epoch)
		require.NoError(m.t, m.log.AssignEpochStart(m.epoch, m.plain.end))
	case n < 86:
		m.note("background")
		m.m.sweep()
		m.m.dirs[0].flusher.work(false)
		m.m.removeDue(m.clock.at)
	case n < 87:
		m.policy()
	case n < 93:
		m.compact()
	case n < 96:
		m.restart()
	case n < 99:
		m.crash()
	default:
		m.clock.advance(time.Duration(m.rng.IntN(3000)) * time.Millisecond)
	}
	m.check()
}

func TestRandomOperationsAgreeWithAPlainList(t *testing.T) {
	first, last := uint64(1), uint64(modelSeeds)
	if testing.Short() {
		last = modelSeedsFew
	}
	if s := os.Getenv("BARNABAS_SEED"); s != "" { // one seed, or "from-to"
		_, err := fmt.Sscanf(s+"-"+s, "%d-%d", &first, &last)
		require.NoError(t, err)
	}
	counts := make(chan map[string]int, last-first+1)
	t.Run("seeds", func(t *testing.T) {
		for seed := first; seed <= last; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				m := newModel(t, seed)
				for range modelSteps {
					m.step()
				}
				m.settled("the end")
				require.NoError(t, m.m.Close())
				problems, err := Verify(m.fs, m.log.Dir())
				require.NoError(t, err)
				require.Empty(t, problems, "%v", m.trace)
				counts <- m.counts
			})
		}
	})
	close(counts)
	total := map[string]int{}
	for c := range counts {
		for what, n := range c {
			total[what] += n
		}
	}
	t.Logf("%d seeds of %d operations; compactions: %v", last-first+1, modelSteps, total)
	if last-first >= modelSeeds-1 && !t.Failed() {
		for _, what := range []string{"messages gone", "tombstones in messages gone", "wrappers made smaller", "down-converted", "done", "in part", "interrupted", "overtaken", "records gone", "tombstones gone", "markers gone", "empty batches"} {
			require.Positive(t, total[what], what)
		}
	}
}

func TestASeedIsOneOrderOfEvents(t *testing.T) {
	run := func() (history []vfs.Op) {
		m := newModel(t, 1)
		for range 150 {
			m.step()
		}
		require.NoError(t, m.m.Close())
		return m.fs.History(0)
	}
	require.Equal(t, run(), run())
}
