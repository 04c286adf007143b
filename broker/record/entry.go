package record

import (
	"encoding/binary"
	"iter"
)

// Entry is one whole entry of a log, of any format: a batch, or a message of the formats before batches with all that it
// wraps. Compaction and upgrades leave logs that have all of them, one behind the other.
type Entry []byte

// NextEntry cuts the first entry off buf: Next or NextMessage, as its magic says. Where buf ends before the magic a size
// that only a message can have is no mistake.
func NextEntry(buf []byte) (e Entry, rest []byte, err error) {
	if magic, ok := PeekMagic(buf); !ok || magic == 0 || magic == 1 {
		m, rest, err := NextMessage(buf)
		return Entry(m), rest, err
	}
	b, rest, err := Next(buf)
	return Entry(b), rest, err
}

// Batch is the entry as a batch; false for a message.
func (e Entry) Batch() (Batch, bool) { return Batch(e), e[offMagic] == 2 }

// IsControl tells of a batch of control records.
func (e Entry) IsControl() bool {
	b, ok := e.Batch()
	return ok && b.IsControl()
}

// LastOffset is the offset of the last record. That of the first one stands inside of a message's compression.
func (e Entry) LastOffset() int64 {
	if b, ok := e.Batch(); ok {
		return b.LastOffset()
	}
	return int64(binary.BigEndian.Uint64(e))
}

// Records yields the records one by one, those of messages with the offsets and times that they have for readers. Their
// slices are valid only until the next step. Whatever is wrong is yielded last, as an *Invalid or *Corrupt error.
func (e Entry) Records(l Limits) iter.Seq2[Record, error] {
	if b, ok := e.Batch(); ok {
		return b.Records(l)
	}
	return func(yield func(Record, error) bool) {
		for r, err := range Message(e).Messages(l) {
			if !yield(r.Record, err) {
				return
			}
		}
	}
}
