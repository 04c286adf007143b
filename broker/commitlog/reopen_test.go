package commitlog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/vfs"
)

// refusing makes everything that takes room fail below a directory.
func refusing(dir string, with error, kinds ...vfs.OpKind) func(vfs.Op) error {
	return func(o vfs.Op) error {
		for _, k := range kinds {
			if o.Kind == k && strings.HasPrefix(o.Name, dir) {
				return with
			}
		}
		return nil
	}
}

var takesRoom = []vfs.OpKind{vfs.OpWrite, vfs.OpCreate, vfs.OpMkdir}

// fillUp makes the log's directory full and has an append find out.
func fillUp(t testing.TB, disk *vfs.CrashFS, l *Log) {
	t.Helper()
	disk.Inject(refusing(l.ParentDir(), syscall.ENOSPC, takesRoom...))
	_, err := l.AppendAsLeader(batchSpec{size: 100, ts: 1}.build(t), 0, AppendOptions{})
	require.ErrorIs(t, err, kerr.KafkaStorageError)
}

func noProblems(t testing.TB, disk vfs.FS, l *Log) {
	t.Helper()
	problems, err := Verify(disk, l.Dir())
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestH46AFullDirectoryComesBackWhenThereIsRoom(t *testing.T) {
	for _, lack := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		disk := vfs.NewCrashFS()
		failures := 0
		m := openWith(t, ManagerConfig{
			Dirs: []string{"/a", "/b"}, FS: disk, Default: smallConfig(), OnDirFailure: func(string, error) { failures++ },
		}, newClock())
		l := m.log()
		id := TopicID{7}
		require.NoError(t, l.SetTopicID(id))
		other, err := m.GetOrCreate(TopicPartition{"topic", 1}, TopicID{}, false)
		require.NoError(t, err)
		for i := range int64(40) {
			produce(t, l, batchSpec{size: 1000, ts: i, pid: 5, seq: int32(i)})
		}
		l.SetHighWatermark(30)
		m.CheckpointHighWatermarks()
		disk.Inject(refusing(l.ParentDir(), lack, takesRoom...))
		_, err = l.AppendAsLeader(batchSpec{size: 100, ts: 1, pid: 5, seq: 40}.build(t), 0, AppendOptions{})
		require.ErrorContains(t, err, "full disk")
		require.True(t, m.Dirs()[0].Full)
		require.ErrorIs(t, m.Reopen("/a"), ErrNoRoom)
		produce(t, other, batchSpec{ts: 1})

		disk.Inject(nil)
		require.NoError(t, m.Reopen("/a"))
		require.Equal(t, []DirInfo{{Path: "/a", Logs: 1, Size: m.Get(tp0).Size()}, {Path: "/b", Logs: 1, Size: other.Size()}}, m.Dirs())
		back := m.Get(tp0)
		require.NotSame(t, l, back)
		require.Equal(t, id, back.TopicID())
		require.EqualValues(t, 40, back.EndOffset())
		require.EqualValues(t, 30, back.HighWatermark())
		require.Zero(t, back.Recovery().Truncated)
		require.Len(t, readAll(t, back, 0, 40), 40)
		again, err := back.AppendAsLeader(batchSpec{size: 1000, ts: 39, pid: 5, seq: 39}.build(t), 0, AppendOptions{})
		require.NoError(t, err)
		require.True(t, again.Duplicate, "producers are known")
		produce(t, back, batchSpec{size: 100, ts: 1, pid: 5, seq: 40})
		_, err = l.AppendAsLeader(batchSpec{ts: 1}.build(t), 0, AppendOptions{})
		require.ErrorIs(t, err, kerr.KafkaStorageError, "the log of the life before")
		require.ErrorIs(t, l.TruncateTo(0), kerr.KafkaStorageError)
		require.ErrorIs(t, l.Flush(), kerr.KafkaStorageError)
		require.Same(t, other, m.Get(TopicPartition{"topic", 1}), "nobody touched the other directory")
		noProblems(t, disk, back)
		require.NoError(t, m.Reopen("/a"), "it is online")

		fillUp(t, disk, back)
		require.Equal(t, 2, failures, "it may fill up again")
		disk.Inject(nil)
		require.NoError(t, m.Reopen("/a"))
		require.EqualValues(t, 41, m.Get(tp0).EndOffset())
		require.NoError(t, m.Close())
		_, err = disk.Stat("/a/" + cleanShutdownFile)
		require.NoError(t, err, "what came back is closed cleanly")
		require.ErrorIs(t, m.Reopen("/b"), error(nil))
	}
}

func TestOnlyADirectoryThatLackedNothingButRoomComesBack(t *testing.T) {
	for name, fault := range map[string]func(vfs.Op) error{
		"an I/O error":            refusing("/a", syscall.EIO, vfs.OpWrite),
		"read-only":               refusing("/a", syscall.EROFS, takesRoom...),
		"a sync that had no room": refusing("/a", syscall.ENOSPC, vfs.OpSync),
		"what came in could not be taken back": func(o vfs.Op) error {
			if o.Kind == vfs.OpTruncate {
				return syscall.EIO
			}
			return refusing("/a", syscall.ENOSPC, takesRoom...)(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewCrashFS()
			m := openManager(t, disk, smallConfig(), newClock(), "/a", "/b")
			l := m.log()
			require.Equal(t, "/a", l.ParentDir())
			produce(t, l, batchSpec{ts: 1})
			disk.Inject(fault)
			_, err := l.AppendAsLeader(batchSpec{ts: 1}.build(t), 0, AppendOptions{})
			require.ErrorIs(t, errors.Join(err, l.Flush()), kerr.KafkaStorageError)
			disk.Inject(nil)
			require.False(t, m.Dirs()[0].Full)
			err = m.Reopen("/a")
			require.ErrorIs(t, err, kerr.KafkaStorageError)
			require.NotErrorIs(t, err, ErrNoRoom)
			require.Same(t, l, m.Get(tp0))
		})
	}
}

// A power cut at any point of coming back leaves what a power cut without it would have left, or more.
func TestAPowerCutWhileADirectoryComesBack(t *testing.T) {
	disk, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, disk, smallConfig(), clk, "/a", "/b")
	l := m.log()
	for i := range int64(20) {
		produce(t, l, batchSpec{size: 1000, ts: i})
	}
	require.NoError(t, l.Flush())
	flushed := l.EndOffset()
	for i := range int64(20) {
		produce(t, l, batchSpec{size: 1000, ts: i})
	}
	fillUp(t, disk, l)
	disk.Inject(nil)
	before := disk.Ops()
	require.NoError(t, m.Reopen("/a"))
	produce(t, m.Get(tp0), batchSpec{ts: 1})
	cuts := 0
	for cut := before; cut <= disk.Ops(); cut++ {
		for _, a := range vfs.Adversaries {
			image := disk.Image(cut, a, uint64(cut))
			crashed := openManager(t, image, smallConfig(), clk, "/a", "/b")
			found := crashed.Get(tp0)
			require.NotNil(t, found)
			require.NoError(t, found.Err())
			require.GreaterOrEqual(t, found.EndOffset(), flushed)
			require.Len(t, readAll(t, found, 0, found.EndOffset()), int(found.EndOffset()))
			noProblems(t, image, found)
			require.NoError(t, crashed.Close())
			cuts++
		}
	}
	require.Greater(t, cuts, 20)
}

// Whoever holds a log of the directory goes on trying to write, cut and flush it while it fills up and comes back.
func TestNobodyWritesToTheLogOfALifeThatEnded(t *testing.T) {
	disk := vfs.NewCrashFS()
	m := openManager(t, disk, smallConfig(), newClock(), "/a", "/b")
	m.log()
	stop := make(chan struct{})
	var acked atomic.Int64
	var writing sync.WaitGroup
	for range 3 {
		writing.Go(func() {
			held := m.Get(tp0)
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if held == nil || held.Err() != nil && n%3 == 0 {
					held = m.Get(tp0)
					continue
				}
				if _, err := held.AppendAsLeader(batchSpec{size: 500, ts: 1}.build(t), 0, AppendOptions{}); err == nil {
					acked.Add(1)
				}
				if n%7 == 0 {
					_ = held.Flush()
				}
			}
		})
	}
	for range 15 {
		at := acked.Load()
		require.Eventually(t, func() bool { return acked.Load() > at+20 }, time.Minute, time.Millisecond)
		disk.Inject(refusing("/a", syscall.ENOSPC, takesRoom...))
		require.Eventually(t, func() bool { return m.Dirs()[0].Err != nil }, time.Minute, time.Millisecond)
		require.True(t, m.Dirs()[0].Full, "%v", m.Dirs()[0].Err)
		disk.Inject(nil)
		require.NoError(t, m.Reopen("/a"))
	}
	close(stop)
	writing.Wait()
	l := m.Get(tp0)
	require.EqualValues(t, acked.Load(), l.EndOffset(), "nothing is lost, nothing is there twice")
	require.Len(t, readAll(t, l, 0, l.EndOffset()), int(acked.Load()))
	noProblems(t, disk, l)
}

func TestAFullDirectoryIsRidOfWhatWasDeleted(t *testing.T) {
	disk, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, disk, smallConfig(), clk, "/a")
	l := m.log()
	gone, err := m.GetOrCreate(TopicPartition{"gone", 0}, TopicID{}, false)
	require.NoError(t, err)
	produce(t, gone, batchSpec{ts: 1})
	require.NoError(t, m.Delete(gone.TP()))
	fillUp(t, disk, l)
	clk.advance(time.Hour)
	m.removeDue(clk.now())
	_, err = disk.Stat(gone.Dir())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestACleaningIsWaitedFor(t *testing.T) {
	disk := vfs.NewCrashFS()
	m := openManager(t, disk, smallConfig(), newClock(), "/a", "/b")
	l := m.log()
	fillUp(t, disk, l)
	disk.Inject(nil)
	l.cleaning.busy = true
	require.ErrorIs(t, m.Reopen("/a"), ErrNoRoom)
	require.Same(t, l, m.Get(tp0))
	l.cleaning.busy = false
	require.NoError(t, m.Reopen("/a"))
}

// A directory that was full from the start on holds a log of a partition that got another one meanwhile.
func TestALogThatCameBackTooLateIsSetAside(t *testing.T) {
	disk, clk := vfs.NewCrashFS(), newClock()
	m := openManager(t, disk, smallConfig(), clk, "/a", "/b")
	produce(t, m.log(), batchSpec{ts: 1})
	require.NoError(t, m.Close())
	require.NoError(t, disk.Remove("/a/"+cleanShutdownFile)) // recovery has something to write
	require.NoError(t, disk.RemoveAll("/a/topic-0/00000000000000000000.index"))
	disk.Inject(refusing("/a", syscall.ENOSPC, takesRoom...))
	m = openManager(t, disk, smallConfig(), clk, "/a", "/b")
	require.True(t, m.Dirs()[0].Full, "%v", m.Dirs()[0].Err)
	l := m.log()
	require.Equal(t, "/b", l.ParentDir())
	disk.Inject(nil)
	require.NoError(t, m.Reopen("/a"))
	require.Same(t, l, m.Get(tp0))
	entries, err := disk.ReadDir("/a")
	require.NoError(t, err)
	strays := 0
	for _, e := range entries {
		if _, state, ok := parseDirName(e.Name()); ok {
			require.Equal(t, strayDir, state, e.Name())
			strays++
		}
	}
	require.Equal(t, 1, strays)
	require.NoError(t, m.Close())
	openManager(t, disk, smallConfig(), clk, "/a", "/b")
}

// volume is a file system that tells of a size of its own and whose reads can be made to fail.
type volume struct {
	vfs.FS
	total, usable int64
	read          func(name string) error
}

func (v *volume) Space(string) (total, usable int64, err error) { return v.total, v.usable, nil }

func (v *volume) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := v.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &volumeFile{f, v}, nil
}

type volumeFile struct {
	vfs.File
	v *volume
}

func (f *volumeFile) ReadAt(p []byte, off int64) (int, error) {
	if f.v.read != nil {
		if err := f.v.read(f.Name()); err != nil {
			return 0, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
		}
	}
	return f.File.ReadAt(p, off)
}

func TestADirectoryComesBackWhenThereIsRoomForASegment(t *testing.T) {
	disk := vfs.NewCrashFS()
	v := &volume{FS: disk}
	m := openManager(t, v, smallConfig(), newClock(), "/a", "/b")
	fillUp(t, disk, m.log())
	disk.Inject(nil)
	for _, c := range []struct {
		total, usable int64
		enough        bool
	}{
		{1 << 40, 16383, false}, {200_000, 9_999, false}, {1 << 40, 0, false}, {200_000, 10_000, true},
	} {
		v.total, v.usable = c.total, c.usable
		err := m.Reopen("/a")
		require.Equal(t, c.enough, err == nil, "%+v: %v", c, err)
		if !c.enough {
			require.ErrorIs(t, err, ErrNoRoom)
		}
	}
}

// H45: a disk that cannot be read any more costs its own logs, and is reported as what it is.
func TestAReadErrorTakesOneDirectoryOffline(t *testing.T) {
	v := &volume{FS: vfs.NewCrashFS()}
	failed := map[string]error{}
	m := openWith(t, ManagerConfig{
		Dirs: []string{"/a", "/b"}, FS: v, Default: smallConfig(), OnDirFailure: func(dir string, err error) { failed[dir] = err },
	}, newClock())
	l := m.log()
	other, err := m.GetOrCreate(TopicPartition{"topic", 1}, TopicID{}, false)
	require.NoError(t, err)
	for range 40 {
		produce(t, l, batchSpec{size: 1000, ts: 1})
		produce(t, other, batchSpec{size: 1000, ts: 1})
	}
	v.read = func(name string) error {
		if strings.HasPrefix(name, "/a/") {
			return syscall.EIO
		}
		return nil
	}
	_, err = l.Read(0, ReadOptions{MaxBytes: 100, MinOneBatch: true, UpTo: 40})
	require.ErrorIs(t, err, kerr.KafkaStorageError)
	require.ErrorIs(t, err, syscall.EIO)
	v.read = nil
	_, err = l.Read(0, ReadOptions{MaxBytes: 100, MinOneBatch: true, UpTo: 40})
	require.ErrorIs(t, err, kerr.KafkaStorageError, "until the broker is started anew")
	_, err = l.AppendAsLeader(batchSpec{ts: 1}.build(t), 0, AppendOptions{})
	require.ErrorIs(t, err, kerr.KafkaStorageError)
	require.Len(t, failed, 1)
	require.ErrorContains(t, failed["/a"], "disk error")
	require.NotErrorIs(t, m.Reopen("/a"), ErrNoRoom)
	require.Len(t, readAll(t, other, 0, 40), 40)
	produce(t, other, batchSpec{ts: 1})
	require.NoError(t, m.Close())
}

// H45: a disk that was made read-only goes on being read nowhere: what cannot be written to cannot be led.
func TestAReadOnlyDiskTakesOneDirectoryOffline(t *testing.T) {
	disk := vfs.NewCrashFS()
	m := openManager(t, disk, smallConfig(), newClock(), "/a", "/b")
	l := m.log()
	other, err := m.GetOrCreate(TopicPartition{"topic", 1}, TopicID{}, false)
	require.NoError(t, err)
	produce(t, l, batchSpec{ts: 1})
	everything := []vfs.OpKind{vfs.OpCreate, vfs.OpMkdir, vfs.OpWrite, vfs.OpTruncate, vfs.OpRename, vfs.OpRemove}
	disk.Inject(refusing("/a", syscall.EROFS, everything...))
	_, err = l.AppendAsLeader(batchSpec{ts: 1}.build(t), 0, AppendOptions{})
	require.ErrorIs(t, err, kerr.KafkaStorageError)
	require.ErrorIs(t, err, syscall.EROFS)
	produce(t, other, batchSpec{ts: 1})
	fresh, err := m.GetOrCreate(TopicPartition{"topic", 2}, TopicID{}, false)
	require.NoError(t, err)
	require.Equal(t, "/b", fresh.ParentDir())
	require.NoError(t, m.Close())
	disk.Inject(nil)
	m = openManager(t, disk, smallConfig(), newClock(), "/a", "/b")
	require.EqualValues(t, 1, m.Get(tp0).EndOffset())
	noProblems(t, disk, m.Get(tp0))
}

func TestReopenOfADirectoryThatIsNone(t *testing.T) {
	m := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/a")
	require.ErrorIs(t, m.Reopen("/x"), kerr.LogDirNotFound)
}

func TestLacksOnlyRoom(t *testing.T) {
	write := &fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}
	for _, c := range []struct {
		err  error
		only bool
	}{
		{write, true},
		{&os.LinkError{Op: "rename", Err: syscall.EDQUOT}, true},
		{errors.Join(write, write), true},
		{(&logDir{path: filepath.Join("a", "b")}).fail(write), true},
		{&fs.PathError{Op: "sync", Path: "f", Err: syscall.ENOSPC}, false},
		{errors.Join(write, &fs.PathError{Op: "truncate", Path: "f", Err: syscall.EIO}), false},
		{errors.Join(write, &fs.PathError{Op: "sync", Path: "f", Err: syscall.ENOSPC}), false},
		{io.ErrUnexpectedEOF, false},
		{kerr.KafkaStorageError, false},
	} {
		assert.Equal(t, c.only, lacksOnlyRoom(c.err), "%v", c.err)
	}
}
