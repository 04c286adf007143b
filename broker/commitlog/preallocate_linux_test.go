package commitlog

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
	"barnabas/integration/lane"
)

// onDisk tells the size of a file and the bytes that the file system keeps for it.
func onDisk(t *testing.T, path string) (size, kept int64) {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size(), info.Sys().(*syscall.Stat_t).Blocks * 512
}

// With preallocate a segment that is written to has room for all it may hold; what it does not need is given back when it
// rolls and when the log is closed, also after a crash, and its file never holds more than its records.
func TestPreallocateKeepsRoomForASegment(t *testing.T) {
	dir := t.TempDir()
	probe, err := vfs.OS.OpenFile(filepath.Join(dir, "probe"), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	probe.Reserve(1 << 20)
	_, kept := onDisk(t, probe.Name())
	require.NoError(t, probe.Close())
	lane.Need(t, kept >= 1<<20, "a file system that can keep room")

	const segmentBytes = 4 << 20
	c, clk := smallConfig(), newClock()
	c.SegmentBytes, c.Preallocate = segmentBytes, true
	cfg := still(ManagerConfig{Dirs: []string{dir}, FS: vfs.OS, Default: c}, clk)
	first, second := filepath.Join(dir, "topic-0", fileName(0, logSuffix)), filepath.Join(dir, "topic-0", fileName(2, logSuffix))
	less := func(path string) {
		size, kept := onDisk(t, path)
		require.Positive(t, size)
		require.Less(t, kept, int64(segmentBytes/2), path)
	}

	m, err := load(cfg)
	require.NoError(t, err)
	l, err := m.GetOrCreate(tp0, TopicID{}, false)
	require.NoError(t, err)
	size, kept := onDisk(t, first)
	require.Zero(t, size+kept, "nothing is kept for a log that nobody writes to")
	for range 2 {
		produce(t, l, batchSpec{size: 1000, ts: 1})
	}
	size, kept = onDisk(t, first)
	require.Equal(t, l.Size(), size)
	require.GreaterOrEqual(t, kept, int64(segmentBytes))
	require.NoError(t, roll(l))
	less(first)
	produce(t, l, batchSpec{size: 1000, ts: 1})
	_, kept = onDisk(t, second)
	require.GreaterOrEqual(t, kept, int64(segmentBytes))

	m.unlock() // as a kill would
	m, err = load(cfg)
	require.NoError(t, err)
	l = m.Get(tp0)
	require.EqualValues(t, 3, l.EndOffset())
	_, kept = onDisk(t, second)
	require.GreaterOrEqual(t, kept, int64(segmentBytes))
	produce(t, l, batchSpec{size: 1000, ts: 1})
	require.NoError(t, m.Close())
	less(second)
	problems, err := Verify(vfs.OS, filepath.Join(dir, "topic-0"))
	require.NoError(t, err)
	require.Empty(t, problems)
}
