package logdir

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// written makes a log directory with two logs of ten batches each; clean tells how it was left.
func written(t *testing.T, clean bool) string {
	t.Helper()
	dir := t.TempDir()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	c := commitlog.DefaultConfig()
	m, err := commitlog.OpenDriven(commitlog.ManagerConfig{Dirs: []string{dir}, FS: vfs.OS, Default: c, Now: time.Now, Log: logrus.NewEntry(quiet)}, time.Now())
	require.NoError(t, err)
	for _, topic := range []string{"orders", "payments"} {
		l, err := m.GetOrCreate(commitlog.TopicPartition{Topic: topic}, commitlog.TopicID{}, false)
		require.NoError(t, err)
		for i := range 10 {
			b := record.NewBuilder(record.BuilderOptions{})
			b.Append(int64(1000+i), []byte("k"), []byte("some value"))
			batch, err := b.Build()
			require.NoError(t, err)
			_, err = l.AppendAsLeader(batch, 3, commitlog.AppendOptions{RequireV2: true})
			require.NoError(t, err)
		}
	}
	require.NoError(t, m.Close())
	if !clean {
		require.NoError(t, os.Remove(filepath.Join(dir, cleanName)))
		require.NoError(t, os.Remove(filepath.Join(dir, "recovery-point-offset-checkpoint")))
	}
	return dir
}

// everything is the content of all files below a directory.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	}))
	return all
}

func rehearsed(t *testing.T, dir string) (Rehearsal, []Log) {
	t.Helper()
	logs, err := Find(dir)
	require.NoError(t, err)
	before := everything(t, dir)
	r, err := Rehearse(filepath.Dir(logs[0].Dir), logs)
	require.NoError(t, err)
	assert.Equal(t, before, everything(t, dir), "a rehearsal changes nothing")
	return r, logs
}

func TestAStartIsRehearsedWithoutChangingAnything(t *testing.T) {
	dir := written(t, true)
	r, logs := rehearsed(t, dir)
	require.Len(t, logs, 2)
	assert.True(t, r.Clean)
	orders := r.Logs[filepath.Join(dir, "orders-0")]
	assert.EqualValues(t, 10, orders.End)
	assert.False(t, orders.Recovery.Ran)
	assert.NoError(t, orders.OutOfUse)
}

func TestATornTailIsCutInTheRehearsalAndOneLogAloneCanBeAskedFor(t *testing.T) {
	dir := written(t, false)
	segment := filepath.Join(dir, "orders-0", "00000000000000000000.log")
	info, err := os.Stat(segment)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(segment, info.Size()-5))
	r, logs := rehearsed(t, filepath.Join(dir, "orders-0"))
	require.Len(t, logs, 1)
	require.Len(t, r.Logs, 1, "nobody asked for payments")
	o := r.Logs[logs[0].Dir]
	assert.False(t, r.Clean)
	assert.True(t, o.Recovery.Ran)
	assert.EqualValues(t, 9, o.End)
	assert.Positive(t, o.Recovery.Truncated)
	problems, err := logs[0].Problems()
	require.NoError(t, err)
	assert.NotEmpty(t, problems)
	files, bytes, err := logs[0].Segments()
	require.NoError(t, err)
	assert.Equal(t, []string{segment}, files)
	assert.Equal(t, info.Size()-5, bytes)
}

// unpack extracts one of the data directories that Apache Kafka wrote.
func unpack(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open("../../broker/commitlog/testdata/kafka/" + name + ".tar.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if h.Typeflag != tar.TypeReg {
			continue
		}
		file := filepath.Join(dir, h.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, data, 0o644))
	}
	within, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, within, 1)
	return filepath.Join(dir, within[0].Name())
}

func TestWhatApacheKafkaWroteIsSoundAndWouldBeKept(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		for _, stop := range []string{"clean", "crashed"} {
			r, logs := rehearsed(t, unpack(t, version+"-"+stop))
			assert.Equal(t, stop == "clean", r.Clean)
			assert.Greater(t, len(logs), 10)
			for _, l := range logs {
				problems, err := l.Problems()
				require.NoError(t, err)
				assert.Empty(t, problems, "%s %s", version, l.Partition)
				o, known := r.Logs[l.Dir]
				require.True(t, known, "%s %s", version, l.Partition)
				assert.NoError(t, o.OutOfUse)
				assert.Zero(t, o.Recovery.Truncated)
				assert.Equal(t, stop == "crashed", o.Recovery.Ran, "%s %s", version, l.Partition)
			}
		}
	}
}

func TestALogDirectoryWhoseNameLooksLikeAPartitionsIsNoLog(t *testing.T) {
	above := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(above, "broker-1", "orders-0"), 0o755))
	logs, err := Find(above)
	require.NoError(t, err)
	assert.Empty(t, logs)
	logs, err = Find(filepath.Join(above, "broker-1"))
	require.NoError(t, err)
	assert.Equal(t, []Log{{Dir: filepath.Join(above, "broker-1", "orders-0"), Partition: commitlog.TopicPartition{Topic: "orders"}}}, logs)
}

func TestALogThatABrokerHasIsKnownToBeInUse(t *testing.T) {
	dir := t.TempDir()
	lock, err := vfs.OS.Lock(filepath.Join(dir, lockName))
	require.NoError(t, err)
	used, err := InUse(dir)
	require.NoError(t, err)
	assert.True(t, used)
	require.NoError(t, lock.Close())
	used, err = InUse(dir)
	require.NoError(t, err)
	assert.False(t, used)
}
