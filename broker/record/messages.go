package record

import (
	"encoding/binary"
	"fmt"
)

// MessageOptions say what set of messages to build.
type MessageOptions struct {
	Magic int8  // 0 or 1
	Codec Codec // None: a message for each record; else one wrapper around them. Zstd came later than these formats
	Level int   // 0 or DefaultLevel: the codec's default
	// AppendTime, if not nil, is the time (ms) of the append, which all messages have (LogAppendTime). Format 0 has no
	// times at all.
	AppendTime *int64
}

// MessageBuilder builds messages of the formats before batches; the counterpart of Builder. The first mistake of its
// caller is returned by Build.
type MessageBuilder struct {
	o     MessageOptions
	dst   []byte // what stands before, then the messages
	set   []byte // the messages of a wrapper, not compressed yet
	count int
	first int64
	last  int64
	// maxTime is the latest of the messages' times, and first the offset that those of a v1 wrapper count from.
	maxTime int64
	err     error
}

// NewMessageBuilder starts a set that Build appends to dst. scratch, which may be nil, is room for a wrapper's content;
// Scratch gives it back, grown.
func NewMessageBuilder(dst, scratch []byte, o MessageOptions) *MessageBuilder {
	b := &MessageBuilder{o: o, dst: dst, set: scratch[:0], maxTime: NoTimestamp}
	if o.Magic != 0 && o.Magic != 1 {
		b.err = fmt.Errorf("messages of format %d", o.Magic)
	}
	if o.Codec > LZ4 {
		b.err = fmt.Errorf("messages of format %d in %s", o.Magic, o.Codec)
	}
	return b
}

// Append adds a record at its own offset, which must be behind the last one's. Headers are lost: the formats have none.
func (b *MessageBuilder) Append(r *Record) {
	switch {
	case b.err != nil:
		return
	case b.count > 0 && r.Offset <= b.last:
		b.err = fmt.Errorf("message at offset %d behind %d", r.Offset, b.last)
		return
	case b.count == 0:
		b.first = r.Offset
	}
	b.count++
	b.last = r.Offset
	ts := r.Timestamp
	if b.o.AppendTime != nil {
		ts = *b.o.AppendTime
	}
	b.maxTime = max(b.maxTime, ts)
	if b.o.Codec == None {
		b.dst = AppendMessage(b.dst, b.o.Magic, None, b.o.AppendTime != nil, r.Offset, ts, r.Key, r.Value)
		return
	}
	offset := r.Offset
	if b.o.Magic == 1 {
		offset -= b.first // KIP-31
	}
	b.set = AppendMessage(b.set, b.o.Magic, None, b.o.AppendTime != nil, offset, ts, r.Key, r.Value)
}

// Scratch is the room for a wrapper's content, to be used for the next set.
func (b *MessageBuilder) Scratch() []byte { return b.set }

// Build returns dst with the messages behind it. The Builder must not be used again.
func (b *MessageBuilder) Build() ([]byte, error) {
	if b.err != nil || b.o.Codec == None || b.count == 0 {
		return b.dst, b.err
	}
	level := b.o.Level
	if level == 0 {
		level = DefaultLevel
	}
	// The wrapper is a message without key whose value is the set: its head is written first, with an empty value, and
	// mended when the value stands behind it.
	start := len(b.dst)
	out := AppendMessage(b.dst, b.o.Magic, b.o.Codec, b.o.AppendTime != nil, b.last, b.maxTime, nil, []byte{})
	head := len(out)
	out, err := Compress(b.o.Codec, level, out, b.set)
	if err != nil {
		return b.dst, err
	}
	if b.o.Codec == LZ4 && b.o.Magic == 0 {
		breakLZ4HeaderChecksum(out[head:])
	}
	m := Message(out[start:])
	binary.BigEndian.PutUint32(out[head-4:], uint32(len(out)-head))
	binary.BigEndian.PutUint32(m[offLength:], uint32(len(m)-Overhead))
	binary.BigEndian.PutUint32(m[offMessageCRC:], m.computeCRC())
	return out, nil
}
