package commitlog

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// copyTo brings a future log to where the current one ends.
func copyTo(t testing.TB, next, l *Log) {
	for range 1000 {
		n, err := next.CopyFrom(l, 3000)
		require.NoError(t, err)
		if n == 0 && next.EndOffset() == l.EndOffset() {
			return
		}
	}
	t.Fatal("the copy does not come to an end")
}

func TestAMoveBetweenDirectories(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, fs, smallConfig(), clk, "/a", "/b")
	require.NoError(t, m.PreferDir(tp0, "/b"))
	require.ErrorIs(t, m.PreferDir(tp0, "/c"), kerr.LogDirNotFound)
	l := m.log()
	require.Equal(t, "/b", l.ParentDir())
	for range 20 {
		produce(t, l, batchSpec{size: 1000, ts: 1})
	}
	next, err := m.GetOrCreate(tp0, TopicID{}, true)
	require.NoError(t, err)
	require.Equal(t, "/a", next.ParentDir())
	require.True(t, next.IsFuture())
	_, err = m.PromoteFuture(tp0)
	require.ErrorContains(t, err, "holds offsets 0 to 0, the current one 0 to 20")
	copyTo(t, next, l)
	promoted, err := m.PromoteFuture(tp0)
	require.NoError(t, err)
	require.Same(t, next, promoted)
	require.Same(t, next, m.Get(tp0))
	require.Nil(t, m.GetFuture(tp0))
	require.Equal(t, "/a/topic-0", next.Dir())
	produce(t, next, batchSpec{ts: 1})
	require.NoError(t, m.Close())
	m = openManager(t, fs, smallConfig(), clk, "/a", "/b")
	require.EqualValues(t, 21, m.log().EndOffset())
}

// A partition is moved to and fro, with appends and flushes between, truncations and a restart, and the power is cut behind
// each operation of the disk. The broker always comes back with one log of the partition, which holds what was flushed under
// the epochs it was written in; a move that was not finished can go on.
func TestAPowerCutDuringAMoveLosesNothing(t *testing.T) {
	boot := func(fs vfs.FS, clk *clock) (*Manager, error) {
		return load(still(ManagerConfig{Dirs: []string{"/a", "/b"}, FS: fs, Default: crashConfig()}, clk))
	}
	type promise struct {
		ops     int
		what    string
		flushed int64
		epoch   int32
		start   int64
		moving  bool
		dir     string // where the log is for good
	}
	fs, clk := vfs.NewCrashFS(), newClock()
	m, err := boot(fs, clk)
	require.NoError(t, err)
	var promises []promise
	var now promise
	done := func(what string) {
		now.ops, now.what = fs.Ops(), what
		promises = append(promises, now)
	}
	done("boot")
	rng := rand.New(rand.NewPCG(4, 2))
	for move := range 3 {
		l, err := m.GetOrCreate(tp0, TopicID{1}, false)
		require.NoError(t, err)
		epoch := int32(move)
		require.NoError(t, l.AssignEpochStart(epoch, l.EndOffset()))
		for range 6 {
			_, err := l.AppendAsLeader(batchSpec{count: 1, size: rng.IntN(500), ts: clk.at.UnixMilli()}.build(t), epoch, AppendOptions{RequireV2: true})
			require.NoError(t, err)
		}
		require.NoError(t, l.Flush())
		l.SetHighWatermark(l.EndOffset())
		now.flushed, now.epoch = l.EndOffset(), epoch
		done("flush")
		if move == 1 {
			moved, err := l.AdvanceStartOffset(3, "test")
			require.NoError(t, err)
			require.True(t, moved)
			m.checkpointMovedStarts()
			now.start = 3
			done("start")
		}
		next, err := m.GetOrCreate(tp0, TopicID{1}, true)
		require.NoError(t, err)
		now.moving = true
		done("future")
		copyTo(t, next, l)
		m.checkpointRecoveryPoints()
		m.CheckpointHighWatermarks()
		done("copied")
		promoted, err := m.PromoteFuture(tp0)
		require.NoError(t, err)
		now.moving, now.dir = false, promoted.ParentDir()
		done("promoted")
		clk.advance(2 * time.Second)
		m.removeDue(clk.at)
		done("removed")
		if move == 1 {
			require.NoError(t, m.Close())
			m, err = boot(fs, clk)
			require.NoError(t, err)
			done("restarted")
		}
		now.dir = ""
	}

	disks, doubles := 0, 0
	for cut := range fs.Ops() + 1 {
		before := promises[0]
		for _, p := range promises {
			if p.ops <= cut {
				before = p
			}
		}
		for _, a := range vfs.Adversaries {
			{
				seed := uint64(cut)
				where := fmt.Sprintf("cut behind operation %d, %s %d, after %q: %v", cut, a, seed, before.what, fs.History(max(0, cut-4))[:min(4, cut)])
				disk := fs.Image(cut, a, seed)
				names := 0
				for _, dir := range []string{"/a", "/b"} {
					if _, err := disk.Stat(filepath.Join(dir, tp0.String())); err == nil {
						names++
					}
				}
				doubles += max(0, names-1)
				m, err := boot(disk, clk)
				require.NoError(t, err, where)
				disks++
				l := m.Get(tp0)
				if l == nil {
					require.Zero(t, before.flushed, "the log is gone: %s", where)
					require.NoError(t, m.Close(), where)
					continue
				}
				require.NoError(t, l.Err(), where)
				require.GreaterOrEqual(t, l.EndOffset(), before.flushed, where)
				require.GreaterOrEqual(t, l.StartOffset(), before.start, where)
				if before.dir != "" {
					require.Equal(t, before.dir, l.ParentDir(), where)
				}
				if before.flushed > 0 {
					epoch, ok := l.EpochAt(before.flushed - 1)
					require.True(t, ok, where)
					require.Equal(t, before.epoch, epoch, where)
				}
				if next := m.GetFuture(tp0); next != nil {
					copyTo(t, next, l)
					l, err = m.PromoteFuture(tp0)
					require.NoError(t, err, where)
				} else {
					require.False(t, before.moving && before.what == "copied" && cut == before.ops, where)
				}
				_, err = l.AppendAsLeader(batchSpec{ts: 1}.build(t), 9, AppendOptions{RequireV2: true})
				require.NoError(t, err, where)
				end, dir := l.EndOffset(), l.Dir()
				require.NoError(t, m.Close(), where)
				problems, err := Verify(disk, dir)
				require.NoError(t, err, where)
				require.Empty(t, problems, where)
				m, err = boot(disk, clk)
				require.NoError(t, err, where)
				require.Equal(t, end, m.Get(tp0).EndOffset(), where)
				require.Nil(t, m.GetFuture(tp0), where)
				require.NoError(t, m.Close(), where)
			}
		}
	}
	require.Positive(t, doubles, "no cut was between the two names")
	t.Logf("%d disks, %d with two logs of the partition", disks, doubles)
}

// The directory that a log is moved out of fails before the old log lost its name. When it comes back the old log is known
// to be old, whatever was appended or moved meanwhile.
func TestAReplacedLogIsKnownWhenItsDirectoryComesBack(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	open := func() *opened { return openManager(t, fs, smallConfig(), clk, "/a", "/b", "/c") }
	move := func(m *opened, to string) *Log {
		old := m.Get(tp0)
		require.NoError(t, m.PreferDir(tp0, to))
		next, err := m.GetOrCreate(tp0, TopicID{}, true)
		require.NoError(t, err)
		copyTo(t, next, old)
		promoted, err := m.PromoteFuture(tp0)
		require.NoError(t, err)
		require.Equal(t, to, promoted.ParentDir())
		produce(t, promoted, batchSpec{ts: 1})
		return promoted
	}
	m := open()
	require.NoError(t, m.PreferDir(tp0, "/a"))
	produce(t, m.log(), batchSpec{ts: 1})
	fs.Inject(func(o vfs.Op) error {
		if o.Kind == vfs.OpRename && strings.HasPrefix(o.Name, "/a/topic-0") {
			return syscall.EIO
		}
		return nil
	})
	move(m, "/b")
	require.ErrorIs(t, m.Dirs()[0].Err, kerr.KafkaStorageError)
	require.NoError(t, m.Close())

	fs.Inject(func(o vfs.Op) error {
		if strings.HasPrefix(o.Name, "/a/") {
			return syscall.EIO
		}
		return nil
	})
	m = open()
	require.Equal(t, "/b", m.Get(tp0).ParentDir())
	move(m, "/c")
	require.NoError(t, m.Close())

	fs.Inject(nil)
	m = open()
	require.Equal(t, "/c", m.Get(tp0).ParentDir())
	require.EqualValues(t, 3, m.Get(tp0).EndOffset())
	clk.advance(2 * time.Second)
	m.removeDue(clk.now())
	_, err := fs.Stat("/a/topic-0")
	require.Error(t, err)
	entries, err := fs.ReadDir("/a")
	require.NoError(t, err)
	for _, e := range entries {
		require.False(t, e.IsDir(), e.Name())
	}
}

// Whatever happens to the current log between two steps of the copy (appends, other leaders, truncations, deletions at the
// start, compaction), the future log ends up with the same batches, epochs and producers.
func TestAFutureLogFollowsWhateverHappensToTheCurrentOne(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 5))
		fs, clk := vfs.NewCrashFS(), newClock()
		c := crashConfig()
		c.CleanupCompact, c.MinCleanableDirtyRatio = seed%3 == 0, 0
		m, err := load(still(ManagerConfig{Dirs: []string{"/a", "/b"}, FS: fs, Default: c}, clk))
		require.NoError(t, err)
		l, err := m.GetOrCreate(tp0, TopicID{1}, false)
		require.NoError(t, err)
		next, err := m.GetOrCreate(tp0, TopicID{1}, true)
		require.NoError(t, err)
		epoch, newest := int32(0), int32(0)
		written := map[int32]int64{} // by epoch, behind the last offset it ever wrote: no offset is written twice in an epoch
		var trace []string
		for range 60 {
			clk.advance(10 * time.Millisecond)
			switch rng.IntN(10) {
			case 0, 1, 2, 3:
				b := record.NewBuilder(record.BuilderOptions{})
				for range 1 + rng.IntN(3) {
					b.Append(clk.at.UnixMilli(), fmt.Appendf(nil, "k%d", rng.IntN(5)), make([]byte, rng.IntN(200)))
				}
				batch, err := b.Build()
				require.NoError(t, err)
				_, err = l.AppendAsLeader(batch, epoch, AppendOptions{RequireV2: true})
				require.NoError(t, err)
				written[epoch] = max(written[epoch], l.EndOffset())
				trace = append(trace, fmt.Sprintf("append to %d in epoch %d", l.EndOffset(), epoch))
			case 4:
				newest += int32(rng.IntN(3))
				epoch = newest
				require.NoError(t, l.AssignEpochStart(epoch, l.EndOffset()))
				trace = append(trace, fmt.Sprintf("epoch %d", epoch))
			case 5:
				to := l.HighWatermark() + rng.Int64N(l.EndOffset()-l.HighWatermark()+1)
				if rng.IntN(4) == 0 { // an unclean election
					to = rng.Int64N(l.EndOffset() + 1)
				}
				require.NoError(t, l.TruncateTo(to))
				newest++
				epoch = newest
				if latest, ok := l.LatestEpoch(); ok && written[latest] <= l.EndOffset() && rng.IntN(2) == 0 {
					epoch = latest // the new leader had more of an epoch that came before what was cut
				}
				trace = append(trace, fmt.Sprintf("truncate to %d", to))
			case 6:
				l.SetHighWatermark(l.HighWatermark() + rng.Int64N(l.EndOffset()-l.HighWatermark()+1))
			case 7:
				if rng.IntN(3) == 0 {
					_, err := l.AdvanceStartOffset(l.StartOffset()+rng.Int64N(l.HighWatermark()-l.StartOffset()+1), "test")
					require.NoError(t, err)
					trace = append(trace, fmt.Sprintf("start %d", l.StartOffset()))
				}
			case 8:
				n, err := next.CopyFrom(l, 100+rng.IntN(2000))
				require.NoError(t, err, trace)
				trace = append(trace, fmt.Sprintf("copy %d to %d", n, next.EndOffset()))
			case 9:
				if c.CleanupCompact {
					require.NoError(t, roll(l))
					now := clk.now().UnixMilli()
					if best, scope := m.cleaner.choose(now); best == l {
						err := m.cleaner.clean(l, scope, now, &cleanerRun{cfg: CleanerConfig{}.withDefaults(), stop: make(chan struct{}), pace: func(int64) error { return nil }})
						l.cleaning.busy = false
						require.NoError(t, err)
						trace = append(trace, "compact")
					}
				}
			}
		}
		copyTo(t, next, l)
		want := readAll(t, l, l.StartOffset(), l.EndOffset())
		epochs := l.epochs.load()
		promoted, err := m.PromoteFuture(tp0)
		require.NoError(t, err, "seed %d: %v", seed, trace)
		require.Equal(t, epochs, promoted.epochs.load(), "seed %d: %v", seed, trace)
		got := map[int64]record.Record{}
		for _, r := range readAll(t, promoted, promoted.StartOffset(), promoted.EndOffset()) {
			got[r.Offset] = r
		}
		for _, r := range want {
			require.Equal(t, r, got[r.Offset], "seed %d: %v", seed, trace)
		}
		if !c.CleanupCompact {
			require.Len(t, got, len(want), "seed %d: %v", seed, trace)
		}
		dir := promoted.Dir()
		require.NoError(t, m.Close())
		problems, err := Verify(fs, dir)
		require.NoError(t, err)
		require.Empty(t, problems, "seed %d: %v", seed, trace)
	}
}
