package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxScratch bounds what a Scratch keeps in memory, in bytes.
const maxScratch = 1 << 30

// Scratch is a file system over another one that it only reads. What is written, made, renamed and removed is kept in memory, so that somebody can be asked what he would do to a disk. A file beneath can be
// cut and added to; to overwrite what is in it, or to rename a directory, is refused. A lock is always granted: Held tells of others.
type Scratch struct {
	under FS
	now   func() time.Time

	mu struct {
		sync.Mutex
		files map[string]*scratchFile // by name: those that were opened here
		gone  map[string]bool         // names that were removed; of a directory with all below it
		dirs  map[string]bool         // made here
		bytes int64
	}
}

// NewScratch makes a Scratch over a file system. now gives the times of files that are written.
func NewScratch(under FS, now func() time.Time) *Scratch {
	s := &Scratch{under: under, now: now}
	s.mu.files, s.mu.gone, s.mu.dirs = map[string]*scratchFile{}, map[string]bool{}, map[string]bool{}
	return s
}

// scratchFile is a file: so much of one beneath, and what was added.
type scratchFile struct {
	fs *Scratch

	sync.RWMutex
	below    string // name beneath; "" for none
	kept     int64  // bytes of it that count
	added    []byte // behind them
	modified time.Time
	opens    int
	file     File // beneath, while it is open here
}

func (f *scratchFile) size() int64 { return f.kept + int64(len(f.added)) }

// removed tells whether a name, or a directory above it, was removed here.
func (s *Scratch) removed(name string) bool {
	for {
		if s.mu.gone[name] {
			return true
		}
		up := filepath.Dir(name)
		if up == name {
			return false
		}
		name = up
	}
}

// touch finds a file, or takes one beneath into the scratch.
func (s *Scratch) touch(name string) (*scratchFile, error) {
	if f := s.mu.files[name]; f != nil {
		return f, nil
	}
	if s.removed(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	info, err := s.under.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errIsDir}
	}
	f := &scratchFile{fs: s, below: name, kept: info.Size(), modified: info.ModTime()}
	s.mu.files[name] = f
	return f, nil
}

// OpenFile opens a file for reading and writing here.
func (s *Scratch) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	if flag&^openFlags != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrFlag}
	}
	name = filepath.Clean(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.touch(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		f = &scratchFile{fs: s, modified: s.now()}
		s.mu.files[name] = f
	case err != nil:
		return nil, err
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	}
	f.Lock()
	defer f.Unlock()
	if flag&os.O_TRUNC != 0 {
		f.kept, f.added = 0, nil
	}
	if f.kept > 0 && f.file == nil {
		if f.file, err = s.under.OpenFile(f.below, os.O_RDONLY, 0); err != nil {
			return nil, err
		}
	}
	f.opens++
	return &scratchHandle{scratchFile: f, name: name}, nil
}

// Rename moves a file.
func (s *Scratch) Rename(from, to string) error {
	from, to = filepath.Clean(from), filepath.Clean(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.touch(from)
	if errors.Is(err, errIsDir) {
		err = fmt.Errorf("rename %s: %w", from, errors.ErrUnsupported)
	}
	if err != nil {
		return err
	}
	delete(s.mu.files, from)
	s.mu.gone[from] = true
	s.mu.files[to] = f
	return nil
}

// Remove removes a file.
func (s *Scratch) Remove(name string) error {
	name = filepath.Clean(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.touch(name); err != nil {
		return err
	}
	delete(s.mu.files, name)
	s.mu.gone[name] = true
	return nil
}

// RemoveAll removes a name and all below it.
func (s *Scratch) RemoveAll(name string) error {
	name = filepath.Clean(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	within := func(other string) bool {
		return other == name || strings.HasPrefix(other, name+string(filepath.Separator))
	}
	maps.DeleteFunc(s.mu.files, func(other string, _ *scratchFile) bool { return within(other) })
	maps.DeleteFunc(s.mu.dirs, func(other string, _ bool) bool { return within(other) })
	s.mu.gone[name] = true
	return nil
}

// MkdirAll makes a directory.
func (s *Scratch) MkdirAll(name string, _ fs.FileMode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.dirs[filepath.Clean(name)] = true
	return nil
}

// ReadDir lists a directory.
func (s *Scratch) ReadDir(name string) ([]fs.DirEntry, error) {
	name = filepath.Clean(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]fs.DirEntry{}
	if !s.removed(name) {
		entries, err := s.under.ReadDir(name)
		if err != nil && !s.mu.dirs[name] {
			return nil, err
		}
		for _, e := range entries {
			if !s.mu.gone[filepath.Join(name, e.Name())] {
				found[e.Name()] = e
			}
		}
	} else if !s.mu.dirs[name] {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	for path, f := range s.mu.files {
		if filepath.Dir(path) == name {
			found[filepath.Base(path)] = fs.FileInfoToDirEntry(f.info(path))
		}
	}
	for path := range s.mu.dirs {
		if base := filepath.Base(path); filepath.Dir(path) == name && found[base] == nil {
			found[base] = fs.FileInfoToDirEntry(scratchInfo{name: base, mode: fs.ModeDir | 0o755})
		}
	}
	var list []fs.DirEntry
	for _, base := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[base])
	}
	return list, nil
}

// Stat describes a file or directory.
func (s *Scratch) Stat(name string) (fs.FileInfo, error) {
	name = filepath.Clean(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch f := s.mu.files[name]; {
	case f != nil:
		return f.info(name), nil
	case s.mu.dirs[name]:
		return scratchInfo{name: filepath.Base(name), mode: fs.ModeDir | 0o755}, nil
	case s.removed(name):
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return s.under.Stat(name)
}

// SetModified gives a file the time of its last change.
func (s *Scratch) SetModified(name string, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.touch(filepath.Clean(name))
	if err == nil {
		f.Lock()
		f.modified = at
		f.Unlock()
	}
	return err
}

// SyncDir does nothing.
func (s *Scratch) SyncDir(string) error { return nil }

// Lock is always granted.
func (s *Scratch) Lock(string) (Lock, error) { return scratchLock{}, nil }

// Space is that of the file system beneath.
func (s *Scratch) Space(dir string) (total, usable int64, err error) { return s.under.Space(dir) }

type scratchLock struct{}

func (scratchLock) Close() error     { return nil }
func (scratchLock) Identity() string { return "" }

// scratchInfo describes a file or directory that is here.
type scratchInfo struct {
	name     string
	size     int64
	mode     fs.FileMode
	modified time.Time
}

func (i scratchInfo) Name() string       { return i.name }
func (i scratchInfo) Size() int64        { return i.size }
func (i scratchInfo) Mode() fs.FileMode  { return i.mode }
func (i scratchInfo) ModTime() time.Time { return i.modified }
func (i scratchInfo) IsDir() bool        { return i.mode.IsDir() }
func (i scratchInfo) Sys() any           { return nil }

func (f *scratchFile) info(name string) fs.FileInfo {
	f.RLock()
	defer f.RUnlock()
	return scratchInfo{filepath.Base(name), f.size(), 0o644, f.modified}
}

// scratchHandle is an open file.
type scratchHandle struct {
	*scratchFile
	name   string
	closed bool
}

// Name is the name the file was opened by.
func (h *scratchHandle) Name() string { return h.name }

// Size is the file's size.
func (h *scratchHandle) Size() int64 {
	h.RLock()
	defer h.RUnlock()
	return h.size()
}

// ReadAt reads.
func (h *scratchHandle) ReadAt(p []byte, off int64) (n int, err error) {
	h.RLock()
	defer h.RUnlock()
	if h.closed {
		return 0, fs.ErrClosed
	}
	if off < 0 {
		return 0, errInvalid
	}
	if off < h.kept && h.file != nil {
		n, err = h.file.ReadAt(p[:min(int64(len(p)), h.kept-off)], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
	}
	if at := off + int64(n); n < len(p) && at >= h.kept && at-h.kept < int64(len(h.added)) {
		n += copy(p[n:], h.added[at-h.kept:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// grow counts bytes that are to be kept in memory.
func (s *Scratch) grow(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.bytes+int64(n) > maxScratch {
		return fmt.Errorf("more than %d bytes would have to be kept in memory", maxScratch)
	}
	s.mu.bytes += int64(n)
	return nil
}

// Append adds at the end.
func (h *scratchHandle) Append(p ...[]byte) error {
	for _, piece := range p {
		if err := h.fs.grow(len(piece)); err != nil {
			return err
		}
	}
	h.Lock()
	defer h.Unlock()
	if h.closed {
		return fs.ErrClosed
	}
	for _, piece := range p {
		h.added = append(h.added, piece...)
	}
	h.modified = h.fs.now()
	return nil
}

// WriteAt writes over what was added here, or at the end.
func (h *scratchHandle) WriteAt(p []byte, off int64) (int, error) {
	if err := h.fs.grow(len(p)); err != nil {
		return 0, err
	}
	h.Lock()
	defer h.Unlock()
	switch at := off - h.kept; {
	case h.closed:
		return 0, fs.ErrClosed
	case at < 0 || at > int64(len(h.added)):
		return 0, fmt.Errorf("write %s at %d: %w", h.name, off, errors.ErrUnsupported)
	default:
		n := copy(h.added[at:], p)
		h.added = append(h.added, p[n:]...)
	}
	h.modified = h.fs.now()
	return len(p), nil
}

// Truncate cuts the file, or adds zeros.
func (h *scratchHandle) Truncate(size int64) error {
	more := size - h.Size()
	if size < 0 {
		return errInvalid
	}
	if more > 0 {
		return h.Append(make([]byte, min(more, maxScratch)))
	}
	h.Lock()
	defer h.Unlock()
	if h.closed {
		return fs.ErrClosed
	}
	h.added = h.added[:max(0, size-h.kept)]
	h.kept = min(h.kept, size)
	h.modified = h.fs.now()
	return nil
}

// Reserve does nothing.
func (h *scratchHandle) Reserve(int64) {}

// Sync does nothing.
func (h *scratchHandle) Sync() error { return nil }

// Close closes the file beneath with the last handle.
func (h *scratchHandle) Close() error {
	h.Lock()
	defer h.Unlock()
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	if h.opens--; h.opens > 0 || h.file == nil {
		return nil
	}
	err := h.file.Close()
	h.file = nil
	return err
}
