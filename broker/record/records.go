package record

import (
	"iter"
)

// Record is one record of a batch, or one message of a legacy set.
type Record struct {
	Offset     int64
	Timestamp  int64  // ms
	Key, Value []byte // nil is null
	Headers    []Header
	Attributes int8 // unused by Kafka, kept
}

// Header is one header of a record (KIP-82).
type Header struct {
	Key   string
	Value []byte // nil is null
}

// A record in a batch, all numbers zigzag varints:
//
//	length           of what follows
//	attributes       1 byte
//	timestamp delta  from the batch's base timestamp
//	offset delta     from the batch's base offset
//	key              length (-1: null), bytes
//	value            length (-1: null), bytes
//	headers          count, each: key length, key, value length (-1: null), value
//
// scanned is where the parts of one record lie. It holds no slices: validation looks at lengths only.
type scanned struct {
	timestampDelta int64
	offsetDelta    int32
	attributes     int8
	headers        int32 // count
	keyAt, keyLen  int   // keyLen < 0: null
	valueAt        int
	valueLen       int
	headersAt      int
}

// Reasons why a record cannot be read, in the order scan finds them.
const (
	badEnd         = "premature end of the records"
	badLength      = "record length runs over the end of the records"
	badStructure   = "Found invalid record structure"
	badHeaderCount = "Found invalid number of record headers"
	badHeaderKey   = "Invalid negative header key size"
	badSize        = "Invalid record size: the parts of the record do not fill its length"
)

// scan finds the parts of the record that b starts with and returns its whole size. A reason other than "" says that
// there is no such record. It never allocates.
func (s *scanned) scan(b []byte) (size int, reason string) {
	if size := s.scanShort(b); size > 0 {
		return size, ""
	}
	return s.scanAny(b)
}

// scanShort is scan for the common record: all numbers in one or two bytes, no headers. It returns 0 for any other.
func (s *scanned) scanShort(b []byte) int {
	length, i := shortVarint(b, 0)
	end := i + length
	if i < 0 || length < 0 || end > len(b) || i >= end {
		return 0
	}
	b = b[:end]
	s.attributes = int8(b[i])
	delta, i := shortVarint(b, i+1)
	if i < 0 {
		return 0
	}
	s.timestampDelta = int64(delta)
	if delta, i = shortVarint(b, i); i < 0 {
		return 0
	}
	s.offsetDelta = int32(delta)
	if s.keyLen, i = shortVarint(b, i); i < 0 {
		return 0
	}
	s.keyAt = i
	i += max(s.keyLen, 0)
	if s.valueLen, i = shortVarint(b, i); i < 0 {
		return 0
	}
	s.valueAt = i
	i += max(s.valueLen, 0)
	if i+1 != end || b[i] != 0 {
		return 0
	}
	s.headers, s.headersAt = 0, end
	return end
}

func (s *scanned) scanAny(b []byte) (size int, reason string) {
	length, i := readVarint(b, 0)
	if i < 0 {
		return 0, badEnd
	}
	if length < 0 || int(length) > len(b)-i {
		return 0, badLength
	}
	end := i + int(length)
	b = b[:end]
	if i >= end {
		return 0, badStructure
	}
	s.attributes = int8(b[i])
	i++
	if s.timestampDelta, i = readVarlong(b, i); i < 0 {
		return 0, badStructure
	}
	if s.offsetDelta, i = readVarint(b, i); i < 0 {
		return 0, badStructure
	}
	var n int32
	if n, i = readVarint(b, i); i < 0 || int(n) > end-i {
		return 0, badStructure
	}
	s.keyAt, s.keyLen = i, int(n)
	i += max(int(n), 0)
	if n, i = readVarint(b, i); i < 0 || int(n) > end-i {
		return 0, badStructure
	}
	s.valueAt, s.valueLen = i, int(n)
	i += max(int(n), 0)
	if n, i = readVarint(b, i); i < 0 {
		return 0, badStructure
	}
	s.headers, s.headersAt = n, i
	if n != 0 {
		if i, reason = skipHeaders(b, i, n); reason != "" {
			return 0, reason
		}
	}
	if i != end {
		return 0, badSize
	}
	return end, ""
}

func skipHeaders(b []byte, i int, count int32) (next int, reason string) {
	if count < 0 || int(count) > len(b)-i {
		return 0, badHeaderCount
	}
	for ; count > 0; count-- {
		var n int32
		if n, i = readVarint(b, i); i < 0 || int(n) > len(b)-i {
			return 0, badStructure
		}
		if n < 0 {
			return 0, badHeaderKey
		}
		i += int(n)
		if n, i = readVarint(b, i); i < 0 || int(n) > len(b)-i {
			return 0, badStructure
		}
		i += max(int(n), 0)
	}
	return i, ""
}

// record makes the Record of what scan found in b. Headers are appended to h.
func (s *scanned) record(b []byte, h []Header) Record {
	r := Record{Attributes: s.attributes, Headers: h}
	if s.keyLen >= 0 {
		r.Key = b[s.keyAt : s.keyAt+s.keyLen : s.keyAt+s.keyLen]
	}
	if s.valueLen >= 0 {
		r.Value = b[s.valueAt : s.valueAt+s.valueLen : s.valueAt+s.valueLen]
	}
	i := s.headersAt
	for k := s.headers; k > 0; k-- {
		var n int32
		n, i = readVarint(b, i)
		hd := Header{Key: string(b[i : i+int(n)])}
		i += int(n)
		if n, i = readVarint(b, i); n >= 0 {
			hd.Value = b[i : i+int(n) : i+int(n)]
			i += int(n)
		}
		r.Headers = append(r.Headers, hd)
	}
	return r
}

// Records yields the records one by one, decompressing as it goes. Key, Value, Headers and their values are valid only
// until the next step. Whatever is wrong with the batch is yielded last, as an *Invalid or *Corrupt error.
func (b Batch) Records(l Limits) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		count := b.Count()
		if count == 0 && len(b.Payload()) == 0 {
			return
		}
		if count < 0 {
			yield(Record{}, invalidf("Found invalid record count %d in magic v2 batch", count))
			return
		}
		var src stream
		if err := src.open(b.Codec(), b.Payload(), l); err != nil {
			yield(Record{}, err)
			return
		}
		defer src.close()
		var (
			s       scanned
			headers []Header
		)
		base, baseTime, fixedTime := b.BaseOffset(), b.BaseTimestamp(), b.IsLogAppendTime()
		for range count {
			raw, err := src.next(&s)
			if err != nil {
				yield(Record{}, err)
				return
			}
			r := s.record(raw, headers[:0])
			headers = r.Headers
			r.Offset = base + int64(s.offsetDelta)
			r.Timestamp = baseTime + s.timestampDelta
			if fixedTime {
				r.Timestamp = b.MaxTimestamp()
			}
			if !yield(r, nil) {
				return
			}
		}
		if more, err := src.more(); err != nil {
			yield(Record{}, err)
		} else if more {
			yield(Record{}, errLeftOver)
		}
	}
}

var errLeftOver = invalidf("Incorrect declared batch size, records still remaining in file")
