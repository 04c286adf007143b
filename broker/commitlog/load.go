package commitlog

// Opening a log. After a clean shutdown no segment is read but the last few batches of the last one; after a crash
// recover.go looks at what is not known to be on disk.

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
)

// checkpoints is what the log directory's files said of one partition.
type checkpoints struct {
	clean         bool
	recoveryPoint int64
	start         int64
	highWatermark int64
	cleaned       int64 // noOffset: nothing
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
	l.cleaned.Store(noOffset)
	return l
}

// create makes the files of a new log that begins at offset 0; its folder is there. Nothing is synced before the first
// append (settled): a broker that becomes replica of thousands of new partitions would wait for tens of thousands of fsyncs,
// and what a power cut takes away of an empty log is made again.
func (l *Log) create(id TopicID) error {
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
	if len(l.list()) == 1 && l.active().base == 0 && l.Size() == 0 {
		l.unsettled.Store(true) // it may have been left without a sync
	}
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
		high = max(high, end, base+1) // base+1: of the segment at base nothing may be left
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
	list[len(list)-1].reserved = c.Preallocate
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
	if l.unsettled.Load() && l.EndOffset() == 0 {
		err := l.epochs.leave(l.env.fs, l.Dir())
		l.retire() // it was never used: nothing of it needs to be there again
		return l.parent.fail(err)
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
	// A truncation leaves indexes that are cut and not synced, and there may be nothing to flush since: the marker of a
	// clean shutdown would have them believed.
	if err := l.active().syncAll(); err != nil {
		return l.parent.fail(err)
	}
	l.retire()
	return nil
}

// retire takes the log out of use.
func (l *Log) retire() {
	l.closed.Store(true)
	for _, s := range l.list() {
		s.doom()
	}
}
