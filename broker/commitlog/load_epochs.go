package commitlog

// The leader epochs of a log that is opened: what their file says, as far as the log bears it out.

import (
	"errors"
	"io"
)

// loadEpochs reads the leader epochs; broken means that the file cannot be believed (H07).
func (l *Log) loadEpochs() (list epochList, broken bool, err error) {
	list, err = readEpochs(l.env.fs, l.Dir())
	if bad := (*CorruptionError)(nil); errors.As(err, &bad) {
		if l.Size() > 0 { // Kafka leaves an empty file with an empty log
			l.warnf("leader epochs are derived from the log anew: %v", err)
		}
		return nil, true, nil
	}
	return list, false, err
}

// fillEpochs derives the epochs between the log's start and the first one that is known: a crash may have kept the epochs
// of a later start and lost the checkpoint of the start. Messages of old have no epochs and are not looked at.
func (l *Log) fillEpochs(start int64) error {
	known := l.epochs.load()
	end := l.EndPosition()
	if len(known) > 0 {
		end.Offset = min(end.Offset, known[0].start)
	}
	var found epochList
	list := l.list()
	for _, s := range list[floor(list, start):] {
		if s.base >= end.Offset {
			break
		}
		if s.size.Load() == 0 {
			continue // compaction left nothing of it, or it is the active one
		}
		more, err := s.epochs(start, end.Offset, &found)
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
	if len(found) == 0 || len(known) > 0 && found[len(found)-1].epoch > known[0].epoch {
		return nil
	}
	if len(known) > 0 && found[len(found)-1].epoch == known[0].epoch {
		known = known[1:]
	}
	l.epochs.set(append(found, known...), true)
	return nil
}

// epochs adds the epochs of the batches that hold offsets from start to end; false when they have none.
func (s *segment) epochs(start, end int64, found *epochList) (bool, error) {
	f, err := s.open()
	if err != nil {
		return false, err
	}
	defer s.file.release()
	pos, err := s.lookup(f, start)
	if err != nil {
		return false, err
	}
	sc := newScanner(f, pos, s.size.Load(), seekWindow)
	for {
		e, _, err := sc.next()
		if err == io.EOF || err == nil && e.base >= end {
			return true, nil
		}
		if err != nil {
			return false, ignoreCorruption(err)
		}
		if e.last < start {
			continue
		}
		if e.epoch < 0 {
			return false, nil
		}
		if latest, ok := found.latest(); !ok || e.epoch > latest {
			*found, _ = found.assign(e.epoch, max(start, e.base))
		}
	}
}

// trimEpochs drops what the log does not hold. That alone is not worth a write of the file: the next start does it again,
// and a broker with thousands of empty partitions would write thousands of files.
func (l *Log) trimEpochs(start, end int64) {
	dirty := l.epochs.dirty.Load()
	l.epochs.set(l.epochs.load().cutEnd(end))
	l.epochs.set(l.epochs.load().cutStart(start))
	l.epochs.dirty.Store(dirty)
}
