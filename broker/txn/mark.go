package txn

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ErrNoPartition is the outcome of a marker for a partition that the metadata does
// not know.
var ErrNoPartition = errors.New("txn: the partition is not in the metadata")

// deletedMs is how long a partition has to be missing from the metadata to be
// taken for deleted. Its log, and with it the transaction's records, are gone
// then; a coordinator that was elected just now may have yet to hear of it.
const deletedMs = 5000

// mark begins to write the markers of a decision that is committed.
func (c *Core) mark(nowMs int64, t *transaction) {
	t.left = make(map[TopicPartition]int64, len(t.now.partitions))
	for _, tp := range t.now.partitions {
		t.left[tp] = NoTime
	}
	if len(t.left) == 0 {
		c.complete(nowMs, t)
		return
	}
	c.send(t, t.now.partitions)
}

func (c *Core) send(t *transaction, partitions []TopicPartition) {
	c.out.Markers = append(c.out.Markers, &Marker{
		ID: t.id, Producer: t.now.producer, CoordinatorEpoch: c.epoch, Commit: t.now.state == PrepareCommit, Partitions: slices.Clone(partitions),
	})
}

// Marked is the outcome of a marker, or of a part of one that went to one broker:
// an error or nil for each of its partitions. ErrNoPartition says that there is no
// such partition.
func (c *Core) Marked(nowMs int64, m *Marker, errs []error) {
	t := c.ids[m.ID]
	if t == nil || t.left == nil || t.next != nil || t.now.producer != m.Producer {
		return // of an earlier transaction
	}
	var again []TopicPartition
	for i, tp := range m.Partitions {
		if _, left := t.left[tp]; !left {
			continue
		}
		switch done, fenced := t.marked(nowMs, tp, errs[i]); {
		case fenced:
			c.remark("%q: the marker for %s-%d is refused, another broker is coordinator: %v", t.id, tp.Topic, tp.Partition, errs[i])
			return // it writes the markers
		case !done:
			again = append(again, tp)
		}
	}
	switch {
	case len(t.left) == 0:
		c.complete(nowMs, t)
	case len(again) > 0:
		c.later(nowMs, func(int64) {
			if c.ids[t.id] == t && t.now.producer == m.Producer && t.now.state.decided() {
				c.send(t, again)
			}
		})
	}
}

// marked judges the outcome for one partition.
func (t *transaction) marked(nowMs int64, tp TopicPartition, err error) (done, fenced bool) {
	switch {
	case errors.Is(err, kerr.TransactionCoordinatorFenced):
		return false, true
	case err == nil,
		errors.Is(err, kerr.InvalidProducerEpoch),                             // a later epoch wrote there, which it could only after the end of this transaction
		isAny(err, kerr.UnsupportedForMessageFormat, kerr.UnsupportedVersion): // nothing can have been written there
		delete(t.left, tp)
		return true, false
	case !errors.Is(err, ErrNoPartition):
		t.left[tp] = NoTime
	case t.left[tp] == NoTime:
		t.left[tp] = nowMs
	case nowMs-t.left[tp] >= deletedMs:
		delete(t.left, tp)
		return true, false
	}
	return false, false
}

// complete writes that all markers are written, again and again until it is in the
// log: the id cannot be used before.
func (c *Core) complete(nowMs int64, t *transaction) {
	next := t.now
	next.state, next.partitions, next.updateMs = CompleteAbort, nil, nowMs
	if t.now.state == PrepareCommit {
		next.state = CompleteCommit
	}
	c.write(t, next, func(nowMs int64, err error) {
		switch {
		case c.gone:
		case err == nil:
			t.left = nil
		default:
			c.remark("%q: writing %s failed, trying again: %v", t.id, next.state, err)
			c.later(nowMs, func(nowMs int64) { c.complete(nowMs, t) }) // nothing else changes an id in this state
		}
	})
}
