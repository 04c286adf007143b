package commitlog

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// dirty fills a log with some sealed segments of few keys.
func dirty(t *testing.T, l *Log, ts int64, batches int) {
	for i := range batches {
		appendKeyed(t, l, record.BuilderOptions{}, ts, keyed{key: fmt.Sprint("k", i%7), value: fmt.Sprintf("%0100d", i)})
	}
}

// chosen is the scope of the log that the cleaner would clean now.
func chosen(t *testing.T, m *opened) (*Log, *cleanPass) {
	l, scope := m.cleaner.choose(m.clock.at.UnixMilli())
	require.NotNil(t, l)
	require.NoError(t, l.flushSealed())
	return l, &cleanPass{
		l: l, c: l.Config(), scope: scope, nowMs: m.clock.at.UnixMilli(), buffer: 1 << 16, pace: func(int64) error { return nil },
	}
}

func TestH10WhoCutsOrDeletesALogWaitsForNoCleaning(t *testing.T) {
	for name, cut := range map[string]func(m *opened, l *Log) error{
		"truncated":  func(m *opened, l *Log) error { return l.TruncateTo(l.list()[1].base) },
		"begun anew": func(m *opened, l *Log) error { return l.TruncateFullyAndStartAt(5, -1) },
		"deleted":    func(m *opened, l *Log) error { return m.Delete(l.TP()) },
		"start moved": func(m *opened, l *Log) error {
			if _, err := l.AdvanceStartOffset(l.list()[2].base, "test"); err != nil {
				return err
			}
			return l.applyRetention(m.clock.at.UnixMilli())
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := openManager(t, vfs.NewCrashFS(), compacted(), newClock(), "/data")
			dirty(t, m.log(), m.clock.at.UnixMilli(), 80)
			l, p := chosen(t, m)
			if name == "truncated" {
				l.SetHighWatermark(0)
			}
			cutNow := false
			p.pace = func(int64) error {
				if !cutNow {
					cutNow = true
					return cut(m, l)
				}
				return nil
			}
			require.ErrorIs(t, p.run(1<<20, 0.9), errOvertaken)
			if name == "deleted" {
				return
			}
			names, err := l.fileNames()
			require.NoError(t, err)
			for _, n := range names {
				require.NotContains(t, n, cleanedSuffix)
				require.NotContains(t, n, swapSuffix)
			}
			// Nothing has to be resumed: the next round cleans what there is.
			m.cleaner.mu.Lock()
			l.cleaning.busy = false
			m.cleaner.mu.Unlock()
			dirty(t, l, m.clock.at.UnixMilli(), 80)
			require.True(t, m.cleanOnce())
			require.NoError(t, l.CleanerError())
			require.NoError(t, l.Err())
			values, _ := kept(t, l)
			require.Len(t, values, 7)
		})
	}
}

func TestALogWhoseCleaningFailsIsSetAsideAndTheOthersAreCleaned(t *testing.T) {
	dir := t.TempDir()
	m := openManager(t, vfs.OS, compacted(), newClock(), dir)
	bad := m.log()
	good, err := m.GetOrCreate(TopicPartition{"topic", 1}, TopicID{}, false)
	require.NoError(t, err)
	dirty(t, bad, m.clock.at.UnixMilli(), 80)
	dirty(t, good, m.clock.at.UnixMilli(), 80)
	require.NoError(t, bad.Flush())
	path := filepath.Join(bad.Dir(), fileName(0, logSuffix))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[100] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o644))
	for m.cleanOnce() {
	}
	require.Error(t, bad.CleanerError())
	require.Contains(t, bad.CleanerError().Error(), path, "it says where the damage is")
	require.NoError(t, bad.Err(), "and is served as before")
	require.NoError(t, good.CleanerError())
	require.Positive(t, good.cleaned.Load())
	require.Equal(t, 1, m.CleanerStats().SetAside)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, data, after)
}

func TestH48SegmentsWhoseOffsetsDoNotFitIntoOneStayApart(t *testing.T) {
	m := openManager(t, vfs.NewCrashFS(), compacted(), newClock(), "/data")
	l := m.log()
	want := map[string]keyed{}
	for i, at := range []int64{0, 10, math.MaxInt32 - 1, math.MaxInt32 + 10, 3 * math.MaxInt32, 3*math.MaxInt32 + 1} {
		r := keyed{key: fmt.Sprint("k", i%4), value: fmt.Sprint(i)}
		want[r.key] = r
		b := keyedBatch(t, record.BuilderOptions{BaseOffset: at}, m.clock.at.UnixMilli(), r)
		b.SetPartitionLeaderEpoch(0)
		_, err := l.AppendAsFollower(b)
		require.NoError(t, err)
		require.NoError(t, roll(l))
	}
	l.SetHighWatermark(l.EndOffset())
	require.True(t, m.cleanOnce())
	require.NoError(t, l.CleanerError())
	got, _ := kept(t, l)
	require.Equal(t, want, got)
	for i, s := range l.list() {
		if i > 0 {
			require.Less(t, l.list()[i-1].base, s.base)
		}
	}
}

func TestWhatTheMapHasNoRoomForIsCleanedInTheNextRounds(t *testing.T) {
	m := openManager(t, vfs.NewCrashFS(), compacted(), newClock(), "/data")
	l := m.log()
	want := map[string]keyed{}
	for i := range 400 {
		r := keyed{key: fmt.Sprint("k", i%50), value: fmt.Sprint(i)}
		want[r.key] = r
		appendKeyed(t, l, record.BuilderOptions{}, m.clock.at.UnixMilli(), r)
	}
	rounds := 0
	for m.cleanWithin(30 * offsetMapEntry) {
		rounds++
		require.NoError(t, l.CleanerError())
		require.Less(t, rounds, 100)
	}
	require.Greater(t, rounds, 5)
	got, _ := kept(t, l)
	require.Equal(t, want, got)
}

// A cleaning that begins inside a segment, since records were deleted up to there or the map was full before, meets no marker of
// the transactions that ended before it. What their producers commit later is committed all the same: were its keys left out
// of the map, a value would outlive the tombstone that a transaction has put behind it.
func TestATransactionAbortedBeforeTheDirtyPartDoesNotHideALaterOne(t *testing.T) {
	m := openManager(t, vfs.NewCrashFS(), compacted(), newClock(), "/data")
	l := m.log()
	end := func(kind record.ControlType) {
		_, err := l.AppendAsLeader(record.NewEndTxnBatch(record.EndTxnMarker{Type: kind}, 5, 0, m.clock.at.UnixMilli()), 0, AppendOptions{Origin: Coordinator})
		require.NoError(t, err)
	}
	send := func(sequence int32, r keyed) AppendInfo {
		return appendKeyed(t, l, record.BuilderOptions{Producer: &record.Producer{ID: 5, BaseSequence: sequence, Transactional: true}}, m.clock.at.UnixMilli(), r)
	}
	send(0, keyed{key: "other", value: "aborted"})
	end(record.Abort)
	old := appendKeyed(t, l, record.BuilderOptions{}, m.clock.at.UnixMilli(), keyed{key: "k", value: "old"})
	send(1, keyed{key: "k", tombstone: true})
	end(record.Commit)
	require.NoError(t, roll(l))
	l.SetHighWatermark(l.EndOffset())
	_, err := l.AdvanceStartOffset(old.FirstOffset, "test")
	require.NoError(t, err)
	require.True(t, m.cleanOnce())
	require.NoError(t, l.CleanerError())
	values, offsets := kept(t, l)
	require.NotContains(t, offsets, old.FirstOffset)
	require.True(t, values["k"].tombstone)
}

func TestTheScopeOfACleaning(t *testing.T) {
	f := cleanFacts{
		sealed: []cleanSegment{{base: 0, size: 100, newest: 10, oldest: 5}, {base: 10, size: 100, newest: 20, oldest: 15}, {base: 20, size: 100, newest: 30, oldest: 25}},
		active: 30, stable: 35, nowMs: 100, maxLagMs: math.MaxInt64, worthwhile: 0.5,
	}
	require.Equal(t, cleanScope{dirty: 0, bound: 30, ratio: 1, ready: true}, f.scope())
	f.stable = 25 // inside the last sealed segment: that one is not touched
	require.Equal(t, cleanScope{dirty: 0, bound: 20, ratio: 1, ready: true}, f.scope())
	f.stable, f.dirty = 35, 20
	s := f.scope()
	require.InDelta(t, 1.0/3, s.ratio, 1e-9)
	require.False(t, s.ready, "too little is dirty")
	f.maxLagMs = 50
	require.True(t, f.scope().ready, "something has waited for too long")
	f.dirty, f.lagMs = 0, 85 // what is younger than time 15 waits
	require.Equal(t, int64(10), f.scope().bound)
	f.dirty = 30
	require.False(t, f.scope().ready)
	require.Equal(t, int64(3), firstDirty(100, 3, 50))
	require.Equal(t, int64(3), firstDirty(noOffset, 3, 50))
	require.Equal(t, int64(40), firstDirty(40, 3, 50))
}

func TestThreadsCleanByThemselvesAndEndWithTheManager(t *testing.T) {
	cfg := ManagerConfig{Dirs: []string{"/data"}, FS: vfs.NewCrashFS(), Default: compacted()}
	cfg.Cleaner = CleanerConfig{Threads: 2, DedupeBytes: 1 << 16, Backoff: time.Millisecond, MaxBytesPerSecond: 1e9}
	m := openWith(t, cfg, newClock())
	l := m.log()
	dirty(t, l, m.clock.at.UnixMilli(), 100)
	require.Eventually(t, func() bool { return l.cleaned.Load() == l.active().base }, time.Minute, time.Millisecond)
	m.ConfigureCleaner(CleanerConfig{})
	require.Positive(t, m.CleanerStats().Cleanings)
}

func TestTheThrottleKeepsToItsRate(t *testing.T) {
	var th throttle
	now := time.UnixMilli(1000)
	require.Zero(t, th.wait(1<<30, now), "without a rate nothing waits")
	th.setRate(1000)
	require.Equal(t, time.Second, th.wait(1000, now))
	require.Equal(t, 1500*time.Millisecond, th.wait(500, now))
	require.Equal(t, 500*time.Millisecond, th.wait(500, now.Add(10*time.Second)))
	stop := make(chan struct{})
	close(stop)
	require.True(t, errors.Is(th.pace(1e9, stop), errStopping))
}

func TestMessagesOfOldAreCleanedTo(t *testing.T) {
	for _, magic := range []int8{0, 1} {
		for _, codec := range []record.Codec{record.None, record.Gzip} {
			var set []byte
			for i := range int64(4) {
				set = record.AppendMessage(set, magic, record.None, false, i, 50+i, fmt.Appendf(nil, "k%d", i), []byte("v"))
			}
			if codec != record.None {
				packed, err := record.Compress(codec, record.DefaultLevel, nil, set)
				require.NoError(t, err)
				set = record.AppendMessage(nil, magic, codec, false, 3, 53, nil, packed)
			}
			f := cleanFilter{keys: newOffsetMap(1000, 0.9, 100), txns: newTxnTracker(nil, 0)}
			require.True(t, f.keys.put(f.keys.hash([]byte("k1")), 9))
			var left []int64
			for rest := set; len(rest) > 0; {
				m, next, err := record.NextMessage(rest)
				require.NoError(t, err)
				out, err := f.entry(m)
				require.NoError(t, err)
				rest = next
				if out == nil {
					continue
				}
				o, _, err := record.NextMessage(out)
				require.NoError(t, err)
				require.NoError(t, o.CheckCRC())
				for r, err := range o.Messages(record.Limits{}) {
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint("k", r.Offset), string(r.Key))
					left = append(left, r.Offset)
				}
			}
			require.Equal(t, []int64{0, 2, 3}, left, "magic %d, %s", magic, codec)
		}
	}
}

// What Kafka wrote, and has cleaned in part, is cleaned by us: of each key the same last record is left.
func TestADirectoryOfKafkasIsCleaned(t *testing.T) {
	for _, name := range []string{"2.8.2-clean", "3.9.1-clean", "2.8.2-crashed", "3.9.1-crashed"} {
		t.Run(name, func(t *testing.T) {
			dir := unpack(t, name)
			m := openWith(t, ManagerConfig{Dirs: []string{dir}, FS: vfs.OS, TopicConfig: func(topic string) Config {
				c := topicConfig(topic)
				c.CleanupCompact = topic == "compacted"
				c.CleanupDelete, c.MinCleanableDirtyRatio = false, 0
				return c
			}}, fixtureClock(t, dir))
			l := m.Get(TopicPartition{"compacted", 0})
			require.NotNil(t, l)
			require.NoError(t, roll(l))
			l.SetHighWatermark(l.EndOffset())
			before, offsets := kept(t, l)
			for m.cleanOnce() {
				require.NoError(t, l.CleanerError())
			}
			require.Equal(t, l.EndOffset(), l.cleaned.Load())
			after, left := kept(t, l)
			require.Equal(t, before, after)
			require.Len(t, left, len(after), "each key stands once")
			require.LessOrEqual(t, len(left), len(offsets))
			path := l.Dir()
			require.NoError(t, m.Close())
			requireVerified(t, path)
		})
	}
}
