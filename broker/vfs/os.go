package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"
)

type osFS struct{}

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if flag&^openFlags != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrFlag}
	}
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if st.IsDir() {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: errIsDir}, f.Close())
	}
	of := &osFile{f: f}
	of.end.Store(st.Size())
	return of, nil
}

func (osFS) Rename(from, to string) error                      { return os.Rename(from, to) }
func (osFS) Remove(name string) error                          { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                       { return os.RemoveAll(name) }
func (osFS) MkdirAll(name string, perm fs.FileMode) error      { return os.MkdirAll(name, perm) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error)        { return os.ReadDir(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)             { return os.Stat(name) }
func (osFS) SetModified(name string, at time.Time) error       { return os.Chtimes(name, at, at) }
func (osFS) Space(dir string) (total, usable int64, err error) { return diskSpace(dir) }

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (osFS) Lock(name string) (Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return osLock{f}, nil
}

// Held tells whether somebody has the lock of a file of the operating system. A file that does not exist nobody has locked.
func Held(name string) (bool, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return held(f)
}

// osLock is asked through its open file: the name may meanwhile be another file's.
type osLock struct{ *os.File }

func (l osLock) Identity() string { return identity(l.File) }

// osFile tracks the end of the file itself: the handle is the file's only writer, and a size known without a system
// call is read on every fetch.
type osFile struct {
	f   *os.File
	end atomic.Int64
}

func (f *osFile) Name() string { return f.f.Name() }
func (f *osFile) Size() int64  { return f.end.Load() }
func (f *osFile) Close() error { return f.f.Close() }
func (f *osFile) Sync() error  { return f.f.Sync() }

func (f *osFile) Reserve(size int64) { reserve(f.f, size) }

func (f *osFile) ReadAt(p []byte, off int64) (int, error) { return f.f.ReadAt(p, off) }

func (f *osFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.f.WriteAt(p, off)
	if end := off + int64(n); n > 0 && end > f.end.Load() {
		f.end.Store(end)
	}
	return n, err
}

func (f *osFile) Truncate(size int64) error {
	if err := f.f.Truncate(size); err != nil {
		return err
	}
	f.end.Store(size)
	return nil
}

// Append writes at the tracked end. The end moves only when every byte is written, so a reader never sees half of an
// append. When it fails midway the bytes that did get written are cut off again: what follows an append that was
// refused must not be found behind half of it.
func (f *osFile) Append(p ...[]byte) error {
	end := f.end.Load()
	n, err := writeVector(f.f, p, end)
	if err == nil {
		f.end.Store(end + n)
		return nil
	}
	if cut := f.f.Truncate(end); cut != nil {
		return fmt.Errorf("%w; and the partial append could not be taken back: %w", err, cut)
	}
	return err
}
