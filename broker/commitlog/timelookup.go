package commitlog

// Looking up offsets by time. The time index leads to a batch, the records of the batch (decompressed if need be) to the
// exact record (BR-005).

import (
	"errors"
	"io"
	"io/fs"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// timeHit is a record found by its time.
type timeHit struct {
	offset, timestamp int64
	found             bool
}

// OffsetForTimestamp finds the first record at or after the log's start whose timestamp is ts or later.
func (l *Log) OffsetForTimestamp(ts int64) (offset, timestamp int64, leaderEpoch int32, found bool, err error) {
	return l.answer(l.retryLookup(func() (timeHit, error) { return l.searchTime(ts) }))
}

// MaxTimestampOffset finds the record with the largest timestamp, the first of them when there are several (KIP-734).
func (l *Log) MaxTimestampOffset() (offset, timestamp int64, leaderEpoch int32, found bool, err error) {
	return l.answer(l.retryLookup(l.searchMax))
}

// OffsetsBefore is what ListOffsets found before there was a time index: the beginnings of the newest segments that were
// changed last at ts or before, and the log's end if ts lies behind now, latest first and at most limit of them. ts may also
// be OffsetsLatest or OffsetsEarliest.
func (l *Log) OffsetsBefore(ts int64, limit int) []int64 {
	l.mu.Lock() // the active segment's time of change
	defer l.mu.Unlock()
	list, start := l.list(), l.StartOffset()
	type place struct{ offset, changed int64 }
	places := make([]place, 0, len(list)+1)
	for _, s := range list {
		places = append(places, place{max(s.base, start), s.modified})
	}
	if l.active().size.Load() > 0 {
		places = append(places, place{l.EndOffset(), l.env.nowMs()})
	}
	last := len(places) - 1
	switch ts {
	case OffsetsLatest:
	case OffsetsEarliest:
		last = 0
	default:
		for last >= 0 && places[last].changed > ts {
			last--
		}
	}
	found := []int64{}
	for ; last >= 0 && len(found) < limit; last-- {
		found = append(found, places[last].offset)
	}
	return found
}

// The special times of OffsetsBefore.
const (
	OffsetsLatest   int64 = -1
	OffsetsEarliest int64 = -2
)

func (l *Log) retryLookup(search func() (timeHit, error)) (timeHit, error) {
	for attempt := 1; ; attempt++ {
		if err := l.Err(); err != nil {
			return timeHit{}, err
		}
		h, err := search()
		if err == nil || attempt == readAttempts || !errors.Is(err, fs.ErrNotExist) {
			return h, l.readError(err)
		}
	}
}

func (l *Log) answer(h timeHit, err error) (offset, timestamp int64, leaderEpoch int32, found bool, _ error) {
	if err != nil || !h.found {
		return noOffset, record.NoTimestamp, undefinedEpoch, false, err
	}
	epoch, _ := l.EpochAt(h.offset)
	return h.offset, h.timestamp, epoch, true, nil
}

func (l *Log) searchTime(ts int64) (timeHit, error) {
	end, start := l.EndPosition(), l.StartOffset()
	list := l.list()
	for _, s := range list[floor(list, start):] {
		if s.base > end.SegmentBase {
			break
		}
		newest, err := s.largest()
		if err != nil {
			return timeHit{}, err
		}
		if newest.ts < ts {
			continue
		}
		h, err := l.searchSegment(s, end, start, ts)
		if err != nil || h.found {
			return h, err
		}
	}
	return timeHit{}, nil
}

// searchSegment finds the first record of a segment that is not before start nor older than ts.
func (l *Log) searchSegment(s *segment, end Position, start, ts int64) (timeHit, error) {
	limit := l.limitOf(s, end)
	if limit == 0 {
		return timeHit{}, nil
	}
	from, err := s.beforeTime(ts)
	if err != nil {
		return timeHit{}, err
	}
	f, err := s.open()
	if err != nil {
		return timeHit{}, err
	}
	defer s.file.release()
	pos, err := s.lookup(f, max(from, start))
	if err != nil {
		return timeHit{}, err
	}
	sc := newScanner(f, pos, limit, seekWindow)
	for {
		e, at, err := sc.next()
		if err == io.EOF {
			return timeHit{}, nil
		}
		if err != nil {
			return timeHit{}, err
		}
		if e.maxTime < ts || e.last < start {
			continue
		}
		h, err := l.searchBatch(sc, e, at, start, ts)
		if err != nil || h.found {
			return h, err
		}
	}
}

// searchBatch finds the first record of a batch that is not before start nor older than ts.
func (l *Log) searchBatch(sc *scanner, e entry, pos, start, ts int64) (timeHit, error) {
	var hit timeHit
	whole, err := sc.whole(pos, e.size)
	if err != nil {
		return hit, err
	}
	err = eachRecord(whole, l.env.limits, func(r record.Record) bool {
		if r.Offset >= start && r.Timestamp >= ts {
			hit = timeHit{r.Offset, r.Timestamp, true}
		}
		return !hit.found
	})
	if err != nil {
		return timeHit{}, corruptAt(sc.name, pos, "%v", err)
	}
	return hit, nil
}

// eachRecord goes over the records of one batch or legacy message.
func eachRecord(whole []byte, limits record.Limits, yield func(record.Record) bool) error {
	if int8(whole[16]) == 2 {
		for r, err := range record.Batch(whole).Records(limits) {
			if err != nil {
				return err
			}
			if !yield(r) {
				return nil
			}
		}
		return nil
	}
	m, _, err := record.NextMessage(whole)
	if err != nil {
		return err
	}
	for r, err := range m.Messages(limits) {
		if err != nil {
			return err
		}
		if !yield(r.Record) {
			return nil
		}
	}
	return nil
}

func (l *Log) searchMax() (timeHit, error) {
	end, start := l.EndPosition(), l.StartOffset()
	list := l.list()
	list = list[floor(list, start):]
	var best *segment
	newest := timeOffset{ts: record.NoTimestamp}
	for _, s := range list {
		if s.base > end.SegmentBase {
			break
		}
		n, err := s.largest()
		if err != nil {
			return timeHit{}, err
		}
		if n.ts > newest.ts {
			best, newest = s, n
		}
	}
	if best == nil {
		return timeHit{}, nil
	}
	if newest.offset >= start {
		if h, err := l.searchSegment(best, end, start, newest.ts); err != nil || h.found {
			return h, err
		}
	}
	// The holder of the largest timestamp lies before the log's start, in the start's own segment: look at every record left.
	return l.scanMax(list, end, start)
}

func (l *Log) scanMax(list []*segment, end Position, start int64) (timeHit, error) {
	var best timeHit
	for _, s := range list {
		if s.base > end.SegmentBase {
			break
		}
		if err := l.scanSegmentMax(s, end, start, &best); err != nil {
			return timeHit{}, err
		}
	}
	return best, nil
}

func (l *Log) scanSegmentMax(s *segment, end Position, start int64, best *timeHit) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	return maxFrom(f, s, start, l.limitOf(s, end), l.env.limits, best)
}

func maxFrom(f vfs.File, s *segment, start, limit int64, limits record.Limits, best *timeHit) error {
	pos, err := s.lookup(f, start)
	if err != nil {
		return err
	}
	sc := newScanner(f, pos, limit, walkWindow)
	for {
		e, at, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if e.last < start || best.found && e.maxTime <= best.timestamp {
			continue
		}
		whole, err := sc.whole(at, e.size)
		if err != nil {
			return err
		}
		err = eachRecord(whole, limits, func(r record.Record) bool {
			if r.Offset >= start && r.Timestamp >= 0 && (!best.found || r.Timestamp > best.timestamp) {
				*best = timeHit{r.Offset, r.Timestamp, true}
			}
			return true
		})
		if err != nil {
			return corruptAt(sc.name, at, "%v", err)
		}
	}
}
