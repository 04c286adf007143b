package chaos

import (
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/history"
	"barnabas/integration/wiretap"
)

// listener makes a history of what clients of groups and transactions asked and were answered.
type listener struct {
	tap  *wiretap.Tap
	gun  gun
	copy []string // the groups whose offsets are stored in transactions, which say nothing of offsets by themselves

	mu     sync.Mutex
	groups history.Groups
	epochs []history.Epoch
	acts   []history.Act
}

// listen makes a listener; copying are the groups whose offsets are stored in transactions.
func listen(copying ...string) *listener {
	l := &listener{copy: copying}
	l.tap = wiretap.New(wiretap.Hooks{Sent: l.gun.sent, Answered: l.answered}, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.InitProducerID,
		kmsg.AddPartitionsToTxn, kmsg.AddOffsetsToTxn, kmsg.TxnOffsetCommit, kmsg.EndTxn)
	return l
}

func (l *listener) answered(x *wiretap.Exchange) {
	l.note(x)
	l.gun.answered(x)
}

func (l *listener) note(x *wiretap.Exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	span := history.Span{Sent: x.Sent, Answered: x.Answered}
	switch req := x.Request.(type) {
	case *kmsg.SyncGroupRequest:
		l.assigned(req, x.Response, span)
	case *kmsg.OffsetCommitRequest:
		l.committed(req, x.Response, span)
	case *kmsg.OffsetFetchRequest:
		l.fetched(req, x.Response, span)
	case *kmsg.InitProducerIDRequest:
		if resp, ok := x.Response.(*kmsg.InitProducerIDResponse); ok && resp.ErrorCode == 0 && req.TransactionalID != nil {
			l.epochs = append(l.epochs, history.Epoch{ID: *req.TransactionalID, Producer: resp.ProducerID, Epoch: resp.ProducerEpoch, Span: span})
		}
	case *kmsg.EndTxnRequest:
		resp, ok := x.Response.(*kmsg.EndTxnResponse)
		l.acted("EndTxn", req.TransactionalID, req.ProducerID, req.ProducerEpoch, ok && resp.ErrorCode == 0, span)
	case *kmsg.TxnOffsetCommitRequest:
		resp, ok := x.Response.(*kmsg.TxnOffsetCommitResponse)
		l.acted("TxnOffsetCommit", req.TransactionalID, req.ProducerID, req.ProducerEpoch, ok && len(resp.Topics) > 0 && resp.Topics[0].Partitions[0].ErrorCode == 0, span)
	}
}

func (l *listener) acted(what, id string, producer int64, epoch int16, taken bool, span history.Span) {
	if taken {
		l.acts = append(l.acts, history.Act{What: what, ID: id, Producer: producer, Epoch: epoch, Fate: history.Done, Span: span})
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (l *listener) assigned(req *kmsg.SyncGroupRequest, resp kmsg.Response, span history.Span) {
	r, ok := resp.(*kmsg.SyncGroupResponse)
	if !ok || r.ErrorCode != 0 {
		return
	}
	a := history.Assignment{Group: req.Group, Member: req.MemberID, Instance: text(req.InstanceID), Generation: req.Generation, Span: span}
	var told kmsg.ConsumerMemberAssignment
	if len(r.MemberAssignment) > 0 && told.ReadFrom(r.MemberAssignment) == nil {
		for _, t := range told.Topics {
			for _, p := range t.Partitions {
				a.Places = append(a.Places, history.Place{Topic: t.Topic, Partition: p})
			}
		}
	}
	l.groups.Assignments = append(l.groups.Assignments, a)
}

// refusals are answers to a commit that say that nothing was stored. Others come after an append, too, and leave open what became of it.
var refusals = []int16{kerr.IllegalGeneration.Code, kerr.UnknownMemberID.Code, kerr.FencedInstanceID.Code, kerr.RebalanceInProgress.Code, kerr.CoordinatorLoadInProgress.Code}

func (l *listener) committed(req *kmsg.OffsetCommitRequest, resp kmsg.Response, span history.Span) {
	fates := map[history.Place]history.Fate{}
	if r, ok := resp.(*kmsg.OffsetCommitResponse); ok {
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				switch at := (history.Place{Topic: t.Topic, Partition: p.Partition}); {
				case p.ErrorCode == 0:
					fates[at] = history.Done
				case slices.Contains(refusals, p.ErrorCode):
					fates[at] = history.Refused
				}
			}
		}
	}
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			at := history.Place{Topic: t.Topic, Partition: p.Partition}
			l.groups.Commits = append(l.groups.Commits, history.Commit{Group: req.Group, Member: req.MemberID, Instance: text(req.InstanceID), Generation: req.Generation, Place: at,
				Offset: p.Offset, Fate: fates[at], Span: span})
		}
	}
}

func (l *listener) fetched(req *kmsg.OffsetFetchRequest, resp kmsg.Response, span history.Span) {
	r, ok := resp.(*kmsg.OffsetFetchResponse)
	if !ok || r.ErrorCode != 0 {
		return
	}
	add := func(group, topic string, partition int32, offset int64, code int16) {
		if code == 0 && !slices.Contains(l.copy, group) {
			l.groups.Fetches = append(l.groups.Fetches, history.Fetch{Group: group, Place: history.Place{Topic: topic, Partition: partition}, Offset: offset, Span: span})
		}
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			add(req.Group, t.Topic, p.Partition, p.Offset, p.ErrorCode)
		}
	}
	for _, g := range r.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				if g.ErrorCode == 0 {
					add(g.Group, t.Topic, p.Partition, p.Offset, p.ErrorCode)
				}
			}
		}
	}
}

// judge returns the faults of all that was heard.
func (l *listener) judge() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(history.JudgeGroups(l.groups), history.JudgeFences(l.epochs, l.acts))
}

// heard is how much there was to judge.
func (l *listener) heard() (assignments, commits, fetches, epochs, acts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.groups.Assignments), len(l.groups.Commits), len(l.groups.Fetches), len(l.epochs), len(l.acts)
}

// gun is aimed at a step of a client's conversation with its coordinator, and holds the client there.
type gun struct {
	mu   sync.Mutex
	shot *shot // nil: not aimed
}

// shot is one moment that is waited for.
type shot struct {
	fits func(x *wiretap.Exchange, answered bool) bool
	hit  chan string   // the broker's address, once
	free chan struct{} // closed when the client may go on
}

// holdFor bounds how long a client is held.
const holdFor = 10 * time.Second

func (g *gun) aim(fits func(x *wiretap.Exchange, answered bool) bool) *shot {
	s := &shot{fits: fits, hit: make(chan string, 1), free: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shot = s
	return s
}

func (g *gun) lower() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shot = nil
}

func (g *gun) sent(broker string, req kmsg.Request) {
	g.pull(&wiretap.Exchange{Broker: broker, Request: req}, false)
}

func (g *gun) answered(x *wiretap.Exchange) {
	if x.Response != nil {
		g.pull(x, true)
	}
}

func (g *gun) pull(x *wiretap.Exchange, answered bool) {
	g.mu.Lock()
	s := g.shot
	if s == nil || !s.fits(x, answered) {
		g.mu.Unlock()
		return
	}
	g.shot = nil
	g.mu.Unlock()
	s.hit <- x.Broker
	select {
	case <-s.free:
	case <-time.After(holdFor):
	}
}
