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

	// awaitCommit: what is read counts only once it is committed. A leader's own log is going to be, and a commit of an offset must not be missing; but
	// the end of it may still be lost with this broker, which a decision over a transaction must not.
	awaitCommit bool
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

// committedPoll is how often a coordinator looks whether what it has loaded is on the other replicas: a fetch of theirs away, mostly.
const committedPoll = 2 * time.Millisecond

// Read implements coordinator.Topic. Nothing is appended meanwhile but markers: only the coordinator does, and it waits.
func (t *coordinatorTopic) Read(ctx context.Context, p int32, each func(record.Batch)) error {
	log, err := t.reader.log(p)
	if err != nil {
		return err
	}
	end := log.EndOffset()
	if err := t.reader.readLog(ctx, log, each); err != nil || !t.awaitCommit {
		return err
	}
	tick := time.NewTicker(committedPoll)
	defer tick.Stop()
	for log.HighWatermark() < end {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
