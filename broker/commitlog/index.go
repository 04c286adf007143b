package commitlog

// Sparse indexes: .index leads from an offset to a position in the segment, .timeindex from a time to an offset. They are
// hints: each answer is checked against the batch it leads to, and an index that lies is built anew from the segment. So
// nothing breaks when one is missing, torn, preallocated with zeros or foreign (BR-017).
//
// Entries that are not yet in the file wait in memory; they go to disk when there are many, when the log is idle, when
// the segment is rolled and when the log is closed. Readers see an immutable view and take no lock.

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"sync/atomic"
)

const (
	offsetEntryBytes = 8  // relative offset, position
	timeEntryBytes   = 12 // timestamp, relative offset
	spillBytes       = 32 << 10
)

// index is one of the two files of a segment.
type index struct {
	handle
	suffix string
	width  int
	view   atomic.Pointer[indexView] // nil until the file has been looked at
}

// indexView is the content of an index at one moment: the first onDisk entries are in the file, tail follows.
type indexView struct {
	onDisk int
	tail   []byte
}

func (v *indexView) entries(width int) int { return v.onDisk + len(v.tail)/width }

// entry copies entry i into buf.
func (x *index) entry(v *indexView, f io.ReaderAt, i int, buf []byte) error {
	if i >= v.onDisk {
		copy(buf, v.tail[(i-v.onDisk)*x.width:][:x.width])
		return nil
	}
	if n, err := f.ReadAt(buf[:x.width], int64(i)*int64(x.width)); n < x.width {
		return fmt.Errorf("%s: %w", x.suffix, shortRead(err))
	}
	return nil
}

// find returns the last entry for which notBehind holds; entries are in order, so that those for which it holds come
// first. False when it holds for none.
func (x *index) find(v *indexView, f io.ReaderAt, buf []byte, notBehind func(entry []byte) bool) (bool, error) {
	var failed error
	first := sort.Search(v.entries(x.width), func(i int) bool {
		if failed == nil {
			failed = x.entry(v, f, i, buf)
		}
		return failed != nil || !notBehind(buf)
	})
	if failed != nil || first == 0 {
		return false, failed
	}
	return true, x.entry(v, f, first-1, buf)
}

// trimZeros finds how many of the n entries in the file come before the zeros that Kafka preallocates.
func (x *index) trimZeros(f io.ReaderAt, n int) (int, error) {
	buf := make([]byte, x.width)
	zero := func(i int) (bool, error) {
		if err := x.entry(&indexView{onDisk: n}, f, i, buf); err != nil {
			return false, err
		}
		for _, b := range buf {
			if b != 0 {
				return false, nil
			}
		}
		return true, nil
	}
	if n == 0 {
		return 0, nil
	}
	if z, err := zero(n - 1); err != nil || !z {
		return n, err
	}
	var failed error
	n = sort.Search(n, func(i int) bool {
		z, err := zero(i)
		if err != nil {
			failed = err
		}
		return z
	})
	return n, failed
}

func offsetEntry(buf []byte, base int64) (offset, pos int64) {
	return base + int64(binary.BigEndian.Uint32(buf)), int64(binary.BigEndian.Uint32(buf[4:]))
}

func timeEntry(buf []byte, base int64) (ts, offset int64) {
	return int64(binary.BigEndian.Uint64(buf)), base + int64(binary.BigEndian.Uint32(buf[8:]))
}

// push adds an entry to the view. The caller excludes other writers.
func (x *index) push(entry []byte) {
	v := x.view.Load()
	x.view.Store(&indexView{onDisk: v.onDisk, tail: append(v.tail, entry...)})
}

// cut keeps the first n entries.
func (x *index) cut(n int) {
	v := x.view.Load()
	if n >= v.onDisk {
		keep := (n - v.onDisk) * x.width
		x.view.Store(&indexView{onDisk: v.onDisk, tail: v.tail[:keep:keep]})
		return
	}
	x.view.Store(&indexView{onDisk: n})
}

// spill writes the waiting entries to the file, which afterwards holds the entries and nothing else.
func (x *index) spill(p *place, base int64) error {
	v := x.view.Load()
	if v == nil {
		return nil
	}
	f, err := x.create(p, fileName(base, x.suffix))
	if err != nil {
		return err
	}
	defer x.release()
	if want := int64(v.onDisk) * int64(x.width); f.Size() != want {
		if err := f.Truncate(want); err != nil {
			return err
		}
	}
	if len(v.tail) == 0 {
		return nil
	}
	if err := f.Append(v.tail); err != nil {
		return err
	}
	x.view.Store(&indexView{onDisk: v.entries(x.width)})
	return nil
}

// sync spills and makes the file durable.
func (x *index) sync(p *place, base int64) error {
	if err := x.spill(p, base); err != nil {
		return err
	}
	f, err := x.create(p, fileName(base, x.suffix))
	if err != nil {
		return err
	}
	defer x.release()
	return f.Sync()
}
