package commitlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

func TestH06AnEpochThatWroteNothingDoesNotStandInTheWayOfTheNext(t *testing.T) {
	l := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
	require.NoError(t, l.AssignEpochStart(4, 0))
	b := batchSpec{ts: 1}.build(t)
	_, err := l.AppendAsLeader(b, 4, AppendOptions{})
	require.NoError(t, err)
	require.NoError(t, l.AssignEpochStart(5, 1)) // leader for a moment, wrote nothing
	// The next leader's log holds more of epoch 4.
	require.NoError(t, l.TruncateTo(1))
	latest, _ := l.LatestEpoch()
	require.EqualValues(t, 4, latest, "truncation at the end trims the epochs")
	require.NoError(t, l.AssignEpochStart(5, 1))
	next := record.Batch(batchSpec{ts: 2}.build(t))
	next.SetBaseOffset(1)
	next.SetPartitionLeaderEpoch(4)
	_, err = l.AppendAsFollower(next)
	require.NoError(t, err, "and so does a batch of an older epoch")
	epoch, end := l.EndOffsetForEpoch(4)
	require.EqualValues(t, 4, epoch)
	require.EqualValues(t, 2, end)
	next = record.Batch(batchSpec{ts: 2}.build(t))
	next.SetBaseOffset(2)
	next.SetPartitionLeaderEpoch(3)
	_, err = l.AppendAsFollower(next)
	require.ErrorIs(t, err, kerr.FencedLeaderEpoch, "an epoch never goes back")
}

func TestH07ABrokenEpochCheckpointIsRebuiltFromTheLog(t *testing.T) {
	for _, content := range []string{"", "0\n3\n0 0\n", "garbage", "0\n2\n5 10\n4 20\n"} {
		fs, clk := vfs.NewCrashFS(), newClock()
		m := openManager(t, fs, smallConfig(), clk, "/data")
		l := m.log()
		for epoch := range int32(5) {
			_, err := l.AppendAsLeader(batchSpec{count: 2, ts: 1}.build(t), epoch*2, AppendOptions{})
			require.NoError(t, err)
		}
		want := l.epochs.load()
		require.Len(t, want, 5)
		require.NoError(t, m.Close())
		require.NoError(t, replaceFile(fs, "/data/topic-0", epochFile, []byte(content)))
		l = openManager(t, fs, smallConfig(), clk, "/data").log()
		require.Equal(t, want, l.epochs.load(), "%q", content)
	}
}

func TestH09FullTruncationKeepsTheMarksInOrder(t *testing.T) {
	l := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
	for range 10 {
		produce(t, l, batchSpec{ts: 1})
	}
	l.SetHighWatermark(5)
	require.NoError(t, l.TruncateFullyAndStartAt(500, -1))
	require.EqualValues(t, 500, l.StartOffset())
	require.EqualValues(t, 500, l.HighWatermark())
	require.EqualValues(t, 500, l.EndOffset())
	require.EqualValues(t, 500, l.LastStableOffset())
	info := produce(t, l, batchSpec{ts: 1})
	require.EqualValues(t, 500, info.FirstOffset)
	_, err := l.Read(499, ReadOptions{MaxBytes: 100, UpTo: 501})
	require.ErrorIs(t, err, kerr.OffsetOutOfRange)
}

func TestH41RetentionStopsAtTheHighWatermark(t *testing.T) {
	clk := newClock()
	c := smallConfig()
	c.RetentionMs, c.RetentionBytes = 1, 0
	l := openManager(t, vfs.NewCrashFS(), c, clk, "/data").log()
	for range 100 {
		produce(t, l, batchSpec{count: 2, size: 500, ts: 1000})
	}
	segments := l.Segments()
	require.Greater(t, segments, 4)
	require.NoError(t, l.applyRetention(clk.at.UnixMilli()))
	require.Equal(t, segments, l.Segments())
	l.SetHighWatermark(l.list()[2].base + 1)
	require.NoError(t, l.applyRetention(clk.at.UnixMilli()))
	require.Equal(t, segments-2, l.Segments())
	require.Equal(t, l.list()[0].base, l.StartOffset())
	require.LessOrEqual(t, l.StartOffset(), l.HighWatermark())
	l.SetHighWatermark(200)
	require.NoError(t, l.applyRetention(clk.at.UnixMilli()))
	require.Equal(t, 1, l.Segments(), "all is old: one empty segment is left")
	require.EqualValues(t, 200, l.StartOffset())
	require.EqualValues(t, 200, l.EndOffset())
	require.NoError(t, l.applyRetention(clk.at.UnixMilli()))
	produce(t, l, batchSpec{ts: 1})
}

func TestH42NoReaderSeesBehindItsBoundWhileTheTailGrows(t *testing.T) {
	l := openManager(t, vfs.OS, smallConfig(), newClock(), t.TempDir()).log()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				high := l.HighWatermark()
				if high == 0 {
					continue
				}
				stable := l.LastStableOffset()
				if stable > high && l.HighWatermark() < stable {
					t.Errorf("last stable offset %d is behind the high watermark %d", stable, high)
					return
				}
				from := max(0, high-7)
				r, err := l.Read(from, ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: high})
				if err != nil {
					t.Error(err)
					return
				}
				data, err := r.Range.ReadAll()
				r.Range.Release()
				if err != nil {
					t.Error(err)
					return
				}
				for len(data) > 0 {
					b, rest, err := record.Next(data)
					if err != nil || b.CheckCRC() != nil || b.LastOffset() >= high {
						t.Errorf("batch up to %d, high watermark %d: %v", b.LastOffset(), high, err)
						return
					}
					data = rest
				}
			}
		})
	}
	for i := range 1500 {
		produce(t, l, batchSpec{count: 1 + i%3, size: 50, ts: int64(i)})
		l.SetHighWatermark(l.EndOffset() - int64(i%2))
	}
	close(done)
	wg.Wait()
}

func TestH43AfterAFailedSyncNothingIsAcknowledged(t *testing.T) {
	fs := vfs.NewCrashFS()
	failures := 0
	var failed string
	m := openWith(t, ManagerConfig{
		Dirs: []string{"/a", "/b"}, FS: fs, Default: smallConfig(),
		OnDirFailure: func(dir string, err error) { failures, failed = failures+1, dir },
	}, newClock())
	l := m.log()
	other, err := m.GetOrCreate(TopicPartition{"topic", 1}, TopicID{}, false)
	require.NoError(t, err)
	require.NotEqual(t, l.ParentDir(), other.ParentDir(), "the second log goes where there are fewer")
	produce(t, l, batchSpec{ts: 1})
	fs.Inject(func(o vfs.Op) error {
		if o.Kind == vfs.OpSync && strings.HasPrefix(o.Name, l.ParentDir()) {
			return syscall.EIO
		}
		return nil
	})
	require.ErrorIs(t, l.Flush(), kerr.KafkaStorageError)
	fs.Inject(nil)
	require.ErrorIs(t, l.Flush(), kerr.KafkaStorageError, "a second attempt must not succeed")
	_, err = l.AppendAsLeader(batchSpec{ts: 1}.build(t), 0, AppendOptions{})
	require.ErrorIs(t, err, kerr.KafkaStorageError)
	_, err = l.Read(0, ReadOptions{MaxBytes: 10, UpTo: 1})
	require.ErrorIs(t, err, kerr.KafkaStorageError)
	require.Equal(t, 1, failures)
	require.Equal(t, l.ParentDir(), failed)
	produce(t, other, batchSpec{ts: 1})
	_, err = m.GetOrCreate(TopicPartition{"topic", 2}, TopicID{}, false)
	require.NoError(t, err, "new logs go to the directory that works")
	require.NoError(t, m.Close())
	_, err = fs.Stat(filepath.Join(other.ParentDir(), cleanShutdownFile))
	require.NoError(t, err)
	_, err = fs.Stat(filepath.Join(l.ParentDir(), cleanShutdownFile))
	require.ErrorIs(t, err, os.ErrNotExist, "a failed directory was not closed cleanly")
}

func TestH44TheMarkerIsGoneBeforeAnythingIsLoadedAndComesAfterAllElse(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, fs, smallConfig(), clk, "/data")
	produce(t, m.log(), batchSpec{ts: 1})
	before := fs.Ops()
	require.NoError(t, m.Close())
	history := fs.History(before)
	last := history[len(history)-2:]
	require.Equal(t, vfs.OpRename, last[0].Kind)
	require.Equal(t, "/data/"+cleanShutdownFile, last[0].To)
	require.Equal(t, vfs.OpSyncDir, last[1].Kind)
	for cut := before; cut < fs.Ops(); cut++ {
		crashed := openManager(t, fs.Image(cut, vfs.Synced, 1), smallConfig(), clk, "/data")
		require.True(t, crashed.log().Recovery().Ran, "power cut during shutdown, before operation %d", cut)
		require.NoError(t, crashed.Close())
	}
	at := fs.Ops()
	m = openManager(t, fs, smallConfig(), clk, "/data")
	require.False(t, m.log().Recovery().Ran)
	again := openManager(t, fs.Image(fs.Ops(), vfs.Synced, 1), smallConfig(), clk, "/data")
	require.True(t, again.log().Recovery().Ran, "a crash after start must not find the marker")
	require.Equal(t, vfs.OpRemove, fs.History(at)[0].Kind)
}

func TestH46AFullDiskRefusesAndLeavesNoHalfBatch(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, fs, smallConfig(), clk, "/data")
	l := m.log()
	for range 3 {
		produce(t, l, batchSpec{size: 100, ts: 1})
	}
	size := l.Size()
	fs.Inject(func(o vfs.Op) error {
		if o.Kind == vfs.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	_, err := l.AppendAsLeader(batchSpec{size: 100, ts: 1}.build(t), 0, AppendOptions{})
	require.ErrorIs(t, err, kerr.KafkaStorageError)
	require.ErrorContains(t, err, "full disk")
	fs.Inject(nil)
	_, err = l.AppendAsLeader(batchSpec{size: 100, ts: 1}.build(t), 0, AppendOptions{})
	require.ErrorIs(t, err, kerr.KafkaStorageError, "until the broker is started anew")
	info, err := fs.Stat("/data/topic-0/00000000000000000000.log")
	require.NoError(t, err)
	require.Equal(t, size, info.Size())
	_ = m.Close()
	l = openManager(t, fs, smallConfig(), clk, "/data").log()
	require.EqualValues(t, 3, l.EndOffset())
	require.Zero(t, l.Recovery().Truncated)
	produce(t, l, batchSpec{ts: 1})
}

// flip changes one byte of a file.
func flip(t testing.TB, fs vfs.FS, path string, at int64) {
	t.Helper()
	f, err := fs.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	require.NoError(t, err)
	b[0] ^= 0x40
	_, err = f.WriteAt(b[:], at)
	require.NoError(t, err)
}

func TestH47DamageInWhatWasSafeIsNotCutAway(t *testing.T) {
	const file = "/data/topic-0/00000000000000000000.log"
	for _, c := range []struct {
		name     string
		flushed  int // batches flushed
		high     int64
		flipped  int // batch that is damaged
		refused  bool
		endAfter int64
	}{
		{"synced, in the middle", 5, 0, 2, true, 0},
		{"synced, the last one", 5, 0, 4, true, 0},
		{"committed but not synced, with good batches behind", 0, 10, 2, false, 4},
		{"neither synced nor committed", 0, 0, 2, false, 4},
		{"not synced, behind what was committed", 0, 4, 3, false, 6},
		{"not synced, the torn last one", 3, 6, 4, false, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			fs, clk := vfs.NewCrashFS(), newClock()
			m := openManager(t, fs, smallConfig(), clk, "/data")
			l := m.log()
			var size int64
			for i := range 5 {
				if i == c.flushed {
					require.NoError(t, l.Flush())
				}
				info := produce(t, l, batchSpec{count: 2, size: 100, ts: 1})
				size = int64(info.Bytes)
			}
			if c.flushed == 5 {
				require.NoError(t, l.Flush())
			}
			l.SetHighWatermark(c.high)
			m.checkpointRecoveryPoints()
			m.CheckpointHighWatermarks()
			image := fs.Image(fs.Ops(), vfs.Everything, 1)
			flip(t, image, file, int64(c.flipped)*size+100)
			l = openManager(t, image, smallConfig(), clk, "/data").log()
			if !c.refused {
				require.NoError(t, l.Err())
				require.Equal(t, c.endAfter, l.EndOffset())
				return
			}
			bad := (*CorruptionError)(nil)
			require.ErrorAs(t, l.Err(), &bad)
			require.ErrorIs(t, l.Err(), kerr.KafkaStorageError)
			require.Equal(t, file, bad.File)
			require.Equal(t, int64(c.flipped)*size, bad.Position)
			info, err := image.Stat(file)
			require.NoError(t, err)
			require.Equal(t, 5*size, info.Size(), "what is left can still be saved by hand")
			_, err = l.AppendAsLeader(batchSpec{ts: 1}.build(t), 0, AppendOptions{})
			require.ErrorIs(t, err, kerr.KafkaStorageError)
			require.NoError(t, l.TruncateFullyAndStartAt(100, -1), "to be fetched again from another replica")
			require.NoError(t, l.Err())
			produce(t, l, batchSpec{ts: 1})
			require.EqualValues(t, 101, l.EndOffset())
		})
	}
}

func TestALogThatCameBackShorterThanWhatWasCommittedSaysSo(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, fs, smallConfig(), clk, "/data")
	l := m.log()
	require.NoError(t, l.Flush())
	for range 5 {
		produce(t, l, batchSpec{ts: 1})
	}
	l.SetHighWatermark(4)
	m.CheckpointHighWatermarks()
	l = openManager(t, fs.Image(fs.Ops(), vfs.Synced, 1), smallConfig(), clk, "/data").log()
	require.NoError(t, l.Err())
	require.True(t, l.Recovery().LostCommitted())
	require.EqualValues(t, 4, l.Recovery().KnownCommitted)
	require.EqualValues(t, 0, l.HighWatermark())
}

// It came back short and does not lead. What is still missing must not be forgotten when it is stopped and started, however
// that ends; only who goes on with what there is has decided.
func TestH20ALogThatCameBackShortSaysSoUntilSomebodyGoesOn(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, fs, smallConfig(), clk, "/data")
	for range 5 {
		produce(t, m.log(), batchSpec{ts: 1})
	}
	m.log().SetHighWatermark(4)
	m.CheckpointHighWatermarks()
	disk := fs.Image(fs.Ops(), vfs.Synced, 1)
	for _, clean := range []bool{true, false, true} {
		m = openManager(t, disk, smallConfig(), clk, "/data")
		require.True(t, m.log().Recovery().LostCommitted())
		require.EqualValues(t, 4, m.log().Recovery().KnownCommitted)
		m.CheckpointHighWatermarks()
		if clean {
			require.NoError(t, m.Close())
		} else {
			disk = disk.Image(disk.Ops(), vfs.Synced, 1)
		}
	}
	m = openManager(t, disk, smallConfig(), clk, "/data")
	produce(t, m.log(), batchSpec{ts: 1})
	m.CheckpointHighWatermarks()
	require.NoError(t, m.log().Flush())
	require.NoError(t, m.Close())
	require.False(t, openManager(t, disk, smallConfig(), clk, "/data").log().Recovery().LostCommitted())
}

func TestBR034WhatIsUnstableBeginsWithTheLog(t *testing.T) {
	l := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/follower").log()
	require.NoError(t, l.TruncateFullyAndStartAt(5, -1))
	b := record.Batch(batchSpec{count: 10, ts: 1, pid: 7, txn: true}.build(t))
	b.SetPartitionLeaderEpoch(0)
	_, err := l.AppendAsFollower(b)
	require.NoError(t, err)
	l.SetHighWatermark(10)
	require.EqualValues(t, 5, l.StartOffset())
	require.EqualValues(t, 5, l.LastStableOffset(), "not the batch's own offset 0, of which nothing can be read")
}

func TestBR034AFollowerTakesABatchThatBeginsBeforeItsStart(t *testing.T) {
	fs, clk := vfs.NewCrashFS(), newClock()
	leader := openManager(t, fs, smallConfig(), clk, "/leader").log()
	m := openManager(t, fs, smallConfig(), clk, "/follower")
	follower := m.log()
	for range 3 {
		produce(t, leader, batchSpec{count: 100, ts: 1})
	}
	leader.SetHighWatermark(300)
	_, err := leader.AdvanceStartOffset(301, "test")
	require.ErrorIs(t, err, kerr.OffsetOutOfRange)
	moved, err := leader.AdvanceStartOffset(150, "test")
	require.NoError(t, err)
	require.True(t, moved)
	require.NoError(t, follower.TruncateFullyAndStartAt(150, -1))
	r, err := leader.Read(150, ReadOptions{MaxBytes: 1 << 20, UpTo: 300})
	require.NoError(t, err)
	data, err := r.Range.ReadAll()
	require.NoError(t, err)
	r.Range.Release()
	_, err = follower.AppendAsFollower(data)
	require.NoError(t, err)
	check := func(l *Log) {
		require.EqualValues(t, 150, l.StartOffset())
		require.EqualValues(t, 300, l.EndOffset())
		l.SetHighWatermark(300)
		records := readAll(t, l, 150, 300)
		require.EqualValues(t, 150, records[0].Offset)
		require.Len(t, records, 150)
		_, err := l.Read(149, ReadOptions{UpTo: 300})
		require.ErrorIs(t, err, kerr.OffsetOutOfRange)
		offset, _, _, found, err := l.OffsetForTimestamp(0)
		require.NoError(t, err)
		require.True(t, found)
		require.EqualValues(t, 150, offset)
	}
	check(follower)
	m.checkpointStartOffsets()
	check(openManager(t, fs.Image(fs.Ops(), vfs.Everything, 1), smallConfig(), clk, "/follower").log())
	_, err = follower.AppendAsFollower(data)
	require.ErrorIs(t, err, kerr.OffsetOutOfRange, "what the log has already is not taken twice")
}

func TestRefusedAppends(t *testing.T) {
	c := smallConfig()
	c.MaxMessageBytes = 20000
	l := openManager(t, vfs.NewCrashFS(), c, newClock(), "/data").log()
	good := func() []byte { return batchSpec{size: 10, ts: 1}.build(t) }
	for name, f := range map[string]struct {
		records []byte
		want    *kerr.Error
	}{
		"nothing":               {nil, kerr.InvalidRecord},
		"cut":                   {good()[:30], kerr.InvalidRecord},
		"two batches":           {append(good(), good()...), kerr.InvalidRecord},
		"wrong crc":             {func() []byte { b := good(); b[70] ^= 1; return b }(), kerr.CorruptMessage},
		"old format":            {record.AppendMessage(nil, 1, record.None, false, 0, 1, nil, []byte("x")), kerr.InvalidRecord},
		"offset not zero":       {func() []byte { b := record.Batch(good()); b.SetBaseOffset(5); return b }(), kerr.InvalidRecord},
		"too large":             {batchSpec{size: 20000, ts: 1}.build(t), kerr.MessageTooLarge},
		"larger than a segment": {batchSpec{size: 17000, ts: 1}.build(t), kerr.RecordListTooLarge},
		"control":               {record.NewEndTxnBatch(record.EndTxnMarker{}, 1, 0, 1), kerr.InvalidRecord},
	} {
		info, err := l.AppendAsLeader(f.records, 0, AppendOptions{RequireV2: true})
		require.ErrorIs(t, err, f.want, name)
		require.EqualValues(t, -1, info.FirstOffset, name)
	}
	c.CleanupCompact = true
	l.SetConfig(c)
	info, err := l.AppendAsLeader(batchSpec{count: 2, ts: 1}.build(t), 0, AppendOptions{})
	require.ErrorIs(t, err, kerr.InvalidRecord)
	require.Len(t, info.RecordErrors, 2)
	require.Zero(t, l.EndOffset())
	require.Zero(t, l.Size())
	require.NoError(t, l.AssignEpochStart(5, 0))
	_, err = l.AppendAsLeader(batchSpec{ts: 1, keys: true}.build(t), 4, AppendOptions{})
	require.ErrorIs(t, err, kerr.FencedLeaderEpoch)
}

func TestATopicsOwnCompressionIsAppliedByTheBroker(t *testing.T) {
	for want := record.None; want <= record.Zstd; want++ {
		for sent := record.None; sent <= record.Zstd; sent++ {
			c := smallConfig()
			c.Compression = Compression{Codec: want}
			l := openManager(t, vfs.NewCrashFS(), c, newClock(), "/data").log()
			produce(t, l, batchSpec{count: 20, size: 40, ts: 5, step: 2, codec: sent, pid: 9, txn: true})
			r, err := l.Read(0, ReadOptions{MaxBytes: 1 << 20, UpTo: 20})
			require.NoError(t, err)
			data, err := r.Range.ReadAll()
			require.NoError(t, err)
			r.Range.Release()
			b, _, err := record.Next(data)
			require.NoError(t, err)
			require.Equal(t, want, b.Codec())
			require.NoError(t, b.CheckCRC())
			require.True(t, b.IsTransactional())
			require.EqualValues(t, 9, b.ProducerID())
			require.EqualValues(t, 43, b.MaxTimestamp())
			require.Len(t, readAll(t, l, 0, 20), 20)
		}
	}
}

var errInjected = errors.New("injected")

func TestAnAppendThatFailsAtAnyOperationIsNotAcknowledged(t *testing.T) {
	for k := range 40 {
		fs, clk := vfs.NewCrashFS(), newClock()
		m := openManager(t, fs, smallConfig(), clk, "/data")
		l := m.log()
		acked := int64(0)
		first := fs.Ops() + k
		fs.Inject(func(o vfs.Op) error {
			// A sync that fails loses what it was asked for, acknowledged or not: nobody waits for one here.
			if o.Index >= first && o.Kind != vfs.OpSync && o.Kind != vfs.OpSyncDir {
				return errInjected
			}
			return nil
		})
		for range 30 {
			info, err := l.AppendAsLeader(batchSpec{size: 1000, ts: 1}.build(t), 0, AppendOptions{})
			if err != nil {
				require.ErrorIs(t, err, kerr.KafkaStorageError)
				break
			}
			acked = info.LastOffset + 1
		}
		require.Equal(t, acked, l.EndOffset())
		l = openManager(t, fs.Image(fs.Ops(), vfs.Everything, 1), smallConfig(), clk, "/data").log()
		require.NoError(t, l.Err())
		require.GreaterOrEqual(t, l.EndOffset(), acked)
	}
}
