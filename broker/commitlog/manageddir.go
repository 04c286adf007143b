package commitlog

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"

	"barnabas/broker/vfs"
)

// managedDir is a log directory with what the manager keeps of it.
type managedDir struct {
	path       string
	life       atomic.Pointer[logDir] // the present one
	lock       vfs.Lock               // written under Manager.mu, by one caller at a time; held from then on until Close, also while the directory is offline
	flusher    flusher
	checkpoint sync.Mutex // held while checkpoints are written
	written    map[string]map[TopicPartition]int64
}

// err is why the directory is offline, nil while it works.
func (d *managedDir) err() error { return d.life.Load().err() }

func (d *managedDir) fail(cause error) error { return d.life.Load().fail(cause) }

// unchanged tells that a checkpoint was last written with the same offsets.
func (d *managedDir) unchanged(name string, offsets map[TopicPartition]int64) bool {
	last, ok := d.written[name]
	return ok && maps.Equal(last, offsets)
}

// DirInfo describes one log directory.
type DirInfo struct {
	Path string
	Err  error  // why the directory is offline; nil while it works
	Full bool   // it is offline for lack of room only, and Reopen may bring it back
	Lock string // which file is locked (vfs.Lock); "" if none is
	Logs int
	Size int64 // bytes of all logs in it
}

// lockDirs makes the directories and takes their locks. A lock that somebody else holds is no fault of the disk: two
// brokers on one directory destroy it, so Open fails.
func (m *Manager) lockDirs() error {
	if len(m.dirs) == 0 {
		return errors.New("no log directory is given")
	}
	for _, d := range m.dirs {
		if err := m.lockDir(d); errors.Is(err, vfs.ErrLocked) {
			return err
		} else if err != nil {
			_ = d.fail(err)
		}
	}
	return nil
}

func (m *Manager) lockDir(d *managedDir) error {
	if d.lock != nil {
		return nil
	}
	if err := m.makeDir(d.path); err != nil {
		return err
	}
	lock, err := m.cfg.FS.Lock(filepath.Join(d.path, lockFile))
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("log directory %s is in use by another broker: %w", d.path, err)
	}
	if err == nil {
		m.mu.Lock()
		d.lock = lock
		m.mu.Unlock()
	}
	return err
}

// makeDir makes a log directory that does not exist, durably.
func (m *Manager) makeDir(path string) error {
	if _, err := m.cfg.FS.Stat(path); err == nil {
		return nil
	}
	if err := m.cfg.FS.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return m.cfg.FS.SyncDir(filepath.Dir(path))
}

func (m *Manager) unlock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.dirs {
		if d.lock != nil {
			_ = d.lock.Close()
			d.lock = nil
		}
	}
}

func (m *Manager) anyOnline() bool {
	for _, d := range m.dirs {
		if d.err() == nil {
			return true
		}
	}
	return false
}

func (m *Manager) dirFailed(dir string, err error) {
	m.log.WithField("dir", dir).Errorf("log directory goes offline: %v", err)
	if m.cfg.OnDirFailure != nil {
		m.cfg.OnDirFailure(dir, err)
	}
}

// Dirs describes the log directories in the order of the configuration.
func (m *Manager) Dirs() []DirInfo {
	var infos []DirInfo
	for _, d := range m.dirs {
		life := d.life.Load()
		info := DirInfo{Path: d.path, Err: life.err(), Full: life.full(), Lock: m.lockOf(d)}
		for _, l := range m.every(life) {
			info.Logs++
			info.Size += l.Size()
		}
		infos = append(infos, info)
	}
	return infos
}

func (m *Manager) lockOf(d *managedDir) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d.lock == nil {
		return ""
	}
	return d.lock.Identity()
}
