package record

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"iter"
)

// A message of the formats before batches (v0: Kafka 0.8; v1: 0.10, KIP-32), big endian:
//
//	 0  offset      8
//	 8  size        4   bytes behind this field
//	12  crc         4   CRC-32 (IEEE) of 16..end
//	16  magic       1   0 or 1
//	17  attributes  1   codec in the low three bits; 0x08: timestamp is the time of the append (v1)
//	18  timestamp   8   v1 only
//	..  key         4 + bytes, length -1: null
//	..  value       4 + bytes, length -1: null
//
// A set of messages is compressed by making it the value of one message, the wrapper, which has the offset of the last
// message within. In v0 the messages within have their own offsets, in v1 they count from 0 (KIP-31).
const (
	offMessageCRC        = 12
	offMessageAttributes = 17
	offMessageTimestamp  = 18

	messageHeaderV0 = 18
	messageHeaderV1 = 26
	// minMessageSize is the size of a v0 message with null key and null value.
	minMessageSize = messageHeaderV0 + 8
)

// Message is a view over exactly one whole message of format v0 or v1. NextMessage makes one and checks what the
// accessors rely on: lengths of key and value fit.
type Message []byte

// NextMessage cuts the first message off buf; the legacy counterpart of Next, with the same errors.
func NextMessage(buf []byte) (m Message, rest []byte, err error) {
	if len(buf) == 0 {
		return nil, nil, io.EOF
	}
	size, ok := PeekSize(buf)
	if !ok {
		return nil, buf, io.ErrUnexpectedEOF
	}
	if size < minMessageSize {
		return nil, buf, corruptf("Record size %d is less than the minimum record overhead (%d)", size-Overhead, minMessageSize-Overhead)
	}
	magic, ok := PeekMagic(buf)
	if ok && magic != 0 && magic != 1 {
		return nil, buf, corruptf("magic is %d, want 0 or 1", magic)
	}
	if int64(len(buf)) < size {
		return nil, buf, io.ErrUnexpectedEOF
	}
	m = Message(buf[:size:size])
	if !m.wellFormed() {
		return nil, buf, corruptf("message at offset %d: key and value do not fill its %d bytes", m.Offset(), size)
	}
	return m, buf[size:], nil
}

func (m Message) wellFormed() bool {
	at := m.keyAt()
	for range 2 {
		if at+4 > len(m) {
			return false
		}
		n := int(int32(binary.BigEndian.Uint32(m[at:])))
		at += 4
		if n > len(m)-at {
			return false
		}
		at += max(n, 0)
	}
	return at == len(m)
}

func (m Message) keyAt() int {
	if m.Magic() == 0 {
		return messageHeaderV0
	}
	return messageHeaderV1
}

// Offset of the message; of a wrapper: of the last message within.
func (m Message) Offset() int64 { return int64(binary.BigEndian.Uint64(m)) }

// CRC is the checksum that the message carries.
func (m Message) CRC() uint32 { return binary.BigEndian.Uint32(m[offMessageCRC:]) }

// Magic is 0 or 1.
func (m Message) Magic() int8 { return int8(m[offMagic]) }

// Codec is the compression of the value, which is then a set of messages.
func (m Message) Codec() Codec { return Codec(m[offMessageAttributes] & attrCodecMask) }

// IsLogAppendTime tells that the timestamp is the time of the append.
func (m Message) IsLogAppendTime() bool {
	return m.Magic() == 1 && m[offMessageAttributes]&attrLogAppendTime != 0
}

// Timestamp in ms, NoTimestamp in v0.
func (m Message) Timestamp() int64 {
	if m.Magic() == 0 {
		return NoTimestamp
	}
	return int64(binary.BigEndian.Uint64(m[offMessageTimestamp:]))
}

// Key of the message, nil for null.
func (m Message) Key() []byte {
	key, _ := m.bytesAt(m.keyAt())
	return key
}

// Value of the message, nil for null.
func (m Message) Value() []byte {
	_, at := m.bytesAt(m.keyAt())
	value, _ := m.bytesAt(at)
	return value
}

func (m Message) bytesAt(at int) (p []byte, next int) {
	n := int(int32(binary.BigEndian.Uint32(m[at:])))
	at += 4
	if n < 0 {
		return nil, at
	}
	return m[at : at+n : at+n], at + n
}

// computeCRC is the checksum that the message should carry.
func (m Message) computeCRC() uint32 { return crc32.ChecksumIEEE(m[offMagic:]) }

// CheckCRC returns a *Corrupt error if the message does not carry the checksum of its bytes.
func (m Message) CheckCRC() error {
	if got := m.computeCRC(); got != m.CRC() {
		return corruptf("message at offset %d: crc is %d, computed %d", m.Offset(), m.CRC(), got)
	}
	return nil
}

// LegacyRecord is a message as a reader sees it, with the bytes that it stands in.
type LegacyRecord struct {
	Record
	Message Message
}

func (m Message) record() LegacyRecord {
	return LegacyRecord{Message: m, Record: Record{Offset: m.Offset(), Timestamp: m.Timestamp(), Key: m.Key(), Value: m.Value()}}
}

// Messages yields the messages of a wrapper, or m itself if it is none, with absolute offsets and with the times that
// they have for readers. The checksums of the messages within are not checked. Slices are valid until the next step.
//
// What a wrapper holds is decompressed as a whole: the last offset within says what the first one is.
func (m Message) Messages(l Limits) iter.Seq2[LegacyRecord, error] {
	return func(yield func(LegacyRecord, error) bool) {
		if m.Codec() == None {
			yield(m.record(), nil)
			return
		}
		var src stream
		if err := m.openWithin(&src, l); err != nil {
			yield(LegacyRecord{}, err)
			return
		}
		defer src.close()
		set, err := src.all()
		if err != nil {
			yield(LegacyRecord{}, err)
			return
		}
		base, err := m.baseOf(set)
		if err != nil {
			yield(LegacyRecord{}, err)
			return
		}
		for len(set) > 0 {
			var inner Message
			if inner, set, err = NextMessage(set); err != nil {
				if err != io.ErrUnexpectedEOF { // the end of a set may be cut off, as the end of an answer was
					yield(LegacyRecord{}, err)
				}
				return
			}
			if inner.Codec() != None {
				yield(LegacyRecord{}, invalid("Inner messages must not be compressed"))
				return
			}
			r := inner.record()
			r.Offset += base
			if m.IsLogAppendTime() {
				r.Timestamp = m.Timestamp()
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// openWithin opens the set that a wrapper holds.
func (m Message) openWithin(src *stream, l Limits) error {
	value := m.Value()
	switch {
	case value == nil:
		return invalidf("Found invalid compressed record set with null value (magic = %d)", m.Magic())
	case m.Codec() == Zstd:
		return invalidf("Invalid wrapper compressionType found in legacy deep record iterator %d", m.Magic())
	case m.Codec() == LZ4 && m.Magic() == 0:
		value = withLZ4HeaderChecksum(value)
	}
	return src.open(m.Codec(), value, l)
}

// baseOf is what to add to the offsets within.
func (m Message) baseOf(set []byte) (int64, error) {
	last, any := int64(0), false
	for {
		inner, rest, err := NextMessage(set)
		if err != nil {
			break // Messages comes upon it and tells
		}
		last, any, set = inner.Offset(), true, rest
	}
	switch {
	case !any:
		return 0, invalid("Found invalid compressed record set with no inner records")
	case m.Magic() == 0 || m.Offset() == 0: // offset 0: some versions of librdkafka produce such wrappers
		return 0, nil
	case m.Offset() < last:
		return 0, invalidf("Found invalid wrapper offset in compressed v1 message set, wrapper offset '%d' is less than the "+
			"last inner message offset '%d' and it is not zero.", m.Offset(), last)
	}
	return m.Offset() - last, nil
}

// AppendMessage encodes a message and appends it to dst. c marks value as a compressed set; ts is left out in v0.
func AppendMessage(dst []byte, magic int8, c Codec, logAppendTime bool, offset, ts int64, key, value []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(offset))
	dst = append(dst, make([]byte, 8)...) // size and crc follow
	attributes := byte(c)
	if logAppendTime {
		attributes |= attrLogAppendTime
	}
	dst = append(dst, byte(magic), attributes)
	if magic == 1 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(ts))
	}
	for _, p := range [][]byte{key, value} {
		if p == nil {
			dst = binary.BigEndian.AppendUint32(dst, 0xffffffff)
		} else {
			dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(p))), p...)
		}
	}
	m := Message(dst[start:])
	binary.BigEndian.PutUint32(m[offLength:], uint32(len(m)-Overhead))
	binary.BigEndian.PutUint32(m[offMessageCRC:], m.computeCRC())
	return dst
}
