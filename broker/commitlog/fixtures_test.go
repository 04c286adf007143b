package commitlog

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// unpack puts a data directory that Apache Kafka wrote into a temporary one and returns its path.
func unpack(t testing.TB, name string) string {
	t.Helper()
	to := t.TempDir()
	f, err := os.Open(filepath.Join("testdata", "kafka", name+".tar.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	top := ""
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return filepath.Join(to, top)
		}
		require.NoError(t, err)
		if top == "" {
			top = strings.Split(filepath.Clean(h.Name), "/")[0]
		}
		path := filepath.Join(to, filepath.Clean(h.Name))
		if h.FileInfo().IsDir() {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o644))
		require.NoError(t, os.Chtimes(path, h.ModTime, h.ModTime))
	}
}

// fixtureConfig is what the fixtures' topics were made with; index sizes differ but do not matter here.
func fixtureConfig() Config {
	c := smallConfig()
	c.SegmentIndexBytes = 65536
	c.RetentionMs = -1
	return c
}

// topicConfig is what the fixtures' topics were made with.
func topicConfig(topic string) Config {
	c := fixtureConfig()
	switch {
	case strings.HasPrefix(topic, "__"):
		c.SegmentBytes = 1 << 20
	case topic != "txn":
		c.IndexInterval = 1024
	}
	return c
}

func openFixture(t testing.TB, dir string) *opened {
	t.Helper()
	return openWith(t, ManagerConfig{Dirs: []string{dir}, FS: vfs.OS, Default: fixtureConfig(), TopicConfig: topicConfig}, fixtureClock(t, dir))
}

// fixtureClock is shortly after the fixtures were written: producers have not expired.
func fixtureClock(t testing.TB, dir string) *clock {
	info, err := os.Stat(filepath.Join(dir, "meta.properties"))
	require.NoError(t, err)
	return &clock{at: info.ModTime().Add(time.Minute)}
}

func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		out[rel], err = os.ReadFile(path)
		return err
	}))
	return out
}

var kafkas = []string{"2.8.2", "3.9.1"}

func TestADirectoryThatKafkaClosedIsOpenedAndClosedWithoutAChange(t *testing.T) {
	for _, version := range kafkas {
		t.Run(version, func(t *testing.T) {
			dir := unpack(t, version+"-clean")
			before := files(t, dir)
			m := openFixture(t, dir)
			ends, err := parseOffsetCheckpoint(before["recovery-point-offset-checkpoint"])
			require.NoError(t, err)
			require.Len(t, m.All(), len(ends))
			for _, l := range m.All() {
				require.NoError(t, l.Err())
				require.False(t, l.Recovery().Ran)
				require.Equal(t, ends[l.TP()], l.EndOffset(), l.TP())
				require.Equal(t, ends[l.TP()], l.HighWatermark(), l.TP())
				require.Equal(t, version == "3.9.1", !l.TopicID().IsZero())
				requireVerified(t, l.Dir())
			}
			require.NoError(t, m.Close())
			after := files(t, dir)
			for name, data := range before {
				switch {
				case strings.HasSuffix(name, "-offset-checkpoint") && name != cleanerOffsetFile:
					want, err := parseOffsetCheckpoint(data)
					require.NoError(t, err)
					got, err := parseOffsetCheckpoint(after[name])
					require.NoError(t, err)
					require.Equal(t, want, got, name)
				case name == cleanShutdownFile:
					require.Equal(t, `{"version":0,"brokerEpoch":-1}`, string(after[name]))
				default:
					require.True(t, bytes.Equal(data, after[name]), name)
				}
				delete(after, name)
			}
			delete(after, lockFile)
			require.Empty(t, after)
		})
	}
}

func requireVerified(t testing.TB, dir string) {
	t.Helper()
	problems, err := Verify(vfs.OS, dir)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestADirectoryThatKafkaLeftInACrashIsRecoveredToWhatTheCleanOneHolds(t *testing.T) {
	for _, version := range kafkas {
		t.Run(version, func(t *testing.T) {
			dir, clean := unpack(t, version+"-crashed"), unpack(t, version+"-clean")
			m := openFixture(t, dir)
			want := openFixture(t, clean)
			for _, l := range m.All() {
				w := want.Get(l.TP())
				require.NotNil(t, w)
				require.NoError(t, l.Err())
				require.True(t, l.Recovery().Ran)
				require.Zero(t, l.Recovery().Truncated)
				require.Equal(t, w.EndOffset(), l.EndOffset(), l.TP())
				require.Equal(t, w.epochs.load(), l.epochs.load(), l.TP())
				require.Equal(t, w.ProducerStates(), l.ProducerStates(), l.TP())
				require.Equal(t, w.LastStableOffset(), l.LastStableOffset())
				a, err := abortedNow(w, 0, w.EndOffset())
				require.NoError(t, err)
				b, err := abortedNow(l, 0, l.EndOffset())
				require.NoError(t, err)
				require.Equal(t, a, b)
			}
			require.NoError(t, m.Close())
			require.NoError(t, want.Close())
			got, ref := files(t, dir), files(t, clean)
			for name, data := range ref {
				if !strings.Contains(name, "/") {
					continue
				}
				require.True(t, bytes.Equal(data, got[name]), "%s: %x, want %x", name, got[name], data)
			}
			for name := range got {
				require.NotContains(t, name, ".deleted")
				require.Contains(t, ref, name)
			}
		})
	}
}

// TestALogThatIsWrittenAsKafkaWroteItHasTheSameFiles appends Kafka's batches one by one to an empty log and compares
// every file: segments, all indexes, snapshots, epochs.
func TestALogThatIsWrittenAsKafkaWroteItHasTheSameFiles(t *testing.T) {
	for _, version := range kafkas {
		t.Run(version, func(t *testing.T) {
			from := unpack(t, version+"-clean")
			want := files(t, from)
			dirs, err := os.ReadDir(from)
			require.NoError(t, err)
			to := t.TempDir()
			m := openManager(t, vfs.OS, fixtureConfig(), fixtureClock(t, from), to)
			copied := 0
			for _, d := range dirs {
				tp, _, ok := parseDirName(d.Name())
				if !ok || !d.IsDir() || tp.Topic == "compacted" || strings.HasPrefix(tp.Topic, "fmt-v0") || strings.HasPrefix(tp.Topic, "fmt-v1") {
					continue
				}
				id, err := readPartitionMetadata(vfs.OS, filepath.Join(from, d.Name()))
				require.NoError(t, err)
				l, err := m.GetOrCreate(tp, id, false)
				require.NoError(t, err)
				l.SetConfig(topicConfig(tp.Topic))
				copyLog(t, want, d.Name(), l)
				copied++
			}
			require.Greater(t, copied, 10)
			require.NoError(t, m.Close())
			got := files(t, to)
			for name, data := range want {
				tp, _, ok := parseDirName(filepath.Dir(name))
				if !ok || got[filepath.Join(tp.String(), "00000000000000000000.log")] == nil {
					continue
				}
				require.True(t, bytes.Equal(data, got[name]), "%s: %x, want %x", name, got[name], data)
			}
		})
	}
}

// copyLog appends the batches of a partition's segments.
func copyLog(t testing.TB, all map[string][]byte, dir string, l *Log) {
	t.Helper()
	var names []string
	for name := range all {
		if filepath.Dir(name) == dir && strings.HasSuffix(name, logSuffix) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		for rest := all[name]; len(rest) > 0; {
			b, next, err := record.Next(rest)
			require.NoError(t, err)
			_, err = l.AppendAsFollower(bytes.Clone(b))
			require.NoError(t, err)
			rest = next
		}
	}
	if epochs, err := parseEpochs(all[filepath.Join(dir, epochFile)]); err == nil && l.EndOffset() == 0 {
		for _, e := range epochs {
			require.NoError(t, l.AssignEpochStart(e.epoch, e.start))
		}
	}
}
