package commitlog

import (
	"errors"
	"sync"
)

// Close stops the background work, flushes every log, writes checkpoints and the marker of a clean shutdown, and
// unlocks the directories. A directory that has failed gets no marker.
func (m *Manager) Close() error {
	m.mu.Lock()
	if m.mu.closed {
		m.mu.Unlock()
		return nil
	}
	m.mu.closed = true
	m.mu.Unlock()
	m.reopening.Lock() // a directory that is just being reopened is waited for, and closed with the others
	defer m.reopening.Unlock()
	m.ConfigureCleaner(CleanerConfig{})
	close(m.stop)
	for _, d := range m.dirs {
		d.flusher.stop()
	}
	m.running.Wait()
	var errs []error
	for _, d := range m.dirs {
		errs = append(errs, m.closeDir(d))
	}
	m.env.files.closeAll()
	m.unlock()
	return errors.Join(errs...)
}

func (m *Manager) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.closed
}

// closeWorkers is how many logs of a directory are closed side by side: it is fsync that takes the time.
const closeWorkers = 8

func (m *Manager) closeDir(d *managedDir) error {
	if d.err() != nil {
		return nil // told when it failed
	}
	logs := m.every(d.life.Load())
	err := inParallel(closeWorkers, len(logs), func(i int) error {
		if logs[i].corrupt.Load() != nil {
			return nil
		}
		return logs[i].close()
	})
	if err != nil {
		return err
	}
	if err := m.checkpointDir(d); err != nil {
		return err
	}
	// Last: it says that all of the above is on disk (H44).
	return d.fail(writeCleanShutdown(m.cfg.FS, d.path, m.cfg.BrokerEpoch()))
}

// inParallel calls work for 0..n-1 on a few goroutines and waits for all; the errors are joined.
func inParallel(workers, n int, work func(i int) error) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next int
		errs []error
	)
	for range min(workers, n) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n {
					return
				}
				if err := work(i); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
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
