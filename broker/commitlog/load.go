package commitlog

// Opening a log. After a clean shutdown no segment is read but the last few batches of the last one; after a crash the
// decisions of recovery.go are carried out.

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"barnabas/broker/record"
)

// checkpoints is what the log directory's files said of one partition.
type checkpoints struct {
	clean         bool
	recoveryPoint int64
	start         int64
	highWatermark int64
}

// newLog makes a log whose files are not looked at yet.
func newLog(env *environment, parent *logDir, tp TopicPartition, dir string, c Config) *Log {
	l := &Log{tp: tp, env: env, parent: parent}
	l.place.fs, l.place.files = env.fs, env.files
	l.place.dir.Store(&dir)
	l.config.Store(&c)
	list := []*segment{newSegment(&l.place, 0, 0, env.nowMs())}
	l.segments.Store(&list)
	l.end.Store(&Position{})
	l.high.Store(&Position{})
	l.lastFlush.Store(env.nowMs())
	return l
}

// create makes the files of a new log that begins at offset 0. Nothing is synced here: a broker that becomes replica of
// thousands of new partitions would wait for thousands of fsyncs. The flusher does it, or the first append (settled).
func (l *Log) create(id TopicID) error {
	if err := l.env.fs.MkdirAll(l.Dir(), 0o755); err != nil {
		return err
	}
	if !id.IsZero() {
		f, err := l.env.fs.OpenFile(l.place.path(partitionMetadataFile), openCreate|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Append(encodePartitionMetadata(id)), f.Close()); err != nil {
			return err
		}
		l.topicID.Store(&id)
	}
	s, err := createSegment(&l.place, 0, l.env.nowMs())
	if err != nil {
		return err
	}
	c := l.Config()
	s.jitter = jitter(l.tp, 0, &c)
	list := []*segment{s}
	l.segments.Store(&list)
	l.unsettled.Store(true)
	l.newNames.Store(true)
	return nil
}

// settled makes the creation of the log durable: the topic's id before any data, so that data is never found without the
// id of its topic (H36).
func (l *Log) settled() error {
	if !l.unsettled.Load() {
		return nil
	}
	l.flushing.Lock()
	defer l.flushing.Unlock()
	return l.settleLocked()
}

// settleLocked is settled for who holds the lock of flushes.
func (l *Log) settleLocked() error {
	if !l.unsettled.Load() {
		return nil
	}
	if !l.TopicID().IsZero() {
		f, err := l.env.fs.OpenFile(l.place.path(partitionMetadataFile), os.O_RDWR, 0)
		if err != nil {
			return l.parent.fail(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return l.parent.fail(err)
		}
	}
	if err := errors.Join(l.env.fs.SyncDir(l.Dir()), l.env.fs.SyncDir(l.parent.path)); err != nil {
		return l.parent.fail(err)
	}
	l.unsettled.Store(false)
	return nil
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
	return l.settle(c)
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
	return nil
}

// arrangeFiles removes leftovers, finishes swaps and sorts what is there.
func (l *Log) arrangeFiles() (filePlan, error) {
	names, err := l.fileNames()
	if err != nil {
		return filePlan{}, err
	}
	plan := planFiles(names)
	if len(plan.remove) == 0 && len(plan.swaps) == 0 {
		return plan, nil
	}
	for _, name := range plan.remove {
		if err := removeIfThere(l.env.fs, l.place.path(name)); err != nil {
			return plan, err
		}
	}
	if err := l.finishSwaps(plan.swaps); err != nil {
		return plan, err
	}
	if err := l.env.fs.SyncDir(l.Dir()); err != nil {
		return plan, err
	}
	if names, err = l.fileNames(); err != nil {
		return plan, err
	}
	return planFiles(names), nil
}

func (l *Log) fileNames() ([]string, error) {
	entries, err := l.env.fs.ReadDir(l.Dir())
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// finishSwaps puts complete swap files in the place of the segments whose offsets they cover.
func (l *Log) finishSwaps(swaps []string) error {
	low, high := int64(-1), int64(-1)
	for _, name := range swaps {
		base, suffix, _ := parseFileName(name)
		if suffix != logSuffix+swapSuffix {
			continue
		}
		end, err := l.endOfFile(name, base)
		if err != nil {
			return err
		}
		if low < 0 || base < low {
			low = base
		}
		high = max(high, end)
	}
	names, err := l.fileNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		base, suffix, ok := parseFileName(name)
		if ok && !strings.HasSuffix(suffix, swapSuffix) && base >= low && base < high {
			if err := removeIfThere(l.env.fs, l.place.path(name)); err != nil {
				return err
			}
		}
	}
	for _, name := range swaps {
		if err := l.env.fs.Rename(l.place.path(name), l.place.path(strings.TrimSuffix(name, swapSuffix))); err != nil {
			return err
		}
	}
	return nil
}

// endOfFile returns the offset behind the last batch of a file of batches.
func (l *Log) endOfFile(name string, base int64) (int64, error) {
	f, err := l.env.fs.OpenFile(l.place.path(name), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	end := base
	sc := newScanner(f, 0, f.Size(), walkWindow)
	for {
		e, _, err := sc.next()
		if err == io.EOF {
			return end, nil
		}
		if err != nil {
			return end, ignoreCorruption(err)
		}
		end = e.last + 1
	}
}

func (l *Log) openSegments(plan filePlan) error {
	now, c := l.env.nowMs(), l.Config()
	list := make([]*segment, 0, max(1, len(plan.segments)))
	for _, base := range plan.segments {
		info, err := l.env.fs.Stat(l.segmentPath(base, logSuffix))
		if err != nil {
			return err
		}
		s := newSegment(&l.place, base, info.Size(), now)
		s.modified = info.ModTime().UnixMilli()
		s.indexSynced.Store(true) // of those that recovery looks at it is taken back
		s.jitter = jitter(l.tp, base, &c)
		if !plan.indexed[base].aborted {
			s.aborted.Store(new([]abortedTx))
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		base := l.start.Load()
		s, err := createSegment(&l.place, base, now)
		if err != nil {
			return err
		}
		s.jitter = jitter(l.tp, base, &c)
		list = append(list, s)
		l.newNames.Store(true)
	}
	l.segments.Store(&list)
	stray := strays(plan.snapshots, plan.segments)
	for _, o := range plan.snapshots {
		if slices.Contains(stray, o) {
			l.newNames.Store(true)
			if err := removeIfThere(l.env.fs, l.segmentPath(o, snapshotSuffix)); err != nil {
				return err
			}
			continue
		}
		l.mu.snapshots = append(l.mu.snapshots, o)
	}
	return nil
}

// loadEpochs reads the leader epochs; broken means that the file cannot be believed (H07).
func (l *Log) loadEpochs() (list epochList, broken bool, err error) {
	list, err = readEpochs(l.env.fs, l.Dir())
	if bad := (*CorruptionError)(nil); errors.As(err, &bad) {
		l.warnf("leader epochs are derived from the log anew: %v", err)
		return nil, true, nil
	}
	return list, false, err
}

func (l *Log) warnf(format string, args ...any) {
	l.env.log.WithField("partition", l.tp.String()).Warnf(format, args...)
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
		if w.bad == nil && i+1 < len(list) && !l.Config().CleanupCompact && w.order.next < list[i+1].base {
			// A power cut can take whole batches off the end of a segment. Compaction leaves such gaps too.
			w.damage = damage{offset: w.order.next}
			w.bad = corruptAt(l.segmentPath(s.base, logSuffix), w.pos, "ends before offset %d, the next segment begins at %d",
				w.order.next, list[i+1].base)
		}
		if w.bad != nil {
			w.damage.more = w.damage.more || l.anyGood(list[i+1:])
			if judge(w.damage, c.recoveryPoint, committed) == refuse {
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

// settle brings the rest in line with the log's end, now that it is known.
func (l *Log) settle(c checkpoints) error {
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
	if err := l.settleProducers(c.clean); err != nil {
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
		if s.base >= end.Offset || s.size.Load() == 0 {
			break
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

// settleProducers loads the producer state at the end. A log that was closed cleanly and has no snapshot was written by
// a Kafka that knew no producers: it is not read for them.
func (l *Log) settleProducers(clean bool) error {
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

// close brings everything to disk in the form that Kafka leaves behind and takes the log out of use.
func (l *Log) close() error {
	if err := l.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	err := l.active().seal()
	if err == nil {
		err = l.takeSnapshotLocked()
	}
	l.mu.Unlock()
	if err != nil {
		return l.parent.fail(err)
	}
	if err := l.flushTo(l.EndOffset, (*segment).syncAll); err != nil {
		return err
	}
	l.closed.Store(true)
	for _, s := range l.list() {
		s.doom()
	}
	return nil
}
