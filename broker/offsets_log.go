package broker

import (
	"context"
	"time"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
)

// offsetsTopic is where the group coordinator keeps its state.
const offsetsTopic = "__consumer_offsets"

// offsetsLog is the offsets topic as the group coordinator reads and writes it, over the partitions that this broker leads.
type offsetsLog struct {
	replicas *partition.Manager
	acks     int16         // offsets.commit.required.acks
	timeout  time.Duration // offsets.commit.timeout.ms
	reader   logReader
	verify   func() bool // transaction.partition.verification.enable
}

// Append implements group.Appender.
func (l *offsetsLog) Append(p int32, batch []byte, guard *commitlog.VerificationGuard, done func(int64, error)) {
	l.replicas.Produce(&partition.ProduceRequest{
		Acks: l.acks, Timeout: l.timeout, Version: produceVersion, Origin: commitlog.Coordinator, RequireVerification: l.verify(),
		Partitions: []partition.ProducePartition{{Topic: offsetsTopic, Partition: p, Records: batch, Verification: guard}},
	}, func(r []partition.ProduceResult) { done(r[0].BaseOffset, r[0].Err) })
}

// produceVersion is one whose records are of the current format.
const produceVersion = 3

// Read implements group.Reader.
func (l *offsetsLog) Read(ctx context.Context, p int32, each func(record.Batch)) error {
	return l.reader.read(ctx, p, each)
}
