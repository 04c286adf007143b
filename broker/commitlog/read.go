package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/vfs"
)

// ReadOptions bounds a read.
type ReadOptions struct {
	MaxBytes    int
	MinOneBatch bool  // return the first batch even when it is larger than MaxBytes
	UpTo        int64 // exclusive: the reader's bound (high watermark, last stable offset or log end)
}

// ReadResult is a piece of one segment that starts with the batch holding the wanted offset. The caller releases Range.
type ReadResult struct {
	Range                vfs.FileRange // zero when there is nothing to read below UpTo
	Bytes                int
	FirstEntryIncomplete bool // MaxBytes cut the first batch
	StartPos             Position

	log  *Log
	list []*segment // in which the batches were found
}

// readAttempts bounds how often a read starts anew because a segment was deleted under it.
const readAttempts = 4

// Read finds the batches from offset on. OFFSET_OUT_OF_RANGE outside of the log. It takes no lock that an append holds.
//
// One look at the end bounds the whole read, so that it never returns a batch at or behind UpTo, whatever is appended
// meanwhile (H42). The piece ends with a whole batch unless MaxBytes cuts it.
func (l *Log) Read(from int64, o ReadOptions) (ReadResult, error) {
	for attempt := 1; ; attempt++ {
		r, err := l.read(from, o)
		if err == nil || attempt == readAttempts || !errors.Is(err, fs.ErrNotExist) {
			return r, l.readError(err)
		}
	}
}

// readError takes the directory offline for what only a failing disk can do.
func (l *Log) readError(err error) error {
	if err == nil {
		return nil
	}
	if ke := (*kerr.Error)(nil); errors.As(err, &ke) {
		return err
	}
	if l.closed.Load() || errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s: %w", kerr.KafkaStorageError, l.tp, err)
	}
	return l.parent.fail(err)
}

func (l *Log) read(from int64, o ReadOptions) (ReadResult, error) {
	if err := l.Err(); err != nil {
		return ReadResult{}, err
	}
	end := *l.end.Load()
	list := l.list()
	if start := l.StartOffset(); from < start || from > end.Offset {
		return ReadResult{}, fmt.Errorf("%w: offset %d of %s, which has %d to %d", kerr.OffsetOutOfRange, from, l.tp, start, end.Offset)
	}
	if from == end.Offset {
		return ReadResult{StartPos: end}, nil
	}
	upTo, err := l.boundOf(o.UpTo, end)
	if err != nil {
		return ReadResult{}, err
	}
	if from == upTo.Offset {
		return ReadResult{StartPos: upTo}, nil
	}
	if from > upTo.Offset {
		p, err := l.positionIn(list, from, end)
		return ReadResult{StartPos: p}, err
	}
	for i := floor(list, from); i < len(list) && list[i].base <= upTo.SegmentBase; i++ {
		r, found, err := l.readSegment(list, i, from, upTo, o)
		if err != nil || found {
			return r, err
		}
	}
	return ReadResult{StartPos: upTo}, nil
}

// boundOf returns the place of the reader's bound, which is at most the end. The usual bounds are known places.
func (l *Log) boundOf(upTo int64, end Position) (Position, error) {
	if upTo >= end.Offset {
		return end, nil
	}
	if h := l.high.Load(); h.Offset == upTo && h.SegmentBase >= 0 {
		return *h, nil
	}
	if u := l.unstable.Load(); u != nil && u.Offset == upTo && u.SegmentBase >= 0 {
		return *u, nil
	}
	if h := l.high.Load(); h.Offset == upTo {
		if p := l.HighWatermarkPosition(); p.Offset == upTo { // it may have moved on meanwhile
			return p, nil
		}
	}
	return l.positionOf(upTo)
}

// positionOf looks an offset of the log up: where its batch begins, or the next one if there is none.
func (l *Log) positionOf(offset int64) (Position, error) {
	for attempt := 1; ; attempt++ {
		end := *l.end.Load()
		p, err := l.positionIn(l.list(), offset, end)
		if err == nil || attempt == readAttempts || !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
	}
}

func (l *Log) positionIn(list []*segment, offset int64, end Position) (Position, error) {
	if offset >= end.Offset {
		return end, nil
	}
	for i := floor(list, offset); i < len(list) && list[i].base <= end.SegmentBase; i++ {
		s := list[i]
		f, err := s.open()
		if err != nil {
			return Position{}, err
		}
		_, pos, err := s.locate(f, offset, l.limitOf(s, end))
		s.file.release()
		if err == nil {
			return Position{offset, s.base, pos}, nil
		}
		if err != io.EOF {
			return Position{}, err
		}
	}
	return Position{offset, end.SegmentBase, end.SegmentPos}, nil
}

// limitOf is where a segment ends for somebody who sees the log up to end.
func (l *Log) limitOf(s *segment, end Position) int64 {
	size := s.size.Load()
	if s.base == end.SegmentBase {
		return min(end.SegmentPos, size) // a place from before the segment was compacted may lie behind its end
	}
	return size
}

// readSegment reads from one segment; false when it holds nothing from the offset on.
func (l *Log) readSegment(list []*segment, i int, from int64, upTo Position, o ReadOptions) (ReadResult, bool, error) {
	s := list[i]
	limit := l.limitOf(s, upTo)
	f, err := s.open()
	if err != nil {
		return ReadResult{}, false, err
	}
	pos, first, err := l.findFirst(s, f, from, limit)
	if err == io.EOF {
		s.file.release()
		return ReadResult{}, false, nil
	}
	if err != nil {
		s.file.release()
		return ReadResult{}, false, err
	}
	r := ReadResult{StartPos: Position{from, s.base, pos}, log: l, list: list}
	n := min(limit-pos, int64(max(o.MaxBytes, 0)))
	if n < first {
		if o.MinOneBatch {
			n = first
		} else {
			r.FirstEntryIncomplete = true
		}
	}
	if n == limit-pos && s.base == upTo.SegmentBase {
		next := upTo
		l.cursor.Store(&next)
	}
	if n == 0 {
		s.file.release()
		return r, true, nil
	}
	r.Bytes = int(n)
	r.Range = vfs.NewRange(f, pos, n, s.file.release)
	return r, true, nil
}

// findFirst returns the place and size of the batch that holds from.
func (l *Log) findFirst(s *segment, f vfs.File, from, limit int64) (pos, size int64, err error) {
	if c := l.cursor.Load(); c != nil && c.Offset == from && c.SegmentBase == s.base && c.SegmentPos < limit {
		// The log may have been cut and written anew since the cursor was set.
		sc := seek(f, c.SegmentPos, limit, peekBytes)
		e, at, err := sc.next()
		sc.done()
		if err == nil && e.base <= from && from <= e.last {
			return at, e.size, nil
		}
	}
	e, at, err := s.locate(f, from, limit)
	return at, e.size, err
}

// AbortedTxn is an entry of the list of aborted transactions that a read-committed reader gets.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// AbortedTransactions lists the aborted transactions that have records in [from, upTo), for batches that were read before.
func (r ReadResult) AbortedTransactions(from, upTo int64) ([]AbortedTxn, error) {
	// A compaction takes out what was aborted, and then it is not listed any more: whoever has read the batches before must
	// get the list of before.
	return r.log.abortedIn(r.list, from, upTo)
}

func (l *Log) abortedIn(list []*segment, from, upTo int64) ([]AbortedTxn, error) {
	var found []AbortedTxn
	for _, s := range list[floor(list, from):] {
		entries, err := s.abortedList()
		if err != nil {
			return nil, l.readError(err)
		}
		for _, a := range entries {
			if a.last >= from && a.first < upTo {
				found = append(found, AbortedTxn{a.producerID, a.first})
			}
			if a.stableAfter() >= upTo {
				return found, nil
			}
		}
	}
	return found, nil
}
