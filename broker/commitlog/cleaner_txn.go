package commitlog

import (
	"cmp"
	"slices"

	"barnabas/broker/record"
)

// txnTracker knows, on a walk over a log, which batches belong to aborted transactions and which markers are not needed any
// more: those of transactions of which the walk has met no batch. All transactions before the last stable offset are
// decided, so that the aborted ones are known beforehand, from the transaction index.
type txnTracker struct {
	waiting   []abortedTx          // those that begin further on, by first offset
	aborted   map[int64]*abortedTx // by producer, of those that the walk is in
	met       map[int64]bool       // of those, the ones of which there was a batch
	committed map[int64]bool       // producers with a batch of a committed transaction whose marker comes
}

// newTxnTracker makes one for a walk that begins at from. Transactions that ended before must not be known: their producers
// may have committed others since.
func newTxnTracker(aborted []abortedTx, from int64) *txnTracker {
	aborted = slices.DeleteFunc(slices.Clone(aborted), func(a abortedTx) bool { return a.last < from })
	slices.SortStableFunc(aborted, func(a, b abortedTx) int { return cmp.Compare(a.first, b.first) })
	return &txnTracker{waiting: aborted, aborted: map[int64]*abortedTx{}, met: map[int64]bool{}, committed: map[int64]bool{}}
}

func (t *txnTracker) reach(offset int64) {
	for len(t.waiting) > 0 && t.waiting[0].first <= offset {
		a := &t.waiting[0]
		if t.aborted[a.producerID] == nil {
			t.aborted[a.producerID] = a
		}
		t.waiting = t.waiting[1:]
	}
}

// data takes a batch of records; true when it belongs to an aborted transaction.
func (t *txnTracker) data(b record.Batch) bool {
	t.reach(b.LastOffset())
	if !b.IsTransactional() {
		return false
	}
	id := b.ProducerID()
	if t.aborted[id] != nil {
		t.met[id] = true
		return true
	}
	t.committed[id] = true
	return false
}

// marker takes a control batch; needless when its transaction has no batch left. Of an aborted one that has, the entry of
// the transaction index is returned: it stays.
func (t *txnTracker) marker(b record.Batch) (needless bool, kept *abortedTx, err error) {
	t.reach(b.LastOffset())
	m, _, found, err := endTxnMarker(b)
	if err != nil {
		return false, nil, err
	}
	if !found {
		return b.Count() == 0, nil, nil // emptied by an earlier cleaning, or a kind of control record that we do not know
	}
	id := b.ProducerID()
	if m.Type == record.Commit {
		needless = !t.committed[id]
		delete(t.committed, id)
		return needless, nil, nil
	}
	a, met := t.aborted[id], t.met[id]
	delete(t.aborted, id)
	delete(t.met, id)
	if a != nil && met {
		return false, a, nil
	}
	return true, nil, nil
}
