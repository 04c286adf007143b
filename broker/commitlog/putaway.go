package commitlog

import (
	"path/filepath"
)

// Delete renames the partition's directory to NAME.UUID-delete and forgets the log; files go after file.delete.delay.ms.
func (m *Manager) Delete(tp TopicPartition) error { return m.retire(tp, deletedDir, false) }

// DeleteFuture deletes the log that was to replace the partition's current one.
func (m *Manager) DeleteFuture(tp TopicPartition) error { return m.retire(tp, deletedDir, true) }

// SetAside renames the partition's directory to NAME.UUID-stray and forgets the log; its files are kept.
func (m *Manager) SetAside(tp TopicPartition) error { return m.retire(tp, strayDir, false) }

func (m *Manager) retire(tp TopicPartition, state dirState, isFuture bool) error {
	l := m.forget(tp, isFuture)
	if l == nil {
		return nil
	}
	if err := l.parent.err(); err != nil {
		return err
	}
	return m.putAway(l, state)
}

// forget takes a log out of the maps.
func (m *Manager) forget(tp TopicPartition, isFuture bool) *Log {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.forgetLocked(tp, isFuture)
}

func (m *Manager) forgetLocked(tp TopicPartition, isFuture bool) *Log {
	logs := m.logs(isFuture)
	l := logs[tp]
	if l == nil {
		return nil
	}
	delete(logs, tp)
	l.parent.logs--
	return l
}

// putAway gives the directory of a log that is in no map any more its last name.
func (m *Manager) putAway(l *Log, state dirState) error {
	if l.cleaned.Load() >= 0 {
		// A topic of the same name that is created anew has nothing that is clean.
		if err := m.writeCleanedOffsets(m.dirOf(l)); err != nil {
			return err
		}
	}
	name, err := dirName(l.tp, state)
	if err != nil {
		return err
	}
	path, err := l.rename(name, true)
	if err != nil {
		return err
	}
	if state == deletedDir {
		m.removeLater(l.parent, l.Config().FileDeleteDelayMs, []string{path})
	}
	return nil
}

// rename gives the log's directory another name, durably; retire takes the log out of use.
func (l *Log) rename(name string, retire bool) (string, error) {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.parent.err(); err != nil {
		return "", err
	}
	to := filepath.Join(l.parent.path, name)
	if retire {
		l.retire()
	}
	if err := l.env.fs.Rename(l.Dir(), to); err != nil {
		return "", l.parent.fail(err)
	}
	l.place.dir.Store(&to)
	return to, l.parent.fail(l.env.fs.SyncDir(l.parent.path))
}
