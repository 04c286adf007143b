package commitlog

import (
	"errors"
	"io/fs"
	"sync"
	"time"
)

// deletions are files and directories that are to go at a time.
type deletions struct {
	mu      sync.Mutex
	waiting []deletion
}

type deletion struct {
	dueMs int64
	dir   *logDir
	path  string
}

func (m *Manager) removeLater(d *logDir, delayMs int64, paths []string) {
	m.deletions.mu.Lock()
	defer m.deletions.mu.Unlock()
	for _, p := range paths {
		m.deletions.waiting = append(m.deletions.waiting, deletion{m.env.nowMs() + delayMs, d, p})
	}
}

// removeDue deletes what is due. A file that cannot be deleted is reported and left: it is no reason to take a
// directory offline (H45), and the next start tries again.
func (m *Manager) removeDue(now time.Time) {
	m.deletions.mu.Lock()
	var due, later []deletion
	for _, d := range m.deletions.waiting {
		if d.dueMs <= now.UnixMilli() {
			due = append(due, d)
		} else {
			later = append(later, d)
		}
	}
	m.deletions.waiting = later
	m.deletions.mu.Unlock()
	for _, d := range due {
		if d.dir.err() != nil && !d.dir.full() {
			continue // a full one is made room in
		}
		if err := m.cfg.FS.RemoveAll(d.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.log.Warnf("cannot delete %s: %v", d.path, err)
		}
	}
}

// job is something that is done again and again.
type job struct {
	every time.Duration
	next  time.Time
	run   func(now time.Time)
}

const (
	sweepFiles    = 30 * time.Second
	removeFiles   = time.Second
	firstAfter    = 30 * time.Second // retention waits for leaders to be known (log.initial.task.delay.ms)
	epochInterval = 10 * time.Second
	// Records that were deleted must not come back: Kafka leaves a minute for that, we do not (BR-034).
	startMovedWithin = time.Second
)

func (m *Manager) jobs(now time.Time) []*job {
	jobs := []*job{
		{every: removeFiles, run: m.removeDue},
		{every: startMovedWithin, run: func(time.Time) { m.checkpointMovedStarts() }},
		{every: m.cfg.HighWatermarkInterval, run: func(time.Time) { m.CheckpointHighWatermarks() }},
		{every: epochInterval, run: func(time.Time) { m.flushEpochs() }},
		{every: sweepFiles, run: func(time.Time) { m.sweep() }},
		{every: m.cfg.FlushCheck, run: m.flushOverdue},
		{every: m.cfg.CheckpointInterval, run: func(time.Time) { m.checkpointRecoveryPoints() }},
		{every: m.cfg.StartOffsetCheckpointInterval, run: func(time.Time) { m.checkpointStartOffsets() }},
		{every: m.cfg.ProducerIDCheck, run: m.expireProducers},
		{every: m.cfg.RetentionCheck, run: m.applyRetention, next: now.Add(min(firstAfter, m.cfg.RetentionCheck))},
	}
	for _, j := range jobs {
		if j.next.IsZero() {
			j.next = now.Add(j.every)
		}
	}
	return jobs
}

func (m *Manager) start() {
	for _, d := range m.dirs {
		m.running.Go(d.flusher.run)
	}
	m.running.Go(m.housekeep)
	m.ConfigureCleaner(m.cfg.Cleaner)
}

// housekeep is the goroutine that does what the clock asks for, one thing after the other.
func (m *Manager) housekeep() {
	jobs := m.jobs(time.Now())
	timer := time.NewTimer(removeFiles)
	defer timer.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-timer.C:
		}
		next := time.Now().Add(removeFiles)
		for _, j := range jobs {
			if now := time.Now(); !now.Before(j.next) {
				j.run(m.cfg.Now())
				j.next = time.Now().Add(j.every)
			}
			if j.next.Before(next) {
				next = j.next
			}
		}
		timer.Reset(time.Until(next))
	}
}

func (m *Manager) eachLog(do func(l *Log)) {
	for _, d := range m.dirs {
		if d.err() != nil {
			continue
		}
		for _, l := range m.every(d.life.Load()) {
			if l.Err() == nil {
				do(l)
			}
		}
	}
}

func (m *Manager) applyRetention(now time.Time) {
	m.eachLog(func(l *Log) {
		if err := l.applyRetention(now.UnixMilli()); err != nil {
			m.log.WithField("partition", l.tp.String()).Errorf("retention: %v", err)
		}
	})
}

func (m *Manager) flushOverdue(now time.Time) {
	m.eachLog(func(l *Log) {
		if l.flushDue(now) {
			_ = l.Flush() // an error has taken the directory offline
		}
	})
}

// flushEpochs leaves out logs that nothing was ever written to: their epochs describe nothing.
func (m *Manager) flushEpochs() {
	m.eachLog(func(l *Log) {
		l.flushing.Lock()
		defer l.flushing.Unlock()
		if !l.unsettled.Load() && l.Err() == nil {
			_ = l.flushEpochs()
		}
	})
}

func (m *Manager) expireProducers(now time.Time) {
	m.eachLog(func(l *Log) { l.expireProducers(now.UnixMilli()) })
}

// sweep closes files that nobody uses, and brings waiting index entries of idle logs to disk.
func (m *Manager) sweep() {
	idleSince := m.env.nowMs() - sweepFiles.Milliseconds()
	m.eachLog(func(l *Log) {
		if err := l.spillIfIdle(idleSince); err != nil {
			_ = l.parent.fail(err)
		}
	})
	m.env.files.sweep()
}

// spillIfIdle writes the index entries that wait in memory if nothing was appended since.
func (l *Log) spillIfIdle(sinceMs int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.active()
	if s.modified > sinceMs || l.closed.Load() {
		return nil
	}
	offsets, times := s.offsets.view.Load(), s.times.view.Load()
	if offsets == nil || times == nil || len(offsets.tail)+len(times.tail) == 0 {
		return nil
	}
	return s.spill()
}

// pointsLowered brings to disk a recovery point, high watermark or start that fell below what is on disk.
func (m *Manager) pointsLowered(l *Log) error {
	for _, d := range m.dirs {
		if d.life.Load() != l.parent {
			continue
		}
		if d.writtenAbove(recoveryPointFile, l.tp, l.checkpointPoint()) {
			if err := m.writeCheckpoint(d, recoveryPointFile, (*Log).checkpointPoint); err != nil {
				return err
			}
		}
		l.owed.Store(0)
		if d.writtenAbove(highWatermarkFile, l.tp, l.HighWatermark()) {
			// Recovery takes it for what was committed.
			if err := m.writeCheckpoint(d, highWatermarkFile, (*Log).checkpointHigh); err != nil {
				return err
			}
		}
		if d.writtenAbove(startOffsetFile, l.tp, l.StartOffset()) {
			if err := m.writeStartOffsets(d); err != nil {
				return err
			}
		}
		if d.writtenAbove(cleanerOffsetFile, l.tp, max(l.cleaned.Load(), 0)) {
			return m.writeCleanedOffsets(d)
		}
	}
	return nil
}

// writtenAbove tells that a checkpoint on disk may have more than offset for the partition.
func (d *managedDir) writtenAbove(name string, tp TopicPartition, offset int64) bool {
	d.checkpoint.Lock()
	defer d.checkpoint.Unlock()
	known, ok := d.written[name]
	return !ok || known[tp] > offset
}

// CheckpointHighWatermarks writes the high watermarks of all logs now.
func (m *Manager) CheckpointHighWatermarks() {
	for _, d := range m.dirs {
		_ = m.writeCheckpoint(d, highWatermarkFile, (*Log).checkpointHigh)
	}
}

func (m *Manager) checkpointRecoveryPoints() {
	for _, d := range m.dirs {
		_ = m.writeCheckpoint(d, recoveryPointFile, (*Log).checkpointPoint)
	}
}

func (m *Manager) checkpointStartOffsets() {
	for _, d := range m.dirs {
		_ = m.writeStartOffsets(d)
	}
}

func (m *Manager) checkpointMovedStarts() {
	for _, d := range m.dirs {
		if d.life.Load().startMoved.Swap(false) {
			_ = m.writeStartOffsets(d)
		}
	}
}

// checkpointDir writes all checkpoints of a directory.
func (m *Manager) checkpointDir(d *managedDir) error {
	return errors.Join(
		m.writeCheckpoint(d, recoveryPointFile, (*Log).checkpointPoint),
		m.writeStartOffsets(d),
		m.writeCheckpoint(d, highWatermarkFile, (*Log).checkpointHigh),
	)
}

func (m *Manager) writeCheckpoint(d *managedDir, name string, value func(*Log) int64) error {
	return m.writeOffsets(d, name, func(l *Log) (int64, bool) { return value(l), true })
}

// writeStartOffsets names, as Kafka does, only the logs that do not start where their first segment does; but while a log
// is in use also those that do: the names of the segments before it may not be gone for good yet, and a power cut would
// bring back what was deleted.
func (m *Manager) writeStartOffsets(d *managedDir) error {
	return m.writeOffsets(d, startOffsetFile, func(l *Log) (int64, bool) {
		start := l.StartOffset()
		return start, start > l.list()[0].base || start > 0 && !l.closed.Load()
	})
}

// writeCleanedOffsets names the logs that were compacted, as Kafka does.
func (m *Manager) writeCleanedOffsets(d *managedDir) error {
	return m.writeOffsets(d, cleanerOffsetFile, func(l *Log) (int64, bool) {
		cleaned := l.cleaned.Load()
		return cleaned, cleaned >= 0
	})
}

// writeOffsets writes a checkpoint of a directory, of future logs too, as Kafka does: a directory holds one log of a
// partition at most. What the file on disk says of a log that is out of use is kept.
func (m *Manager) writeOffsets(d *managedDir, name string, value func(*Log) (int64, bool)) error {
	d.checkpoint.Lock()
	defer d.checkpoint.Unlock()
	life := d.life.Load()
	if err := life.err(); err != nil {
		return err
	}
	offsets := map[TopicPartition]int64{}
	var known map[TopicPartition]int64
	for _, l := range m.every(life) {
		if l.corrupt.Load() != nil {
			if known == nil {
				known, _ = readOffsetCheckpoint(m.cfg.FS, d.path, name)
			}
			if o, ok := known[l.tp]; ok {
				offsets[l.tp] = o
			}
			continue
		}
		if o, ok := value(l); ok {
			offsets[l.tp] = o
		}
	}
	if d.unchanged(name, offsets) {
		return nil
	}
	if err := replaceFile(m.cfg.FS, d.path, name, appendOffsetCheckpoint(nil, offsets)); err != nil {
		return life.fail(err)
	}
	d.written[name] = offsets
	return nil
}
