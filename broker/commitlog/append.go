package commitlog

// Appending, the one critical section of a log.
//
//  1. Without the lock: the batch is taken apart, its CRC and its records are checked, it is compressed anew if the
//     topic asks for another codec. Most of the time goes here, and many appends do it side by side.
//  2. With the lock: is it a repeat? Offsets, epoch and (if the topic says so) time are stamped into the bytes. The
//     producer's state after the batch is worked out on a copy. Is there room in the segment, or is it time to roll?
//     One write. Then, and only then, producer state, epochs, end offset move: a failed write leaves no trace (BR-043).
//  3. Without the lock: if flush.messages says so the log is flushed.
//
// The naive way, checking everything under the lock, makes the slowest client of a partition everybody's pace.

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
)

// Origin says who wrote the records of an append.
type Origin int8

// The origins. Only a client's records are held to the rules for clients.
const (
	Client Origin = iota
	Coordinator
	Replication
)

// AppendOptions says how AppendAsLeader has to treat the records.
type AppendOptions struct {
	Origin Origin
	// RequireV2: a request of version 3 or later carries exactly one batch of format v2. Others may carry messages of the
	// formats before it, and none at all. Acks is what the client waits for; the log treats all acks alike.
	RequireV2 bool
	Acks      int16
	// Verification is what VerifyTransaction returned before the coordinator was asked; with RequireVerification the
	// first batch of a transaction is refused without it (INVALID_TXN_STATE).
	Verification        *VerificationGuard
	RequireVerification bool
}

// VerificationGuard proves that the coordinator was asked whether a producer's transaction holds this partition (KIP-890).
type VerificationGuard struct{ producerID int64 }

// RecordError names a record that made its batch be refused (KIP-467).
type RecordError struct {
	BatchIndex int32
	Message    string
}

// AppendInfo is what became of an append.
type AppendInfo struct {
	FirstOffset          int64 // -1 when nothing was appended
	LastOffset           int64
	LogAppendTime        int64 // -1 unless the topic stamps records
	LogStartOffset       int64
	MaxTimestamp         int64
	OffsetOfMaxTimestamp int64
	Duplicate            bool // the batch was already in the log; FirstOffset and LastOffset are those of then
	RecordErrors         []RecordError
	ErrorMessage         string
	Bytes                int
	Count                int
	End                  Position // the log's end after the append
}

func (l *Log) nothingAppended() AppendInfo {
	return AppendInfo{
		FirstOffset: noOffset, LastOffset: noOffset, LogAppendTime: record.NoTimestamp, LogStartOffset: l.StartOffset(),
		MaxTimestamp: record.NoTimestamp, OffsetOfMaxTimestamp: noOffset, End: l.EndPosition(),
	}
}

// AppendAsLeader validates the records, stamps offsets, leader epoch and (where the topic says so) time into them in
// place, and writes them. Errors wrap the error code for the client; RecordErrors and ErrorMessage of AppendInfo are
// set beside an error where Kafka sends them.
func (l *Log) AppendAsLeader(records []byte, leaderEpoch int32, o AppendOptions) (AppendInfo, error) {
	info := l.nothingAppended()
	if err := l.Err(); err != nil {
		return info, err
	}
	c := l.Config()
	if magic, ok := record.PeekMagic(records); c.Format != FormatV2 || !o.RequireV2 && (!ok || magic != 2) {
		return l.appendOld(records, leaderEpoch, &c, o, info)
	}
	b, err := l.oneBatch(records, &c)
	if err != nil {
		return info.refuse(err)
	}
	b, res, err := l.validate(b, &c, o.Origin)
	if err != nil {
		return info.refuse(err)
	}
	return l.appendOne(b, res, leaderEpoch, &c, o, info)
}

// appendOne appends a validated batch.
func (l *Log) appendOne(b record.Batch, res record.Result, leaderEpoch int32, c *Config, o AppendOptions, info AppendInfo) (AppendInfo, error) {
	if err := l.settled(); err != nil {
		return info, err
	}
	flush, err := l.appendBatch(b, res, leaderEpoch, c, o, &info)
	if err != nil {
		return info.refuse(err)
	}
	if flush {
		err = l.Flush()
	}
	return info, err
}

// refuse puts what Kafka tells the client beside the error into the info.
func (info AppendInfo) refuse(err error) (AppendInfo, error) {
	if inv := (*record.Invalid)(nil); errors.As(err, &inv) && len(inv.Records) > 0 {
		info.ErrorMessage = inv.Message
		for _, r := range inv.Records {
			info.RecordErrors = append(info.RecordErrors, RecordError{r.Index, r.Message})
		}
	}
	return info, err
}

// oneBatch takes the single batch out of what a client sent and checks its size and CRC.
func (l *Log) oneBatch(records []byte, c *Config) (record.Batch, error) {
	if magic, ok := record.PeekMagic(records); ok && magic != 2 {
		return nil, invalidRecord("Produce requests are only allowed to contain record batches with magic version 2")
	}
	b, rest, err := record.Next(records)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, invalidRecord("Produce requests must have at least one record batch per partition")
	case err != nil:
		return nil, fmt.Errorf("%w: %w", kerr.CorruptMessage, err)
	case len(rest) > 0:
		return nil, invalidRecord("Produce requests are only allowed to contain exactly one record batch per partition")
	case b.Size() > int(c.MaxMessageBytes):
		return nil, fmt.Errorf("%w: the record batch size in the append to %s is %d bytes which exceeds the maximum configured value of %d",
			kerr.MessageTooLarge, l.tp, b.Size(), c.MaxMessageBytes)
	}
	if err := b.CheckCRC(); err != nil {
		return nil, fmt.Errorf("%w: in the append to %s: %w", kerr.CorruptMessage, l.tp, err)
	}
	return b, nil
}

func invalidRecord(message string) error {
	return &record.Invalid{Err: kerr.InvalidRecord, Message: message}
}

// validate looks at the records and returns the batch that is to be written, which is another one when the topic wants
// another compression.
func (l *Log) validate(b record.Batch, c *Config, origin Origin) (record.Batch, record.Result, error) {
	res, err := record.Validate(b, l.rules(c, origin))
	if err != nil {
		return nil, res, err
	}
	if c.Compression.Producer || b.Codec() == c.Compression.Codec || b.IsControl() {
		return b, res, nil
	}
	b, err = b.Recompress(c.Compression.Codec, c.Compression.Level, l.env.limits)
	if err != nil {
		return nil, res, err
	}
	return b, res, l.checkGrown(b.Size(), c)
}

// checkGrown checks the size of an entry that is not the client's own any more.
func (l *Log) checkGrown(size int, c *Config) error {
	if size > int(c.MaxMessageBytes) {
		return fmt.Errorf("%w: message batch size is %d bytes in append to partition %s which exceeds the maximum configured size of %d",
			kerr.MessageTooLarge, size, l.tp, c.MaxMessageBytes)
	}
	return nil
}

func (l *Log) rules(c *Config, origin Origin) record.Rules {
	return record.Rules{
		Partition: l.tp.String(), AllowControl: origin != Client, RequireKey: c.CleanupCompact,
		CheckTimestamps: !c.LogAppendTime, Now: l.env.nowMs(), BeforeMax: c.TimestampBefore, AfterMax: c.TimestampAfter,
		Limits: l.env.limits,
	}
}

// admitLeader refuses who leads no more.
func (l *Log) admitLeader(epoch int32) error {
	if err := l.Err(); err != nil {
		return err
	}
	if latest, ok := l.LatestEpoch(); ok && epoch < latest {
		return fmt.Errorf("%w: append to %s under leader epoch %d, the log has seen %d", kerr.FencedLeaderEpoch, l.tp, epoch, latest)
	}
	return nil
}

// appendBatch is step 2 for a leader.
func (l *Log) appendBatch(b record.Batch, res record.Result, leaderEpoch int32, c *Config, o AppendOptions, info *AppendInfo) (flush bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.admitLeader(leaderEpoch); err != nil {
		return false, err
	}
	p := &l.mu.producers
	if o.Origin == Client {
		if old, ok := p.duplicate(b); ok {
			*info = l.nothingAppended()
			info.Duplicate, info.FirstOffset, info.LastOffset = true, old.firstOffset(), old.lastOffset
			info.LogAppendTime = old.timestamp // whatever the topic stamps, as Kafka answers
			return false, nil
		}
	}
	if o.RequireVerification && b.IsTransactional() && !b.IsControl() {
		known := p.byID[b.ProducerID()]
		if (known == nil || known.txnStart == noOffset) && !p.verified(b.ProducerID(), o.Verification) {
			return false, fmt.Errorf("%w: record was not part of an ongoing transaction", kerr.InvalidTxnState)
		}
	}
	end := l.end.Load()
	b.SetBaseOffset(end.Offset)
	b.SetPartitionLeaderEpoch(leaderEpoch)
	maxTime, appendTime := res.MaxTimestamp, record.NoTimestamp
	if c.LogAppendTime {
		appendTime = l.env.nowMs()
		maxTime = appendTime
	}
	b.SetMaxTimestamp(maxTime, c.LogAppendTime)

	if err := l.fitsSegment(b.Size(), c); err != nil {
		return false, err
	}
	if err := l.writeLocked(b, []written{writtenBatch(b, 0)}, c, o.Origin); err != nil {
		return false, err
	}
	l.epochs.set(l.epochs.load().assign(leaderEpoch, b.BaseOffset()))

	info.FirstOffset, info.LastOffset = b.BaseOffset(), b.LastOffset()
	info.LogAppendTime, info.LogStartOffset = appendTime, l.StartOffset()
	info.MaxTimestamp, info.OffsetOfMaxTimestamp = maxTime, b.BaseOffset()+int64(res.OffsetDeltaOfMax)
	if c.LogAppendTime {
		info.OffsetOfMaxTimestamp = b.BaseOffset()
	}
	info.Bytes, info.Count, info.End = b.Size(), res.Count, l.EndPosition()
	return l.unflushedReached(c), nil
}

func (l *Log) fitsSegment(size int, c *Config) error {
	if size > int(c.SegmentBytes) {
		return fmt.Errorf("%w: message batch size is %d bytes in append to partition %s, which exceeds the maximum configured segment size of %d",
			kerr.RecordListTooLarge, size, l.tp, c.SegmentBytes)
	}
	return nil
}

func (l *Log) unflushedReached(c *Config) bool {
	return c.FlushMessages < math.MaxInt64 && l.EndOffset()-l.RecoveryPoint() >= c.FlushMessages
}

// AppendAsFollower writes batches that already have their offsets, as fetched from the leader. A last batch that is
// incomplete is left out.
func (l *Log) AppendAsFollower(records []byte) (AppendInfo, error) {
	info := l.nothingAppended()
	if err := l.Err(); err != nil {
		return info, err
	}
	entries, size, err := l.wholeEntries(records)
	if err != nil || len(entries) == 0 {
		return info, err
	}
	if err := l.settled(); err != nil {
		return info, err
	}
	c := l.Config()
	flush, err := l.appendFetched(records[:size], entries, &c, &info)
	if err != nil {
		return info, err
	}
	if flush {
		err = l.Flush()
	}
	return info, err
}

// wholeEntries splits what a leader sent and checks each batch (or message, from a log of an old format): CRC, and offsets
// that grow.
func (l *Log) wholeEntries(records []byte) ([]written, int, error) {
	var entries []written
	last := int64(-1)
	for rest := records; ; {
		w, next, err := nextEntry(rest, int64(len(records)-len(rest)))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return entries, len(records) - len(rest), nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%w: in what the leader of %s sent: %w", kerr.CorruptMessage, l.tp, err)
		}
		if w.last < w.base || w.base <= last {
			return nil, 0, fmt.Errorf("%w: what the leader of %s sent goes from offset %d to %d to %d",
				kerr.CorruptMessage, l.tp, last, w.base, w.last)
		}
		last = w.last
		entries = append(entries, w)
		rest = next
	}
}

// appendFetched is step 2 for a follower.
func (l *Log) appendFetched(data []byte, entries []written, c *Config, info *AppendInfo) (flush bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return false, err
	}
	first, end, start := entries[0], l.EndOffset(), l.StartOffset()
	if first.base < end {
		if start != end || first.last < end {
			return false, fmt.Errorf("%w: %s ends at offset %d and was sent offsets from %d", kerr.OffsetOutOfRange, l.tp, end, first.base)
		}
		// The leader's log starts inside a batch (DeleteRecords), and batches travel whole (BR-034).
		if err := l.restartLocked(first.base, first.base); err != nil {
			return false, l.parent.fail(err)
		}
	}
	epochs, changed := l.epochs.load(), false
	for i := range entries {
		next, more, err := entries[i].follow(epochs)
		if err != nil {
			return false, fmt.Errorf("%w: %s: %w", kerr.FencedLeaderEpoch, l.tp, err)
		}
		epochs, changed = next, changed || more
	}
	if err := l.writeLocked(data, entries, c, Replication); err != nil {
		return false, err
	}
	l.epochs.set(epochs, changed)
	l.restoreStartLocked(start)

	info.FirstOffset, info.LastOffset = first.base, entries[len(entries)-1].last
	for i := range entries {
		e := &entries[i]
		if e.maxTime > info.MaxTimestamp {
			info.MaxTimestamp, info.OffsetOfMaxTimestamp = e.maxTime, e.last
		}
		info.Count += e.count()
	}
	info.LogStartOffset, info.Bytes, info.End = l.StartOffset(), len(data), l.EndPosition()
	return l.unflushedReached(c), nil
}

// writeLocked rolls if it is time, works out what the entries do to the producers, writes them and makes all of it
// visible. data is the entries one after the other, with their final offsets. Nothing changed when it returns an error
// that is not the directory's end.
func (l *Log) writeLocked(data []byte, entries []written, c *Config, origin Origin) error {
	s := l.active()
	if err := s.loadForAppend(); err != nil {
		return l.parent.fail(err)
	}
	facts, err := s.rollFacts(entries, int64(len(data)), l.env.nowMs())
	if err != nil {
		return l.parent.fail(err)
	}
	base, pos := s.base, s.size.Load()
	roll := facts.roll(c, s.jitter)
	if roll {
		base, pos = max(l.EndOffset(), entries[0].firstKnown()), 0
	}
	var ch change
	for i := range entries {
		e := &entries[i]
		if e.batch == nil {
			continue // the old formats know of no producers
		}
		if err := l.mu.producers.plan(&ch, e.batch, Position{e.base, base, pos + e.at}, origin); err != nil {
			return err
		}
	}
	if roll {
		if err := l.rollLocked(base); err != nil {
			return err
		}
		s = l.active()
	}
	if c.Preallocate && pos == 0 && !s.reserved {
		if err := s.reserve(int64(c.SegmentBytes)); err != nil {
			return l.parent.fail(err)
		}
	}
	if err := s.append(data, entries, int64(c.IndexInterval)); err != nil {
		return l.parent.fail(fmt.Errorf("append to %s: %w", l.segmentPath(s.base, logSuffix), err))
	}
	end := Position{entries[len(entries)-1].last + 1, base, pos + int64(len(data))}
	for _, a := range l.mu.producers.apply(&ch, end.Offset) {
		if err := s.addAborted(a); err != nil {
			return l.parent.fail(err)
		}
	}
	if len(ch.started) > 0 || len(ch.ended) > 0 {
		l.updateUnstableLocked()
	}
	s.modified = l.env.nowMs()
	s.size.Store(end.SegmentPos)
	l.end.Store(&end)
	l.warnOfFuture(entries, c)
	return nil
}

// futureMs is how far ahead of our clock a timestamp must be to be worth a warning.
const futureMs = 365 * 24 * 3600 * 1000

// warnOfFuture tells once per log that records are stamped so far ahead that retention.ms will not delete them in
// this decade: a producer that counts in microseconds, or whose clock is wrong (BR-050).
func (l *Log) warnOfFuture(entries []written, c *Config) {
	if l.mu.warned || !c.CleanupDelete || c.RetentionMs < 0 {
		return
	}
	for i := range entries {
		if ts := entries[i].maxTime; ts-l.env.nowMs() > futureMs {
			l.mu.warned = true
			l.env.log.WithField("partition", l.tp.String()).WithField("segment", l.active().base).
				Warnf("record timestamp %d lies more than a year in the future: retention.ms will keep its segment until then", ts)
			return
		}
	}
}

// restoreStartLocked puts the start back to where it was before a log was begun anew at a batch that reaches over it. What is not
// stable is not so from there on.
func (l *Log) restoreStartLocked(start int64) {
	l.marks.Lock()
	defer l.marks.Unlock()
	if l.start.Load() < start {
		l.start.Store(start)
		l.setHighLocked(*l.high.Load())
		l.updateUnstableLocked()
	}
}
