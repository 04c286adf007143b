package vfs

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"barnabas/integration/lane"
)

func TestAppendAddsPiecesInOrderAtTheTrackedEnd(t *testing.T) {
	f := open(t, OS, filepath.Join(t.TempDir(), "f"))
	require.NoError(t, f.Append([]byte("ab")))
	require.NoError(t, f.Append([]byte("cd"), nil, []byte{}, []byte("ef")))
	require.NoError(t, f.Append())
	var many [][]byte
	for i := range 3000 { // more than one system call takes
		many = append(many, []byte{byte(i)})
	}
	require.NoError(t, f.Append(many...))
	require.Equal(t, int64(3006), f.Size())
	got, err := NewRange(f, 0, f.Size(), nil).ReadAll()
	require.NoError(t, err)
	require.Equal(t, append([]byte("abcdef"), bytes.Join(many, nil)...), got)
	require.Len(t, many[0], 1, "the caller's slices are left alone")
}

// TestAppendTakesBackWhatAFullDiskLetIn limits the size of files of a child process, so that the system itself writes
// only a part.
func TestAppendTakesBackWhatAFullDiskLetIn(t *testing.T) {
	if name := os.Getenv("BARNABAS_TEST_APPEND"); name != "" {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1000, Max: 1000}))
		f := open(t, OS, name)
		require.NoError(t, f.Append(make([]byte, 900)))
		require.ErrorIs(t, f.Append(make([]byte, 200)), unix.EFBIG)
		require.Equal(t, int64(900), f.Size())
		require.ErrorIs(t, f.Append(make([]byte, 60), make([]byte, 60)), unix.EFBIG)
		require.NoError(t, f.Append(make([]byte, 50), make([]byte, 50)))
		return
	}
	name := filepath.Join(t.TempDir(), "f")
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "BARNABAS_TEST_APPEND="+name)
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	st, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, int64(1000), st.Size())
}

func TestLockHasOneHolder(t *testing.T) {
	for _, fs := range []FS{OS, NewCrashFS()} {
		dir := t.TempDir()
		require.NoError(t, fs.MkdirAll(dir, 0o755))
		name := filepath.Join(dir, ".lock")
		l, err := fs.Lock(name)
		require.NoError(t, err)
		_, err = fs.Lock(name)
		require.ErrorIs(t, err, ErrLocked)
		_, err = fs.Lock(name)
		require.ErrorIs(t, err, ErrLocked, "a failed attempt must not free it")
		require.NoError(t, l.Close())
		l, err = fs.Lock(name)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}

func TestALockIsThatOfAFileNotOfAName(t *testing.T) {
	dir := t.TempDir()
	name, copied := filepath.Join(dir, ".lock"), filepath.Join(dir, "copy")
	lock := func(name string) Lock {
		l, err := OS.Lock(name)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	first := lock(name)
	require.NotEmpty(t, first.Identity())
	require.NotEqual(t, first.Identity(), lock(copied).Identity())
	require.NoError(t, os.Remove(name))
	other := lock(name)
	require.NotEqual(t, first.Identity(), other.Identity(), "the first is held, though it has no name any more")
	before := other.Identity()
	require.NoError(t, other.Close())
	require.NoError(t, os.Rename(name, name+".moved"))
	require.Equal(t, before, lock(name+".moved").Identity())
}

// A broker on the Java runtime must find the directory taken, and we must find it taken by one.
func TestLockExcludesTheJavaRuntimeBothWays(t *testing.T) {
	java := lane.Java(t)
	dir := t.TempDir()
	name := filepath.Join(dir, ".lock")
	source := filepath.Join(dir, "Holder.java")
	require.NoError(t, os.WriteFile(source, []byte(`
import java.nio.channels.*;
import java.nio.file.*;
public class Holder {
  public static void main(String[] a) throws Exception {
    FileChannel c = FileChannel.open(Path.of(a[0]), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
    System.out.println(c.tryLock() == null ? "taken" : "mine");
    System.in.read();
  }
}`), 0o644))
	run := func() (answer string, stop func()) {
		cmd := exec.Command(java, source, name)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		p := make([]byte, 16)
		n, err := out.Read(p)
		require.NoError(t, err)
		return string(bytes.TrimSpace(p[:n])), func() {
			require.NoError(t, in.Close())
			require.NoError(t, cmd.Wait())
		}
	}

	l, err := OS.Lock(name)
	require.NoError(t, err)
	answer, stop := run()
	require.Equal(t, "taken", answer)
	stop()
	require.NoError(t, l.Close())

	answer, stop = run()
	require.Equal(t, "mine", answer)
	_, err = OS.Lock(name)
	require.ErrorIs(t, err, ErrLocked)
	stop()
}

func TestRange(t *testing.T) {
	f := open(t, OS, filepath.Join(t.TempDir(), "f"))
	require.NoError(t, f.Append([]byte("0123456789")))
	released := 0
	r := NewRange(f, 2, 5, func() { released++ })
	got, err := r.ReadAll()
	require.NoError(t, err)
	require.Equal(t, "23456", string(got))
	require.NotNil(t, r.OSFile())
	require.Error(t, r.ReadInto(make([]byte, 6)), "more than the range")
	r.Release()
	require.Equal(t, 1, released)

	short := NewRange(f, 8, 5, nil)
	_, err = short.ReadAll()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	short.Release()

	require.Nil(t, FileRange{}.OSFile())
	got, err = FileRange{}.ReadAll()
	require.NoError(t, err)
	require.Empty(t, got)
	require.Nil(t, NewRange(open(t, NewCrashFS(), "/x"), 0, 0, nil).OSFile())
}

func TestSpaceOfAVolume(t *testing.T) {
	total, usable, err := OS.Space(t.TempDir())
	require.NoError(t, err)
	require.Greater(t, total, int64(0))
	require.LessOrEqual(t, usable, total)
	_, _, err = OS.Space("/no/such/place")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func open(t *testing.T, fs FS, name string) File {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() }) // some are closed by their test
	return f
}
