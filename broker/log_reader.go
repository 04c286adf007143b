package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
)

// logReader reads the partitions of an internal topic that this broker leads, for the coordinators to load.
type logReader struct {
	replicas *partition.Manager
	topic    string
	buffer   int // bytes that are read at once; a batch may be larger
}

// readLog gives every batch of a partition. It reads to where the log ends while it reads, the high watermark or not: what a leader has in its log is going to be committed, and a commit must not
// be missing afterwards. Compaction may have left nothing at the end, and a batch may be larger than the buffer (BR-041): neither ends the reading early, nor makes it go on for ever.
func (l logReader) readLog(ctx context.Context, log *commitlog.Log, each func(record.Batch)) error {
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
func (l logReader) readSome(log *commitlog.Log, from int64, each func(record.Batch)) (int64, error) {
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

func (l logReader) log(p int32) (*commitlog.Log, error) {
	if replica := l.replicas.Partition(l.topic, p); replica != nil {
		if log := replica.Log(); log != nil {
			return log, nil
		}
	}
	return nil, kerr.NotLeaderForPartition
}
