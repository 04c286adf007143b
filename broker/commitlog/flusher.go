package commitlog

import "sync"

// flusher makes rolled segments of one directory durable, one log after the other, so that no append waits for an fsync.
type flusher struct {
	mu      sync.Mutex
	wake    sync.Cond
	waiting map[*Log]struct{}
	order   []*Log
	stopped bool
}

func (f *flusher) init() {
	f.wake.L = &f.mu
	f.waiting = map[*Log]struct{}{}
}

func (f *flusher) add(l *Log) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.waiting[l]; ok || f.stopped {
		return
	}
	f.waiting[l] = struct{}{}
	f.order = append(f.order, l)
	f.wake.Signal()
}

// next returns the log whose turn it is. It waits for one if wait is set; nil when there is none or the flusher is stopped.
func (f *flusher) next(wait bool) *Log {
	f.mu.Lock()
	defer f.mu.Unlock()
	for wait && len(f.order) == 0 && !f.stopped {
		f.wake.Wait()
	}
	if f.stopped || len(f.order) == 0 {
		return nil
	}
	l := f.order[0]
	f.order = f.order[1:]
	delete(f.waiting, l)
	return l
}

func (f *flusher) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	f.wake.Broadcast()
}

// run is the goroutine of one directory.
func (f *flusher) run() { f.work(true) }

// work flushes the logs that wait. Errors have taken the directory offline; there is nobody else to tell.
func (f *flusher) work(wait bool) {
	for l := f.next(wait); l != nil; l = f.next(wait) {
		_ = l.flushSealed()
	}
}

func (m *Manager) flushSoon(l *Log) {
	for _, d := range m.dirs {
		if d.life.Load() == l.parent {
			d.flusher.add(l)
		}
	}
}
