package commitlog

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// loadAll loads the logs of all directories, directories side by side, in each several logs side by side.
func (m *Manager) loadAll() error {
	return inParallel(len(m.dirs), len(m.dirs), func(i int) error {
		d := m.dirs[i]
		if d.err() != nil {
			return nil
		}
		return m.loadDir(d)
	})
}

// loadDir loads one directory. Its error is for Open: one partition with two logs; a failing disk takes the directory
// offline instead.
func (m *Manager) loadDir(d *managedDir) error {
	life := d.life.Load()
	found, err := m.examine(d, life)
	if err != nil {
		_ = life.fail(err)
		return nil
	}
	return m.eachFound(life, found, func(f foundLog) error {
		if l := m.loadLog(life, f, &found); l != nil {
			return m.adopt(l)
		}
		return nil
	})
}

// eachFound calls load for each log of a directory, some side by side.
func (m *Manager) eachFound(d *logDir, found foundDir, load func(foundLog) error) error {
	workers := m.cfg.RecoveryThreadsPerDir
	if found.clean {
		workers = max(workers, min(runtime.GOMAXPROCS(0)*2, 8)) // nothing is recovered: small reads that wait for the disk
	}
	if n := len(found.logs); n > 0 && !found.clean {
		m.log.WithField("dir", d.path).Infof("recovering %d logs: there was no clean shutdown", n)
	}
	return inParallel(workers, len(found.logs), func(i int) error { return load(found.logs[i]) })
}

// foundDir is what a log directory holds.
type foundDir struct {
	clean          bool // the marker of a clean shutdown was there
	logs           []foundLog
	recoveryPoints map[TopicPartition]int64
	starts         map[TopicPartition]int64
	highMarks      map[TopicPartition]int64
	cleaned        map[TopicPartition]int64
}

type foundLog struct {
	tp     TopicPartition
	name   string
	future bool
}

// examine takes the marker of a clean shutdown, reads the checkpoints and sorts the names. Names that are no log's are
// left alone: a volume's lost+found, hidden files, an operator's copies.
func (m *Manager) examine(d *managedDir, life *logDir) (foundDir, error) {
	var found foundDir
	var err error
	if found.clean, err = takeCleanShutdown(m.cfg.FS, d.path); err != nil {
		return found, err
	}
	read := func(name string) map[TopicPartition]int64 {
		offsets, e := readOffsetCheckpoint(m.cfg.FS, d.path, name)
		if corrupt := (*CorruptionError)(nil); errors.As(e, &corrupt) {
			m.log.WithField("dir", d.path).Warnf("checkpoint is not used: %v", e)
			return offsets
		}
		err = errors.Join(err, e)
		return offsets
	}
	found.recoveryPoints, found.starts, found.highMarks = read(recoveryPointFile), read(startOffsetFile), read(highWatermarkFile)
	found.cleaned = read(cleanerOffsetFile)
	if err != nil {
		return found, err
	}
	d.written[recoveryPointFile], d.written[startOffsetFile], d.written[highWatermarkFile] =
		found.recoveryPoints, found.starts, found.highMarks
	d.written[cleanerOffsetFile] = found.cleaned
	entries, err := m.cfg.FS.ReadDir(d.path)
	if err != nil {
		return found, err
	}
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() || strings.HasPrefix(name, ".") || name == "lost+found" {
			continue
		}
		tp, state, ok := parseDirName(name)
		switch {
		case !ok:
			m.log.WithField("dir", d.path).Warnf("%s is no partition's directory and is left alone", name)
		case state == deletedDir:
			m.removeLater(life, m.cfg.Default.FileDeleteDelayMs, []string{filepath.Join(d.path, name)})
		case state == strayDir:
			m.log.WithField("dir", d.path).Warnf("%s was set aside earlier and is kept", name)
		default:
			found.logs = append(found.logs, foundLog{tp, name, state == futureDir})
		}
	}
	return found, nil
}

// loadLog opens one log; nil when that has taken the directory offline.
func (m *Manager) loadLog(d *logDir, f foundLog, found *foundDir) *Log {
	if d.err() != nil {
		return nil
	}
	l := newLog(m.env, d, f.tp, filepath.Join(d.path, f.name), m.cfg.TopicConfig(f.tp.Topic))
	l.future.Store(f.future)
	cleaned, ok := found.cleaned[f.tp]
	if !ok || f.future {
		cleaned = noOffset // of an earlier log in this directory, if anything
	}
	err := l.load(checkpoints{
		clean: found.clean, recoveryPoint: found.recoveryPoints[f.tp], start: found.starts[f.tp], highWatermark: found.highMarks[f.tp],
		cleaned: cleaned,
	})
	if corrupt := (*CorruptionError)(nil); errors.As(err, &corrupt) {
		m.log.WithField("partition", f.tp.String()).Errorf("the log is out of use: %v", err)
		l.corrupt.Store(corrupt)
	} else if err != nil {
		_ = d.fail(fmt.Errorf("load %s: %w", l.Dir(), err))
		return nil
	}
	return l
}

// adopt puts a log that was loaded into the maps.
func (m *Manager) adopt(l *Log) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	logs := m.logs(l.IsFuture())
	if other := logs[l.tp]; other != nil {
		newer, older, err := newerOfTwo(other, l)
		if err != nil {
			return err
		}
		m.mu.replaced = append(m.mu.replaced, older)
		if newer == other {
			return nil
		}
		other.parent.logs--
	}
	m.adoptLocked(l)
	return nil
}

func (m *Manager) adoptLocked(l *Log) {
	m.logs(l.IsFuture())[l.tp] = l
	l.parent.logs++
}
