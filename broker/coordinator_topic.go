package broker

import (
	"context"
	"time"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
)

// The internal topics in which the coordinators keep their state.
const (
	offsetsTopic     = "__consumer_offsets"
	transactionTopic = "__transaction_state"
)

// coordinatorTopic is an internal topic as its coordinator reads and writes it, over the partitions that this broker leads. It implements coordinator.Topic.
type coordinatorTopic struct {
	replicas *partition.Manager
	name     string
	acks     int16
	timeout  time.Duration
	verify   func() bool // whether the first write of a transaction needs the word of its coordinator; nil: there are no transactions
	reader   logReader
	tenure   *tenure

	// heldIsSafe: what is loaded counts when all in-sync replicas have it, also while they are fewer than min.insync.replicas and nothing is committed. Who only wants to know where to go on
	// reading is not to wait for the others to come back. A decision over a transaction has to be committed.
	heldIsSafe bool
}

// produceVersion is one whose records are of the current format.
const produceVersion = 3

// Append implements coordinator.Topic.
func (t *coordinatorTopic) Append(p int32, batch []byte, guard *commitlog.VerificationGuard, done func(int64, error)) {
	t.replicas.Produce(&partition.ProduceRequest{
		Acks: t.acks, Timeout: t.timeout, Version: produceVersion, Origin: commitlog.Coordinator, RequireVerification: t.verify != nil && t.verify(),
		Partitions: []partition.ProducePartition{{Topic: t.name, Partition: p, Records: batch, Verification: guard}},
	}, func(r []partition.ProduceResult) { done(r[0].BaseOffset, r[0].Err) })
}

// Read implements coordinator.Topic.
func (t *coordinatorTopic) Read(ctx context.Context, p int32, each func(record.Entry)) error {
	log, err := t.reader.log(p)
	if err != nil {
		return err
	}
	return t.reader.readSafe(ctx, log, func(end int64) bool { return t.safe(log, p, end) }, each)
}

func (t *coordinatorTopic) safe(log *commitlog.Log, p int32, end int64) bool {
	if log.HighWatermark() >= end {
		return true
	}
	replica := t.replicas.Partition(t.name, p)
	return t.heldIsSafe && replica != nil && replica.Held(end)
}

// Began implements coordinator.Witness.
func (t *coordinatorTopic) Began(p int32) { t.tenure.began(p) }

// Ended implements coordinator.Witness.
func (t *coordinatorTopic) Ended(p int32) { t.tenure.ended(p) }

// Leads implements coordinator.Witness.
func (t *coordinatorTopic) Leads(p int32) bool { return t.tenure.lasts(p) }

// Confirm implements coordinator.Witness: the members of the ISR, from among whom another leader would be, fetch from this one.
func (t *coordinatorTopic) Confirm(ctx context.Context, p int32) bool {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, confirmWait)
	defer cancel()
	tick := time.NewTicker(confirmPoll)
	defer tick.Stop()
	for {
		if replica := t.replicas.Partition(t.name, p); replica == nil {
			return false
		} else if replica.LedAfter(asked) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// Followers fetch at least every replica.fetch.wait.max.ms, half a second.
const (
	confirmWait = 2 * time.Second
	confirmPoll = 5 * time.Millisecond
)
