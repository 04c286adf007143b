package commitlog

// Recovery carried out: the decisions are in recovery.go, the walk over one segment in walk.go.

import (
	"errors"
	"slices"

	"barnabas/broker/record"
)

// recover checks the segments from the first'th on and rebuilds what is derived from them. fresh: epochs are derived
// from the log alone.
func (l *Log) recover(first int, c checkpoints, epochs epochList, fresh bool) error {
	list := l.list()
	committed := max(c.recoveryPoint, c.highWatermark)
	l.recovered = Recovery{Ran: true, KnownCommitted: committed}
	from := c.recoveryPoint
	if c.clean {
		from = list[first].base // its end is damaged: believe nothing of this segment
	}
	if err := l.dropTornSnapshots(c.recoveryPoint); err != nil {
		return err
	}
	asRead := epochs
	if !fresh {
		epochs, _ = epochs.cutEnd(max(from, list[first].base))
	}
	p, err := l.producersBefore(list[first].base)
	if err != nil {
		return err
	}
	for i := first; i < len(list); i++ {
		s := list[i]
		latest, _ := epochs.latest()
		w := segmentWalk{
			order: batchOrder{base: s.base, next: s.base, epoch: latest}, from: from, producers: p, epochs: epochs,
			index: indexBuilder{
				base: s.base, interval: int64(l.Config().IndexInterval),
				newest: timeOffset{record.NoTimestamp, s.base}, lastTime: record.NoTimestamp,
			},
		}
		if err := l.walkSegment(s, &w); err != nil {
			return err
		}
		if w.bad == nil && i+1 < len(list) && w.order.next < list[i+1].base && list[i+1].base > max(c.recoveryPoint, c.cleaned) {
			// A power cut can take whole batches off the end of a segment. Compaction leaves such gaps too, but ours only
			// below the recovery point, and Kafka's below its checkpoint, all but the one that the stop has interrupted.
			w.damage = damage{offset: w.order.next}
			w.bad = corruptAt(l.segmentPath(s.base, logSuffix), w.pos, "ends before offset %d, the next segment begins at %d",
				w.order.next, list[i+1].base)
		}
		if w.bad != nil {
			w.damage.more = w.damage.more || l.anyGood(list[i+1:])
			if judge(w.damage, c.recoveryPoint) == refuse {
				return w.bad
			}
			l.warnf("the log is cut at offset %d: %v", w.order.next, w.bad)
			if err := l.cutAt(i, w.pos); err != nil {
				return err
			}
		}
		if err := s.install(&w); err != nil {
			return err
		}
		p, epochs = w.producers, w.epochs
		if w.bad != nil || i == len(list)-1 {
			l.end.Store(&Position{w.order.next, s.base, s.size.Load()})
			break
		}
	}
	kept, _ := asRead.cutEnd(l.EndOffset())
	l.epochs.set(epochs, true)
	l.epochs.dirty.Store(fresh || !slices.Equal(kept, epochs))
	l.recoveryPoint.Store(min(c.recoveryPoint, l.EndOffset()))
	l.recovered.EndOffset = l.EndOffset()
	if l.recovered.LostCommitted() {
		l.owed.Store(committed)
		l.env.log.WithField("partition", l.tp.String()).Errorf(
			"after recovery the log ends at offset %d, but it held committed records up to %d", l.EndOffset(), committed)
	}
	return nil
}

// dropTornSnapshots removes the snapshots behind the recovery point that a crash has torn.
func (l *Log) dropTornSnapshots(from int64) error {
	keep := l.mu.snapshots[:0]
	for _, o := range l.mu.snapshots {
		if o >= from {
			_, err := readSnapshot(l.env.fs, l.Dir(), o)
			if corrupt := (*CorruptionError)(nil); errors.As(err, &corrupt) {
				l.newNames.Store(true)
				if err := removeIfThere(l.env.fs, l.segmentPath(o, snapshotSuffix)); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return err
			}
		}
		keep = append(keep, o)
	}
	l.mu.snapshots = keep
	return nil
}

// producersBefore is the producer state at the start of a segment.
func (l *Log) producersBefore(base int64) (producers, error) {
	saved := slices.Clone(l.mu.snapshots)
	kept := l.mu.snapshots[:0]
	var later []int64
	for _, o := range saved {
		if o <= base {
			kept = append(kept, o)
		} else {
			later = append(later, o)
		}
	}
	l.mu.snapshots = kept
	err := l.loadProducersLocked(base)
	p := l.mu.producers
	l.mu.producers = producers{}
	l.mu.snapshots = append(l.mu.snapshots, later...)
	return p, err
}

func (l *Log) walkSegment(s *segment, w *segmentWalk) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	return w.run(f, s.base, s.size.Load())
}

// anyGood tells whether one of the segments begins with a good batch.
func (l *Log) anyGood(list []*segment) bool {
	for _, s := range list {
		f, err := s.open()
		if err != nil {
			continue
		}
		sc := newScanner(f, 0, s.size.Load(), walkWindow)
		e, pos, err := sc.next()
		good := false
		if err == nil {
			whole, err := sc.whole(pos, e.size)
			good = err == nil && checkEntry(whole) == nil
		}
		s.file.release()
		if good {
			return true
		}
	}
	return false
}

// cutAt ends the log at a position of the i'th segment.
func (l *Log) cutAt(i int, pos int64) error {
	list := l.list()
	s := list[i]
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	l.recovered.Truncated = s.size.Load() - pos
	for _, later := range list[i+1:] {
		l.recovered.Truncated += later.size.Load()
	}
	s.size.Store(pos)
	if err := f.Truncate(pos); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	shorter := list[: i+1 : i+1]
	l.segments.Store(&shorter)
	return l.discardLocked(backwards(list[i+1:]))
}

// install puts what a walk derived in the place of the segment's files.
func (s *segment) install(w *segmentWalk) error {
	s.indexSynced.Store(false)
	s.mu.Lock()
	err := s.installLocked(&w.index)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.replaceAborted(w.aborted); err != nil {
		return err
	}
	list := slices.Clone(w.aborted)
	s.aborted.Store(&list)
	return nil
}
