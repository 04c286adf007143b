package commitlog

import (
	"barnabas/broker/vfs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestBR013TheLongestTopicNameCanBeDeletedAndCreatedAgain(t *testing.T) {
	dir := t.TempDir()
	clk := newClock()
	m := openManager(t, vfs.OS, smallConfig(), clk, dir, t.TempDir())
	for _, partition := range []int32{0, 11, 123456} {
		tp := TopicPartition{strings.Repeat("a", 242), partition}
		for range 2 {
			require.NoError(t, m.PreferDir(tp, dir))
			l, err := m.GetOrCreate(tp, TopicID{1}, false)
			require.NoError(t, err)
			produce(t, l, batchSpec{ts: 1})
			require.NoError(t, m.Delete(tp))
			require.Nil(t, m.Get(tp))
			require.Error(t, l.Err())
		}
		require.NoError(t, m.PreferDir(tp, dir))
		_, err := m.GetOrCreate(tp, TopicID{1}, false)
		require.NoError(t, err)
		require.NoError(t, m.SetAside(tp))
	}
	longest := TopicPartition{strings.Repeat("b", 249), 0}
	require.NoError(t, m.PreferDir(longest, dir))
	_, err := m.GetOrCreate(longest, TopicID{}, false)
	require.NoError(t, err)
	_, err = m.GetOrCreate(longest, TopicID{}, true)
	require.ErrorIs(t, err, kerr.InvalidTopicException, "no room for the name of a future replica")
	require.NoError(t, m.dirs[0].err(), "and no reason to give up the directory")
	require.NoError(t, m.Delete(longest))
	clk.advance(time.Minute)
	m.removeDue(clk.at)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	stray := 0
	for _, e := range entries {
		require.False(t, strings.HasSuffix(e.Name(), "-delete"), e.Name())
		if strings.HasSuffix(e.Name(), "-stray") {
			stray++
		}
	}
	require.Equal(t, 3, stray, "what was set aside is kept")
	require.NoError(t, m.Close())
	m = openManager(t, vfs.OS, smallConfig(), clk, dir)
	require.Empty(t, m.All())
}

func TestADirectoryIsUsedByOneBroker(t *testing.T) {
	dir := t.TempDir()
	openManager(t, vfs.OS, smallConfig(), newClock(), dir)
	_, err := Open(still(ManagerConfig{Dirs: []string{dir}, FS: vfs.OS, Default: smallConfig()}, newClock()))
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.ErrorContains(t, err, dir)
}

func TestBR067ForeignNamesAreLeftAloneAndTwoLogsOfAPartitionAreRefused(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, name := range []string{"lost+found", "data", "my-topic", "topic-abc", "t-0.0123-delete", "t-1.0123-future", ".hidden"} {
		require.NoError(t, os.Mkdir(filepath.Join(a, name), 0o755))
	}
	for _, name := range []string{".DS_Store", "x.log"} {
		require.NoError(t, os.WriteFile(filepath.Join(a, name), []byte("x"), 0o644))
	}
	require.NoError(t, os.Symlink(b, filepath.Join(a, "link-0")))
	clk := newClock()
	m := openManager(t, vfs.OS, smallConfig(), clk, a, b)
	require.Empty(t, m.All())
	require.NotNil(t, m.GetFuture(TopicPartition{"t", 1}))
	clk.advance(time.Hour)
	m.removeDue(clk.at)
	_, err := os.Stat(filepath.Join(a, "t-0.0123-delete"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = os.Stat(filepath.Join(a, "topic-abc"))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	for _, d := range []string{a, b} {
		require.NoError(t, os.Mkdir(filepath.Join(d, "twice-0"), 0o755))
	}
	_, err = Open(still(ManagerConfig{Dirs: []string{a, b}, FS: vfs.OS, Default: smallConfig()}, clk))
	require.ErrorContains(t, err, filepath.Join(a, "twice-0"))
	require.ErrorContains(t, err, filepath.Join(b, "twice-0"))
}

func TestTopicIDsAreKeptAndCompared(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, fs, smallConfig(), clk, "/data")
	l := m.log()
	require.True(t, l.TopicID().IsZero())
	require.NoError(t, l.SetTopicID(TopicID{1}))
	require.NoError(t, l.SetTopicID(TopicID{1}))
	require.ErrorIs(t, l.SetTopicID(TopicID{2}), kerr.InconsistentTopicID)
	require.NoError(t, m.Close())
	require.Equal(t, TopicID{1}, openManager(t, fs, smallConfig(), clk, "/data").log().TopicID())
}

func TestMetaPropertiesAreReadAndWrittenAsKafkaDoes(t *testing.T) {
	for _, version := range kafkas {
		dir := unpack(t, version+"-clean")
		m, ok, err := ReadMeta(vfs.OS, dir)
		require.NoError(t, err)
		require.True(t, ok)
		require.True(t, m.HasBrokerID)
		require.EqualValues(t, 1, m.BrokerID)
		require.Len(t, m.ClusterID, 22)
		m.Extra = map[string]string{"directory.id": "x"}
		require.NoError(t, WriteMeta(vfs.OS, dir, m))
		again, _, err := ReadMeta(vfs.OS, dir)
		require.NoError(t, err)
		require.Equal(t, m, again)
	}
	_, ok, err := ReadMeta(vfs.OS, t.TempDir())
	require.NoError(t, err)
	require.False(t, ok)
}
