package commitlog

// Entries as they lie in a segment: batches of format v2, and the message sets of old (v0, v1) that a directory taken
// over from Kafka may hold. Only headers are looked at here.

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

const (
	entryOverhead = 12 // offset and length, in every format
	minEntryBytes = 14 // behind them: crc, magic, attributes, key and value lengths of an empty v0 message
	peekBytes     = record.HeaderSize
)

// entry describes one batch or legacy message without its records.
type entry struct {
	base, last int64 // offsets; base equals last for legacy messages, whose first offset is inside the compression
	size       int64 // bytes, all told
	magic      int8
	epoch      int32
	maxTime    int64
	header     record.Batch // the header bytes of a v2 batch, else nil; valid until the next step of a scan
}

// parseEntry reads the header at the start of buf, which must hold peekBytes unless the file ends before.
func parseEntry(buf []byte) (entry, error) {
	if len(buf) < entryOverhead+minEntryBytes {
		return entry{}, fmt.Errorf("%d bytes are too few for a batch", len(buf))
	}
	length := int64(int32(binary.BigEndian.Uint32(buf[8:])))
	e := entry{
		last: int64(binary.BigEndian.Uint64(buf)), size: length + entryOverhead, magic: int8(buf[16]),
		epoch: record.NoLeaderEpoch, maxTime: record.NoTimestamp,
	}
	e.base = e.last
	switch e.magic {
	case 2:
		if length < record.HeaderSize-entryOverhead || len(buf) < record.HeaderSize {
			return entry{}, fmt.Errorf("batch of %d bytes is shorter than its header", length)
		}
		b := record.Batch(buf[:record.HeaderSize])
		if b.LastOffsetDelta() < 0 {
			return entry{}, fmt.Errorf("batch ends %d before its first offset", -int64(b.LastOffsetDelta()))
		}
		e.last, e.epoch, e.maxTime, e.header = b.LastOffset(), b.PartitionLeaderEpoch(), b.MaxTimestamp(), b
	case 0, 1:
		if length < minEntryBytes || e.magic == 1 && length < minEntryBytes+8 {
			return entry{}, fmt.Errorf("message of %d bytes is shorter than its header", length)
		}
		if e.magic == 1 {
			e.maxTime = int64(binary.BigEndian.Uint64(buf[18:]))
		}
	default:
		return entry{}, fmt.Errorf("magic is %d", e.magic)
	}
	if e.base < 0 || e.last < e.base {
		return entry{}, fmt.Errorf("offsets %d to %d", e.base, e.last)
	}
	return e, nil
}

// checkEntry checks the CRC of a whole entry.
func checkEntry(buf []byte) error {
	if int8(buf[16]) == 2 {
		return record.Batch(buf).CheckCRC()
	}
	want := binary.BigEndian.Uint32(buf[12:])
	if got := crc32.ChecksumIEEE(buf[16:]); got != want {
		return fmt.Errorf("message at offset %d: crc is %d, computed %d", binary.BigEndian.Uint64(buf), want, got)
	}
	return nil
}

// Sizes of the reads of a scan: small when it looks for one place, large when it goes over a whole segment.
const (
	seekWindow = 4 << 10
	walkWindow = 256 << 10
)

// scanner walks over the entries of a segment's file from a position to a limit.
type scanner struct {
	f      io.ReaderAt
	name   string
	pos    int64 // of the entry that next returns
	limit  int64
	window int
	buf    []byte
	at     int64 // position of buf[0]
}

func newScanner(f vfs.File, from, limit int64, window int) *scanner {
	return &scanner{f: f, name: f.Name(), pos: from, limit: limit, window: window}
}

// seekers are scanners with a small window, kept for the next look-up: every fetch needs one.
var seekers = sync.Pool{New: func() any { return &scanner{buf: make([]byte, 0, seekWindow)} }}

// seek is newScanner with a small window; the caller gives the scanner back with done.
func seek(f vfs.File, from, limit int64, window int) *scanner {
	s := seekers.Get().(*scanner)
	*s = scanner{f: f, name: f.Name(), pos: from, limit: limit, window: window, buf: s.buf[:0]}
	return s
}

// done gives a scanner back. Entries that it returned must not be used for their header any more.
func (s *scanner) done() {
	s.f = nil
	if cap(s.buf) <= seekWindow {
		seekers.Put(s)
	}
}

// fill returns n bytes at pos, or what there is before limit.
func (s *scanner) fill(pos int64, n int64) ([]byte, error) {
	n = min(n, s.limit-pos)
	if pos >= s.at && pos+n <= s.at+int64(len(s.buf)) {
		return s.buf[pos-s.at:][:n], nil
	}
	want := max(n, min(int64(s.window), s.limit-pos))
	if int64(cap(s.buf)) < want {
		s.buf = make([]byte, want)
	}
	s.buf, s.at = s.buf[:want], pos
	got, err := s.f.ReadAt(s.buf, pos)
	if int64(got) < want {
		s.buf = s.buf[:0]
		return nil, fmt.Errorf("%s at byte %d: %w", s.name, pos, shortRead(err))
	}
	return s.buf[:n], nil
}

// next returns the entry at pos and steps over it. io.EOF at the limit; a *CorruptionError when no whole entry stands there.
func (s *scanner) next() (e entry, pos int64, err error) {
	if s.pos >= s.limit {
		return entry{}, s.pos, io.EOF
	}
	head, err := s.fill(s.pos, peekBytes)
	if err != nil {
		return entry{}, s.pos, err
	}
	e, err = parseEntry(head)
	if err == nil && e.size > s.limit-s.pos {
		err = fmt.Errorf("batch of %d bytes in the last %d", e.size, s.limit-s.pos)
	}
	if err != nil {
		return entry{}, s.pos, corruptAt(s.name, s.pos, "%v", err)
	}
	pos = s.pos
	s.pos += e.size
	return e, pos, nil
}

// whole returns all bytes of the entry at pos; they are valid until the next step.
func (s *scanner) whole(pos, size int64) ([]byte, error) { return s.fill(pos, size) }
