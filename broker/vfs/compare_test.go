package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// twin runs the same calls on the file system of the operating system, below a folder, and on a CrashFS, and wants the
// same answers.
type twin struct {
	t     *testing.T
	root  string
	crash *CrashFS
	files []twinFile
	trace []string
}

type twinFile struct{ os, crash File }

// outcome is an error without names and wording: what a caller can act on.
func outcome(err error) string {
	var no syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
	case errors.Is(err, fs.ErrExist):
		return "exists"
	case errors.Is(err, fs.ErrClosed):
		return "closed"
	case errors.Is(err, ErrFlag):
		return "flag"
	case errors.As(err, &no):
		return no.Error()
	}
	return err.Error()
}

func (w *twin) same(call string, osErr, crashErr error) {
	w.trace = append(w.trace, call)
	require.Equal(w.t, outcome(osErr), outcome(crashErr), "%s\nos: %v\ncrash: %v\n%s", call, osErr, crashErr, strings.Join(w.trace, "\n"))
}

func TestCrashFSAnswersAsTheOperatingSystem(t *testing.T) {
	steps := 0
	for seed := range uint64(60) {
		w := &twin{t: t, root: t.TempDir(), crash: NewCrashFS()}
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 150 {
			w.step(rng)
			steps++
		}
		w.compareTrees("/")
		for _, f := range w.files {
			f.os.Close() // may be closed already; both were compared above
		}
	}
	t.Logf("%d calls", steps)
}

func (w *twin) name(rng *rand.Rand) string {
	parts := []string{"a", "b", "c"}
	name := "/"
	for range 1 + rng.IntN(3) {
		name = path.Join(name, parts[rng.IntN(len(parts))])
	}
	return name
}

func (w *twin) step(rng *rand.Rand) {
	name := w.name(rng)
	at := filepath.Join(w.root, name)
	if k := rng.IntN(24); k < 12 && len(w.files) > 0 {
		w.fileStep(rng, w.files[rng.IntN(len(w.files))], k)
		return
	}
	switch rng.IntN(9) {
	case 0, 1, 2:
		flag := []int{os.O_RDONLY, os.O_RDWR, os.O_WRONLY}[rng.IntN(3)]
		for _, extra := range []int{os.O_CREATE, os.O_EXCL | os.O_CREATE, os.O_TRUNC, os.O_APPEND} {
			if rng.IntN(4) == 0 && (extra != os.O_TRUNC || flag != os.O_RDONLY) {
				flag |= extra
			}
		}
		f1, err1 := OS.OpenFile(at, flag, 0o644)
		f2, err2 := w.crash.OpenFile(name, flag, 0o644)
		w.same(fmt.Sprintf("open %s %x", name, flag), err1, err2)
		if err1 == nil {
			w.files = append(w.files, twinFile{f1, f2})
		}
	case 3:
		to := w.name(rng)
		w.same("rename "+name+" "+to, OS.Rename(at, filepath.Join(w.root, to)), w.crash.Rename(name, to))
	case 4:
		w.same("remove "+name, OS.Remove(at), w.crash.Remove(name))
	case 5:
		if rng.IntN(4) == 0 {
			w.same("removeall "+name, OS.RemoveAll(at), w.crash.RemoveAll(name))
		}
	case 6:
		w.same("mkdirall "+name, OS.MkdirAll(at, 0o755), w.crash.MkdirAll(name, 0o755))
	case 7:
		i1, err1 := OS.Stat(at)
		i2, err2 := w.crash.Stat(name)
		w.same("stat "+name, err1, err2)
		if err1 == nil {
			w.sameInfo(i1, i2)
		}
	case 8:
		_, err1 := OS.ReadDir(at)
		_, err2 := w.crash.ReadDir(name)
		w.same("readdir "+name, err1, err2)
	}
}

func (w *twin) fileStep(rng *rand.Rand, f twinFile, k int) {
	data := make([]byte, rng.IntN(9000))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	off := rng.Int64N(12000)
	switch k {
	case 0, 1, 2, 3:
		cut := rng.IntN(len(data) + 1)
		err1, err2 := f.os.Append(data[:cut], data[cut:]), f.crash.Append(data[:cut], data[cut:])
		w.same(fmt.Sprintf("append %s %d", f.crash.Name(), len(data)), err1, err2)
	case 4, 5:
		n1, err1 := f.os.WriteAt(data, off)
		n2, err2 := f.crash.WriteAt(data, off)
		w.same(fmt.Sprintf("write %s %d+%d", f.crash.Name(), off, len(data)), err1, err2)
		require.Equal(w.t, n1, n2)
	case 6, 7:
		p1, p2 := make([]byte, len(data)), make([]byte, len(data))
		n1, err1 := f.os.ReadAt(p1, off)
		n2, err2 := f.crash.ReadAt(p2, off)
		w.same(fmt.Sprintf("read %s %d+%d", f.crash.Name(), off, len(data)), err1, err2)
		require.Equal(w.t, p1[:n1], p2[:n2])
	case 8:
		size := off - 100
		w.same(fmt.Sprintf("truncate %s %d", f.crash.Name(), size), f.os.Truncate(size), f.crash.Truncate(size))
	case 9:
		w.same("sync "+f.crash.Name(), f.os.Sync(), f.crash.Sync())
	case 10:
		if rng.IntN(4) == 0 {
			w.same("close "+f.crash.Name(), f.os.Close(), f.crash.Close())
		}
	}
	require.Equal(w.t, f.os.Size(), f.crash.Size(), strings.Join(w.trace, "\n"))
}

func (w *twin) sameInfo(a, b fs.FileInfo) {
	require.Equal(w.t, a.Name(), b.Name())
	require.Equal(w.t, a.IsDir(), b.IsDir())
	if !a.IsDir() {
		require.Equal(w.t, a.Size(), b.Size())
	}
}

func (w *twin) compareTrees(name string) {
	d1, err := OS.ReadDir(filepath.Join(w.root, name))
	require.NoError(w.t, err)
	d2, err := w.crash.ReadDir(name)
	require.NoError(w.t, err)
	require.Len(w.t, d2, len(d1), name)
	for i := range d1 {
		require.Equal(w.t, d1[i].Name(), d2[i].Name())
		require.Equal(w.t, d1[i].IsDir(), d2[i].IsDir())
		child := path.Join(name, d1[i].Name())
		if d1[i].IsDir() {
			w.compareTrees(child)
			continue
		}
		want, err := os.ReadFile(filepath.Join(w.root, child))
		require.NoError(w.t, err)
		require.Equal(w.t, string(want), read(w.t, w.crash, child), strings.Join(w.trace, "\n"))
	}
}

// read returns the bytes of a file.
func read(t *testing.T, fs FS, name string) string {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	p, err := NewRange(f, 0, f.Size(), nil).ReadAll()
	require.NoError(t, err)
	return string(p)
}
