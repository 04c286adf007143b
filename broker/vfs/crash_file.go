package vfs

import (
	"fmt"
	"io"
	"io/fs"
)

// crashFile is a handle. Like osFile it tracks the end of the file itself.
type crashFile struct {
	c             *CrashFS
	name          string
	node          int
	end           int64
	reads, writes bool
	closed        bool
}

func (f *crashFile) Name() string { return f.name }

func (f *crashFile) Size() int64 {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.end
}

// check says whether the handle can be used so. The caller holds mu.
func (f *crashFile) check(op string, allowed bool) error {
	switch {
	case f.closed:
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	case !allowed:
		return &fs.PathError{Op: op, Path: f.name, Err: errBadFile}
	}
	return nil
}

func (f *crashFile) Close() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.check("close", true); err != nil {
		return err
	}
	f.closed = true
	return nil
}

func (f *crashFile) ReadAt(p []byte, off int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.check("read", f.reads); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "readat", Path: f.name, Err: errInvalid}
	}
	data := f.c.now.nodes[f.node].data
	if off >= int64(len(data)) {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *crashFile) WriteAt(p []byte, off int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.write(p, off)
}

func (f *crashFile) write(p []byte, off int64) (int, error) {
	if err := f.check("write", f.writes); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "writeat", Path: f.name, Err: errInvalid}
	}
	if len(p) == 0 {
		return 0, nil
	}
	o := change{Op: Op{Kind: OpWrite, Name: f.name, Offset: off, Length: len(p)}, node: f.node, data: append([]byte(nil), p...)}
	n := len(p)
	err := f.c.do(o)
	if err != nil {
		n /= 2
	}
	f.end = max(f.end, off+int64(n))
	return n, err
}

func (f *crashFile) Append(p ...[]byte) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	var all []byte
	for _, b := range p {
		all = append(all, b...)
	}
	end := f.end
	if _, err := f.write(all, end); err != nil {
		f.end = end
		if cut := f.truncate(end); cut != nil && f.writes && !f.closed {
			return fmt.Errorf("%w; and the partial append could not be taken back: %w", err, cut)
		}
		return err
	}
	return nil
}

// Reserve does nothing: a disk in memory has room.
func (f *crashFile) Reserve(int64) {}

func (f *crashFile) Truncate(size int64) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return f.truncate(size)
}

func (f *crashFile) truncate(size int64) error {
	if f.closed {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: fs.ErrClosed}
	}
	if !f.writes || size < 0 {
		return &fs.PathError{Op: "truncate", Path: f.name, Err: errInvalid}
	}
	if size != int64(len(f.c.now.nodes[f.node].data)) {
		if err := f.c.do(change{Op: Op{Kind: OpTruncate, Name: f.name, Offset: size}, node: f.node}); err != nil {
			return err
		}
	}
	f.end = size
	return nil
}

func (f *crashFile) Sync() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.check("sync", true); err != nil {
		return err
	}
	return f.c.do(change{Op: Op{Kind: OpSync, Name: f.name}, node: f.node})
}
