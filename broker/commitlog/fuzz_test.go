package commitlog

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
)

// seed adds the files of Kafka's directories that have a suffix or name.
func seed(f *testing.F, match string) {
	for _, version := range kafkas {
		for _, state := range []string{"-clean", "-crashed"} {
			dir := unpack(f, version+state)
			for name, data := range files(f, dir) {
				if base := filepath.Base(name); base == match || filepath.Ext(base) == match {
					f.Add(data)
				}
			}
		}
	}
}

func FuzzOffsetCheckpoint(f *testing.F) {
	seed(f, recoveryPointFile)
	seed(f, cleanerOffsetFile)
	f.Fuzz(func(t *testing.T, data []byte) {
		offsets, err := parseOffsetCheckpoint(data)
		if err != nil {
			return
		}
		again, err := parseOffsetCheckpoint(appendOffsetCheckpoint(nil, offsets))
		require.NoError(t, err)
		require.Equal(t, offsets, again)
	})
}

func FuzzEpochs(f *testing.F) {
	seed(f, epochFile)
	f.Add([]byte("0\n2\n0 0\n3 17\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseEpochs(data)
		if err != nil {
			return
		}
		again, err := parseEpochs(list.encode())
		require.NoError(t, err)
		require.Equal(t, list, again)
		for i := range list {
			epoch, ok := list.at(list[i].start)
			require.True(t, ok)
			require.Equal(t, list[i].epoch, epoch)
		}
	})
}

func FuzzSnapshot(f *testing.F) {
	seed(f, snapshotSuffix)
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseSnapshot("file", data)
		if err != nil {
			return
		}
		ordered := make([]*producer, len(list))
		for i := range list {
			ordered[i] = &list[i]
		}
		again, err := parseSnapshot("file", encodeSnapshot(ordered))
		require.NoError(t, err)
		require.Equal(t, list, again)
	})
}

func FuzzTransactionIndex(f *testing.F) {
	seed(f, txnSuffix)
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseAborted("file", data, 0)
		if err != nil {
			return
		}
		var again []byte
		for _, a := range list {
			again = append(again, a.encode()...)
		}
		require.True(t, bytes.Equal(data, again))
	})
}

func FuzzPartitionMetadata(f *testing.F) {
	seed(f, partitionMetadataFile)
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := parsePartitionMetadata(data)
		if err != nil {
			return
		}
		again, err := parsePartitionMetadata(encodePartitionMetadata(id))
		require.NoError(t, err)
		require.Equal(t, id, again)
	})
}

func FuzzMeta(f *testing.F) {
	seed(f, metaFile)
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = parseMeta(data) })
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"t-0", "a-b-12", "t-0.0123-delete", "t-1.ff-future", "t-2.x-stray", "00000000000000000042.log"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if tp, state, ok := parseDirName(name); ok && state == currentDir {
			again, state, ok := parseDirName(tp.String())
			require.True(t, ok || tp.Partition < 0)
			require.Equal(t, currentDir, state)
			require.Equal(t, tp, again)
		}
		if base, suffix, ok := parseFileName(name); ok {
			again, same, ok := parseFileName(fileName(base, suffix))
			require.True(t, ok)
			require.Equal(t, base, again)
			require.Equal(t, suffix, same)
		}
	})
}

// FuzzSegment opens a log over any bytes: as a segment that a crash left, and as one that was closed cleanly with any
// bytes for its indexes. Nothing may panic; what is served must be whole batches in order.
func FuzzSegment(f *testing.F) {
	dir := unpack(f, "3.9.1-clean")
	for _, name := range []string{"txn-0/" + fileName(0, logSuffix), "fmt-v2-zstd-0/" + fileName(0, logSuffix)} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(f, err)
		index, err := os.ReadFile(filepath.Join(dir, name[:len(name)-len(logSuffix)]+indexSuffix))
		require.NoError(f, err)
		f.Add(data[:min(len(data), 3000)], index, true)
		f.Add(data[:min(len(data), 6000)], index, false)
	}
	f.Fuzz(func(t *testing.T, data, index []byte, clean bool) {
		fs := vfs.NewCrashFS()
		require.NoError(t, fs.MkdirAll("/data/topic-0", 0o755))
		for suffix, content := range map[string][]byte{logSuffix: data, indexSuffix: index, timeSuffix: index} {
			file, err := fs.OpenFile("/data/topic-0/"+fileName(0, suffix), openCreate, 0o644)
			require.NoError(t, err)
			require.NoError(t, file.Append(content))
			require.NoError(t, file.Close())
		}
		if clean {
			require.NoError(t, writeCleanShutdown(fs, "/data", 1))
		}
		c := smallConfig()
		c.RetentionMs = -1
		m, err := load(still(ManagerConfig{FS: fs, Dirs: []string{"/data"}, Default: c}, newClock()))
		if err != nil {
			return
		}
		l := m.Get(tp0)
		if l == nil || l.Err() != nil {
			require.NoError(t, m.Close())
			return
		}
		_, _, _, _, _ = l.OffsetForTimestamp(math.MaxInt64 / 2)
		_, _, _, _, _ = l.MaxTimestampOffset()
		r, err := l.Read(l.StartOffset(), ReadOptions{MaxBytes: 1 << 20, UpTo: l.EndOffset()})
		if err == nil {
			served, err := r.Range.ReadAll()
			require.NoError(t, err)
			r.Range.Release()
			sc := &scanner{f: bytes.NewReader(served), name: "served", limit: int64(len(served)), window: walkWindow}
			last := int64(-1)
			for {
				e, _, err := sc.next()
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
				if !clean {
					require.GreaterOrEqual(t, e.last, last)
				}
				last = e.last
			}
		}
		_, err = Verify(fs, "/data/topic-0")
		require.NoError(t, err)
		require.NoError(t, m.Close())
	})
}

func TestNamesOfFilesAreThoseOfKafka(t *testing.T) {
	require.Equal(t, "00000000000000000000.log", fileName(0, logSuffix))
	require.Equal(t, "09223372036854775807.snapshot", fileName(math.MaxInt64, snapshotSuffix))
	plan := planFiles([]string{"00000000000000000005.log", "00000000000000000000.log", "00000000000000000000.index", "00000000000000000007.index",
		"00000000000000000009.log.deleted", "00000000000000000003.log.swap", "00000000000000000008.log.swap", "00000000000000000006.log.cleaned",
		"00000000000000000005.snapshot", "leader-epoch-checkpoint", "x.tmp"})
	require.Equal(t, []int64{0, 5}, plan.segments)
	require.Equal(t, []int64{5}, plan.snapshots)
	require.Equal(t, []string{"00000000000000000003.log.swap"}, plan.swaps)
	slices.Sort(plan.remove)
	require.Equal(t, []string{"00000000000000000006.log.cleaned", "00000000000000000007.index", "00000000000000000008.log.swap",
		"00000000000000000009.log.deleted", "x.tmp"}, plan.remove)
	require.Equal(t, []int64{3, 9}, strays([]int64{3, 5, 9, 12}, []int64{0, 5, 10}))
}
