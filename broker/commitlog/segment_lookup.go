package commitlog

// Finding places in a segment by its indexes, and building indexes that are missing or lie.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// errLies says that an index leads to where no batch is.
var errLies = errors.New("index does not fit its segment")

// view returns what is known of an index and looks at its file first if need be.
func (s *segment) view(x *index) (*indexView, error) {
	if v := x.view.Load(); v != nil {
		return v, nil
	}
	err := s.load()
	if errors.Is(err, errLies) || errors.Is(err, fs.ErrNotExist) {
		err = s.rebuild()
	}
	return x.view.Load(), err
}

func (s *segment) load() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offsets.view.Load() != nil && s.times.view.Load() != nil {
		return nil
	}
	return s.loadLocked()
}

// loadLocked looks at both files: how many entries there are and what the last one says.
func (s *segment) loadLocked() error {
	offsets, last, err := s.lookAtLocked(&s.offsets)
	if err != nil {
		return err
	}
	if offsets.onDisk == 0 && s.size.Load() > rebuildAbove {
		return errLies
	}
	lastOffset := s.base - 1
	if offsets.onDisk > 0 {
		offset, pos := offsetEntry(last, s.base)
		if pos >= s.size.Load() {
			return errLies
		}
		lastOffset = offset
	}
	times, last, err := s.lookAtLocked(&s.times)
	if err != nil {
		return err
	}
	lastTime := record.NoTimestamp
	if times.onDisk > 0 {
		lastTime, _ = timeEntry(last, s.base)
	}
	s.mu.lastOffset, s.mu.lastTime, s.mu.timesChecked = lastOffset, lastTime, false
	s.offsets.view.Store(offsets)
	s.times.view.Store(times)
	return nil
}

func (s *segment) lookAtLocked(x *index) (*indexView, []byte, error) {
	f, err := x.acquire(s.place, fileName(s.base, x.suffix))
	if err != nil {
		return nil, nil, err
	}
	defer x.release()
	n := f.Size() / int64(x.width)
	if n > math.MaxInt32 {
		return nil, nil, errLies
	}
	entries, err := x.trimZeros(f, int(n))
	if err != nil || entries == 0 {
		return &indexView{}, nil, err
	}
	last := make([]byte, x.width)
	return &indexView{onDisk: entries}, last, x.entry(&indexView{onDisk: entries}, f, entries-1, last)
}

// lookup returns a position at or before the first batch that holds target or what follows it.
func (s *segment) lookup(f vfs.File, target int64) (int64, error) {
	if s.size.Load() == 0 || target <= s.base {
		return 0, nil
	}
	for attempt := 0; ; attempt++ {
		pos, err := s.tryLookup(f, target)
		if err == nil {
			return pos, nil
		}
		if !errors.Is(err, errLies) || attempt > 0 {
			return 0, err
		}
		if err := s.rebuild(); err != nil {
			return 0, err
		}
	}
}

func (s *segment) tryLookup(f vfs.File, target int64) (int64, error) {
	v, err := s.view(&s.offsets)
	if err != nil {
		return 0, err
	}
	var buf [offsetEntryBytes]byte
	found, err := s.offsets.lookupIn(s, v, buf[:], func(e []byte) bool {
		o, _ := offsetEntry(e, s.base)
		return o <= target
	})
	if err != nil || !found {
		return 0, err
	}
	offset, pos := offsetEntry(buf[:], s.base)
	if pos >= s.size.Load() {
		return 0, errLies
	}
	sc := seek(f, pos, s.size.Load(), peekBytes)
	e, _, err := sc.next()
	sc.done()
	if corrupt := (*CorruptionError)(nil); errors.As(err, &corrupt) {
		return 0, errLies
	}
	if err != nil {
		return 0, err
	}
	if e.base > offset || e.last > offset {
		return 0, errLies
	}
	return pos, nil
}

// lookupIn is find with the file open if any entry has to be read from it.
func (x *index) lookupIn(s *segment, v *indexView, buf []byte, notBehind func([]byte) bool) (bool, error) {
	if v.onDisk == 0 {
		return x.find(v, nil, buf, notBehind)
	}
	f, err := x.acquire(s.place, fileName(s.base, x.suffix))
	if err != nil {
		return false, err
	}
	defer x.release()
	return x.find(v, f, buf, notBehind)
}

// locate returns the first batch that ends at or behind target, below limit. io.EOF when there is none.
func (s *segment) locate(f vfs.File, target, limit int64) (entry, int64, error) {
	pos, err := s.lookup(f, target)
	if err != nil {
		return entry{}, 0, err
	}
	sc := seek(f, pos, limit, seekWindow)
	defer sc.done()
	for {
		e, at, err := sc.next()
		if err != nil || e.last >= target {
			e.header = nil // it lies in the scanner's buffer
			return e, at, err
		}
	}
}

// rebuild builds both indexes anew from the batches. It checks no CRC: recovery does.
func (s *segment) rebuild() error {
	s.mu.Lock()
	err := s.rebuildLocked()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	// A power cut that left half of it would hide the newest timestamp.
	return errors.Join(s.offsets.sync(s.place, s.base), s.times.sync(s.place, s.base))
}

func (s *segment) rebuildLocked() error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	b := indexBuilder{base: s.base, interval: indexEvery, newest: timeOffset{record.NoTimestamp, s.base}, lastTime: record.NoTimestamp}
	sc := newScanner(f, 0, s.size.Load(), walkWindow)
	for {
		e, pos, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("while building an index: %w", err)
		}
		b.add(e, pos)
	}
	return s.installLocked(&b)
}

// indexEvery is the distance of entries in an index that is built anew: the default of index.interval.bytes.
const indexEvery = 4096

// indexBuilder makes both indexes on a walk over the batches of a segment.
type indexBuilder struct {
	base, interval int64
	offsets, times []byte
	newest         timeOffset
	indexed        int64 // position behind which no entry was made yet
	lastOffset     int64
	lastTime       int64
}

func (b *indexBuilder) add(e entry, pos int64) {
	if e.maxTime > b.newest.ts {
		b.newest = timeOffset{e.maxTime, e.last}
	}
	if pos-b.indexed <= b.interval {
		return
	}
	b.offsets = binary.BigEndian.AppendUint32(b.offsets, uint32(e.last-b.base))
	b.offsets = binary.BigEndian.AppendUint32(b.offsets, uint32(pos))
	b.lastOffset = e.last
	b.addTime()
	b.indexed = pos
}

func (b *indexBuilder) addTime() {
	if b.newest.ts <= b.lastTime {
		return
	}
	b.times = binary.BigEndian.AppendUint64(b.times, uint64(b.newest.ts))
	b.times = binary.BigEndian.AppendUint32(b.times, uint32(b.newest.offset-b.base))
	b.lastTime = b.newest.ts
}

// installLocked puts built indexes in the place of the files, as those of a segment that is closed.
func (s *segment) installLocked(b *indexBuilder) error {
	b.addTime()
	s.mu.lastOffset = s.base - 1
	if len(b.offsets) > 0 {
		s.mu.lastOffset = b.lastOffset
	}
	s.mu.lastTime, s.mu.timesChecked = b.lastTime, true
	newest := b.newest
	s.newest.Store(&newest)
	s.offsets.view.Store(&indexView{tail: b.offsets})
	s.times.view.Store(&indexView{tail: b.times})
	return errors.Join(s.offsets.spill(s.place, s.base), s.times.spill(s.place, s.base))
}

// largest returns the largest timestamp of the segment, NoTimestamp when no record has one.
func (s *segment) largest() (timeOffset, error) {
	if n := s.newest.Load(); n != nil {
		return *n, nil
	}
	if s.size.Load() == 0 {
		s.newest.CompareAndSwap(nil, &timeOffset{record.NoTimestamp, s.base})
		return *s.newest.Load(), nil
	}
	f, err := s.open()
	if err != nil {
		return timeOffset{}, err
	}
	defer s.file.release()
	v, err := s.view(&s.times)
	if err != nil {
		return timeOffset{}, err
	}
	if n := s.newest.Load(); n != nil {
		return *n, nil
	}
	n, ok, err := s.lastTimeEntry(f, v)
	if err != nil {
		return timeOffset{}, err
	}
	if !ok {
		if err := s.rebuild(); err != nil {
			return timeOffset{}, err
		}
		return *s.newest.Load(), nil
	}
	s.newest.CompareAndSwap(nil, &n)
	return *s.newest.Load(), nil
}

// lastTimeEntry returns the last entry of the time index if the batch that it names has that timestamp; an empty index is
// right for a segment of messages without timestamps.
func (s *segment) lastTimeEntry(f vfs.File, v *indexView) (timeOffset, bool, error) {
	none := timeOffset{record.NoTimestamp, s.base}
	if v.entries(timeEntryBytes) == 0 {
		e, _, err := newScanner(f, 0, s.size.Load(), peekBytes).next()
		return none, err == nil && e.magic == 0, ignoreCorruption(err)
	}
	var buf [timeEntryBytes]byte
	found, err := s.times.lookupIn(s, v, buf[:], func([]byte) bool { return true })
	if err != nil || !found {
		return none, false, err
	}
	ts, offset := timeEntry(buf[:], s.base)
	e, _, err := s.locate(f, offset, s.size.Load())
	if err == io.EOF {
		return none, false, nil
	}
	return timeOffset{ts, offset}, err == nil && e.maxTime == ts && e.last == offset, ignoreCorruption(err)
}

func ignoreCorruption(err error) error {
	if corrupt := (*CorruptionError)(nil); errors.As(err, &corrupt) {
		return nil
	}
	return err
}

// beforeTime returns an offset such that every batch that ends before it is older than ts.
func (s *segment) beforeTime(ts int64) (int64, error) {
	if err := s.checkTimes(); err != nil {
		return 0, err
	}
	v, err := s.view(&s.times)
	if err != nil {
		return 0, err
	}
	var buf [timeEntryBytes]byte
	found, err := s.times.lookupIn(s, v, buf[:], func(e []byte) bool {
		t, _ := timeEntry(e, s.base)
		return t <= ts
	})
	if err != nil || !found {
		return s.base, err
	}
	_, offset := timeEntry(buf[:], s.base)
	return offset, nil
}

// checkTimes reads the time index once from end to end, for a wrong entry would hide records and cannot be noticed by
// what it leads to.
func (s *segment) checkTimes() error {
	v, err := s.view(&s.times)
	if err != nil {
		return err
	}
	newest, err := s.largest()
	if err != nil {
		return err
	}
	good, err := s.timesGood(v, newest)
	if err != nil || good {
		return err
	}
	return s.rebuild()
}

func (s *segment) timesGood(v *indexView, newest timeOffset) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.timesChecked {
		return true, nil
	}
	data := make([]byte, v.onDisk*timeEntryBytes)
	f, err := s.times.create(s.place, fileName(s.base, timeSuffix))
	if err != nil {
		return false, err
	}
	n, err := f.ReadAt(data, 0)
	s.times.release()
	if n < len(data) {
		return false, shortRead(err)
	}
	s.mu.timesChecked = timesInOrder(data, s.base, newest)
	return s.mu.timesChecked, nil
}

func timesInOrder(data []byte, base int64, newest timeOffset) bool {
	last := timeOffset{-1, base - 1}
	for ; len(data) >= timeEntryBytes; data = data[timeEntryBytes:] {
		ts, offset := timeEntry(data, base)
		if ts <= last.ts || offset <= last.offset || ts > newest.ts || offset > newest.offset {
			return false
		}
		last = timeOffset{ts, offset}
	}
	return true
}
