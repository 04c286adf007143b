// Package record knows the bytes of records: batches (message format v2, KIP-98), the legacy message sets (v0, v1),
// their compression and the control records that end transactions. It does no I/O and keeps no state.
package record

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// A batch, big endian. The CRC covers everything behind itself, so the offset and the leader epoch, which the broker
// stamps, lie before it.
//
//	 0  base offset             8
//	 8  batch length            4   bytes behind this field
//	12  partition leader epoch  4
//	16  magic                   1   2
//	17  crc                     4   CRC-32C of 21..end
//	21  attributes              2
//	23  last offset delta       4
//	27  base timestamp          8   delete horizon when that attribute is set (KIP-534)
//	35  max timestamp           8
//	43  producer id             8   -1 = none
//	51  producer epoch          2
//	53  base sequence           4
//	57  count of records        4
//	61  records, compressed as a whole
const (
	offBaseOffset      = 0
	offLength          = 8
	offLeaderEpoch     = 12
	offMagic           = 16
	offCRC             = 17
	offAttributes      = 21
	offLastOffsetDelta = 23
	offBaseTimestamp   = 27
	offMaxTimestamp    = 35
	offProducerID      = 43
	offProducerEpoch   = 51
	offBaseSequence    = 53
	offCount           = 57

	// HeaderSize is the size of a batch without records.
	HeaderSize = 61
	// Overhead is what stands before the part of an entry that its length field counts, in every format.
	Overhead = 12
)

// Attribute bits of a batch.
const (
	attrCodecMask     = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

// NoTimestamp is the timestamp of a batch or record that has none.
const NoTimestamp int64 = -1

// NoProducerID, NoProducerEpoch and NoSequence mark a batch that no idempotent producer wrote; NoLeaderEpoch one that
// no leader has stamped.
const (
	NoProducerID    int64 = -1
	NoProducerEpoch int16 = -1
	NoSequence      int32 = -1
	NoLeaderEpoch   int32 = -1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is a view over exactly one whole batch of format v2. Next makes one; every accessor relies on what Next checked:
// at least HeaderSize bytes, magic 2, length field equal to the slice.
type Batch []byte

// BaseOffset is the offset of the first record.
func (b Batch) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(b[offBaseOffset:])) }

// LastOffset is the offset of the last record; compaction may have removed that record itself.
func (b Batch) LastOffset() int64 { return b.BaseOffset() + int64(b.LastOffsetDelta()) }

// NextOffset is the offset behind the batch.
func (b Batch) NextOffset() int64 { return b.LastOffset() + 1 }

// Size is the number of bytes of the batch with its header.
func (b Batch) Size() int { return len(b) }

// PartitionLeaderEpoch is the epoch of the leader that appended the batch, NoLeaderEpoch when unstamped.
func (b Batch) PartitionLeaderEpoch() int32 {
	return int32(binary.BigEndian.Uint32(b[offLeaderEpoch:]))
}

// Magic is 2.
func (b Batch) Magic() int8 { return int8(b[offMagic]) }

// CRC is the checksum that the batch carries.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[offCRC:]) }

// Attributes are the raw bits.
func (b Batch) Attributes() int16 { return int16(binary.BigEndian.Uint16(b[offAttributes:])) }

// Codec is the compression of the records. Values above Zstd exist on the wire and are refused by Validate.
func (b Batch) Codec() Codec { return Codec(b[offAttributes+1] & attrCodecMask) }

// IsLogAppendTime tells that MaxTimestamp is the time of the append and the time of every record.
func (b Batch) IsLogAppendTime() bool { return b[offAttributes+1]&attrLogAppendTime != 0 }

// IsTransactional tells that the batch belongs to a transaction (or ends one, if it is a control batch).
func (b Batch) IsTransactional() bool { return b[offAttributes+1]&attrTransactional != 0 }

// IsControl tells that the records are control records, never handed to consumers.
func (b Batch) IsControl() bool { return b[offAttributes+1]&attrControl != 0 }

// HasDeleteHorizon tells that BaseTimestamp is the time from which tombstones and markers of the batch may go (KIP-534).
func (b Batch) HasDeleteHorizon() bool { return b[offAttributes+1]&attrDeleteHorizon != 0 }

// LastOffsetDelta is LastOffset minus BaseOffset.
func (b Batch) LastOffsetDelta() int32 {
	return int32(binary.BigEndian.Uint32(b[offLastOffsetDelta:]))
}

// BaseTimestamp is what the timestamp deltas of the records count from, in ms.
func (b Batch) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[offBaseTimestamp:])) }

// MaxTimestamp is the largest timestamp of the records, or the time of the append, in ms.
func (b Batch) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[offMaxTimestamp:])) }

// ProducerID is the id of the idempotent producer, NoProducerID for none.
func (b Batch) ProducerID() int64 { return int64(binary.BigEndian.Uint64(b[offProducerID:])) }

// HasProducerID tells whether an idempotent producer, or a coordinator on its behalf, wrote the batch.
func (b Batch) HasProducerID() bool { return b.ProducerID() > NoProducerID }

// ProducerEpoch is the epoch of the producer.
func (b Batch) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(b[offProducerEpoch:])) }

// BaseSequence is the sequence number of the first record.
func (b Batch) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(b[offBaseSequence:])) }

// LastSequence is the sequence number of the last record. Sequences go from 2^31-1 to 0.
func (b Batch) LastSequence() int32 {
	base := b.BaseSequence()
	if base == NoSequence {
		return NoSequence
	}
	return AddSequence(base, b.LastOffsetDelta())
}

// AddSequence is seq+n in the arithmetic of sequence numbers, which wrap to 0 behind 2^31-1.
func AddSequence(seq, n int32) int32 { return (seq + n) & 0x7fffffff }

// Count is the number of records, as the header says.
func (b Batch) Count() int32 { return int32(binary.BigEndian.Uint32(b[offCount:])) }

// Payload is the records, compressed if Codec says so.
func (b Batch) Payload() []byte { return b[HeaderSize:] }

// SetBaseOffset stamps the offset of the first record. Not covered by the CRC.
func (b Batch) SetBaseOffset(o int64) { binary.BigEndian.PutUint64(b[offBaseOffset:], uint64(o)) }

// SetPartitionLeaderEpoch stamps the epoch of the leader. Not covered by the CRC.
func (b Batch) SetPartitionLeaderEpoch(e int32) {
	binary.BigEndian.PutUint32(b[offLeaderEpoch:], uint32(e))
}

// SetMaxTimestamp sets the largest timestamp and its meaning and computes the CRC anew.
func (b Batch) SetMaxTimestamp(ts int64, logAppendTime bool) {
	if b.MaxTimestamp() == ts && b.IsLogAppendTime() == logAppendTime {
		return
	}
	if logAppendTime {
		b[offAttributes+1] |= attrLogAppendTime
	} else {
		b[offAttributes+1] &^= attrLogAppendTime
	}
	binary.BigEndian.PutUint64(b[offMaxTimestamp:], uint64(ts))
	b.setCRC()
}

// setCRC computes the checksum anew.
func (b Batch) setCRC() { binary.BigEndian.PutUint32(b[offCRC:], b.computeCRC()) }

// computeCRC is the checksum that the batch should carry.
func (b Batch) computeCRC() uint32 { return crc32.Checksum(b[offAttributes:], castagnoli) }

// CheckCRC returns a *Corrupt error if the batch does not carry the checksum of its bytes.
func (b Batch) CheckCRC() error {
	if got := b.computeCRC(); got != b.CRC() {
		return corruptf("batch at offset %d: crc is %d, computed %d", b.BaseOffset(), b.CRC(), got)
	}
	return nil
}

// PeekMagic tells the format of the entry that buf starts with; false if buf is too short to tell.
func PeekMagic(buf []byte) (int8, bool) {
	if len(buf) <= offMagic {
		return 0, false
	}
	return int8(buf[offMagic]), true
}

// PeekSize tells the whole size that the entry at the start of buf claims, of any format; false if buf is too short to
// tell. The claim is unchecked: it may be negative or absurd.
func PeekSize(buf []byte) (int64, bool) {
	if len(buf) < Overhead {
		return 0, false
	}
	return int64(int32(binary.BigEndian.Uint32(buf[offLength:]))) + Overhead, true
}

// Next cuts the first batch off buf. It returns io.ErrUnexpectedEOF when buf ends inside the batch (or is empty: io.EOF)
// and a *Corrupt error when what buf starts with can be no batch. It checks the frame, not the CRC.
func Next(buf []byte) (b Batch, rest []byte, err error) {
	if len(buf) < Overhead {
		if len(buf) == 0 {
			return nil, nil, io.EOF
		}
		return nil, buf, io.ErrUnexpectedEOF
	}
	length := int64(int32(binary.BigEndian.Uint32(buf[offLength:])))
	if len(buf) > offMagic && buf[offMagic] != 2 {
		return nil, buf, corruptf("magic is %d, want 2", int8(buf[offMagic]))
	}
	if length < HeaderSize-Overhead {
		return nil, buf, corruptf("batch length %d is less than the header's", length)
	}
	if int64(len(buf)) < length+Overhead {
		return nil, buf, io.ErrUnexpectedEOF
	}
	n := int(length) + Overhead
	return Batch(buf[:n:n]), buf[n:], nil
}
