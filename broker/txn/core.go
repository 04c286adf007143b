package txn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/coordinator"
)

// CoreConfig is what a Core needs to know.
type CoreConfig struct {
	MaxTimeoutMs   int32 // transaction.max.timeout.ms
	IDExpirationMs int64 // transactional.id.expiration.ms
}

// retryMs is the wait before what failed is tried again: markers, and the record
// that all markers are written.
const retryMs = 100

// Core is all transactional ids of one partition of __transaction_state, without
// I/O. Its methods are called one at a time, with the time. They answer through
// the functions given to them, not at once, but by leaving the calls in what Take
// returns.
type Core struct {
	cfg     CoreConfig
	epoch   int32 // coordinator epoch, which markers carry
	ids     map[string]*transaction
	retries []retry // in the order of their times: all wait equally long
	gone    bool
	out     Effects
}

type retry struct {
	atMs int64
	run  func(nowMs int64)
}

// Effects is what is to be done after events.
type Effects struct {
	coordinator.Effects
	Markers []*Marker
	Wanted  []*Wanted
}

// Wanted is a request that needs a new producer id. It must be given back to
// Core.Identified with the id, or the error.
type Wanted struct {
	req   *InitRequest
	reply func(InitResult)
}

// NewCore returns a Core without ids.
func NewCore(cfg CoreConfig, coordinatorEpoch int32) *Core {
	return &Core{cfg: cfg, epoch: coordinatorEpoch, ids: map[string]*transaction{}}
}

// Take returns what is to be done since it was called last.
func (c *Core) Take() Effects {
	out := c.out
	c.out = Effects{}
	return out
}

// Next is when Tick wants to be called; false for never.
func (c *Core) Next() (atMs int64, any bool) {
	if len(c.retries) == 0 {
		return 0, false
	}
	return c.retries[0].atMs, true
}

// Tick tries again what failed before.
func (c *Core) Tick(nowMs int64) {
	for len(c.retries) > 0 && c.retries[0].atMs <= nowMs {
		r := c.retries[0]
		c.retries = c.retries[1:]
		r.run(nowMs)
	}
}

// Shift moves what waits: the clock was set, which has made no wait shorter.
func (c *Core) Shift(byMs int64) {
	for i := range c.retries {
		c.retries[i].atMs += byMs
	}
	//purecore:anyorder each for itself
	for _, t := range c.ids {
		t.openedMs += byMs
		//purecore:anyorder each for itself
		for tp, since := range t.left {
			if since != NoTime {
				t.left[tp] = since + byMs
			}
		}
	}
}

func (c *Core) later(nowMs int64, run func(nowMs int64)) {
	c.retries = append(c.retries, retry{nowMs + retryMs, run})
}

// Unload ends all: the coordinator is elsewhere now. What is being appended may be
// in its log, and is answered with NOT_COORDINATOR.
func (c *Core) Unload(int64) {
	c.gone = true
	c.ids = map[string]*transaction{}
	c.retries = nil
}

func (c *Core) remark(format string, args ...any) {
	c.out.Remarks = append(c.out.Remarks, fmt.Sprintf(format, args...))
}

func (c *Core) answer(f func()) { c.out.Answers = append(c.out.Answers, f) }

// write changes the status of an id, when the change is committed in the log, and
// then calls done. An error leaves the status as it is.
func (c *Core) write(t *transaction, next status, done func(nowMs int64, err error)) {
	mustFollow(t.id, t.now.state, next.state)
	c.append(t, next, recordValue(&next), func(nowMs int64, err error) {
		if err == nil {
			t.now = next
		}
		done(nowMs, err)
	})
}

func (c *Core) append(t *transaction, next status, value []byte, done func(nowMs int64, err error)) {
	if t.next != nil {
		panic(fmt.Sprintf("transactional id %q: two changes at a time", t.id))
	}
	t.next = &next
	records := []coordinator.KeyValue{{Key: recordKey(t.id), Value: value}}
	c.out.Appends = append(c.out.Appends, &coordinator.Append{Records: records, Done: func(nowMs, _ int64, err error) {
		if c.gone {
			err = kerr.NotCoordinator
		} else {
			t.next = nil
			err = appendError(err)
		}
		done(nowMs, err)
	}})
}

// appendError is what clients are told when a status could not be written.
func appendError(err error) error {
	switch {
	case isAny(err, kerr.UnknownTopicOrPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut):
		return kerr.CoordinatorNotAvailable
	case isAny(err, kerr.NotLeaderForPartition, kerr.KafkaStorageError):
		return kerr.NotCoordinator
	case isAny(err, kerr.MessageTooLarge, kerr.RecordListTooLarge):
		return kerr.UnknownServerError
	}
	return err
}

func isAny(err error, list ...*kerr.Error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// matching are the ids that pass, in the order of their names.
func (c *Core) matching(pass func(*transaction) bool) []*transaction {
	var list []*transaction
	//purecore:anyorder they are sorted
	for _, t := range c.ids {
		if pass(t) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *transaction) int { return cmp.Compare(a.id, b.id) })
	return list
}
