package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

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
	buffer   int           // offsets.load.buffer.size
}

// Append implements group.Appender.
func (l *offsetsLog) Append(p int32, batch []byte, done func(int64, error)) {
	l.replicas.Produce(&partition.ProduceRequest{
		Acks: l.acks, Timeout: l.timeout, Version: produceVersion, Origin: commitlog.Coordinator,
		Partitions: []partition.ProducePartition{{Topic: offsetsTopic, Partition: p, Records: batch}},
	}, func(r []partition.ProduceResult) { done(r[0].BaseOffset, r[0].Err) })
}

// produceVersion is one whose records are of the current format.
const produceVersion = 3

// Read implements group.Reader. It reads to where the log ends while it reads, the high watermark or not: what a leader has in its log is going to be committed, and a commit must not
// be missing afterwards. Compaction may have left nothing at the end, and a batch may be larger than the buffer (BR-041): neither ends the reading early, nor makes it go on for ever.
func (l *offsetsLog) Read(ctx context.Context, p int32, each func(record.Batch)) error {
	replica := l.replicas.Partition(offsetsTopic, p)
	if replica == nil {
		return kerr.NotLeaderForPartition
	}
	log := replica.Log()
	if log == nil {
		return kerr.NotLeaderForPartition
	}
	for at := log.StartOffset(); at < log.EndOffset() && ctx.Err() == nil; {
		next, err := l.readSome(log, at, each)
		if errors.Is(err, kerr.OffsetOutOfRange) && at < log.StartOffset() {
			next, err = log.StartOffset(), nil // retention or DeleteRecords was faster
		}
		if err != nil {
			return err
		}
		if next <= at {
			return nil // a gap up to the end
		}
		at = next
	}
	return ctx.Err()
}

// readSome reads one buffer full and returns the offset behind it.
func (l *offsetsLog) readSome(log *commitlog.Log, from int64, each func(record.Batch)) (int64, error) {
	r, err := log.Read(from, commitlog.ReadOptions{MaxBytes: l.buffer, MinOneBatch: true, UpTo: log.EndOffset()})
	if err != nil || r.Bytes == 0 {
		return from, err
	}
	defer r.Range.Release()
	data, err := r.Range.ReadAll()
	if err != nil {
		return from, fmt.Errorf("reading %s at %d: %w", log.TP(), from, err)
	}
	next := from
	for len(data) > 0 {
		b, rest, err := record.Next(data)
		if err != nil {
			if next > from {
				return next, nil // the buffer ends inside this one: it comes next
			}
			return from, fmt.Errorf("reading %s at %d: %w", log.TP(), from, err)
		}
		if b.LastOffset() >= from {
			each(b)
			next = b.NextOffset()
		}
		data = rest
	}
	return next, nil
}
