package broker

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// openLog returns a log of the offsets topic that has this in its one segment.
func openLog(t *testing.T, segment []byte) *commitlog.Log {
	return openLogs(t, segment).Get(commitlog.TopicPartition{Topic: offsetsTopic})
}

// openLogs opens a directory with one log, of __consumer_offsets-0.
func openLogs(t *testing.T, segment []byte) *commitlog.Manager {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	dir := t.TempDir()
	if segment != nil {
		require.NoError(t, os.Mkdir(filepath.Join(dir, offsetsTopic+"-0"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, offsetsTopic+"-0", "00000000000000000000.log"), segment, 0o644))
	}
	logs, err := commitlog.Open(commitlog.ManagerConfig{
		Dirs: []string{dir}, FS: vfs.OS, Default: commitlog.DefaultConfig(), TopicConfig: func(string) commitlog.Config { return commitlog.DefaultConfig() },
		Now: time.Now, Log: logrus.NewEntry(quiet),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, logs.Close()) })
	_, err = logs.GetOrCreate(commitlog.TopicPartition{Topic: offsetsTopic}, commitlog.TopicID{}, false)
	require.NoError(t, err)
	return logs
}

// addBatch appends a batch of one record that claims the offsets up to last.
func addBatch(t *testing.T, log *commitlog.Log, size int, last int64) {
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: log.EndOffset(), LeaderEpoch: new(int32)})
	b.Append(1, []byte("k"), make([]byte, size))
	b.SetLastOffset(last)
	batch, err := b.Build()
	require.NoError(t, err)
	_, err = log.AppendAsFollower(batch)
	require.NoError(t, err)
}

// A coordinator that answered from what is in its log alone would, when this broker goes before the others have it, have told an offset that its successor does not know.
func TestWhatACoordinatorLoadsIsSafe(t *testing.T) {
	logs := openLogs(t, nil)
	log := logs.Get(commitlog.TopicPartition{Topic: offsetsTopic})
	for last := range int64(3) {
		addBatch(t, log, 10, last)
	}
	l := newLogReader(nil, offsetsTopic, 1<<20)
	const notForLong, patiently = 100 * time.Millisecond, time.Minute
	read := func(limit time.Duration, during func()) error {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return l.readSafe(ctx, log, func(end int64) bool { return log.HighWatermark() >= end }, func(e record.Entry) {
			if e.LastOffset() == 2 {
				during()
			}
		})
	}
	log.SetHighWatermark(2)
	require.ErrorIs(t, read(notForLong, func() {}), context.DeadlineExceeded, "the last record is not committed")
	require.NoError(t, read(patiently, func() { log.SetHighWatermark(3) }))
	require.ErrorIs(t, read(notForLong, func() { addBatch(t, log, 10, 3) }), context.DeadlineExceeded, "a marker that came meanwhile is not committed")
	log.SetHighWatermark(4)
	require.NoError(t, read(patiently, func() {}))

	addBatch(t, log, 10, 4)
	require.ErrorIs(t, read(patiently, func() { require.NoError(t, logs.Delete(log.TP())) }), kerr.KafkaStorageError,
		"what becomes of a log that was moved to another directory is not waited for")
}

// BR-041: batches larger than the buffer, and a log whose end has no records, as compaction leaves it. Loading sees every record once and ends.
func TestBR041_ALogIsReadToItsEnd(t *testing.T) {
	log := openLog(t, nil)
	add := func(size int, last int64) { addBatch(t, log, size, last) }
	add(10, 0)
	add(100_000, 1) // larger than the buffer
	for i := int64(2); i < 30; i++ {
		add(50, i)
	}
	add(1, 99) // the records up to 99 were compacted away
	require.Equal(t, int64(100), log.EndOffset())

	for _, buffer := range []int64{1, 200, 1000, 1 << 20} {
		var seen []int64
		l := newLogReader(nil, offsetsTopic, buffer)
		require.NoError(t, l.readLog(context.Background(), log, func(e record.Entry) { seen = append(seen, e.LastOffset()) }))
		require.Len(t, seen, 31, "buffer of %d", buffer)
		assert.IsIncreasing(t, seen)
	}
}

// A log of message sets of both old formats, of wrapped ones, and of batches behind them (see group/testdata) is read whole, whatever the buffer: a coordinator that took
// the old ones for corruption would try again for ever.
func TestALogOfOldFormatsIsReadToItsEnd(t *testing.T) {
	data, err := os.ReadFile("group/testdata/kafka-0.10.2.2-to-2.4.1.log")
	require.NoError(t, err)
	log := openLog(t, data)
	for _, buffer := range []int64{1, 300, 1 << 20} {
		l := newLogReader(nil, offsetsTopic, buffer)
		next := int64(0)
		require.NoError(t, l.readLog(context.Background(), log, func(e record.Entry) {
			for r, err := range e.Records(record.Limits{}) {
				require.NoError(t, err)
				assert.Equal(t, next, r.Offset, "buffer of %d", buffer)
				next++
			}
		}))
		assert.Equal(t, log.EndOffset(), next)
	}
	assert.Greater(t, log.EndOffset(), int64(100))
}
