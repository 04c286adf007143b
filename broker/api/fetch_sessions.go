package api

import (
	"container/list"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/metadata"
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

// nextFetchEpoch is the epoch that the request after this one has to bear.
func nextFetchEpoch(epoch int32) int32 {
	switch {
	case epoch < 0:
		return finalFetchEpoch
	case epoch == 1<<31-1:
		return 1
	}
	return epoch + 1
}

// sessionKey names a partition within a session: by topic id where the session
// uses ids, by name where it does not.
type sessionKey struct {
	topic string
	id    metadata.TopicID
	index int32
}

// sessionPartition is one partition of a session, linked in the order in which
// it is fetched next.
type sessionPartition struct {
	ask           partition.FetchPartition // what is asked; Topic is empty while the id is not known
	highWatermark int64                    // as last told; -1 forces it to be told again
	logStart      int64

	prev, next *sessionPartition
}

// hasNews tells whether an answer has to contain this partition, and remembers
// what it will have been told.
func (p *sessionPartition) hasNews(r *partition.FetchResult) bool {
	news := r.Records.Length > 0 || r.Err != nil || r.PreferredReadReplica != partition.None || r.DivergingEpoch >= 0
	if p.highWatermark != r.HighWatermark {
		p.highWatermark = r.HighWatermark
		news = true
	}
	if p.logStart != r.LogStartOffset {
		p.logStart = r.LogStartOffset
		news = true
	}
	if r.Err != nil {
		p.highWatermark = -1 // told again as soon as the error is gone
	}
	return news
}

type fetchSession struct {
	id         int32
	privileged bool // a follower's
	usesIDs    bool // made by a request of version 13 or later
	created    time.Time

	mu struct {
		sync.Mutex
		epoch int32
		index map[sessionKey]*sessionPartition
		ring  sessionPartition // head of the list: next is first, prev is last
	}

	// Guarded by the table's lock.
	cached struct {
		size         int
		lastUsed     time.Time
		recency      *list.Element
		byAll        bool // may give way to a consumer's session
		byPrivileged bool // may give way to a follower's session
	}
}

func newFetchSession(privileged, usesIDs bool, now time.Time, size int) *fetchSession {
	s := &fetchSession{privileged: privileged, usesIDs: usesIDs, created: now}
	s.mu.epoch = nextFetchEpoch(initialFetchEpoch)
	s.mu.index = make(map[sessionKey]*sessionPartition, size)
	s.mu.ring.prev, s.mu.ring.next = &s.mu.ring, &s.mu.ring
	return s
}

func (s *fetchSession) key(topic string, id metadata.TopicID, index int32) sessionKey {
	if s.usesIDs {
		return sessionKey{id: id, index: index}
	}
	return sessionKey{topic: topic, index: index}
}

// putLocked adds a partition at the end, or changes what is asked of it.
func (s *fetchSession) putLocked(ask partition.FetchPartition) *sessionPartition {
	key := s.key(ask.Topic, metadata.TopicID(ask.TopicID), ask.Partition)
	p := s.mu.index[key]
	if p == nil {
		p = &sessionPartition{highWatermark: -1, logStart: -1}
		s.mu.index[key] = p
		s.linkLocked(p)
	} else if ask.Topic == "" {
		ask.Topic = p.ask.Topic
	}
	p.ask = ask
	return p
}

func (s *fetchSession) forgetLocked(topic string, id metadata.TopicID, index int32) {
	key := s.key(topic, id, index)
	if p := s.mu.index[key]; p != nil {
		p.unlink()
		delete(s.mu.index, key)
	}
}

func (s *fetchSession) linkLocked(p *sessionPartition) {
	last := s.mu.ring.prev
	p.prev, p.next = last, &s.mu.ring
	last.next, s.mu.ring.prev = p, p
}

func (p *sessionPartition) unlink() {
	p.prev.next, p.next.prev = p.next, p.prev
}

// listLocked copies what is to be fetched, in order. Ids that had no name when
// they were asked for are looked up again.
func (s *fetchSession) listLocked(names namer) ([]partition.FetchPartition, []*sessionPartition) {
	asks := make([]partition.FetchPartition, 0, len(s.mu.index))
	cached := make([]*sessionPartition, 0, len(s.mu.index))
	for p := s.mu.ring.next; p != &s.mu.ring; p = p.next {
		if p.ask.Topic == "" {
			p.ask.Topic = names(metadata.TopicID(p.ask.TopicID))
		}
		asks = append(asks, p.ask)
		cached = append(cached, p)
	}
	return asks, cached
}

// namer tells the name of a topic id, empty if it is not known.
type namer func(metadata.TopicID) string

// sessionRequest is the part of a fetch request that concerns sessions.
type sessionRequest struct {
	id, epoch int32
	usesIDs   bool
	follower  bool
	asks      []partition.FetchPartition
	forgotten []forgottenPartition
}

type forgottenPartition struct {
	topic string
	id    metadata.TopicID
	index int32
}

// fetchTurn is one request as seen by the sessions: what to fetch, and how to
// make an answer of it.
type fetchTurn struct {
	err     error // the answer is this error alone
	asks    []partition.FetchPartition
	create  bool                // a session may be made of it
	session *fetchSession       // the session it belongs to
	epoch   int32               // of that session, as long as no other request came
	cached  []*sessionPartition // in line with asks, if session is set
	request sessionRequest
}

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

// accept applies a request to its session. A session that is left without
// partitions is over; its last request is answered as one without a session.
func (s *fetchSession) accept(req sessionRequest, names namer) (turn fetchTurn, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.epoch != req.epoch {
		return fetchTurn{err: kerr.InvalidFetchSessionEpoch}, 0
	}
	if s.usesIDs != req.usesIDs {
		return fetchTurn{err: kerr.FetchSessionTopicIDError}, 0
	}
	for i := range req.asks {
		s.putLocked(req.asks[i])
	}
	for _, f := range req.forgotten {
		s.forgetLocked(f.topic, f.id, f.index)
	}
	if len(s.mu.index) == 0 {
		return fetchTurn{asks: req.asks, request: req}, 0
	}
	s.mu.epoch = nextFetchEpoch(s.mu.epoch)
	turn = fetchTurn{session: s, epoch: s.mu.epoch, request: req}
	turn.asks, turn.cached = s.listLocked(names)
	return turn, len(s.mu.index)
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

// prune keeps the results that have news. A partition that gave records goes to
// the end of the list, so that it is not served first for ever.
func (s *fetchSession) prune(turn *fetchTurn, results []partition.FetchResult) ([]partition.FetchResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.epoch != turn.epoch { // another request came in between
		return nil, kerr.InvalidFetchSessionEpoch
	}
	told := results[:0]
	for i := range results {
		p := turn.cached[i]
		if !p.hasNews(&results[i]) {
			continue
		}
		if results[i].Records.Length > 0 {
			p.unlink()
			s.linkLocked(p)
		}
		told = append(told, results[i])
	}
	return told, nil
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
