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
	return t.reader.readCommitted(ctx, log, each)
}
