// Package logdir looks at log directories of brokers that do not run: what is wrong with the logs in them, and what a start would do to them. It changes nothing: a start is rehearsed by the log engine itself,
// on a file system that keeps in memory what is written.
package logdir

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/commitlog"
	"barnabas/broker/vfs"
)

// Log is a partition's log in a log directory.
type Log struct {
	Dir       string
	Partition commitlog.TopicPartition
	Future    bool // is to replace the current one
}

const logSuffix = ".log"

// Find lists the logs in a log directory, or the one whose directory it is, by name.
func Find(path string) ([]Log, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	holdsSegments := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), logSuffix) && !e.IsDir() })
	if tp, future, ok := commitlog.PartitionOfDir(filepath.Base(path)); ok && holdsSegments {
		return []Log{{path, tp, future}}, nil
	}
	var logs []Log
	for _, e := range entries {
		tp, future, ok := commitlog.PartitionOfDir(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		l := Log{filepath.Join(path, e.Name()), tp, future}
		within, err := os.ReadDir(l.Dir)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(within, fs.DirEntry.IsDir) { // broker-1 may be a log directory
			logs = append(logs, l)
		}
	}
	return logs, nil
}

// Segments are the segment files of a log, in order, with the bytes of all.
func (l Log) Segments() (files []string, bytes int64, err error) {
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), logSuffix) || e.IsDir() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, 0, err
		}
		files, bytes = append(files, filepath.Join(l.Dir, e.Name())), bytes+info.Size()
	}
	return files, bytes, nil // by name, and so by offset
}

// Problems are what is wrong with a log.
func (l Log) Problems() ([]commitlog.Problem, error) { return commitlog.Verify(vfs.OS, l.Dir) }

// InUse tells whether a broker has the log directory that logs are in.
func InUse(dir string) (bool, error) { return vfs.Held(filepath.Join(dir, lockName)) }

const (
	lockName  = ".lock"
	cleanName = ".kafka_cleanshutdown"
)

// Outcome is what a start would make of a log.
type Outcome struct {
	Start, End int64 // offsets from which and up to which it would have records
	Recovery   commitlog.Recovery
	OutOfUse   error // why it would not be used; nil: it would be
}

// Rehearsal is what a start would do.
type Rehearsal struct {
	Clean bool // the last stop was clean: nothing is recovered
	Logs  map[string]Outcome
}

// Rehearse tells what a start would do to logs, all of which are in one log directory.
func Rehearse(dir string, logs []Log) (Rehearsal, error) {
	r := Rehearsal{Logs: map[string]Outcome{}}
	scratch := vfs.NewScratch(vfs.OS, time.Now)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return r, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		r.Clean = r.Clean || e.Name() == cleanName
		if e.IsDir() && !slices.ContainsFunc(logs, func(l Log) bool { return l.Dir == path }) {
			if err := scratch.RemoveAll(path); err != nil { // nobody asked for it
				return r, err
			}
		}
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	engine, err := commitlog.OpenDriven(commitlog.ManagerConfig{Dirs: []string{dir}, FS: scratch, Default: commitlog.DefaultConfig(), Now: time.Now, Log: logrus.NewEntry(quiet)}, time.Now())
	if err != nil {
		return r, err
	}
	for _, d := range engine.Dirs() {
		if d.Err != nil {
			return r, fmt.Errorf("a start would take %s out of use: %w", d.Path, d.Err)
		}
	}
	for _, l := range append(engine.All(), engine.AllFuture()...) {
		r.Logs[l.Dir()] = Outcome{l.StartOffset(), l.EndOffset(), l.Recovery(), l.Err()}
	}
	return r, engine.Close()
}
