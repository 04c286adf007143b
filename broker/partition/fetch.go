package partition

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/purgatory"
)

// Fetch reads from some partitions and answers
//
//   - at once when at least MinBytes were found, when MaxWait is zero, when
//     nothing was asked, when any partition has an error or a diverging epoch, or
//     when the reader should go to another replica
//   - else when MinBytes can be read up to the reader's bound, when one of those
//     happens, or when MaxWait is over, whichever is first
//
// Sizes (KIP-74): the first partition that has anything gives at least one whole
// batch however large; after it nobody exceeds its own MaxBytes nor what is left
// of the request's.
//
// A request in a fetch session may list no partition that changed; the caller
// lists those it wants watched.
//
// done is called exactly once, maybe before Fetch returns, with the results in
// request order; the caller releases their Records.
//
// A waiting fetch does not read again at each append. It remembers where in its
// segment each partition's read stood, so that a wake-up is a subtraction, for
// the one partition that was woken.
func (m *Manager) Fetch(req *FetchRequest, done func([]FetchResult)) {
	r := readerOf(req)
	starts := make([]fetchStart, 0, len(req.Partitions))
	results, bytes, now := m.readAll(req, r, true, &starts)
	if now || req.MaxWait <= 0 || len(req.Partitions) == 0 || bytes >= int64(req.MinBytes) {
		m.account(r, results)
		done(results)
		return
	}
	for i := range results {
		results[i].Records.Release()
	}
	w := &fetchWait{m: m, req: req, reader: r, starts: starts, done: done}
	lists := make([]*purgatory.List, len(starts))
	for i := range starts {
		lists[i] = &starts[i].p.consumers
		if r.bound == toLogEnd {
			lists[i] = &starts[i].p.followers
		}
	}
	m.waiting.fetches.Park(w, &w.Wait, req.MaxWait, lists...)
}

// readAll reads each partition within what is left of the request's size. now
// tells that the answer must not wait. starts, if given, gets the place of each
// partition's read.
func (m *Manager) readAll(req *FetchRequest, r reader, record bool, starts *[]fetchStart) (results []FetchResult, bytes int64, now bool) {
	results = make([]FetchResult, len(req.Partitions))
	left := req.MaxBytes
	oneBatch := req.Version > 2
	for i := range req.Partitions {
		in, out := &req.Partitions[i], &results[i]
		out.Topic, out.TopicID, out.Partition = in.Topic, in.TopicID, in.Partition
		out.clear(in.Err)
		if in.Err != nil {
			now = true
			continue
		}
		p, err := m.hosted(commitlog.TopicPartition{Topic: in.Topic, Partition: in.Partition})
		if err != nil {
			out.Err = err
			now = true
			continue
		}
		out.replica = p
		at := p.read(req, r, in, out, min(left, in.MaxBytes), oneBatch, record)
		now = now || out.Err != nil || out.DivergingEpoch >= 0 || out.PreferredReadReplica >= 0
		if n := out.Records.Length; n > 0 {
			oneBatch = false
			bytes += n
			left = int32(max(0, int64(left)-n))
		}
		if starts != nil {
			*starts = append(*starts, fetchStart{p: p, in: in, at: at})
		}
	}
	return results, bytes, now
}

// account counts an answer that is about to be given.
func (m *Manager) account(r reader, results []FetchResult) {
	m.charge(r, results)
	m.countFetches(r, results)
}

// fetchStart is one partition of a waiting fetch.
type fetchStart struct {
	p     *Partition
	in    *FetchPartition
	at    commitlog.Position
	bytes int64 // readable when last looked
}

// fetchWait is a fetch that waits for its MinBytes.
type fetchWait struct {
	purgatory.Wait
	m      *Manager
	req    *FetchRequest
	reader reader
	starts []fetchStart
	sum    int64 // of starts[].bytes
	done   func([]FetchResult)
}

// TryComplete implements purgatory.Operation.
func (w *fetchWait) TryComplete(place int) bool {
	if place != purgatory.Everywhere {
		return w.look(&w.starts[place])
	}
	for i := range w.starts {
		if w.look(&w.starts[i]) {
			return true
		}
	}
	return false
}

// look counts what one partition could give now; true when the fetch is to be
// answered, be it for the bytes or because something about the partition has
// changed that the reader must learn.
func (w *fetchWait) look(s *fetchStart) bool {
	s.p.role.RLock()
	defer s.p.role.RUnlock()
	log, err := s.p.local(s.in.CurrentLeaderEpoch, w.reader.leaderOnly)
	if err != nil {
		// An epoch the leader has not learned yet is no news: it will, and wake us.
		return !errors.Is(err, kerr.UnknownLeaderEpoch)
	}
	if s.p.held(log, w.reader, w.req.ReplicaID) {
		w.sum -= s.bytes // waits for the throttle; others may be read meanwhile
		s.bytes = 0
		return w.sum >= int64(w.req.MinBytes)
	}
	end := w.reader.bound.position(log)
	switch {
	case s.at.Offset > end.Offset:
		return true // the log was cut below the reader's place
	case s.at.Offset < end.Offset:
		bytes, same := end.BytesSince(s.at)
		if !same {
			return true // rolled, or no place known: enough reason to read
		}
		bytes = min(bytes, int64(s.in.MaxBytes))
		w.sum += bytes - s.bytes
		s.bytes = bytes
	}
	if s.in.LastFetchedEpoch >= 0 {
		epoch, endOffset := log.EndOffsetForEpoch(s.in.LastFetchedEpoch)
		if epoch < s.in.LastFetchedEpoch || endOffset < s.in.FetchOffset {
			return true // cut, and grown again under another epoch
		}
	}
	return w.sum >= int64(w.req.MinBytes)
}

// Complete implements purgatory.Operation.
func (w *fetchWait) Complete(bool) {
	// The follower's position was noted when the request came; reading again does
	// not say anything new about it.
	results, _, _ := w.m.readAll(w.req, w.reader, false, nil)
	w.m.account(w.reader, results)
	w.done(results)
}
