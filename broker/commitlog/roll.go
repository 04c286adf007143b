package commitlog

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"math"
	"os"

	"barnabas/broker/record"
)

// rollFacts is what decides whether an append goes into a new segment.
type rollFacts struct {
	base, size   int64
	firstTime    int64 // largest timestamp of the segment's first batch; noRollTime when it is empty
	created, now int64 // ms
	offsets      int   // entries in the indexes
	times        int
	appended     int64 // bytes
	maxTime      int64 // of what is appended
	lastOffset   int64
}

func (s *segment) rollFacts(entries []written, bytes, nowMs int64) (rollFacts, error) {
	first, err := s.firstTime()
	if err != nil {
		return rollFacts{}, err
	}
	f := rollFacts{
		base: s.base, size: s.size.Load(), firstTime: first, created: s.created, now: nowMs,
		offsets: s.offsets.view.Load().entries(offsetEntryBytes), times: s.times.view.Load().entries(timeEntryBytes),
		appended: bytes, maxTime: record.NoTimestamp, lastOffset: entries[len(entries)-1].last,
	}
	for i := range entries {
		f.maxTime = max(f.maxTime, entries[i].maxTime)
	}
	return f, nil
}

// roll decides. Time passes by the records' own clock: from the first batch of the segment to what is appended now, so
// that a replica that catches up rolls where the leader did, and a step of the machine's clock rolls nothing (BR-050).
// Only records without timestamps are measured by the age of the segment. An empty segment is never rolled, except
// when an offset cannot be told relative to its base (BR-074).
func (f rollFacts) roll(c *Config, jitterMs int64) bool {
	if f.lastOffset-f.base > math.MaxInt32 {
		return true
	}
	if f.size == 0 {
		return false
	}
	waited := f.now - f.created
	if f.firstTime >= 0 {
		waited = f.maxTime - f.firstTime
	}
	return f.size > int64(c.SegmentBytes)-f.appended ||
		waited > c.maxSegmentMs()-jitterMs ||
		f.offsets >= int(c.SegmentIndexBytes)/offsetEntryBytes ||
		f.times >= int(c.SegmentIndexBytes)/timeEntryBytes-1
}

// maxSegmentMs is the longest time that records may lie in the active segment, which is never compacted.
func (c *Config) maxSegmentMs() int64 {
	if c.CleanupCompact && c.MaxCompactionLagMs > 0 {
		return min(c.SegmentMs, c.MaxCompactionLagMs)
	}
	return c.SegmentMs
}

// jitter spreads the rolls of partitions that began together. It depends on the partition and segment only, so that it
// needs no random source and stays the same over a restart.
func jitter(tp TopicPartition, base int64, c *Config) int64 {
	bound := min(c.SegmentJitterMs, c.maxSegmentMs())
	if bound <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(tp.String()))
	_, _ = h.Write([]byte(fileName(base, "")))
	return int64(h.Sum64()>>1) % bound
}

// rollLocked makes a segment that begins at base the active one. The old one is made durable in the background: until
// then the recovery point stays where it is.
func (l *Log) rollLocked(base int64) error {
	old := l.active()
	if err := old.seal(); err != nil {
		return l.parent.fail(err)
	}
	c := l.Config()
	s, err := createSegment(&l.place, base, l.env.nowMs())
	if err != nil {
		return l.parent.fail(err)
	}
	s.jitter = jitter(l.tp, base, &c)
	l.newNames.Store(true)
	l.mu.producers.end = base
	if err := l.takeSnapshotLocked(); err != nil {
		return l.parent.fail(err)
	}
	list := append(l.list()[:len(l.list()):len(l.list())], s)
	l.segments.Store(&list)
	l.moveEndLocked(Position{l.EndOffset(), base, 0})
	l.env.flushSoon(l)
	return nil
}

// moveEndLocked changes the place of the end, and with it that of a high watermark that stands there.
func (l *Log) moveEndLocked(end Position) {
	l.marks.Lock()
	defer l.marks.Unlock()
	l.end.Store(&end)
	if l.high.Load().Offset >= end.Offset {
		l.high.Store(&end)
	}
}

// takeSnapshotLocked writes the producer state to a snapshot at its end offset, unless there is one already. It is not
// synced: a torn snapshot is known by its CRC, and the log can make it again.
func (l *Log) takeSnapshotLocked() error {
	p := &l.mu.producers
	last := int64(0)
	if n := len(l.mu.snapshots); n > 0 {
		last = l.mu.snapshots[n-1]
	}
	if p.end <= last {
		return nil
	}
	f, err := l.env.fs.OpenFile(l.segmentPath(p.end, snapshotSuffix), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Append(encodeSnapshot(p.sorted())), f.Close()); err != nil {
		return err
	}
	l.newNames.Store(true)
	l.mu.snapshots = append(l.mu.snapshots, p.end)
	l.mu.unsynced = append(l.mu.unsynced, p.end)
	return nil
}

// Flush makes everything appended so far durable and moves the recovery point to the end.
func (l *Log) Flush() error { return l.flushTo(l.EndOffset, (*segment).sync) }

// flushSealed makes everything but the active segment durable.
func (l *Log) flushSealed() error {
	return l.flushTo(func() int64 { return l.active().base }, (*segment).sync)
}

// flushTo makes durable what lies below bound, then moves the recovery point there. Order: epochs (recovery believes
// those below the recovery point), batches with their indexes, snapshots, names of new files. Appends go on meanwhile.
// active is how to sync the active segment: its indexes change with every batch, and can be made again.
func (l *Log) flushTo(bound func() int64, active func(*segment) error) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	if err := l.settleLocked(); err != nil {
		return err
	}
	truncations := l.truncations.Load()
	end := bound()
	if err := l.epochs.flush(l.env.fs, l.Dir()); err != nil {
		return l.parent.fail(err)
	}
	if end <= l.RecoveryPoint() && !l.newNames.Load() {
		return nil
	}
	list := l.list()
	// One offset before: the recovery point may have come to a segment's end before the segment was rolled.
	for i := floor(list, l.RecoveryPoint()-1); i < len(list) && list[i].base < end; i++ {
		sync := (*segment).syncAll
		if i == len(list)-1 {
			sync = active
		}
		if err := sync(list[i]); err != nil {
			if l.truncations.Load() != truncations && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return l.parent.fail(err)
		}
	}
	if err := l.syncSnapshots(); err != nil {
		return l.parent.fail(err)
	}
	if l.newNames.Swap(false) {
		if err := l.env.fs.SyncDir(l.Dir()); err != nil {
			return l.parent.fail(err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.truncations.Load() == truncations && end > l.RecoveryPoint() {
		l.recoveryPoint.Store(end)
	}
	l.lastFlush.Store(l.env.nowMs())
	return nil
}

func (l *Log) syncSnapshots() error {
	l.mu.Lock()
	offsets := l.mu.unsynced
	l.mu.unsynced = nil
	l.mu.Unlock()
	for _, o := range offsets {
		f, err := l.env.fs.OpenFile(l.segmentPath(o, snapshotSuffix), os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
