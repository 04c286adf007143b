package commitlog

// Appending across formats. Two things may be old: what a client sends (Produce below version 3), and what the log keeps
// (message.format.version, honoured below inter.broker.protocol.version 3.0).
//
//   - Messages of old that go into a log of batches become one batch, and the append goes on as that of any batch.
//   - A log of an old format keeps messages. Their times and, inside a wrapper of format v0, their offsets lie under the
//     checksums, and both are known only under the lock: there they are encoded. Such logs are few, and the clients that
//     need them are old; everybody else pays nothing.
//
// Kafka writes v1 wrappers that are right already as they came. Here they are encoded anew, to the same records.

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
)

// appendOld is AppendAsLeader where the client's records or the log are of an old format.
func (l *Log) appendOld(records []byte, leaderEpoch int32, c *Config, o AppendOptions, info AppendInfo) (AppendInfo, error) {
	if magic, ok := record.PeekMagic(records); ok && magic == 2 {
		return l.appendDowngraded(records, leaderEpoch, c, o, info)
	}
	set, err := l.messages(records, c)
	if err != nil {
		return info.refuse(err)
	}
	switch {
	case len(set) == 0 && o.RequireV2:
		_, err := l.oneBatch(records, c)
		return info.refuse(err)
	case len(set) == 0:
		return info, nil // nothing was sent, and that is no error in those versions
	case c.Format == FormatV2:
		return l.appendUpgraded(set, leaderEpoch, c, o, info)
	}
	var list recordList
	res, err := record.ValidateMessages(set, l.rules(c, o.Origin), list.add)
	if err != nil {
		return info.refuse(err)
	}
	return l.appendList(list, res, c.targetCodec(set[0].Codec()), leaderEpoch, c, info)
}

// messages takes apart what an old client sent, and checks sizes and checksums. A message that is cut off ends the set, as
// in Kafka: it is not there.
func (l *Log) messages(records []byte, c *Config) ([]record.Message, error) {
	var set []record.Message
	for {
		m, rest, err := record.NextMessage(records)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return set, nil
		case err != nil:
			return nil, fmt.Errorf("%w: in the append to %s: %w", kerr.CorruptMessage, l.tp, err)
		case len(m) > int(c.MaxMessageBytes):
			return nil, fmt.Errorf("%w: the message size in the append to %s is %d bytes which exceeds the maximum configured value of %d",
				kerr.MessageTooLarge, l.tp, len(m), c.MaxMessageBytes)
		}
		if err := m.CheckCRC(); err != nil {
			return nil, fmt.Errorf("%w: in the append to %s: %w", kerr.CorruptMessage, l.tp, err)
		}
		set, records = append(set, m), rest
	}
}

// targetCodec is the codec in which records that came in another are kept, and its level.
func (c *Config) targetCodec(came record.Codec) Compression {
	if c.Compression.Producer {
		return Compression{Codec: came}
	}
	return c.Compression
}

// upgradeRooms is the memory of batches until they are written.
var upgradeRooms = sync.Pool{New: func() any { return new(record.Room) }}

// appendUpgraded makes one batch of messages.
func (l *Log) appendUpgraded(set []record.Message, leaderEpoch int32, c *Config, o AppendOptions, info AppendInfo) (AppendInfo, error) {
	target := c.targetCodec(set[0].Codec())
	room := upgradeRooms.Get().(*record.Room)
	defer upgradeRooms.Put(room)
	build := record.NewBuilder(record.BuilderOptions{Codec: target.Codec, Level: target.Level, Room: room})
	res, err := record.ValidateMessages(set, l.rules(c, o.Origin), func(r *record.Record) { build.Append(r.Timestamp, r.Key, r.Value) })
	if err != nil {
		return info.refuse(err)
	}
	b, err := build.Build()
	if err == nil {
		err = l.checkGrown(b.Size(), c)
	}
	if err != nil {
		return info.refuse(err)
	}
	return l.appendOne(b, res, leaderEpoch, c, o, info)
}

// appendDowngraded makes messages of a batch.
func (l *Log) appendDowngraded(records []byte, leaderEpoch int32, c *Config, o AppendOptions, info AppendInfo) (AppendInfo, error) {
	b, err := l.oneBatch(records, c)
	if err != nil {
		return info.refuse(err)
	}
	if b.IsTransactional() || b.HasProducerID() || b.IsControl() {
		return info, fmt.Errorf("%w: idempotent and transactional records cannot be used with magic version %d", kerr.UnsupportedForMessageFormat, c.Format.Magic())
	}
	res, err := record.Validate(b, l.rules(c, o.Origin))
	if err != nil {
		return info.refuse(err)
	}
	var list recordList
	for r, err := range b.Records(l.env.limits) {
		if err == nil && len(r.Headers) > 0 { // better refused than lost
			err = fmt.Errorf("%w: magic version %d does not support record headers", kerr.UnsupportedForMessageFormat, c.Format.Magic())
		}
		if err != nil {
			return info.refuse(err)
		}
		list.add(&r)
	}
	return l.appendList(list, res, c.targetCodec(b.Codec()), leaderEpoch, c, info)
}

// recordList holds records by themselves, without what they were read from.
type recordList []record.Record

func (l *recordList) add(r *record.Record) {
	*l = append(*l, record.Record{Timestamp: r.Timestamp, Key: clonedOrNil(r.Key), Value: clonedOrNil(r.Value)})
}

// appendList writes records to a log of an old format.
func (l *Log) appendList(list recordList, res record.Result, codec Compression, leaderEpoch int32, c *Config, info AppendInfo) (AppendInfo, error) {
	if codec.Codec >= record.Zstd {
		return info.refuse(&record.Invalid{Err: kerr.UnsupportedCompressionType,
			Message: fmt.Sprintf("%s compression is not supported for magic %d", codec.Codec, c.Format.Magic())})
	}
	if err := l.settled(); err != nil {
		return info, err
	}
	flush, err := l.appendMessages(list, res, codec, leaderEpoch, c, &info)
	if err != nil {
		return info.refuse(err)
	}
	if flush {
		err = l.Flush()
	}
	return info, err
}

// appendMessages is step 2 for a leader whose log has an old format.
func (l *Log) appendMessages(list recordList, res record.Result, codec Compression, leaderEpoch int32, c *Config, info *AppendInfo) (flush bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.admitLeader(leaderEpoch); err != nil {
		return false, err
	}
	o := record.MessageOptions{Magic: c.Format.Magic(), Codec: codec.Codec, Level: codec.Level}
	appendTime := record.NoTimestamp
	if c.LogAppendTime {
		appendTime = l.env.nowMs()
		o.AppendTime = &appendTime
	}
	first := l.EndOffset()
	build := record.NewMessageBuilder(nil, nil, o)
	for i := range list {
		list[i].Offset = first + int64(i)
		build.Append(&list[i])
	}
	data, err := build.Build()
	if err != nil {
		return false, err
	}
	entries, err := l.builtEntries(data, c)
	if err != nil {
		return false, err
	}
	if err := l.writeLocked(data, entries, c, Client); err != nil {
		return false, err
	}
	l.epochs.set(nil, len(l.epochs.load()) > 0)

	info.FirstOffset, info.LastOffset = first, first+int64(len(list))-1
	info.LogAppendTime, info.LogStartOffset = appendTime, l.StartOffset()
	info.MaxTimestamp, info.OffsetOfMaxTimestamp = res.MaxTimestamp, first+int64(res.OffsetDeltaOfMax)
	if c.LogAppendTime {
		info.MaxTimestamp, info.OffsetOfMaxTimestamp = appendTime, first
	}
	info.Bytes, info.Count, info.End = len(data), len(list), l.EndPosition()
	return l.unflushedReached(c), nil
}

// builtEntries lists the messages that were built, and checks their sizes.
func (l *Log) builtEntries(data []byte, c *Config) ([]written, error) {
	var entries []written
	for rest := data; len(rest) > 0; {
		m, next, err := record.NextMessage(rest)
		if err == nil {
			err = l.checkGrown(len(m), c)
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, writtenMessage(m, int64(len(data)-len(rest))))
		rest = next
	}
	return entries, l.fitsSegment(len(data), c)
}
