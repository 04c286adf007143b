package commitlog

// A directory that was full comes back (H46). Kafka wants a restart for that.
//
// What failed is not trusted for having failed in a harmless way: the logs of the directory's life so far are out of use
// for good, and the directory is opened as after a crash. Each log is recovered from its recovery point, so that a torn
// tail goes and indexes, epochs and producers are those of the batches that are there. Nothing of what the process had in
// memory is used.
//
// Two logs must never write to the same files. So first everybody who may still be at it is waited for, and the old logs
// are closed under their locks:
//
//   - who makes a log took the directory before it failed, and holds its lock in Manager.creating;
//   - appends, truncations, retention, flushes and renames look at Log.Err again under the log's locks;
//   - a cleaning notices at its next read that the log is out of use. It is not waited for but come back to.
//
// What is found is synced, or a power cut would take back what others believe this replica to have; and a disk that has lost
// something on its way says so then.
//
// The new logs come into use together, when all of them are open: a checkpoint that was written before would lose what
// is known of the others.
//
// Only a directory that lacked room comes back, and only if no sync failed. A disk with any other fault may fail again with
// other people's records on it; and after a failed sync what is read is not what is on the disk.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/vfs"
)

// ErrNoRoom is why a directory cannot be reopened yet: its disk is as good as full.
var ErrNoRoom = errors.New("there is no room yet")

// errInUse is why a directory cannot be reopened yet.
var errInUse = fmt.Errorf("%w: its logs are still being compacted", ErrNoRoom)

// What has to be free in a directory that is to come back: a segment's worth, or this share of a small volume. Less would be
// used up as soon as replicas fetch what they have missed. A quota shows only in writing: so many bytes are tried.
const (
	roomShare  = 20
	probeBytes = 256 << 10
	probeFile  = ".room"
)

// Reopen brings back a directory that is offline for lack of room only, with what was durable or written in it: its logs are
// recovered as after a crash. ErrNoRoom (wrapped): it is too early; DirInfo.Full tells whether it is worth asking again. Any
// other error is why the directory stays offline. A directory that is online is left as it is.
//
// A log of which another directory has got one meanwhile is set aside.
func (m *Manager) Reopen(dir string) error {
	d, err := m.dirNamed(dir)
	if d == nil || err == nil {
		return err
	}
	m.reopening.Lock()
	defer m.reopening.Unlock()
	old := d.life.Load()
	if !old.full() {
		return old.err()
	}
	if m.isClosed() {
		return fmt.Errorf("%w: the log manager is closed", kerr.KafkaStorageError)
	}
	if err := m.hasRoom(d); err != nil {
		return old.again(err)
	}
	if err := m.endLife(old); err != nil {
		return err
	}
	if err := m.lockDir(d); err != nil {
		return old.again(err)
	}
	life := &logDir{path: d.path} // a failure before it is in use is told by this function's error
	logs, err := m.loadAgain(d, life)
	if err != nil {
		for _, l := range logs {
			l.retire()
		}
		return old.again(err)
	}
	for _, l := range m.beginLife(d, life, logs) {
		m.log.WithField("partition", l.tp.String()).Warnf("%s came back and is set aside: there is another log of the partition", l.Dir())
		if err := m.putAway(l, strayDir); err != nil {
			return err // it is offline again
		}
	}
	m.log.WithField("dir", d.path).Infof("log directory has room again and is online with %d logs", len(logs))
	return nil
}

// again notes that a try to bring the directory back has failed: for lack of room, or for good.
func (d *logDir) again(err error) error {
	if errors.Is(err, ErrNoRoom) {
		return err
	}
	if lacksOnlyRoom(err) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	d.broken.Store(true)
	return fmt.Errorf("%w: log directory %s was full and cannot be opened again: %w", kerr.KafkaStorageError, d.path, err)
}

// hasRoom tells whether there is enough room, by asking and by writing.
func (m *Manager) hasRoom(d *managedDir) error {
	total, usable, err := m.cfg.FS.Space(d.path)
	if err != nil {
		return err
	}
	if need := min(int64(m.cfg.Default.SegmentBytes), total/roomShare); usable < need {
		return fmt.Errorf("%w: %d of %d bytes are free in %s, it takes %d", ErrNoRoom, usable, total, d.path, need)
	}
	return probe(m.cfg.FS, d.path)
}

// probe writes something and takes it away again.
func probe(f vfs.FS, dir string) error {
	path := filepath.Join(dir, probeFile)
	file, err := f.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = file.Append(make([]byte, probeBytes))
	full := err != nil && lacksOnlyRoom(err)
	if err == nil {
		if err = file.Sync(); isFull(err) {
			full = true // it was nobody's record
		}
	}
	err = errors.Join(err, file.Close())
	if gone := removeIfThere(f, path); gone != nil {
		return errors.Join(err, gone)
	}
	if full {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	if err != nil {
		return err
	}
	return f.SyncDir(dir)
}

// endLife takes the logs of a life that has failed out of use for good.
func (m *Manager) endLife(life *logDir) error {
	for i := range m.creating {
		m.creating[i].Lock()
		//lint:ignore SA2001 whoever began to make a log before the failure has ended
		m.creating[i].Unlock()
	}
	logs := m.every(life)
	m.cleaner.mu.Lock()
	for _, l := range logs {
		if l.cleaning.busy {
			m.cleaner.mu.Unlock()
			return errInUse
		}
	}
	m.cleaner.mu.Unlock() // from now on none is chosen: they have failed
	for _, l := range logs {
		l.flushing.Lock()
		l.mu.Lock()
		l.retire()
		l.mu.Unlock()
		l.flushing.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range logs {
		if of := m.logs(l.IsFuture()); of[l.tp] == l {
			delete(of, l.tp)
			life.logs--
		}
	}
	return nil
}

// loadAgain loads the logs of a directory that nobody uses.
func (m *Manager) loadAgain(d *managedDir, life *logDir) ([]*Log, error) {
	d.checkpoint.Lock()
	found, err := m.examine(d, life)
	d.checkpoint.Unlock()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var logs []*Log
	err = m.eachFound(life, found, func(f foundLog) error {
		l := m.loadLog(life, f, &found)
		if l == nil {
			return nil
		}
		mu.Lock()
		logs = append(logs, l)
		mu.Unlock()
		if l.corrupt.Load() != nil || l.EndOffset() <= l.RecoveryPoint() {
			return nil
		}
		return l.Flush()
	})
	return logs, errors.Join(err, life.err())
}

// beginLife puts the logs of a new life to use and returns those whose place is taken.
func (m *Manager) beginLife(d *managedDir, life *logDir, logs []*Log) (tooMany []*Log) {
	m.mu.Lock()
	defer m.mu.Unlock()
	life.onFail = m.dirFailed
	d.life.Store(life)
	for _, l := range logs {
		if m.logs(l.IsFuture())[l.tp] != nil {
			tooMany = append(tooMany, l)
			continue
		}
		m.adoptLocked(l)
	}
	return tooMany
}
