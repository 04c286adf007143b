package record

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Downgrade puts entries of a log into the words of a reader that knows an older format only, as Kafka does for Fetch
// below version 4. One of its batches or messages is in memory at a time; the buffers are kept for the next.
//
//   - What is not newer than To stays as it is.
//   - Control batches are left out: the old formats have no transactions, and such readers see aborted records too.
//   - Of a batch that is not compressed, records before From are left out: in the old formats each of its records is an
//     entry by itself, and readers (librdkafka) rely on getting none before the offset that they asked for. A compressed
//     one stays whole, as the wrapper that it becomes would have been found whole.
//   - Headers are dropped. Times are kept from format 1 on, with their kind.
//   - zstd is not known to any of the old formats: UNSUPPORTED_COMPRESSION_TYPE.
type Downgrade struct {
	To     int8  // 0 or 1
	From   int64 // the offset that was asked for
	Limits Limits

	scratch []byte
}

// TakeRoom takes over the memory in which another one worked.
func (d *Downgrade) TakeRoom(from *Downgrade) { d.scratch, from.scratch = from.scratch, nil }

// leastRecord is what a record with null key and null value takes in a batch, at least. As a message it takes
// minMessageSize in format 0, and 8 more in format 1.
const leastRecord = 7

// Most is the most bytes that become of a batch, by its header alone, which is all that head must hold. It says no where a
// header does not tell: of what is compressed, and of messages.
func (d *Downgrade) Most(head []byte) (int64, bool) {
	if magic, _ := PeekMagic(head); magic != 2 || len(head) < HeaderSize {
		return 0, false
	}
	b := Batch(head)
	if b.Codec() != None || b.Count() < 0 {
		return 0, false
	}
	size, _ := PeekSize(head)
	growth := minMessageSize - leastRecord + 8*int64(d.To)
	return size - HeaderSize + int64(b.Count())*growth, true
}

// Append appends what becomes of an entry to dst. The error is an *Invalid or *Corrupt; dst is returned as it was then.
func (d *Downgrade) Append(dst []byte, e Entry) ([]byte, error) {
	if b, ok := e.Batch(); ok {
		return d.batch(dst, b)
	}
	m := Message(e)
	switch {
	case m.Codec() >= Zstd:
		return dst, unreadable(m.Codec())
	case m.Magic() <= d.To:
		return append(dst, m...), nil
	}
	return d.message(dst, m)
}

func unreadable(c Codec) error {
	return &Invalid{Err: kerr.UnsupportedCompressionType, Message: fmt.Sprintf("Down-conversion of %s-compressed batches is not supported", c)}
}

func (d *Downgrade) batch(dst []byte, b Batch) ([]byte, error) {
	c := b.Codec()
	switch {
	case b.IsControl():
		return dst, nil
	case c >= Zstd:
		return dst, unreadable(c)
	}
	o := MessageOptions{Magic: d.To, Codec: c}
	if b.IsLogAppendTime() {
		at := b.MaxTimestamp()
		o.AppendTime = &at
	}
	build := NewMessageBuilder(dst, d.scratch, o)
	for r, err := range b.Records(d.Limits) {
		if err != nil {
			return dst, err
		}
		if c != None || r.Offset >= d.From {
			build.Append(&r)
		}
	}
	return d.built(dst, build)
}

// message turns a message of format 1 into one of format 0.
func (d *Downgrade) message(dst []byte, m Message) ([]byte, error) {
	build := NewMessageBuilder(dst, d.scratch, MessageOptions{Magic: d.To, Codec: m.Codec()})
	for r, err := range m.Messages(d.Limits) {
		if err != nil {
			return dst, err
		}
		if m.Codec() != None || r.Offset >= d.From {
			build.Append(&r.Record)
		}
	}
	return d.built(dst, build)
}

func (d *Downgrade) built(dst []byte, build *MessageBuilder) ([]byte, error) {
	out, err := build.Build()
	d.scratch = kept(build.Scratch())
	if err != nil { // offsets that do not grow
		return dst, invalid(err.Error())
	}
	return out, nil
}
