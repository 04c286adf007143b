package fetcher

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
)

// replicaStateVersion is the first version of Fetch that says who fetches in a
// tagged field (KIP-903). Kafka closes the connection when an older one has it.
const replicaStateVersion = 15

// session is the follower's side of an incremental fetch session (KIP-227): what
// the leader believes this follower asks for. A request then names only what
// changed, so that a thousand idle partitions cost a few bytes.
type session struct {
	id    int32
	epoch int32 // of the next request; 0 asks for a new session

	byID bool // topics are named by id (v13)
	sent map[commitlog.TopicPartition]asked

	changed []*part // may differ from sent
	gone    []asked // in the session, not followed any more
}

// asked is what a partition was last asked with.
type asked struct {
	tp        commitlog.TopicPartition
	id        commitlog.TopicID
	epoch     int32
	offset    int64
	lastEpoch int32
	logStart  int64
}

func newSession() session { return session{sent: map[commitlog.TopicPartition]asked{}} }

// noSession is the epoch that ends a session or does without one.
const noSession = int32(-1)

func (s *session) touch(p *part) {
	if !p.listed {
		p.listed = true
		s.changed = append(s.changed, p)
	}
}

func (s *session) forget(p *part) {
	if a, ok := s.sent[p.tp]; ok {
		delete(s.sent, p.tp)
		s.gone = append(s.gone, a)
	}
}

// restart makes the next request a full one that asks for a new session, in
// place of the one that is known.
func (s *session) restart() {
	s.epoch = 0
	clear(s.sent)
	s.gone = nil
}

// lost forgets the session: the leader does not know it either.
func (s *session) lost() {
	s.id = 0
	s.restart()
}

// answered takes the session fields of an answer that has no error.
func (s *session) answered(id int32) {
	switch {
	case id == 0:
		s.lost()
	case s.epoch == 0:
		s.id, s.epoch = id, 1
	case s.epoch == 1<<31-1:
		s.epoch = 1
	default:
		s.epoch++
	}
}

// fetchRequest is a request with what each of its partitions was asked with.
type fetchRequest struct {
	req  *kmsg.FetchRequest
	full bool
}

// want is what a partition is to be asked with.
func (c *core) want(p *part) asked {
	a := asked{tp: p.tp, id: p.id, epoch: p.leaderEpoch, offset: p.offset, lastEpoch: -1, logStart: p.logStart}
	if c.cutByFetch {
		a.lastEpoch = p.lastEpoch
	}
	return a
}

// buildFetch makes the next fetch request; nil when nothing is to be fetched.
func (c *core) buildFetch() *fetchRequest {
	s := &c.session
	version := c.fetch
	if version >= 13 && !c.allHaveIDs() {
		version = 12
	}
	if byID := version >= 13; byID != s.byID {
		s.byID = byID
		s.restart()
	}
	full := s.epoch == 0 || version < 7

	var ask []*part
	if full {
		clear(s.sent)
		s.gone = nil
		ask = c.inTurn((*part).ready)
	} else {
		for _, p := range s.changed {
			if c.parts[p.tp] != p {
				continue
			}
			if !p.ready() {
				s.forget(p)
			} else if a, in := s.sent[p.tp]; !in || a != c.want(p) {
				if in && a.id != p.id {
					s.gone = append(s.gone, a) // another topic of that name
				}
				ask = append(ask, p)
			}
		}
		slices.SortFunc(ask, func(a, b *part) int { return cmp.Compare(a.turn, b.turn) })
	}
	for _, p := range s.changed {
		p.listed = false
	}
	s.changed = s.changed[:0]
	for _, p := range ask {
		s.sent[p.tp] = c.want(p)
	}
	if len(s.sent) == 0 && len(s.gone) == 0 {
		return nil
	}

	req := kmsg.NewPtrFetchRequest()
	req.Version = version
	req.ReplicaID = c.self
	if version >= replicaStateVersion {
		req.ReplicaState.ID = c.self
	}
	req.MaxWaitMillis = int32(c.limits.maxWait.Milliseconds())
	req.MinBytes = c.limits.minBytes
	req.MaxBytes = c.limits.maxBytes
	req.SessionID, req.SessionEpoch = s.id, s.epoch
	if version < 7 {
		req.SessionID, req.SessionEpoch = 0, noSession
	}
	for _, p := range ask {
		c.addTo(req, s.sent[p.tp])
	}
	slices.SortFunc(s.gone, func(a, b asked) int {
		return cmp.Or(cmp.Compare(a.tp.Topic, b.tp.Topic), cmp.Compare(a.tp.Partition, b.tp.Partition))
	})
	for _, a := range s.gone {
		if now, back := s.sent[a.tp]; !back || now.id != a.id {
			forgetIn(req, a)
		}
	}
	s.gone = nil
	return &fetchRequest{req: req, full: full}
}

// allHaveIDs tells whether the request can name topics by id.
func (c *core) allHaveIDs() bool {
	for _, p := range c.parts {
		if p.id.IsZero() {
			return false
		}
	}
	return true
}

// addTo adds a partition to the request, beside the last one if it is of the same
// topic.
func (c *core) addTo(req *kmsg.FetchRequest, a asked) {
	n := len(req.Topics)
	if n == 0 || req.Topics[n-1].Topic != a.tp.Topic {
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = a.tp.Topic, a.id
		req.Topics = append(req.Topics, t)
		n++
	}
	q := kmsg.NewFetchRequestTopicPartition()
	q.Partition = a.tp.Partition
	q.CurrentLeaderEpoch = a.epoch
	q.FetchOffset = a.offset
	q.LastFetchedEpoch = a.lastEpoch
	q.LogStartOffset = a.logStart
	q.PartitionMaxBytes = c.limits.partitionMax
	req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, q)
}

func forgetIn(req *kmsg.FetchRequest, a asked) {
	n := len(req.ForgottenTopics)
	if n == 0 || req.ForgottenTopics[n-1].Topic != a.tp.Topic || req.ForgottenTopics[n-1].TopicID != a.id {
		t := kmsg.NewFetchRequestForgottenTopic()
		t.Topic, t.TopicID = a.tp.Topic, a.id
		req.ForgottenTopics = append(req.ForgottenTopics, t)
		n++
	}
	req.ForgottenTopics[n-1].Partitions = append(req.ForgottenTopics[n-1].Partitions, a.tp.Partition)
}
