package commitlog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// The checkpoints are written from time to time. What they say of a log that was deleted must not be taken for the log
// that was created since under the same name, when the broker dies before they are written again.
func TestH36AnEarlierLogsCheckpointsAreNotBelievedOfItsSuccessor(t *testing.T) {
	disk, clock := vfs.NewCrashFS(), newClock()
	open := func(disk *vfs.CrashFS) *Driven {
		m, err := OpenDriven(ManagerConfig{Dirs: []string{"/data"}, FS: disk, Default: smallConfig(), Now: clock.now, Log: quiet()}, clock.now())
		require.NoError(t, err)
		return m
	}
	tp := TopicPartition{"t", 0}
	write := func(m *Driven, n int) *Log {
		l, err := m.GetOrCreate(tp, TopicID{}, false)
		require.NoError(t, err)
		for range n {
			b := record.NewBuilder(record.BuilderOptions{})
			b.Append(clock.now().UnixMilli(), nil, []byte("v"))
			records, err := b.Build()
			require.NoError(t, err)
			_, err = l.AppendAsLeader(records, 0, AppendOptions{})
			require.NoError(t, err)
		}
		l.SetHighWatermark(l.EndOffset())
		return l
	}
	m := open(disk)
	l := write(m, 10)
	_, err := l.AdvanceStartOffset(5, "test")
	require.NoError(t, err)
	clock.advance(2 * time.Minute)
	m.Work(clock.now())
	require.NoError(t, m.Delete(tp))
	write(m, 3)

	disk = disk.Image(disk.Ops(), vfs.Everything, 1)
	l = open(disk).Get(tp)
	require.Zero(t, l.StartOffset())
	require.EqualValues(t, 3, l.EndOffset())
	require.False(t, l.Recovery().LostCommitted(), "%+v", l.Recovery())
}
