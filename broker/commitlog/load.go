package commitlog

// Opening a log. After a clean shutdown no segment is read but the last few batches of the last one; after a crash
// recover.go looks at what is not known to be on disk. Which files count is load_files.go's, which leader epochs load_epochs.go's.

import (
	"errors"
	"io"
)

// checkpoints is what the log directory's files said of one partition.
type checkpoints struct {
	clean         bool
	recoveryPoint int64
	start         int64
	highWatermark int64
	cleaned       int64 // noOffset: nothing
}

// load opens the log. A *CorruptionError makes the log unusable, another error is the disk's.
func (l *Log) load(c checkpoints) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	plan, err := l.arrangeFiles()
	if err != nil {
		return err
	}
	if err := l.openSegments(plan); err != nil {
		return err
	}
	if err := l.loadTopicID(); err != nil {
		return err
	}
	l.recoveryPoint.Store(c.recoveryPoint)
	l.cleaned.Store(c.cleaned)
	l.start.Store(max(c.start, l.list()[0].base))
	epochs, broken, err := l.loadEpochs()
	if err != nil {
		return err
	}
	first := checkFrom(plan.segments, c.clean, c.recoveryPoint)
	if first < len(plan.segments) || broken {
		if broken {
			// A log that has lost its epochs derives them from the start.
			first = 0
		}
		if err := l.recover(first, c, epochs, broken); err != nil {
			return err
		}
	} else if err := l.findEnd(c, epochs); err != nil {
		return err
	}
	return l.alignToEnd(c)
}

// loadTopicID reads partition.metadata. A broken one beside an empty log comes from a crash right after its creation.
func (l *Log) loadTopicID() error {
	id, err := readPartitionMetadata(l.env.fs, l.Dir())
	if corrupt := (*CorruptionError)(nil); errors.As(err, &corrupt) && l.Size() == 0 {
		l.warnf("the topic id of an empty log is not used: %v", err)
		l.newNames.Store(true)
		return removeIfThere(l.env.fs, l.place.path(partitionMetadataFile))
	}
	if err != nil {
		return err
	}
	l.topicID.Store(&id)
	if len(l.list()) == 1 && l.active().base == 0 && l.Size() == 0 {
		l.unsettled.Store(true) // it may have been left without a sync
	}
	return nil
}

// findEnd finds the end of a log that was closed cleanly: the batches behind the last entry of the last segment's index.
func (l *Log) findEnd(c checkpoints, epochs epochList) error {
	s := l.active()
	end, err := s.findEnd()
	if corrupt := (*CorruptionError)(nil); errors.As(err, &corrupt) {
		l.warnf("the log was closed cleanly but its end is damaged: %v", err)
		return l.recover(len(l.list())-1, c, epochs, false)
	}
	if err != nil {
		return err
	}
	l.epochs.set(epochs, true)
	l.epochs.dirty.Store(false)
	l.end.Store(&Position{end, s.base, s.size.Load()})
	l.recoveryPoint.Store(end)
	if c.highWatermark > end { // it came back short from an earlier stop, and nobody has decided anything since
		l.recovered = Recovery{Ran: true, KnownCommitted: c.highWatermark, EndOffset: end}
		l.owed.Store(c.highWatermark)
	}
	return nil
}

// findEnd walks from the last entry of the index to the end of the segment.
func (s *segment) findEnd() (int64, error) {
	size := s.size.Load()
	if size == 0 {
		return s.base, nil
	}
	f, err := s.open()
	if err != nil {
		return 0, err
	}
	defer s.file.release()
	pos := int64(0)
	if size > indexEvery {
		if pos, err = s.lookup(f, int64(1)<<62); err != nil {
			return 0, err
		}
	}
	end := s.base
	sc := newScanner(f, pos, size, seekWindow)
	for {
		e, _, err := sc.next()
		if err == io.EOF {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		end = e.last + 1
	}
}

// alignToEnd brings the rest in line with the log's end, now that it is known.
func (l *Log) alignToEnd(c checkpoints) error {
	end := l.EndOffset()
	if end < c.start {
		// Its segments were taken away, or a crash cut it to before the point from which records are kept.
		l.warnf("the log ends at offset %d, before its start at %d: it begins anew there", end, c.start)
		if err := l.restartLocked(c.start, c.start); err != nil {
			return err
		}
		l.recovered.EndOffset = c.start
	}
	end, start := l.EndOffset(), l.StartOffset()
	if err := l.fillEpochs(start); err != nil {
		return err
	}
	l.trimEpochs(start, end)
	high := min(max(c.highWatermark, start), end)
	h := offsetOnly(high)
	if high == end {
		h = l.EndPosition()
	}
	l.high.Store(&h)
	if err := l.alignProducers(c.clean); err != nil {
		return err
	}
	l.updateUnstableLocked()
	if err := l.epochs.flush(l.env.fs, l.Dir()); err != nil {
		return err
	}
	if l.newNames.Swap(false) {
		// Before anything is appended: a snapshot that was removed must not come back and describe other records.
		return l.env.fs.SyncDir(l.Dir())
	}
	return nil
}

// alignProducers loads the producer state at the end. A log that was closed cleanly and has no snapshot was written by
// a Kafka that knew no producers: it is not read for them.
func (l *Log) alignProducers(clean bool) error {
	end := l.EndOffset()
	if clean && len(l.mu.snapshots) == 0 {
		l.mu.producers = producers{end: end}
		return nil
	}
	keep := l.mu.snapshots[:0]
	for _, o := range l.mu.snapshots {
		if o > end || o < l.list()[0].base {
			l.newNames.Store(true)
			if err := removeIfThere(l.env.fs, l.segmentPath(o, snapshotSuffix)); err != nil {
				return err
			}
			continue
		}
		keep = append(keep, o)
	}
	l.mu.snapshots = keep
	if err := l.loadProducersLocked(end); err != nil {
		return err
	}
	return ignoreCorruption(l.recall())
}
