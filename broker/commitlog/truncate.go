package commitlog

// Cutting a log: at its end (a follower that diverged), at its start (DeleteRecords, retention), or as a whole.
//
// Everything derived from the log is cut with it: indexes, epochs, producer state (from the newest snapshot that is left
// and a replay of the rest), high watermark, recovery point. logStart <= high watermark <= end holds at every step (H09).

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// TruncateTo removes every batch that holds an offset at or above offset.
func (l *Log) TruncateTo(offset int64) error {
	if err := l.Err(); err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("%w: cannot truncate %s to offset %d", kerr.OffsetOutOfRange, l.tp, offset)
	}
	l.flushing.Lock()
	defer l.flushing.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	if offset < l.EndOffset() {
		base, err := l.batchBase(offset)
		if err != nil {
			return l.parent.fail(err)
		}
		if err := l.lowerRecoveryPoint(base); err != nil {
			return err
		}
	}
	before := l.truncations.Load()
	l.mu.Lock()
	err := l.truncateLocked(offset)
	l.mu.Unlock()
	if err != nil {
		return l.parent.fail(err)
	}
	if l.truncations.Load() == before {
		return nil
	}
	return l.syncTruncation()
}

// batchBase returns the first offset of the batch that holds offset, or offset when there is none.
func (l *Log) batchBase(offset int64) (int64, error) {
	list := l.list()
	s := list[floor(list, offset)]
	f, err := s.open()
	if err != nil {
		return 0, err
	}
	defer s.file.release()
	e, pos, err := s.locate(f, offset, s.size.Load())
	if err == io.EOF {
		return offset, nil
	}
	if err != nil {
		return 0, err
	}
	first, err := s.firstOffset(f, e, pos, l.env.limits)
	return min(offset, first), err
}

// firstOffset is that of the first record of the entry at pos. A message's stands inside of its compression; where that cannot
// be read, it is taken to begin with its last one. Kafka does so always: a log that it cuts inside of a wrapper ends, until the
// next start, behind offsets that nobody has.
func (s *segment) firstOffset(f vfs.File, e entry, pos int64, limits record.Limits) (int64, error) {
	if e.magic == 2 {
		return e.base, nil
	}
	first := e.base
	whole, err := newScanner(f, pos, s.size.Load(), peekBytes).whole(pos, e.size)
	if err != nil {
		return 0, err
	}
	_ = eachRecord(whole, limits, func(r record.Record) bool {
		first = min(first, max(r.Offset, s.base))
		return false
	})
	return first, nil
}

// lowerRecoveryPoint brings it to offset, on disk, before anything is cut: a power cut in the middle leaves indexes that
// are cut and not synced, and recovery must look at them.
func (l *Log) lowerRecoveryPoint(offset int64) error {
	l.marks.Lock()
	l.recoveryPoint.Store(min(l.RecoveryPoint(), offset))
	l.marks.Unlock()
	return l.env.lowered(l)
}

func (l *Log) truncateLocked(offset int64) error {
	if offset >= l.EndOffset() {
		// There may be an entry at the end by a leader that has written nothing, which contradicts the next leader (H06).
		l.epochs.set(l.epochs.load().cutEnd(l.EndOffset()))
		return nil
	}
	list := l.list()
	if offset < list[0].base {
		return l.restartLocked(offset, offset)
	}
	keep := list[:floor(list, offset)+1]
	last := keep[len(keep)-1]
	f, err := last.open()
	if err != nil {
		return err
	}
	defer last.file.release()
	first := offset
	e, pos, err := last.locate(f, offset, last.size.Load())
	switch {
	case err == io.EOF:
		// A gap in the offsets ends the segment: nothing of it is cut, and the log ends where the next one began.
		pos = last.size.Load()
	case err != nil:
		return err
	default:
		if first, err = last.firstOffset(f, e, pos, l.env.limits); err != nil {
			return err
		}
	}
	end := min(offset, max(first, last.base))
	l.truncations.Add(1)
	l.shrink(Position{end, last.base, pos})
	if len(keep) < len(list) {
		rest := list[len(keep):]
		shorter := keep[:len(keep):len(keep)]
		l.segments.Store(&shorter)
		if err := l.discardLocked(backwards(rest)); err != nil {
			return err
		}
	}
	if err := last.truncate(end, pos, l.env.nowMs()); err != nil {
		return err
	}
	l.epochs.set(l.epochs.load().cutEnd(end))
	if err := l.reloadProducersLocked(end); err != nil {
		return err
	}
	l.updateUnstableLocked()
	return nil
}

// backwards is the order in which to take segments off the end of a log: a power cut in between must leave a log that ends
// early, not one with a hole.
func backwards(list []*segment) []*segment {
	reversed := slices.Clone(list)
	slices.Reverse(reversed)
	return reversed
}

// shrink moves the end down and everything that must not lie behind it.
func (l *Log) shrink(end Position) {
	l.marks.Lock()
	defer l.marks.Unlock()
	if l.start.Load() > end.Offset {
		l.start.Store(end.Offset)
	}
	if l.high.Load().Offset >= end.Offset {
		l.high.Store(&end)
	}
	l.end.Store(&end)
	l.cursor.Store(nil)
	if l.RecoveryPoint() > end.Offset {
		l.recoveryPoint.Store(end.Offset)
	}
	l.cleaned.Store(min(l.cleaned.Load(), end.Offset))
}

// syncTruncation makes a truncation durable before anything is appended: what comes in the place of what was cut is not
// synced and has to be checked after a crash, so points that fell go to disk; then epochs; then the shorter file, so that
// no power cut brings the cut records back. The caller holds the lock of flushes.
func (l *Log) syncTruncation() error {
	if err := l.env.lowered(l); err != nil {
		return err
	}
	if err := l.flushEpochs(); err != nil {
		return err
	}
	return l.parent.fail(errors.Join(l.active().sync(), l.env.fs.SyncDir(l.Dir())))
}

// TruncateFullyAndStartAt removes everything; the next record gets newOffset. The log begins at logStart, or at
// newOffset when logStart is negative. It also mends a log that is out of use because its data is damaged: all of it is
// to be fetched again.
func (l *Log) TruncateFullyAndStartAt(newOffset int64, logStart int64) error {
	damaged := l.corrupt.Load()
	if err := l.Err(); err != nil && (damaged == nil || l.parent.err() != nil) {
		return err
	}
	if logStart < 0 || logStart > newOffset {
		logStart = newOffset
	}
	if newOffset < 0 {
		return fmt.Errorf("%w: cannot start %s at offset %d", kerr.OffsetOutOfRange, l.tp, newOffset)
	}
	l.flushing.Lock()
	defer l.flushing.Unlock()
	if err := l.parent.err(); err != nil {
		return err
	}
	if err := l.lowerRecoveryPoint(min(newOffset, l.list()[0].base)); err != nil {
		return err
	}
	l.mu.Lock()
	err := l.restartLocked(newOffset, logStart)
	l.mu.Unlock()
	if err != nil {
		return l.parent.fail(err)
	}
	l.cleaning.failed.Store(nil)
	if damaged != nil {
		l.corrupt.CompareAndSwap(damaged, nil)
	}
	return l.syncTruncation()
}

// restartLocked empties the log and lets it go on at offset.
func (l *Log) restartLocked(offset, start int64) error {
	l.truncations.Add(1)
	for _, s := range l.list() {
		s.doom()
	}
	if err := l.removeAllLocked(); err != nil {
		return err
	}
	s, err := createSegment(&l.place, offset, l.env.nowMs())
	if err != nil {
		return err
	}
	c := l.Config()
	s.jitter = jitter(l.tp, offset, &c)
	l.newNames.Store(true)
	list := []*segment{s}
	end := Position{offset, offset, 0}
	l.marks.Lock()
	l.segments.Store(&list)
	l.end.Store(&end)
	l.start.Store(start)
	l.high.Store(&end)
	l.cursor.Store(nil)
	l.recoveryPoint.Store(min(l.RecoveryPoint(), offset))
	l.cleaned.Store(noOffset)
	l.marks.Unlock()
	l.epochs.set(nil, true)
	l.mu.producers = producers{end: offset}
	l.mu.snapshots, l.mu.unsynced = nil, nil
	l.updateUnstableLocked()
	return nil
}

// removeAllLocked deletes the files of all segments and snapshots, the last segments first: a crash in between leaves a log
// that ends early, not one with a hole.
func (l *Log) removeAllLocked() error {
	names, err := l.fileNames()
	if err != nil {
		return err
	}
	slices.Sort(names)
	slices.Reverse(names)
	for _, name := range names {
		if _, _, ok := parseFileName(name); !ok || strings.HasSuffix(name, deletedSuffix) {
			continue
		}
		if err := removeIfThere(l.env.fs, l.place.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// AdvanceStartOffset moves the log's start forward. OFFSET_OUT_OF_RANGE beyond the high watermark; false when the
// start is already there. Reason says who asked, for the broker's log.
func (l *Log) AdvanceStartOffset(offset int64, reason string) (bool, error) {
	if err := l.Err(); err != nil {
		return false, err
	}
	l.mu.Lock()
	moved, err := l.advanceStartLocked(offset)
	l.mu.Unlock()
	if moved {
		l.env.log.WithField("partition", l.tp.String()).Debugf("log start offset is %d now: %s", offset, reason)
	}
	return moved, err
}

func (l *Log) advanceStartLocked(offset int64) (bool, error) {
	l.marks.Lock()
	high := l.high.Load().Offset
	if offset > high {
		l.marks.Unlock()
		return false, fmt.Errorf("%w: %s cannot start at offset %d, its high watermark is %d", kerr.OffsetOutOfRange, l.tp, offset, high)
	}
	if offset <= l.start.Load() {
		l.marks.Unlock()
		return false, nil
	}
	l.start.Store(offset)
	// The recovery point stays where it is, unlike Kafka's. Its checkpoint may reach the disk before that of the start, and
	// then the records before this offset would be believed and served though they were never synced.
	l.marks.Unlock()
	l.epochs.set(l.epochs.load().cutStart(offset))
	l.updateUnstableLocked()
	l.parent.startMoved.Store(true)
	return true, nil
}
