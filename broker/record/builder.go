package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Producer is who wrote a batch, for idempotence and transactions.
type Producer struct {
	ID            int64
	Epoch         int16
	BaseSequence  int32 // NoSequence for control batches
	Transactional bool
}

// BuilderOptions say what batch to build. The zero value is an uncompressed batch at offset 0 of no producer.
type BuilderOptions struct {
	Codec      Codec
	Level      int // 0 or DefaultLevel: the codec's default
	BaseOffset int64
	// AppendTime, if not nil, is the time (ms) of the append, which all records have (LogAppendTime). Otherwise they
	// have their own.
	AppendTime *int64
	Producer   *Producer // nil: none
	Control    bool
	// LeaderEpoch is stamped if not nil; NoLeaderEpoch otherwise.
	LeaderEpoch *int32
	// DeleteHorizon, if not nil, is stored in place of the base timestamp (compaction, KIP-534).
	DeleteHorizon *int64
	// Room, if not nil, is the memory to build in.
	Room *Room
}

// Room is the memory in which batches are built, one after the other: with the next one the batch before is void.
type Room struct{ records, packed []byte }

// roomKept bounds what is kept of each piece of memory.
const roomKept = 1 << 20

func kept(p []byte) []byte {
	if cap(p) > roomKept {
		return nil
	}
	return p
}

// Builder builds one batch of format v2. The first mistake of its caller is returned by Build.
type Builder struct {
	o        BuilderOptions
	buf      []byte // room for the header, then the records
	count    int32
	last     int64 // offset of the last record, or what SetLastOffset says
	baseTime int64
	maxTime  int64
	err      error
}

// NewBuilder starts a batch.
func NewBuilder(o BuilderOptions) *Builder {
	b := &Builder{o: o, last: o.BaseOffset - 1, baseTime: NoTimestamp, maxTime: NoTimestamp}
	if o.Room != nil {
		b.buf = o.Room.records[:0]
	}
	if cap(b.buf) < HeaderSize {
		b.buf = make([]byte, 0, 512)
	}
	b.buf = b.buf[:HeaderSize]
	if o.DeleteHorizon != nil {
		b.baseTime = *o.DeleteHorizon
	}
	return b
}

// Append adds a record at the next offset. A nil key or value is null.
func (b *Builder) Append(ts int64, key, value []byte, headers ...Header) {
	b.AppendRecord(Record{Offset: b.last + 1, Timestamp: ts, Key: key, Value: value, Headers: headers})
}

// AppendRecord adds a record at its own offset, which must be behind the last one's.
func (b *Builder) AppendRecord(r Record) {
	delta := r.Offset - b.o.BaseOffset
	switch {
	case b.err != nil:
		return
	case r.Offset <= b.last || delta > math.MaxInt32:
		b.err = fmt.Errorf("record at offset %d behind %d in a batch at %d", r.Offset, b.last, b.o.BaseOffset)
		return
	}
	if b.count == 0 && b.o.DeleteHorizon == nil {
		b.baseTime = r.Timestamp
	}
	b.count++
	b.last = r.Offset
	b.maxTime = max(b.maxTime, r.Timestamp)
	b.buf = appendRecord(b.buf, r.Timestamp-b.baseTime, delta, &r)
}

func appendRecord(dst []byte, timestampDelta, offsetDelta int64, r *Record) []byte {
	size := 1 + varintSize(timestampDelta) + varintSize(offsetDelta) + bytesSize(r.Key) + bytesSize(r.Value) +
		varintSize(int64(len(r.Headers)))
	for _, h := range r.Headers {
		size += varintSize(int64(len(h.Key))) + len(h.Key) + bytesSize(h.Value)
	}
	dst = appendVarint(dst, int64(size))
	dst = append(dst, byte(r.Attributes))
	dst = appendVarint(dst, timestampDelta)
	dst = appendVarint(dst, offsetDelta)
	dst = appendBytes(dst, r.Key)
	dst = appendBytes(dst, r.Value)
	dst = appendVarint(dst, int64(len(r.Headers)))
	for _, h := range r.Headers {
		dst = appendVarint(dst, int64(len(h.Key)))
		dst = append(dst, h.Key...)
		dst = appendBytes(dst, h.Value)
	}
	return dst
}

func bytesSize(p []byte) int {
	if p == nil {
		return 1
	}
	return varintSize(int64(len(p))) + len(p)
}

func appendBytes(dst, p []byte) []byte {
	if p == nil {
		return appendVarint(dst, -1)
	}
	return append(appendVarint(dst, int64(len(p))), p...)
}

// SetLastOffset makes the batch end at an offset behind its last record: compaction keeps the ends of batches.
func (b *Builder) SetLastOffset(o int64) {
	if o < b.last || o-b.o.BaseOffset > math.MaxInt32 {
		b.err = errors.Join(b.err, fmt.Errorf("last offset %d of a batch at %d whose last record is at %d", o, b.o.BaseOffset, b.last))
		return
	}
	b.last = o
}

// Build returns the batch with its CRC. The Builder must not be used again.
func (b *Builder) Build() (Batch, error) {
	if b.err != nil {
		return nil, b.err
	}
	if b.last < b.o.BaseOffset {
		return nil, errors.New("batch without records")
	}
	out := b.buf
	if b.o.Codec != None {
		level := b.o.Level
		if level == 0 {
			level = DefaultLevel
		}
		var err error
		if out, err = Compress(b.o.Codec, level, b.packedRoom()[:HeaderSize], b.buf[HeaderSize:]); err != nil {
			return nil, err
		}
		if b.o.Room != nil {
			b.o.Room.packed = kept(out)
		}
	}
	if b.o.Room != nil {
		b.o.Room.records = kept(b.buf)
	}
	if int64(len(out)) > math.MaxInt32 {
		return nil, fmt.Errorf("batch of %d bytes", len(out))
	}
	b.putHeader(out)
	return out, nil
}

// packedRoom is where the batch is compressed to.
func (b *Builder) packedRoom() []byte {
	if b.o.Room != nil && cap(b.o.Room.packed) >= HeaderSize {
		return b.o.Room.packed
	}
	return make([]byte, 0, HeaderSize+len(b.buf)/2)
}

func (b *Builder) putHeader(out []byte) {
	p := Producer{ID: NoProducerID, Epoch: NoProducerEpoch, BaseSequence: NoSequence}
	if b.o.Producer != nil {
		p = *b.o.Producer
	}
	epoch := NoLeaderEpoch
	if b.o.LeaderEpoch != nil {
		epoch = *b.o.LeaderEpoch
	}
	attributes := uint16(b.o.Codec)
	maxTime := b.maxTime
	if b.o.AppendTime != nil {
		attributes |= attrLogAppendTime
		maxTime = *b.o.AppendTime
	}
	if p.Transactional {
		attributes |= attrTransactional
	}
	if b.o.Control {
		attributes |= attrControl
	}
	if b.o.DeleteHorizon != nil {
		attributes |= attrDeleteHorizon
	}
	be := binary.BigEndian
	be.PutUint64(out[offBaseOffset:], uint64(b.o.BaseOffset))
	be.PutUint32(out[offLength:], uint32(len(out)-Overhead))
	be.PutUint32(out[offLeaderEpoch:], uint32(epoch))
	out[offMagic] = 2
	be.PutUint16(out[offAttributes:], attributes)
	be.PutUint32(out[offLastOffsetDelta:], uint32(b.last-b.o.BaseOffset))
	be.PutUint64(out[offBaseTimestamp:], uint64(b.baseTime))
	be.PutUint64(out[offMaxTimestamp:], uint64(maxTime))
	be.PutUint64(out[offProducerID:], uint64(p.ID))
	be.PutUint16(out[offProducerEpoch:], uint16(p.Epoch))
	be.PutUint32(out[offBaseSequence:], uint32(p.BaseSequence))
	be.PutUint32(out[offCount:], uint32(b.count))
	Batch(out).setCRC()
}

// WithoutRecords is the header of b alone, as compaction leaves it behind when a batch has lost its last record but its
// producer's sequence, or the end of the log, must be remembered.
func (b Batch) WithoutRecords() Batch {
	out := append(Batch(nil), b[:HeaderSize]...)
	binary.BigEndian.PutUint32(out[offLength:], HeaderSize-Overhead)
	out[offAttributes] = 0
	out[offAttributes+1] &= attrLogAppendTime | attrTransactional | attrControl
	none := NoTimestamp
	binary.BigEndian.PutUint64(out[offBaseTimestamp:], uint64(none))
	binary.BigEndian.PutUint32(out[offCount:], 0)
	out.setCRC()
	return out
}
