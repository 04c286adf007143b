package api

import (
	"container/list"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/partition"
)

// Fetch sessions (KIP-227). A client that fetches many partitions sends the
// whole list once; after that a request names only what changes, and an answer
// only what has news. The session remembers the rest: what was asked, and what
// was last told.
//
// Invariants:
//
//   - Request and answer agree on the epoch: each request of a session bears the
//     next one. The epoch moves when a request is accepted, not when it is
//     answered, so a repeated or overtaken request is told
//     INVALID_FETCH_SESSION_EPOCH and changes nothing.
//   - What the session remembers as told is written only while an answer is
//     made, under the session's lock, and only for what that answer contains.
//   - All sessions together hold at most a thousand partitions a slot, so that
//     memory has a bound: beyond it no session is made, and one that wants to
//     grow is dropped, which its client takes as a reason to fetch without one.
//   - There are never more sessions than slots. A session gives way to a
//     newcomer when nobody used it for two minutes; or else when it is older
//     than that (or, for a follower as newcomer, belongs to a consumer) and
//     holds no more partitions than the newcomer does. One that is in use and
//     young is never taken by a consumer.
//
// Locks: a session's own lock guards its epoch and partitions; the lock of the
// table guards everything that decides about eviction. They are never held
// together, except that a newcomer is filled before it is in the table.

const (
	noSession = int32(0)

	initialFetchEpoch = int32(0)  // a whole list; a session may be made
	finalFetchEpoch   = int32(-1) // a whole list; no session is wanted

	fetchSessionEviction = 2 * time.Minute

	partitionsPerSlot = 1000
)

// fetchSessions is the table of sessions.
type fetchSessions struct {
	slots int
	newID func() int32 // random, from 1 on

	mu struct {
		sync.Mutex
		byID       map[int32]*fetchSession
		recency    *list.List // least recently used first
		partitions int        // of all sessions
	}
}

func newFetchSessions(slots int, newID func() int32) *fetchSessions {
	t := &fetchSessions{slots: slots, newID: newID}
	t.mu.byID = make(map[int32]*fetchSession)
	t.mu.recency = list.New()
	return t
}

// begin takes a request in.
func (t *fetchSessions) begin(now time.Time, req sessionRequest, names namer) fetchTurn {
	if req.epoch == initialFetchEpoch || req.epoch == finalFetchEpoch {
		if req.id != noSession {
			t.removeID(req.id)
		}
		return fetchTurn{asks: req.asks, create: req.epoch == initialFetchEpoch, request: req}
	}
	s := t.get(req.id, len(req.asks))
	if s == nil {
		return fetchTurn{err: kerr.FetchSessionIDNotFound}
	}
	turn, size := s.accept(req, names)
	switch {
	case turn.err != nil:
	case size == 0:
		t.remove(s)
	default:
		t.touch(s, now, size)
	}
	return turn
}

// finish decides what of the results, which are in line with turn.asks, goes
// into the answer: the session id to tell, and the results in place. Results
// that are left out carry no records.
func (t *fetchSessions) finish(now time.Time, turn *fetchTurn, results []partition.FetchResult) (id int32, told []partition.FetchResult, err error) {
	switch {
	case turn.session != nil:
		told, err = turn.session.prune(turn, results)
		return turn.session.id, told, err
	case turn.create:
		return t.create(now, turn, results), results, nil
	}
	return noSession, results, nil
}

// passOver is finish for an answer that tells nothing of the partitions: a
// session stays as it is, and none is made.
func (t *fetchSessions) passOver(turn *fetchTurn) (id int32, err error) {
	s := turn.session
	if s == nil {
		return noSession, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.epoch != turn.epoch {
		return s.id, kerr.InvalidFetchSessionEpoch
	}
	return s.id, nil
}

// create makes a session of a first request, if there is a slot for it.
func (t *fetchSessions) create(now time.Time, turn *fetchTurn, results []partition.FetchResult) int32 {
	req := &turn.request
	if !t.mayCreate(now, req.follower, len(results)) {
		return noSession
	}
	s := newFetchSession(req.follower, req.usesIDs, now, len(results))
	for i := range results {
		p := s.putLocked(turn.asks[i])
		p.highWatermark, p.logStart = results[i].HighWatermark, results[i].LogStartOffset
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.makeRoomLocked(now, req.follower, len(results)) {
		return noSession
	}
	for s.id = t.newID(); t.mu.byID[s.id] != nil; s.id = t.newID() {
	}
	t.mu.byID[s.id] = s
	s.cached.recency = t.mu.recency.PushBack(s)
	t.touchLocked(s, now, len(s.mu.index))
	return s.id
}

// mayCreate looks before the work of filling a session is done.
func (t *fetchSessions) mayCreate(now time.Time, privileged bool, size int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.roomLocked(size) && (len(t.mu.byID) < t.slots || t.victimLocked(now, privileged, size) != nil)
}

// roomLocked tells whether so many more partitions may be remembered.
func (t *fetchSessions) roomLocked(more int) bool {
	return t.mu.partitions+more <= t.slots*partitionsPerSlot
}

func (t *fetchSessions) makeRoomLocked(now time.Time, privileged bool, size int) bool {
	if len(t.mu.byID) < t.slots {
		return true
	}
	victim := t.victimLocked(now, privileged, size)
	if victim == nil {
		return false
	}
	t.removeLocked(victim)
	return true
}

// victimLocked finds the session that gives way, or nil: the least recently
// used one if it is stale, else the least valuable of those that may be taken,
// if it is worth no more than the newcomer. Worth is counted by kind
// (followers' sessions above consumers'), then by partitions.
func (t *fetchSessions) victimLocked(now time.Time, privileged bool, size int) *fetchSession {
	oldest := t.mu.recency.Front()
	if oldest == nil {
		return nil
	}
	if s := oldest.Value.(*fetchSession); now.Sub(s.cached.lastUsed) > fetchSessionEviction {
		return s
	}
	var least *fetchSession
	for _, s := range t.mu.byID {
		if privileged && !s.cached.byPrivileged || !privileged && !s.cached.byAll {
			continue
		}
		if least == nil || s.worthLess(least) {
			least = s
		}
	}
	if least == nil || least.privileged && !privileged || least.privileged == privileged && least.cached.size > size {
		return nil
	}
	return least
}

func (s *fetchSession) worthLess(o *fetchSession) bool {
	if s.privileged != o.privileged {
		return !s.privileged
	}
	if s.cached.size != o.cached.size {
		return s.cached.size < o.cached.size
	}
	return s.id < o.id
}

// get finds a session; one that may grow beyond what there is room for is
// dropped.
func (t *fetchSessions) get(id int32, growth int) *fetchSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.byID[id]
	if s != nil && growth > 0 && !t.roomLocked(growth) {
		t.removeLocked(s)
		return nil
	}
	return s
}

func (t *fetchSessions) touch(s *fetchSession, now time.Time, size int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.byID[s.id] == s {
		t.touchLocked(s, now, size)
	}
}

func (t *fetchSessions) touchLocked(s *fetchSession, now time.Time, size int) {
	old := now.Sub(s.created) > fetchSessionEviction
	t.mu.partitions += size - s.cached.size
	s.cached.size, s.cached.lastUsed = size, now
	s.cached.byAll, s.cached.byPrivileged = old, old || !s.privileged
	t.mu.recency.MoveToBack(s.cached.recency)
}

func (t *fetchSessions) removeID(id int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.mu.byID[id]; s != nil {
		t.removeLocked(s)
	}
}

func (t *fetchSessions) remove(s *fetchSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.byID[s.id] == s {
		t.removeLocked(s)
	}
}

func (t *fetchSessions) removeLocked(s *fetchSession) {
	delete(t.mu.byID, s.id)
	t.mu.recency.Remove(s.cached.recency)
	t.mu.partitions -= s.cached.size
}

// counts is how many sessions there are, and partitions in all of them.
func (t *fetchSessions) counts() (sessions, partitions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.byID), t.mu.partitions
}
