package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
)

// logDir is one life of a log directory. Its first error is its last: from then on every log in it answers
// KAFKA_STORAGE_ERROR, so that nothing is acknowledged that a disk has shown it may lose (H43). A directory that was only
// full may be given another life (reopen.go), with other logs; the logs of this one never come back.
type logDir struct {
	path   string
	failed atomic.Pointer[error]
	broken atomic.Bool // it lacks more than room
	once   sync.Once
	onFail func(dir string, err error)

	logs int // current and future ones; guarded by Manager.mu

	startMoved atomic.Bool // a log's start moved into a segment since the checkpoint of starts was written
}

// err is why the directory is offline, nil while it works.
func (d *logDir) err() error {
	if p := d.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// full tells that the directory is offline for lack of room and for nothing else.
func (d *logDir) full() bool { return d.err() != nil && !d.broken.Load() }

// fail takes the directory offline and returns the error that callers give on.
func (d *logDir) fail(cause error) error {
	if cause == nil {
		return nil
	}
	what := "a disk error"
	if isFull(cause) {
		what = "a full disk"
	}
	if !lacksOnlyRoom(cause) {
		d.broken.Store(true)
	}
	err := fmt.Errorf("%w: log directory %s is offline because of %s: %w", kerr.KafkaStorageError, d.path, what, cause)
	d.failed.CompareAndSwap(nil, &err)
	d.once.Do(func() {
		if d.onFail != nil {
			d.onFail(d.path, err)
		}
	})
	return d.err()
}

// isFull tells that a disk, or the share of it that this user may have, is used up.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// lacksOnlyRoom tells that all that went wrong is that something could not be written. A sync is another matter, whatever
// it failed for: what it was asked for is lost, though it can still be read (H43).
func lacksOnlyRoom(err error) bool {
	if path := (*fs.PathError)(nil); errors.As(err, &path) && (path.Op == "sync" || path.Op == "syncdir") {
		return false
	}
	switch wraps := err.(type) {
	case syscall.Errno:
		return isFull(wraps)
	case interface{ Unwrap() error }:
		return lacksOnlyRoom(wraps.Unwrap())
	case interface{ Unwrap() []error }:
		room := false
		for _, e := range wraps.Unwrap() {
			if e == error(kerr.KafkaStorageError) {
				continue // what an earlier failure is told as
			}
			if !lacksOnlyRoom(e) {
				return false
			}
			room = true
		}
		return room
	}
	return false
}
