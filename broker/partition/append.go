package partition

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/purgatory"
)

// appended is what an append leaves behind for an acks=all answer.
type appended struct {
	info     commitlog.AppendInfo
	required int64 // the high watermark that commits it
	term     int64 // the leadership it was made in
}

// append writes a client's (or coordinator's) records as the leader.
//
// The whole of it runs under role.RLock: the epoch stamped into the batches is
// the one this broker leads in when they reach the log, and nobody becomes a
// follower, and truncates, in between. Appends of one partition are put in order
// by the log's own lock; the state lock is taken before and after, not across,
// the write. The high watermark is advanced before the lock goes, so with a
// single replica the records are committed when append returns and nothing ever
// waits.
func (p *Partition) append(records []byte, req *ProduceRequest, v *commitlog.VerificationGuard) (appended, step, error, error) {
	p.role.RLock()
	defer p.role.RUnlock()
	log, err := p.local(None, true)
	if err != nil {
		return appended{}, step{}, nil, err
	}
	minISR := log.Config().MinInsync
	p.state.Lock()
	short := req.Acks == -1 && p.state.underMin(minISR)
	p.state.Unlock()
	if short {
		return appended{}, step{}, nil, kerr.NotEnoughReplicas
	}

	info, err := log.AppendAsLeader(records, p.state.leaderEpoch, commitlog.AppendOptions{
		Origin: req.Origin, RequireV2: req.Version >= 3, Acks: req.Acks,
		Verification: v, RequireVerification: req.RequireVerification,
	})
	if err != nil {
		return appended{info: info}, step{}, nil, err
	}
	p.state.Lock()
	s := step{highWatermark: p.state.advance(p.m.cfg.Now(), log.EndPosition(), minISR)}
	broken := p.settle(log, &s)
	p.state.Unlock()
	return appended{info: info, required: info.LastOffset + 1, term: p.role.term}, s, broken, nil
}

// produceWait is an acks=all request whose records wait to be committed.
type produceWait struct {
	purgatory.Wait
	results []ProduceResult
	pending []pendingAppend
	left    int
	done    func([]ProduceResult)
}

type pendingAppend struct {
	p        *Partition
	result   int // index in results
	required int64
	term     int64
	answered bool
}

// Produce appends records and answers as acks asks: 0 and 1 when the leader has
// them, -1 when every in-sync replica has, or with REQUEST_TIMED_OUT after the
// request's timeout. done is called exactly once, maybe before Produce returns;
// the records must stay untouched until then. The results are in request order.
//
// Errors: INVALID_REQUIRED_ACKS, NOT_LEADER_OR_FOLLOWER,
// UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, NOT_ENOUGH_REPLICAS before
// anything is written, NOT_ENOUGH_REPLICAS_AFTER_APPEND after, and those of
// commitlog.Log.AppendAsLeader.
func (m *Manager) Produce(req *ProduceRequest, done func([]ProduceResult)) {
	results := make([]ProduceResult, len(req.Partitions))
	valid := req.Acks >= -1 && req.Acks <= 1
	var wait *produceWait
	for i := range req.Partitions {
		in, out := &req.Partitions[i], &results[i]
		*out = ProduceResult{
			Topic: in.Topic, Partition: in.Partition, Err: in.Err,
			BaseOffset: None, LogAppendTime: None, LogStartOffset: None, LeaderID: None, LeaderEpoch: None,
		}
		switch {
		case in.Err != nil:
		case !valid:
			out.Err = kerr.InvalidRequiredAcks
		default:
			if w := m.produceOne(req, in, out); w.p != nil && req.Acks == -1 {
				if wait == nil {
					wait = &produceWait{results: results, done: done}
				}
				w.result = i
				wait.pending = append(wait.pending, w)
			}
		}
	}
	if wait == nil {
		done(results)
		return
	}
	wait.left = len(wait.pending)
	if wait.TryComplete(purgatory.Everywhere) {
		done(results)
		return
	}
	lists := make([]*purgatory.List, len(wait.pending))
	for i := range wait.pending {
		lists[i] = &wait.pending[i].p.producers
	}
	m.waiting.produces.Park(wait, &wait.Wait, req.Timeout, lists...)
}

// produceOne appends to one partition. The returned pendingAppend has no
// partition when nothing was appended.
func (m *Manager) produceOne(req *ProduceRequest, in *ProducePartition, out *ProduceResult) pendingAppend {
	p, err := m.hosted(commitlog.TopicPartition{Topic: in.Topic, Partition: in.Partition})
	if err != nil {
		out.Err = err
		return pendingAppend{}
	}
	a, s, broken, err := p.append(in.Records, req, in.Verification)
	p.countAppend(len(in.Records), a.info.Count, err)
	if err != nil {
		out.Err = err
		out.RecordErrors = a.info.RecordErrors
		out.ErrorMessage = a.info.ErrorMessage
		if errors.Is(err, kerr.NotLeaderForPartition) {
			out.LeaderID, out.LeaderEpoch = p.leaderHint()
		} else if log := p.Log(); log != nil && !tellsNoStart(err) {
			out.LogStartOffset = log.StartOffset()
		}
		return pendingAppend{}
	}
	p.followers.Wake()
	p.finish(s, broken)
	if broken != nil {
		out.Err = kerr.KafkaStorageError
		return pendingAppend{}
	}
	out.BaseOffset = a.info.FirstOffset
	out.LogAppendTime = a.info.LogAppendTime
	out.LogStartOffset = a.info.LogStartOffset
	return pendingAppend{p: p, required: a.required, term: a.term}
}

// tellsNoStart lists the errors beside which Kafka answers -1 for the log start.
func tellsNoStart(err error) bool {
	for _, e := range []error{kerr.UnknownTopicOrPartition, kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.CorruptMessage, kerr.KafkaStorageError} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// TryComplete implements purgatory.Operation.
func (w *produceWait) TryComplete(place int) bool {
	if place != purgatory.Everywhere {
		w.look(&w.pending[place])
		return w.left == 0
	}
	for i := range w.pending {
		w.look(&w.pending[i])
	}
	return w.left == 0
}

func (w *produceWait) look(a *pendingAppend) {
	if a.answered {
		return
	}
	done, err := a.p.committed(a.required, a.term)
	if !done {
		return
	}
	a.answered = true
	w.left--
	if err != nil {
		out := &w.results[a.result]
		out.Err = err
		if errors.Is(err, kerr.NotLeaderForPartition) {
			out.LeaderID, out.LeaderEpoch = a.p.leaderHint()
		}
	}
}

// Complete implements purgatory.Operation.
func (w *produceWait) Complete(expired bool) {
	if expired {
		for i := range w.pending {
			if !w.pending[i].answered {
				w.results[w.pending[i].result].Err = kerr.RequestTimedOut
			}
		}
	}
	w.done(w.results)
}

// committed tells whether an append of an earlier moment can be answered. It
// cannot be a success if this replica followed someone in between: the offsets
// may hold other records by now.
func (p *Partition) committed(required, term int64) (bool, error) {
	p.role.RLock()
	defer p.role.RUnlock()
	if p.role.dead != nil {
		return true, p.role.dead
	}
	if p.role.term != term || p.state.role != roleLeader {
		return true, kerr.NotLeaderForPartition
	}
	minISR := p.minISR()
	p.state.Lock()
	defer p.state.Unlock()
	done, enough := p.state.acked(required, minISR)
	if done && !enough {
		return true, kerr.NotEnoughReplicasAfterAppend
	}
	return done, nil
}
