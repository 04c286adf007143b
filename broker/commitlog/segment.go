package commitlog

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// segment is one stretch of a log: the file of batches and its indexes.
//
//   - Only the log's appender (who holds Log.mu) writes to the file, and only to the last segment's.
//   - Readers look at bytes below size; size moves after the bytes are in the file.
//   - mu guards the indexes against two writers (the appender, and a reader who finds an index that lies) and what is
//     learned from the files when it is first needed. It is held across reads of the disk, never across an fsync.
type segment struct {
	place *place
	base  int64
	size  atomic.Int64

	file    handle // the .log
	offsets index
	times   index

	newest  atomic.Pointer[timeOffset]  // largest timestamp and the last offset of the first batch that has it; nil: not looked at
	aborted atomic.Pointer[[]abortedTx] // content of .txnindex; nil: not looked at

	unsyncedAborted atomic.Bool // .txnindex was written and not synced
	indexSynced     atomic.Bool // both indexes on disk are complete and synced

	created  int64 // ms; when this segment was made or loaded
	modified int64 // ms; last change of the file, for retention of records without timestamps
	jitter   int64 // ms off segment.ms

	mu struct {
		sync.Mutex
		timesChecked bool  // every entry of the time index is in order
		lastOffset   int64 // of the offset index; base-1 when it has no entry
		lastTime     int64 // of the time index; -1 when it has no entry
	}

	// Of the appender only.
	sinceIndex int64 // bytes appended since the last entry of the index
	reserved   bool  // room was kept behind the end of the file, here or before a restart
	rollTime   int64 // largest timestamp of the first batch; noRollTime until known
}

type timeOffset struct{ ts, offset int64 }

const noRollTime = math.MinInt64

// rebuildAbove is the size from which a segment is expected to have entries in its index.
const rebuildAbove = 64 << 10

func newSegment(p *place, base, size, nowMs int64) *segment {
	s := &segment{place: p, base: base, created: nowMs, modified: nowMs, rollTime: noRollTime}
	s.size.Store(size)
	s.offsets.suffix, s.offsets.width = indexSuffix, offsetEntryBytes
	s.times.suffix, s.times.width = timeSuffix, timeEntryBytes
	return s
}

// createSegment makes the files of a new, empty segment; leftovers of the same name are emptied.
func createSegment(p *place, base, nowMs int64) (*segment, error) {
	for _, suffix := range []string{logSuffix, indexSuffix, timeSuffix} {
		f, err := p.fs.OpenFile(p.path(fileName(base, suffix)), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	if err := p.fs.Remove(p.path(fileName(base, txnSuffix))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := newSegment(p, base, 0, nowMs)
	s.offsets.view.Store(&indexView{})
	s.times.view.Store(&indexView{})
	s.mu.timesChecked = true
	s.mu.lastOffset, s.mu.lastTime = base-1, record.NoTimestamp
	s.newest.Store(&timeOffset{record.NoTimestamp, base})
	s.aborted.Store(new([]abortedTx))
	return s, nil
}

func (s *segment) logName() string { return fileName(s.base, logSuffix) }

// open acquires the file of batches.
func (s *segment) open() (vfs.File, error) { return s.file.acquire(s.place, s.logName()) }

// append writes whole batches at the end of the file and indexes them. It does not move size: the log does, together
// with its end offset. Nothing changed when it returns an error.
func (s *segment) append(data []byte, entries []written, interval int64) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	if err := s.loadForAppend(); err != nil {
		return err
	}
	s.file.pin(true)
	s.indexSynced.Store(false)
	start := s.size.Load()
	if err := f.Append(data); err != nil {
		return err
	}
	if start == 0 {
		s.rollTime = entries[0].maxTime
		for i := range entries[1:] {
			s.rollTime = max(s.rollTime, entries[1+i].maxTime)
		}
	}
	for i := range entries {
		b := &entries[i]
		newest := s.newest.Load()
		if b.maxTime > newest.ts {
			newest = &timeOffset{b.maxTime, b.last}
			s.newest.Store(newest)
		}
		if s.sinceIndex > interval {
			s.addEntries(b.last, start+b.at, *newest)
			s.sinceIndex = 0
		}
		s.sinceIndex += b.size
	}
	return s.spillIfMany()
}

// loadForAppend makes sure that what append changes is in memory.
func (s *segment) loadForAppend() error {
	if s.offsets.view.Load() != nil && s.times.view.Load() != nil && s.newest.Load() != nil {
		return nil
	}
	if _, err := s.view(&s.offsets); err != nil {
		return err
	}
	if _, err := s.view(&s.times); err != nil {
		return err
	}
	_, err := s.largest()
	return err
}

func (s *segment) addEntries(offset, pos int64, newest timeOffset) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset > s.mu.lastOffset {
		var buf [offsetEntryBytes]byte
		binary.BigEndian.PutUint32(buf[:], uint32(offset-s.base))
		binary.BigEndian.PutUint32(buf[4:], uint32(pos))
		s.offsets.push(buf[:])
		s.mu.lastOffset = offset
	}
	s.addTimeLocked(newest)
}

func (s *segment) addTimeLocked(newest timeOffset) {
	if newest.ts <= s.mu.lastTime {
		return
	}
	var buf [timeEntryBytes]byte
	binary.BigEndian.PutUint64(buf[:], uint64(newest.ts))
	binary.BigEndian.PutUint32(buf[8:], uint32(newest.offset-s.base))
	s.times.push(buf[:])
	s.mu.lastTime = newest.ts
}

func (s *segment) spillIfMany() error {
	if len(s.offsets.view.Load().tail) < spillBytes && len(s.times.view.Load().tail) < spillBytes {
		return nil
	}
	return s.spill()
}

// spill writes waiting index entries to their files.
func (s *segment) spill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.offsets.spill(s.place, s.base), s.times.spill(s.place, s.base))
}

// seal brings the indexes into the form of a segment that gets no more batches: the largest timestamp is in the time
// index and the files hold entries only.
func (s *segment) seal() error {
	if err := s.trim(); err != nil {
		return err
	}
	s.mu.Lock()
	if newest := s.newest.Load(); newest != nil && s.times.view.Load() != nil {
		s.addTimeLocked(*newest)
	}
	s.mu.Unlock()
	return s.spill()
}

// reserve has the file system keep room for the whole segment (preallocate). Unlike Kafka's the file keeps the size of
// what is in it, so that a crash leaves no zeros to be told from records.
func (s *segment) reserve(bytes int64) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	f.Reserve(bytes)
	s.reserved = true
	return nil
}

// trim gives back what was reserved and is not needed.
func (s *segment) trim() error {
	if !s.reserved {
		return nil
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	s.reserved = false
	return f.Truncate(s.size.Load())
}

// sync makes the batches durable.
func (s *segment) sync() error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	s.file.pin(false) // before: who appends meanwhile pins it again
	if err := f.Sync(); err != nil {
		return err
	}
	return s.syncAborted()
}

// syncAll makes batches and indexes durable; for a segment that gets no more batches.
func (s *segment) syncAll() error {
	if s.indexSynced.Load() {
		return nil
	}
	if err := s.sync(); err != nil {
		return err
	}
	if err := s.offsets.sync(s.place, s.base); err != nil {
		return err
	}
	if err := s.times.sync(s.place, s.base); err != nil {
		return err
	}
	s.indexSynced.Store(true)
	return nil
}

// truncate cuts the file at pos and the indexes before offset, both of which begin a batch.
func (s *segment) truncate(offset, pos int64, nowMs int64) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	if err := s.loadForAppend(); err != nil {
		return err
	}
	s.indexSynced.Store(false)
	if err := s.cutIndexes(offset); err != nil {
		return err
	}
	if err := s.cutAborted(offset); err != nil {
		return err
	}
	s.file.pin(true)
	s.size.Store(pos)
	if err := f.Truncate(pos); err != nil {
		return err
	}
	s.sinceIndex = 0
	if pos == 0 {
		s.created, s.rollTime = nowMs, noRollTime
	}
	return s.findLargest(f)
}

func (s *segment) cutIndexes(offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := func(x *index, before func(buf []byte) bool) (last []byte, err error) {
		f, err := x.create(s.place, fileName(s.base, x.suffix))
		if err != nil {
			return nil, err
		}
		defer x.release()
		v := x.view.Load()
		buf := make([]byte, x.width)
		n := v.entries(x.width)
		for ; n > 0; n-- {
			if err := x.entry(v, f, n-1, buf); err != nil {
				return nil, err
			}
			if before(buf) {
				last = buf
				break
			}
		}
		x.cut(n)
		return last, x.spill(s.place, s.base)
	}
	last, err := keep(&s.offsets, func(buf []byte) bool { o, _ := offsetEntry(buf, s.base); return o < offset })
	if err != nil {
		return err
	}
	s.mu.lastOffset = s.base - 1
	if last != nil {
		s.mu.lastOffset, _ = offsetEntry(last, s.base)
	}
	last, err = keep(&s.times, func(buf []byte) bool { _, o := timeEntry(buf, s.base); return o < offset })
	if err != nil {
		return err
	}
	s.mu.lastTime = record.NoTimestamp
	if last != nil {
		s.mu.lastTime, _ = timeEntry(last, s.base)
	}
	return nil
}

// findLargest works out the largest timestamp from the time index and what stands behind its last entry.
func (s *segment) findLargest(f vfs.File) error {
	s.mu.Lock()
	newest := timeOffset{record.NoTimestamp, s.base}
	from := int64(0)
	if v := s.times.view.Load(); v.entries(timeEntryBytes) > 0 {
		var buf [timeEntryBytes]byte
		tf, err := s.times.create(s.place, fileName(s.base, timeSuffix))
		if err == nil {
			err = s.times.entry(v, tf, v.entries(timeEntryBytes)-1, buf[:])
			s.times.release()
		}
		if err != nil {
			s.mu.Unlock()
			return err
		}
		newest.ts, newest.offset = timeEntry(buf[:], s.base)
	}
	s.mu.Unlock()
	if newest.offset > s.base {
		pos, err := s.lookup(f, newest.offset)
		if err != nil {
			return err
		}
		from = pos
	}
	sc := newScanner(f, from, s.size.Load(), walkWindow)
	for {
		e, _, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if e.maxTime > newest.ts {
			newest = timeOffset{e.maxTime, e.last}
		}
	}
	s.newest.Store(&newest)
	return nil
}

// firstTime is the largest timestamp of the first batch, by which segment.ms counts; noRollTime when the segment is empty.
func (s *segment) firstTime() (int64, error) {
	if s.rollTime != noRollTime || s.size.Load() == 0 {
		return s.rollTime, nil
	}
	f, err := s.open()
	if err != nil {
		return 0, err
	}
	defer s.file.release()
	e, _, err := newScanner(f, 0, s.size.Load(), peekBytes).next()
	if err != nil {
		return 0, err
	}
	s.rollTime = e.maxTime
	return s.rollTime, nil
}

// doom closes the segment's files when their users are done.
func (s *segment) doom() {
	s.file.doom()
	s.offsets.doom()
	s.times.doom()
}

// suffixes are the files that a segment may have.
var suffixes = [...]string{logSuffix, indexSuffix, timeSuffix, txnSuffix}
