package api

import (
	"sync"
	"time"

	"barnabas/broker/metadata"
)

// topicWaits parks requests until the metadata shows what they wait for:
// topics that got leaders, or that are gone. Each update of the metadata looks
// at all of them; they are few, since a client that creates topics waits for
// its answer.
type topicWaits struct {
	cache *metadata.Cache
	limit int // beyond it nothing waits any more: it is answered as it stands

	mu struct {
		sync.Mutex
		waits  map[*topicWait]struct{}
		closed bool
	}
}

const maxTopicWaits = 10_000

// topicWait is one parked request. It is finished once: whoever takes it out of
// the set calls done. Once it is finished ready is not called any more, so that
// both may work on the same answer.
type topicWait struct {
	ready func(*metadata.Snapshot) bool
	done  func(*metadata.Snapshot)
	timer *time.Timer

	mu struct {
		sync.Mutex // held while ready runs
		finished   bool
	}
}

func (w *topicWait) isReady(s *metadata.Snapshot) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.mu.finished && w.ready(s)
}

func (w *topicWait) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.finished = true
}

func newTopicWaits(cache *metadata.Cache) *topicWaits {
	t := &topicWaits{cache: cache, limit: maxTopicWaits}
	t.mu.waits = make(map[*topicWait]struct{})
	return t
}

// await calls done, exactly once, as soon as ready holds for a snapshot or the
// time is over, maybe before it returns. done is given the snapshot to judge
// by.
func (t *topicWaits) await(timeout time.Duration, ready func(*metadata.Snapshot) bool, done func(*metadata.Snapshot)) {
	w := &topicWait{ready: ready, done: done}
	t.mu.Lock()
	if t.mu.closed || len(t.mu.waits) >= t.limit {
		t.mu.Unlock()
		done(t.cache.Load())
		return
	}
	w.timer = time.AfterFunc(timeout, func() { t.finish(w) })
	t.mu.waits[w] = struct{}{}
	t.mu.Unlock()
	if w.isReady(t.cache.Load()) { // after it is in the set, so that no update falls in between
		t.finish(w)
	}
}

// changed is called after each update of the metadata.
func (t *topicWaits) changed() {
	snapshot := t.cache.Load()
	for _, w := range t.list() {
		if w.isReady(snapshot) {
			t.finish(w)
		}
	}
}

func (t *topicWaits) list() []*topicWait {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.waits) == 0 {
		return nil
	}
	waits := make([]*topicWait, 0, len(t.mu.waits))
	for w := range t.mu.waits {
		waits = append(waits, w)
	}
	return waits
}

func (t *topicWaits) finish(w *topicWait) {
	t.mu.Lock()
	_, parked := t.mu.waits[w]
	delete(t.mu.waits, w)
	t.mu.Unlock()
	if parked {
		w.timer.Stop()
		w.finish()
		w.done(t.cache.Load())
	}
}

func (t *topicWaits) close() {
	t.mu.Lock()
	t.mu.closed = true
	t.mu.Unlock()
	for _, w := range t.list() {
		t.finish(w)
	}
}

// hasLeaders tells whether partitions 0 to count-1 of a topic have a leader.
func hasLeaders(s *metadata.Snapshot, topic string, count int32) bool {
	t := s.Topic(topic)
	if t == nil {
		return false
	}
	for id := range count {
		if p := t.Partition(id); p == nil || p.Leader == metadata.NoLeader {
			return false
		}
	}
	return true
}
