package commitlog

// Open files. A segment opens its files when they are needed and gives them back when they have been idle, so that
// ten thousand quiet partitions hold no descriptors. A file that somebody uses (an append, a range on its way to a
// socket) stays open, even when it is deleted meanwhile.

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"barnabas/broker/vfs"
)

// place is where a log's files are. Its directory changes when the log is renamed.
type place struct {
	fs    vfs.FS
	dir   atomic.Pointer[string]
	files *openFiles
}

func (p *place) path(name string) string { return filepath.Join(*p.dir.Load(), name) }

// handle is one file, open or not.
type handle struct {
	mu     sync.Mutex
	f      vfs.File
	refs   int
	used   int64 // the tick of openFiles in which it was last acquired
	doomed bool  // close when nobody uses it any more
	pinned bool  // holds bytes that were not synced: closing would let an error of the disk go unnoticed
}

// acquire opens name if need be; every call is paired with one of release.
func (h *handle) acquire(p *place, name string) (vfs.File, error) {
	return h.get(p, name, os.O_RDWR)
}

// create acquires name and makes it when it does not exist.
func (h *handle) create(p *place, name string) (vfs.File, error) {
	return h.get(p, name, openCreate)
}

func (h *handle) get(p *place, name string, flag int) (vfs.File, error) {
	f, opened, err := h.use(p, name, flag)
	if opened {
		p.files.add(h) // not while h is locked: sweep locks in the other order
	}
	return f, err
}

func (h *handle) use(p *place, name string, flag int) (f vfs.File, opened bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.f == nil && h.doomed {
		// Another segment may have got the name meanwhile.
		return nil, false, &fs.PathError{Op: "open", Path: p.path(name), Err: fs.ErrNotExist}
	}
	if h.f == nil {
		f, err := p.fs.OpenFile(p.path(name), flag, 0o644)
		if err != nil {
			return nil, false, err
		}
		h.f, opened = f, true
	}
	h.refs++
	h.used = p.files.tick.Load()
	return h.f, opened, nil
}

func (h *handle) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refs--
	if h.doomed {
		h.closeIfIdleLocked()
	}
}

// pin keeps the file open (or lets go of it again) beyond its last use.
func (h *handle) pin(on bool) {
	h.mu.Lock()
	h.pinned = on
	h.mu.Unlock()
}

// doom closes the file as soon as nobody uses it.
func (h *handle) doom() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doomed, h.pinned = true, false
	h.closeIfIdleLocked()
}

func (h *handle) closeIfIdleLocked() bool {
	if h.refs > 0 || h.pinned {
		return false
	}
	if h.f != nil {
		_ = h.f.Close() // read only, or synced before: nothing is lost
		h.f = nil
	}
	return true
}

// idleFiles is how many files may stay open that nobody uses, until the next sweep.
const idleFiles = 2048

// openFiles knows every open handle of a manager.
type openFiles struct {
	tick   atomic.Int64
	mu     sync.Mutex
	open   map[*handle]struct{}
	enough int // open handles from which the idle ones are closed at once
}

// add notes an open handle. When there are many the idle ones go without waiting for a sweep: the recovery of ten thousand
// logs opens thirty thousand files within seconds.
func (o *openFiles) add(h *handle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open, o.enough = map[*handle]struct{}{}, idleFiles
	}
	o.open[h] = struct{}{}
	if len(o.open) <= o.enough {
		return
	}
	for other := range o.open {
		if other.closeIfIdle() {
			delete(o.open, other)
		}
	}
	o.enough = max(idleFiles, 2*len(o.open)) // what is in use is not looked through for each one more
}

// closeIfIdle closes the file unless somebody uses it, and tells that it is closed.
func (h *handle) closeIfIdle() bool {
	if !h.mu.TryLock() {
		return false // somebody does
	}
	defer h.mu.Unlock()
	return h.closeIfIdleLocked()
}

// sweep closes the files that nobody has used since the sweep before the last one.
func (o *openFiles) sweep() {
	now := o.tick.Add(1)
	o.mu.Lock()
	list := make([]*handle, 0, len(o.open))
	for h := range o.open {
		list = append(list, h)
	}
	o.mu.Unlock()
	for _, h := range list {
		h.mu.Lock()
		closed := h.f == nil || h.used < now-1 && h.closeIfIdleLocked()
		h.mu.Unlock()
		if closed {
			o.forget(h)
		}
	}
}

func (o *openFiles) forget(h *handle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h.mu.Lock() // somebody may have opened it again
	defer h.mu.Unlock()
	if h.f == nil {
		delete(o.open, h)
	}
}

// closeAll closes every file as soon as nobody uses it: the manager is closing.
func (o *openFiles) closeAll() {
	o.mu.Lock()
	list := make([]*handle, 0, len(o.open))
	for h := range o.open {
		list = append(list, h)
	}
	o.mu.Unlock()
	for _, h := range list {
		h.doom()
	}
	o.sweep()
}
