package vfs

import (
	"fmt"
	"io"
	"os"
)

// Source is what a FileRange reads: a file, or what makes bytes that are in none. Who sends a range reads each byte of it
// once, from the first to the last.
type Source interface {
	io.ReaderAt
	Name() string
}

// Lender is a Source that makes its bytes in memory of its own, from which they can be sent.
type Lender interface {
	Source
	// Lend returns some of the bytes from off on, at least one and at most most. They are valid until the next call, and
	// until the range is released.
	Lend(off int64, most int) ([]byte, error)
}

// FileRange is a piece of a file that stays readable until Release: whoever made it has pinned the file. It is the only
// thing that crosses from the log to the network, and it lets the network send from file to socket without a copy.
//
// A FileRange is passed by value; exactly one holder calls Release, once.
type FileRange struct {
	File   Source
	Offset int64 // first byte
	Length int64 // bytes; 0 is a range of nothing, whose File may be nil

	release func()
}

// NewRange makes a range; release (may be nil) is called by Release.
func NewRange(f Source, off, n int64, release func()) FileRange {
	return FileRange{File: f, Offset: off, Length: n, release: release}
}

// Release gives the file back. The bytes must not be read after it.
func (r FileRange) Release() {
	if r.release != nil {
		r.release()
	}
}

// ReadAll copies the range into memory.
func (r FileRange) ReadAll() ([]byte, error) {
	if r.Length <= 0 {
		return nil, nil
	}
	p := make([]byte, r.Length)
	if err := r.ReadInto(p); err != nil {
		return nil, err
	}
	return p, nil
}

// ReadInto fills p from the start of the range.
func (r FileRange) ReadInto(p []byte) error {
	if int64(len(p)) > r.Length {
		return fmt.Errorf("read of %d bytes from a range of %d", len(p), r.Length)
	}
	n, err := r.File.ReadAt(p, r.Offset)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s at %d: %w", r.File.Name(), r.Offset, err)
}

// OSFile is the file of the operating system behind the range, nil when there is none.
func (r FileRange) OSFile() *os.File {
	if f, ok := r.File.(*osFile); ok {
		return f.f
	}
	return nil
}
