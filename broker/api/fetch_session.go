package api

import (
	"barnabas/broker/metadata"
	"barnabas/broker/partition"
	"container/list"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// One session; its invariants stand in fetch_sessions.go.

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
