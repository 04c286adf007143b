package commitlog

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
)

// meterFS counts what is asked of a disk.
type meterFS struct {
	vfs.FS
	opens, reads, syncs atomic.Int64
	bytes               atomic.Int64 // read
	open, mostOpen      atomic.Int64 // at a time
}

func (m *meterFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	m.opens.Add(1)
	f, err := m.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	if n := m.open.Add(1); n > m.mostOpen.Load() {
		m.mostOpen.Store(n) // close enough where two meet
	}
	return meterFile{f, m}, nil
}

func (m *meterFS) SyncDir(dir string) error {
	m.syncs.Add(1)
	return m.FS.SyncDir(dir)
}

type meterFile struct {
	vfs.File
	m *meterFS
}

func (f meterFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.m.reads.Add(1)
	f.m.bytes.Add(int64(n))
	return n, err
}

func (f meterFile) Close() error {
	f.m.open.Add(-1)
	return f.File.Close()
}

func (f meterFile) Sync() error {
	f.m.syncs.Add(1)
	return f.File.Sync()
}

// A start, after a clean shutdown as after a kill, asks nothing of segments that are old: ten logs with fifty gigabytes of
// them (sparse files) cost the same reads as with a fiftieth of that.
func TestAStartDoesNotReadOldSegments(t *testing.T) {
	const logs = 10
	type cost struct{ opens, reads, bytes, syncs int64 }
	start := func(old int, clean bool) cost {
		dir, clk := t.TempDir(), newClock()
		cfg := still(ManagerConfig{Dirs: []string{dir}, FS: vfs.OS, Default: smallConfig()}, clk)
		m, err := load(cfg)
		require.NoError(t, err)
		for p := range int32(logs) {
			l, err := m.GetOrCreate(TopicPartition{"topic", p}, TopicID{1}, false)
			require.NoError(t, err)
			for range old {
				produce(t, l, batchSpec{size: 100, ts: 1})
				require.NoError(t, roll(l))
			}
			for range 20 {
				produce(t, l, batchSpec{size: 500, ts: 1})
			}
			require.NoError(t, l.Flush())
		}
		if clean {
			require.NoError(t, m.Close())
		} else {
			for _, d := range m.dirs {
				require.NoError(t, m.checkpointDir(d))
			}
			m.unlock() // as a kill would
		}
		for p := range logs {
			for base := range int64(old) {
				require.NoError(t, os.Truncate(filepath.Join(dir, fmt.Sprintf("topic-%d", p), fileName(base, logSuffix)), 100<<20))
			}
		}
		meter := &meterFS{FS: vfs.OS}
		cfg.FS = meter
		began := time.Now()
		m, err = load(cfg)
		require.NoError(t, err)
		t.Logf("%d GB of old segments, clean %t: %v", int64(logs)*int64(old)*100/1024, clean, time.Since(began))
		c := cost{meter.opens.Load(), meter.reads.Load(), meter.bytes.Load(), meter.syncs.Load()}
		for _, l := range m.All() {
			require.NoError(t, l.Err())
			require.EqualValues(t, old+20, l.EndOffset())
		}
		m.unlock()
		return c
	}
	for _, clean := range []bool{true, false} {
		few, many := start(1, clean), start(51, clean)
		// What tells an offset has more digits.
		require.InDelta(t, few.bytes, many.bytes, 100*logs, "clean %t", clean)
		few.bytes, many.bytes = 0, 0
		require.Equal(t, few, many, "clean %t", clean)
		require.LessOrEqual(t, many.syncs, int64(1), "that the marker of a clean shutdown is gone")
		t.Logf("clean %t: %+v", clean, many)
	}
}

// After a kill every log is recovered, which opens its files. They are closed as they become many: ten thousand partitions
// must not need more descriptors than the system gives.
func TestARecoveryOfManyLogsKeepsFewFilesOpen(t *testing.T) {
	const logs = 1500
	fs, clk := vfs.NewCrashFS(), newClock()
	cfg := still(ManagerConfig{Dirs: []string{"/data"}, FS: fs, Default: smallConfig()}, clk)
	m, err := load(cfg)
	require.NoError(t, err)
	for p := range int32(logs) {
		l, err := m.GetOrCreate(TopicPartition{"topic", p}, TopicID{1}, false)
		require.NoError(t, err)
		produce(t, l, batchSpec{size: 100, ts: 1})
	}
	meter := &meterFS{FS: fs.Image(fs.Ops(), vfs.Everything, 1)}
	cfg.FS = meter
	m, err = load(cfg)
	require.NoError(t, err)
	require.Len(t, m.All(), logs)
	require.Greater(t, meter.opens.Load(), int64(3*logs))
	require.LessOrEqual(t, meter.mostOpen.Load(), int64(idleFiles+100))
	require.NoError(t, m.Close())
	require.LessOrEqual(t, meter.mostOpen.Load(), int64(idleFiles+100))
	require.Zero(t, meter.open.Load())
}
