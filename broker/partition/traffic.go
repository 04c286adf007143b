package partition

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Traffic counts what has gone through since the start: of one topic's replicas
// here, or of all. It only grows; a topic's ends with its last replica here, while
// what all did together stays.
type Traffic struct {
	Messages int64 // appended by clients and coordinators
	BytesIn  int64 // of them
	BytesOut int64 // read by consumers
	// FollowersIn and FollowersOut are bytes fetched from a leader, and by followers.
	FollowersIn, FollowersOut int64
	BytesRejected             int64 // of appends with a batch above max.message.bytes
	// Requests count once for each partition they name.
	Produces, FailedProduces int64
	Fetches, FailedFetches   int64
}

// traffic is Traffic while it is counted. The replicas of a topic share one, so
// counting takes no look-up and makes nothing.
type traffic struct {
	replicas int // under Manager.mu

	messages, bytesIn, bytesOut atomic.Int64
	followersIn, followersOut   atomic.Int64
	bytesRejected               atomic.Int64
	produces, failedProduces    atomic.Int64
	fetches, failedFetches      atomic.Int64
}

func (t *traffic) now() Traffic {
	return Traffic{
		Messages: t.messages.Load(), BytesIn: t.bytesIn.Load(), BytesOut: t.bytesOut.Load(),
		FollowersIn: t.followersIn.Load(), FollowersOut: t.followersOut.Load(), BytesRejected: t.bytesRejected.Load(),
		Produces: t.produces.Load(), FailedProduces: t.failedProduces.Load(),
		Fetches: t.fetches.Load(), FailedFetches: t.failedFetches.Load(),
	}
}

// Traffic tells what went through all replicas, and through those of each topic
// that has one here.
func (m *Manager) Traffic() (all Traffic, topics map[string]Traffic) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	topics = make(map[string]Traffic, len(m.mu.traffic))
	for topic, t := range m.mu.traffic {
		topics[topic] = t.now()
	}
	return m.traffic.now(), topics
}

// enterTrafficLocked gives a new replica the counters of its topic.
func (m *Manager) enterTrafficLocked(p *Partition) {
	t := m.mu.traffic[p.tp.Topic]
	if t == nil {
		t = &traffic{}
		m.mu.traffic[p.tp.Topic] = t
	}
	t.replicas++
	p.traffic = t
}

// leaveTrafficLocked is the end of enterTrafficLocked.
func (m *Manager) leaveTrafficLocked(p *Partition) {
	if p.traffic.replicas--; p.traffic.replicas == 0 {
		delete(m.mu.traffic, p.tp.Topic)
	}
}

// countAppend counts a client's append, or the attempt.
func (p *Partition) countAppend(bytes, messages int, err error) {
	for _, t := range [...]*traffic{p.traffic, &p.m.traffic} {
		t.produces.Add(1)
		if err == nil {
			t.bytesIn.Add(int64(bytes))
			t.messages.Add(int64(messages))
			continue
		}
		if errors.Is(err, kerr.MessageTooLarge) {
			t.bytesRejected.Add(int64(bytes))
		}
		if !isOneOf(err, ordinaryOfProduce) {
			t.failedProduces.Add(1)
		}
	}
}

// countFetches counts what an answer tells of each partition.
func (m *Manager) countFetches(r reader, results []FetchResult) {
	var bytes, failed int64
	for i := range results {
		out := &results[i]
		if out.replica == nil {
			continue
		}
		t, n := out.replica.traffic, out.Records.Length
		t.fetches.Add(1)
		switch {
		case out.Err != nil && !isOneOf(out.Err, ordinaryOfFetch):
			t.failedFetches.Add(1)
			failed++
		case n == 0:
		case r.follower:
			t.followersOut.Add(n)
		default:
			t.bytesOut.Add(n)
		}
		bytes += n
	}
	all := &m.traffic
	all.fetches.Add(int64(len(results)))
	all.failedFetches.Add(failed)
	if r.follower {
		all.followersOut.Add(bytes)
	} else {
		all.bytesOut.Add(bytes)
	}
}

// countFollowed counts what was appended as a follower.
func (p *Partition) countFollowed(bytes int) {
	p.traffic.followersIn.Add(int64(bytes))
	p.m.traffic.followersIn.Add(int64(bytes))
}

// Errors that Kafka does not count as failures: they tell of a cluster that moves,
// or of what the client sent, not of a broker that cannot do its work.
var (
	ordinaryOfProduce = []error{kerr.UnknownTopicOrPartition, kerr.NotLeaderForPartition, kerr.MessageTooLarge, kerr.RecordListTooLarge,
		kerr.CorruptMessage, kerr.KafkaStorageError}
	ordinaryOfFetch = []error{kerr.UnknownTopicOrPartition, kerr.NotLeaderForPartition, kerr.UnknownLeaderEpoch, kerr.FencedLeaderEpoch,
		kerr.ReplicaNotAvailable, kerr.KafkaStorageError, kerr.InconsistentTopicID, kerr.OffsetOutOfRange, kerr.OffsetNotAvailable}
)

func isOneOf(err error, those []error) bool {
	return slices.ContainsFunc(those, func(e error) bool { return errors.Is(err, e) })
}
