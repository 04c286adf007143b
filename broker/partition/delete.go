package partition

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/purgatory"
)

// DeleteToHighWatermark as an offset of DeleteRecords means all that is committed.
const DeleteToHighWatermark = int64(-1)

// DeleteRecords moves the log start of some partitions to the given offsets and
// answers when every live replica has done so, or with REQUEST_TIMED_OUT. The
// followers learn of it in the answers to their fetches and tell in the next.
//
// Errors: OFFSET_OUT_OF_RANGE beyond the high watermark or below -1,
// POLICY_VIOLATION when the topic is not deleted from, INVALID_TOPIC_EXCEPTION
// for internal topics, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION,
// KAFKA_STORAGE_ERROR. done is called exactly once.
func (m *Manager) DeleteRecords(offsets map[commitlog.TopicPartition]int64, timeout time.Duration, done func(map[commitlog.TopicPartition]DeleteRecordsResult)) {
	w := &deleteWait{results: make(map[commitlog.TopicPartition]DeleteRecordsResult, len(offsets)), done: done}
	var lists []*purgatory.List
	for tp, offset := range offsets {
		p, wanted, low, err := m.deleteOne(tp, offset)
		w.results[tp] = DeleteRecordsResult{LowWatermark: low, Err: err}
		if err == nil && low < wanted {
			w.pending = append(w.pending, pendingDelete{p: p, wanted: wanted})
			lists = append(lists, &p.deletes)
		}
	}
	if len(w.pending) == 0 {
		done(w.results)
		return
	}
	m.waiting.deletes.Park(w, &w.Wait, timeout, lists...)
}

// deleteOne moves the leader's log start.
func (m *Manager) deleteOne(tp commitlog.TopicPartition, offset int64) (p *Partition, wanted, low int64, err error) {
	if internalTopic(tp.Topic) {
		return nil, None, None, fmt.Errorf("cannot delete records of internal topic %s: %w", tp.Topic, kerr.InvalidTopicException)
	}
	if p, err = m.hosted(tp); err != nil {
		return nil, None, None, err
	}
	p.role.RLock()
	defer p.role.RUnlock()
	log, err := p.local(None, true)
	if err != nil {
		return nil, None, None, err
	}
	if !log.Config().CleanupDelete {
		return nil, None, None, kerr.PolicyViolation
	}
	if offset == DeleteToHighWatermark {
		offset = log.HighWatermark()
	}
	if offset < 0 || offset > log.HighWatermark() {
		return nil, None, None, kerr.OffsetOutOfRange
	}
	if _, err := log.AdvanceStartOffset(offset, "client record deletion"); err != nil {
		return nil, None, None, err
	}
	p.state.Lock()
	defer p.state.Unlock()
	return p, offset, p.state.lowWatermark(log.StartOffset()), nil
}

// internalTopic tells that a topic belongs to the cluster itself.
func internalTopic(topic string) bool {
	return topic == "__consumer_offsets" || topic == "__transaction_state"
}

// deleteWait is a DeleteRecords that waits for followers.
type deleteWait struct {
	purgatory.Wait
	results map[commitlog.TopicPartition]DeleteRecordsResult
	pending []pendingDelete
	done    func(map[commitlog.TopicPartition]DeleteRecordsResult)
}

type pendingDelete struct {
	p        *Partition
	wanted   int64
	answered bool
}

// TryComplete implements purgatory.Operation.
func (w *deleteWait) TryComplete(int) bool {
	all := true
	for i := range w.pending {
		d := &w.pending[i]
		if !d.answered {
			low, err := d.p.lowWatermark()
			d.answered = err != nil || low >= d.wanted
			w.results[d.p.tp] = DeleteRecordsResult{LowWatermark: low, Err: err}
		}
		all = all && d.answered
	}
	return all
}

// Complete implements purgatory.Operation.
func (w *deleteWait) Complete(expired bool) {
	for i := range w.pending {
		if d := &w.pending[i]; expired && !d.answered {
			w.results[d.p.tp] = DeleteRecordsResult{LowWatermark: w.results[d.p.tp].LowWatermark, Err: kerr.RequestTimedOut}
		}
	}
	w.done(w.results)
}

func (p *Partition) lowWatermark() (int64, error) {
	p.role.RLock()
	defer p.role.RUnlock()
	log, err := p.local(None, true)
	if err != nil {
		return None, err
	}
	p.state.Lock()
	defer p.state.Unlock()
	return p.state.lowWatermark(log.StartOffset()), nil
}
