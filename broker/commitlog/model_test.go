package commitlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// modelRecord is a record as the model remembers it.
type modelRecord struct {
	offset, ts int64
	epoch      int32
	value      string
	batch      int64 // base offset of its batch
}

// model is a partition's log as a plain list, and the operations that are done to it and to a real log.
type model struct {
	t       *testing.T
	rng     *rand.Rand
	fs      *vfs.CrashFS
	clock   *clock
	m       *opened
	log     *Log
	records []modelRecord
	start   int64
	end     int64
	high    int64
	epoch   int32
	synced  int64 // everything below was flushed
	pids    map[int64]*modelProducer
	trace   []string
}

type modelProducer struct {
	seq int32
	txn bool
}

const modelDir = "/data"

// modelSegments is small, so that a few operations roll.
func (m *model) config() Config {
	c := smallConfig()
	c.SegmentBytes = 3000
	c.IndexInterval = 300
	c.SegmentIndexBytes = 64
	c.RetentionMs = -1
	return c
}

func (m *model) open() {
	// Without background work, so that a seed is one order of events.
	loaded, err := load(still(ManagerConfig{Dirs: []string{modelDir}, FS: m.fs, Default: m.config()}, m.clock))
	require.NoError(m.t, err)
	m.m = &opened{loaded, m.t, m.clock}
	l, err := m.m.GetOrCreate(tp0, TopicID{1}, false)
	require.NoError(m.t, err)
	m.log = l
}

// note keeps the last operations, for the message of a failure.
func (m *model) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
	m.trace = m.trace[max(0, len(m.trace)-25):]
}

// batchStart returns the offset at which the batch that holds offset begins.
func (m *model) batchStart(offset int64) int64 {
	for _, r := range m.records {
		if r.offset >= offset {
			return min(offset, r.batch)
		}
	}
	return offset
}

func (m *model) produce() {
	n := 1 + m.rng.IntN(5)
	o := record.BuilderOptions{Codec: record.Codec(m.rng.IntN(5))}
	pid := int64(m.rng.IntN(4))
	p := m.pids[pid]
	if pid > 0 {
		if p == nil {
			p = &modelProducer{}
			m.pids[pid] = p
		}
		if p.seq == 0 {
			p.txn = m.rng.IntN(2) == 0
		}
		o.Producer = &record.Producer{ID: pid, BaseSequence: p.seq, Transactional: p.txn}
	}
	b := record.NewBuilder(o)
	var added []modelRecord
	for i := range n {
		ts := m.clock.at.UnixMilli() + int64(m.rng.IntN(1000))
		value := strconv.Itoa(m.rng.IntN(1_000_000)) + string(make([]byte, m.rng.IntN(200)))
		b.Append(ts, nil, []byte(value))
		added = append(added, modelRecord{m.end + int64(i), ts, m.epoch, value, m.end})
	}
	batch, err := b.Build()
	require.NoError(m.t, err)
	m.note("produce %d records, pid %d at %d", n, pid, m.end)
	info, err := m.log.AppendAsLeader(batch, m.epoch, AppendOptions{RequireV2: true})
	require.NoError(m.t, err, "%v", m.trace)
	require.Equal(m.t, m.end, info.FirstOffset, "%v", m.trace)
	require.Equal(m.t, m.end+int64(n)-1, info.LastOffset)
	m.records = append(m.records, added...)
	m.end += int64(n)
	if p != nil {
		p.seq = record.AddSequence(p.seq, int32(n))
	}
	m.clock.advance(1)
}

// endTxn writes a marker.
func (m *model) endTxn() {
	pid := int64(1 + m.rng.IntN(3))
	p := m.pids[pid]
	if p == nil || !p.txn || !m.log.HasOpenTransaction(pid) {
		return
	}
	typ := record.Commit
	if m.rng.IntN(2) == 0 {
		typ = record.Abort
	}
	m.note("%v of pid %d at %d", typ, pid, m.end)
	b := record.NewEndTxnBatch(record.EndTxnMarker{Type: typ}, pid, 0, m.clock.at.UnixMilli())
	info, err := m.log.AppendAsLeader(b, m.epoch, AppendOptions{Origin: Coordinator})
	require.NoError(m.t, err, "%v", m.trace)
	m.records = append(m.records, modelRecord{m.end, m.clock.at.UnixMilli(), m.epoch, "\x00\x00\x00\x00\x00\x00", m.end})
	m.end = info.LastOffset + 1
}

func (m *model) truncate() {
	if m.end == m.high {
		return
	}
	at := m.high + m.rng.Int64N(m.end-m.high+1)
	m.note("truncate to %d of %d", at, m.end)
	require.NoError(m.t, m.log.TruncateTo(at), "%v", m.trace)
	m.cutTo(m.batchStart(at))
}

func (m *model) cutTo(end int64) {
	for len(m.records) > 0 && m.records[len(m.records)-1].offset >= end {
		m.records = m.records[:len(m.records)-1]
	}
	m.end = min(m.end, end)
	m.high = min(m.high, m.end)
	m.start = min(m.start, m.end)
	m.synced = min(m.synced, m.end)
	// Sequences that were cut are sent again: take them from the log, whose state is compared with a replay elsewhere.
	m.pids = map[int64]*modelProducer{}
	for _, p := range m.log.ProducerStates() {
		m.pids[p.ProducerID] = &modelProducer{seq: nextSequence(p.LastSequence), txn: p.TxnStartOffset >= 0 || m.rng.IntN(2) == 0}
	}
}

func nextSequence(last int32) int32 {
	if last == record.NoSequence {
		return 0
	}
	return record.AddSequence(last, 1)
}

func (m *model) advanceStart() {
	if m.high <= m.start {
		return
	}
	to := m.start + m.rng.Int64N(m.high-m.start+1)
	m.note("start at %d", to)
	_, err := m.log.AdvanceStartOffset(to, "test")
	require.NoError(m.t, err)
	m.start = max(m.start, to)
	require.NoError(m.t, m.log.applyRetention(m.clock.at.UnixMilli()))
}

func (m *model) restart(crash bool) {
	if !crash {
		m.note("restart")
		states := m.log.ProducerStates()
		require.NoError(m.t, m.m.Close())
		m.open()
		require.Equal(m.t, states, m.log.ProducerStates(), "%v", m.trace)
		require.False(m.t, m.log.Recovery().Ran)
		m.synced = m.end
		return
	}
	a := vfs.Adversaries[m.rng.IntN(len(vfs.Adversaries))]
	m.note("crash: %s", a)
	if m.rng.IntN(2) == 0 {
		m.m.checkpointRecoveryPoints()
		m.m.checkpointStartOffsets()
		m.m.CheckpointHighWatermarks()
	}
	image := m.fs.Image(m.fs.Ops(), a, m.rng.Uint64())
	_ = m.m.Close()
	m.fs = image
	m.open()
	if err := m.log.Err(); err != nil {
		// What was committed and never synced has a hole: the replica is fetched anew from another one.
		require.NotEqual(m.t, vfs.Everything, a)
		require.Greater(m.t, m.high, m.synced, "%v: %v", err, m.trace)
		m.refetch()
		return
	}
	end := m.log.EndOffset()
	require.LessOrEqual(m.t, end, m.end, "%v", m.trace)
	require.GreaterOrEqual(m.t, end, m.synced, "flushed records are gone: %v", m.trace)
	if a == vfs.Everything {
		require.Equal(m.t, m.end, end, "%v", m.trace)
	}
	m.cutTo(end)
	require.LessOrEqual(m.t, m.log.StartOffset(), m.start)
	m.start = m.log.StartOffset()
	m.high = min(m.high, max(m.log.HighWatermark(), m.start))
	m.log.SetHighWatermark(m.high)
	m.epoch++ // as the controller would have it
	require.NoError(m.t, m.log.AssignEpochStart(m.epoch, m.end))
}

// refetch begins the log anew where the leader's would end.
func (m *model) refetch() {
	m.note("begin anew at %d", m.end)
	require.NoError(m.t, m.log.TruncateFullyAndStartAt(m.end, -1))
	require.NoError(m.t, m.log.Err())
	m.records, m.start, m.high, m.pids = nil, m.end, m.end, map[int64]*modelProducer{}
	m.epoch++
	require.NoError(m.t, m.log.AssignEpochStart(m.epoch, m.end))
}

func (m *model) check() {
	require.Equal(m.t, m.end, m.log.EndOffset(), "%v", m.trace)
	require.Equal(m.t, m.start, m.log.StartOffset(), "%v", m.trace)
	require.Equal(m.t, m.high, m.log.HighWatermark(), "%v", m.trace)
	if m.end == m.start {
		return
	}
	from := m.start + m.rng.Int64N(m.end-m.start)
	upTo := from + m.rng.Int64N(m.end-from+1)
	got := readAll(m.t, m.log, from, upTo)
	i := 0
	for _, r := range m.records {
		if r.offset < from || m.batchEnd(r.batch) > upTo {
			continue
		}
		require.Less(m.t, i, len(got), "offset %d is missing from %d..%d: %v", r.offset, from, upTo, m.trace)
		require.Equal(m.t, r.offset, got[i].Offset, "%v", m.trace)
		require.Equal(m.t, r.ts, got[i].Timestamp)
		if r.value[0] != 0 {
			require.Equal(m.t, r.value, string(got[i].Value))
		}
		epoch, ok := m.log.EpochAt(r.offset)
		require.True(m.t, ok, "%v", m.trace)
		require.Equal(m.t, r.epoch, epoch, "offset %d: %v", r.offset, m.trace)
		i++
	}
	require.Len(m.t, got, i)
	m.checkTime()
}

func (m *model) batchEnd(base int64) int64 {
	end := base
	for _, r := range m.records {
		if r.batch == base {
			end = r.offset + 1
		}
	}
	return end
}

func (m *model) checkTime() {
	ts := m.clock.at.UnixMilli() + int64(m.rng.IntN(2500)) - 1500
	want, newest := modelRecord{offset: -1, ts: -1}, modelRecord{offset: -1, ts: -1}
	for _, r := range m.records {
		if r.offset < m.start {
			continue
		}
		if want.offset < 0 && r.ts >= ts {
			want = r
		}
		if r.ts > newest.ts {
			newest = r
		}
	}
	offset, at, _, found, err := m.log.OffsetForTimestamp(ts)
	require.NoError(m.t, err)
	require.Equal(m.t, want.offset >= 0, found, "time %d: %v", ts, m.trace)
	require.Equal(m.t, [2]int64{want.offset, want.ts}, [2]int64{offset, at}, "time %d: %v", ts, m.trace)
	offset, at, _, _, err = m.log.MaxTimestampOffset()
	require.NoError(m.t, err)
	require.Equal(m.t, [2]int64{newest.offset, newest.ts}, [2]int64{offset, at}, "%v", m.trace)
}

// replayed compares the producer state with a replay of the log (I11). Only while all of the log is there.
func (m *model) replayed() {
	if m.log.list()[0].base > 0 {
		return
	}
	var p producers
	for _, s := range m.log.list() {
		require.NoError(m.t, m.log.replaySegment(s, &p, m.end))
	}
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	require.Len(m.t, m.log.mu.producers.byID, len(p.byID), "%v", m.trace)
	for id, want := range p.byID {
		got := m.log.mu.producers.byID[id]
		require.NotNil(m.t, got)
		a, _ := want.last()
		b, _ := got.last()
		require.Equal(m.t, a, b, "%v", m.trace)
		require.Equal(m.t, want.txnStart, got.txnStart, "%v", m.trace)
	}
	require.Equal(m.t, len(p.open), len(m.log.mu.producers.open))
}

func (m *model) step() {
	switch n := m.rng.IntN(100); {
	case n < 55:
		m.produce()
	case n < 62:
		m.endTxn()
	case n < 68:
		m.high = m.log.SetHighWatermark(m.high + m.rng.Int64N(m.end-m.high+1))
		m.note("high watermark %d", m.high)
	case n < 73:
		m.truncate()
	case n < 77:
		m.advanceStart()
	case n < 81:
		m.note("roll")
		require.NoError(m.t, m.log.Roll())
	case n < 85:
		m.note("flush")
		require.NoError(m.t, m.log.Flush())
		m.synced = m.end
	case n < 88:
		m.epoch++
		m.note("epoch %d", m.epoch)
		require.NoError(m.t, m.log.AssignEpochStart(m.epoch, m.end))
	case n < 92:
		m.note("background")
		m.m.sweep()
		m.m.dirs[0].flusher.work(false)
	case n < 95:
		m.restart(false)
	case n < 98:
		m.restart(true)
	}
	m.check()
}

func TestRandomOperationsAgreeWithAPlainList(t *testing.T) {
	first, last := uint64(1), uint64(10)
	if s := os.Getenv("BARNABAS_SEED"); s != "" { // one seed, or "from-to"
		_, err := fmt.Sscanf(s+"-"+s, "%d-%d", &first, &last)
		require.NoError(t, err)
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 0)), fs: vfs.NewCrashFS(), clock: newClock(), pids: map[int64]*modelProducer{}}
			m.open()
			for range 400 {
				m.step()
			}
			m.replayed()
			require.NoError(t, m.m.Close())
			problems, err := Verify(m.fs, modelDir+"/topic-0")
			require.NoError(t, err)
			require.Empty(t, problems, "%v", m.trace)
		})
	}
}
