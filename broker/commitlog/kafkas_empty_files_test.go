package commitlog

import (
	"os"
	"testing"

	"github.com/sirupsen/logrus"
	logged "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
)

// Kafka makes its checkpoints, and the leader epochs of a log without records, as files without a byte.
func TestFilesThatKafkaLeavesEmptyAreNothingToWarnOf(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, fs, smallConfig(), clk, "/data")
	m.log()
	require.NoError(t, m.Close())
	for _, name := range []string{"cleaner-offset-checkpoint", "topic-0/leader-epoch-checkpoint"} {
		f, err := fs.OpenFile("/data/"+name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(0))
		require.NoError(t, f.Close())
	}
	logger, said := logged.NewNullLogger()
	cfg := still(ManagerConfig{Dirs: []string{"/data"}, FS: fs, Default: smallConfig()}, clk)
	cfg.Log = logrus.NewEntry(logger)
	again, err := Open(cfg)
	require.NoError(t, err)
	defer again.Close()
	for _, line := range said.AllEntries() {
		require.Greater(t, line.Level, logrus.WarnLevel, line.Message)
	}
	require.NotNil(t, again.Get(tp0))
}
