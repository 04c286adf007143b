package commitlog

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
)

// logDir is one log directory. Its first error is its last: from then on every log in it answers KAFKA_STORAGE_ERROR, so
// that nothing is acknowledged that a disk has shown it may lose (H43), until the broker is started anew.
type logDir struct {
	path   string
	failed atomic.Pointer[error]
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

// fail takes the directory offline and returns the error that callers give on.
func (d *logDir) fail(cause error) error {
	if cause == nil {
		return nil
	}
	what := "a disk error"
	if errors.Is(cause, syscall.ENOSPC) {
		what = "a full disk"
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
