package commitlog

import (
	"fmt"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Which directory a log goes to.

// takePlace picks the directory for a new log and counts it there: the preferred one, else the one with the fewest logs. A
// future log never goes where the current one is.
func (m *Manager) takePlace(tp TopicPartition, isFuture bool) (*logDir, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return nil, fmt.Errorf("%w: the log manager is closed", kerr.KafkaStorageError)
	}
	d, err := m.chooseDirLocked(tp, isFuture)
	if err == nil {
		d.logs++
	}
	return d, err
}

func (m *Manager) leavePlace(d *logDir) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d.logs--
}

func (m *Manager) chooseDirLocked(tp TopicPartition, isFuture bool) (*logDir, error) {
	prefer := m.mu.prefer[tp]
	var best *logDir
	for _, managed := range m.dirs {
		d := managed.life.Load()
		if d.err() != nil || isFuture && m.mu.current[tp] != nil && m.mu.current[tp].parent == d {
			continue
		}
		if d.path == prefer {
			return d, nil
		}
		if isFuture && prefer != "" {
			continue
		}
		if best == nil || d.logs < best.logs {
			best = d
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: no log directory is online for %s", kerr.KafkaStorageError, tp)
	}
	return best, nil
}

// PreferDir names the directory in which the next log of tp is to be created, as CheckDir allows. A directory that has a
// log of tp already is not remembered.
func (m *Manager) PreferDir(tp TopicPartition, dir string) error {
	d, err := m.dirNamed(dir)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range []*Log{m.mu.current[tp], m.mu.future[tp]} {
		if l != nil && l.parent == d.life.Load() {
			return nil
		}
	}
	m.mu.prefer[tp] = d.path
	return nil
}

// CheckDir tells why a directory can take no log: LOG_DIR_NOT_FOUND when it is none of ours, KAFKA_STORAGE_ERROR when it
// is offline.
func (m *Manager) CheckDir(dir string) error {
	_, err := m.dirNamed(dir)
	return err
}

func (m *Manager) dirNamed(dir string) (*managedDir, error) {
	for _, d := range m.dirs {
		if d.path == filepath.Clean(dir) {
			return d, d.err()
		}
	}
	return nil, fmt.Errorf("%w: %s is no log directory of this broker", kerr.LogDirNotFound, dir)
}
