package broker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
)

// logReader reads the partitions of an internal topic that this broker leads, for the coordinators to load.
type logReader struct {
	replicas *partition.Manager
	topic    string
	buffer   int           // bytes that are read at once; a batch may be larger
	slots    chan struct{} // one for each partition that is read at a time
}

// newLogReader reads as many partitions at a time as there are processors: one that becomes leader of all 50 at once shall not have 50 buffers full.
func newLogReader(replicas *partition.Manager, topic string, buffer int64) logReader {
	return logReader{replicas, topic, int(buffer), make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// safePoll is how often it is looked at whether what was read is on the other replicas: a fetch of theirs away, mostly.
const safePoll = 2 * time.Millisecond

// readSafe is readLog, and returns when all that it gave is safe. The end of a leader's log may still be lost with this broker: a coordinator that answers from it tells an offset that
// goes back, or an assignment of a generation that comes again with other members, or writes markers of a decision that nobody remembers.
func (l logReader) readSafe(ctx context.Context, log *commitlog.Log, safe func(end int64) bool, each func(record.Entry)) error {
	if err := l.readLog(ctx, log, each); err != nil {
		return err
	}
	end := log.EndOffset() // now, not before: a marker that came during the reading may have been read
	tick := time.NewTicker(safePoll)
	defer tick.Stop()
	for !safe(end) {
		if err := log.Err(); err != nil {
			return err // moved to another directory, where it is read again, or offline
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// readLog gives every entry of a partition. It reads to where the log ends while it reads, the high watermark or not: what a leader has in its log is going to be committed, and a commit must not
// be missing afterwards. Compaction may have left nothing at the end, and a batch may be larger than the buffer (BR-041): neither ends the reading early, nor makes it go on for ever.
func (l logReader) readLog(ctx context.Context, log *commitlog.Log, each func(record.Entry)) error {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var buf []byte
	for at := log.StartOffset(); at < log.EndOffset() && ctx.Err() == nil; {
		next, err := l.readSome(log, at, &buf, each)
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

// readSome reads one buffer full and returns the offset behind it. The buffer is kept for the next.
func (l logReader) readSome(log *commitlog.Log, from int64, buf *[]byte, each func(record.Entry)) (int64, error) {
	r, err := log.Read(from, commitlog.ReadOptions{MaxBytes: l.buffer, MinOneBatch: true, UpTo: log.EndOffset()})
	if err != nil || r.Bytes == 0 {
		return from, err
	}
	defer r.Range.Release()
	*buf = slices.Grow((*buf)[:0], int(r.Range.Length))
	data := (*buf)[:r.Range.Length]
	if err := r.Range.ReadInto(data); err != nil {
		return from, fmt.Errorf("reading %s at %d: %w", log.TP(), from, err)
	}
	next := from
	for len(data) > 0 {
		e, rest, err := record.NextEntry(data)
		if err != nil {
			if next > from {
				return next, nil // the buffer ends inside this one: it comes next
			}
			return from, fmt.Errorf("reading %s at %d: %w", log.TP(), from, err)
		}
		if e.LastOffset() >= from {
			each(e)
			next = e.LastOffset() + 1
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
