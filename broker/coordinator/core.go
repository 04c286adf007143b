package coordinator

import (
	"barnabas/broker/commitlog"
)

// Core is everything that is known of one partition, without I/O. Its methods,
// and what is done with it, are called one at a time, with the time.
type Core interface {
	// Tick lets happen what is due.
	Tick(nowMs int64)
	// Next is when Tick wants to be called; false for never.
	Next() (atMs int64, any bool)
	// Shift moves all times: the clock was set, which has made no wait shorter.
	Shift(byMs int64)
	// Unload ends all: the coordinator is elsewhere now. Who waits is told
	// NOT_COORDINATOR.
	Unload(nowMs int64)
}

// Effects is what a core wants done, in this order: append, then answer. Remarks
// are for the log.
type Effects struct {
	Appends []*Append
	Answers []func()
	Remarks []string
}

// Append is records that one event wants in the log.
type Append struct {
	Records  []KeyValue
	Producer *Producer                                 // not nil: a batch of that transaction
	Alone    bool                                      // not in one batch with others: they would share its failure
	Done     func(nowMs, firstOffset int64, err error) // see Ended; nil: nobody waits
}

// Ended says with what offset the first record is committed, and the others behind
// it, or why they are not. It is said of every Append once, as an event of its
// core.
func (a *Append) Ended(nowMs, firstOffset int64, err error) {
	if a.Done != nil {
		a.Done(nowMs, firstOffset, err)
	}
}

// KeyValue is one record; a nil Value is a tombstone.
type KeyValue struct{ Key, Value []byte }

// Producer is the transactional producer of records.
type Producer struct {
	ID    int64
	Epoch int16
	// Guard is what the partition gave before the transaction's coordinator was
	// asked; nil when the partition has the transaction open already (KIP-890).
	Guard *commitlog.VerificationGuard
}

// A batch gathers the records of several events while they come faster than they
// are written, up to these bounds.
const (
	gatherBytes   = 64 << 10
	gatherRecords = 1000
)

// gather is how many of the appends go into one batch.
func gather(list []*Append) int {
	bytes, records := 0, 0
	for i, a := range list {
		for _, r := range a.Records {
			bytes += len(r.Key) + len(r.Value)
		}
		records += len(a.Records)
		alone := a.Alone || a.Producer != nil
		switch {
		case i > 0 && (alone || bytes > gatherBytes || records > gatherRecords):
			return i
		case alone:
			return 1
		}
	}
	return len(list)
}
