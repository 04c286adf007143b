package record

import (
	"io"
	"math"
	"sync"
)

// stream is the records of a batch behind a window: the payload itself if it is not compressed, a pooled buffer that
// holds all of it decompressed if that is small (whole.go), otherwise one that a pooled decoder fills as the reader
// goes. So reading a batch costs the memory of its largest record, not of all of them, and the window grows with the
// bytes that arrive, never with what a length field promises.
type stream struct {
	codec  Codec
	src    io.ReadCloser // nil: everything there is lies in buf. Close gives the decoder back to its pool
	buf    []byte
	r, w   int // buf[r:w] is decompressed and not yet read
	budget int // bytes that may still be decompressed
	pooled *[]byte
	whole  bool // pooled is one of wholes
}

// windowSize is the size of the windows that are pooled.
const windowSize = 32 << 10

var windows = sync.Pool{New: func() any { b := make([]byte, windowSize); return &b }}

func (s *stream) open(c Codec, payload []byte, l Limits) error {
	if c == None {
		*s = stream{buf: payload, w: len(payload)}
		return nil
	}
	if s.openWhole(c, payload, l) {
		return nil
	}
	src, err := newDecoder(c, payload)
	if err != nil {
		return decompressError(c, err)
	}
	w := windows.Get().(*[]byte)
	*s = stream{codec: c, src: src, buf: *w, pooled: w, budget: l.max()}
	return nil
}

// openWhole decompresses everything at once, if that will do.
func (s *stream) openWhole(c Codec, payload []byte, l Limits) bool {
	if len(payload) > wholeSize {
		return false
	}
	w := wholes.Get().(*[]byte)
	out, ok := decompressWhole(c, (*w)[:0], payload)
	if !ok || len(out) > l.max() {
		wholes.Put(w)
		return false
	}
	*s = stream{codec: c, buf: out, w: len(out), pooled: w, whole: true}
	return true
}

func (s *stream) close() {
	s.ended()
	switch {
	case s.pooled == nil:
	case s.whole:
		wholes.Put(s.pooled)
	default:
		windows.Put(s.pooled)
	}
	s.pooled = nil
}

func (s *stream) ended() {
	if s.src != nil {
		s.src.Close() // a decoder has nothing to fail with any more
		s.src = nil
	}
}

// fill makes at least n bytes readable unless the records end before that.
func (s *stream) fill(n int) error {
	for s.w-s.r < n && s.src != nil {
		if s.r > 0 {
			s.w = copy(s.buf, s.buf[s.r:s.w])
			s.r = 0
		}
		if s.w == len(s.buf) {
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		k, err := s.src.Read(s.buf[s.w:])
		s.w += k
		if s.budget -= k; s.budget < 0 {
			return decompressError(s.codec, errTooLarge)
		}
		if err == io.EOF {
			s.ended()
		} else if err != nil {
			return decompressError(s.codec, err)
		}
	}
	return nil
}

// all makes everything readable and returns it, valid until close.
func (s *stream) all() ([]byte, error) {
	if err := s.fill(math.MaxInt); err != nil {
		return nil, err
	}
	return s.buf[s.r:s.w], nil
}

// settled tells that all there is lies in the window: what record returned stays valid until close.
func (s *stream) settled() bool { return s.src == nil }

// head makes the start of the next record readable and tells how many bytes the record takes with its length.
func (s *stream) head() (size int, err error) {
	if s.w-s.r < maxVarint {
		if err := s.fill(maxVarint); err != nil {
			return 0, err
		}
	}
	length, n := readVarint(s.buf[s.r:s.w], 0)
	if n < 0 {
		return 0, invalidf(badEnd)
	}
	if length < 0 {
		return 0, invalidf(badLength)
	}
	return n + int(length), nil
}

// record returns the bytes of the next record, valid until the next call.
func (s *stream) record() ([]byte, error) {
	size, err := s.head()
	if err != nil {
		return nil, err
	}
	if s.w-s.r < size {
		if err := s.fill(size); err != nil {
			return nil, err
		}
		if s.w-s.r < size {
			return nil, invalidf(badLength)
		}
	}
	p := s.buf[s.r : s.r+size]
	s.r += size
	return p, nil
}

// next returns the bytes of the next record as record does, with its parts in r.
func (s *stream) next(r *scanned) (raw []byte, err error) {
	var reason string
	if s.settled() { // its length needs no look ahead
		var size int
		size, reason = r.scan(s.buf[s.r:s.w])
		raw = s.buf[s.r : s.r+size]
		s.r += size
	} else {
		if raw, err = s.record(); err != nil {
			return nil, err
		}
		_, reason = r.scan(raw)
	}
	if reason != "" {
		return nil, invalid(reason)
	}
	return raw, nil
}

// more tells whether there are bytes behind the last record.
func (s *stream) more() (bool, error) {
	err := s.fill(1)
	return s.w > s.r, err
}

// skip passes over n bytes without holding them.
func (s *stream) skip(n int) error {
	for {
		k := min(n, s.w-s.r)
		s.r += k
		if n -= k; n == 0 {
			return nil
		}
		if err := s.fill(1); err != nil {
			return err
		}
		if s.w == s.r {
			return invalidf(badLength)
		}
	}
}

// scanLarge does what scanned.scan does for a record of size bytes that is not worth holding: only the few bytes of its
// numbers are ever in the window. Positions in r are meaningless afterwards.
func (s *stream) scanLarge(r *scanned, size int) error {
	left := size
	number := func() (int, error) {
		if err := s.fill(maxVarint); err != nil {
			return 0, err
		}
		v, n := readVarint(s.buf[s.r:s.w], 0)
		if n < 0 || n > left {
			return 0, invalidf(badStructure)
		}
		s.r += n
		left -= n
		return int(v), nil
	}
	bytes := func() (int, error) {
		n, err := number()
		if err != nil {
			return 0, err
		}
		if n > left {
			return 0, invalidf(badStructure)
		}
		left -= max(n, 0)
		return n, s.skip(max(n, 0))
	}

	if _, err := number(); err != nil { // the length
		return err
	}
	if err := s.fill(1 + maxVarlong); err != nil {
		return err
	}
	head := s.buf[s.r:s.w]
	if len(head) == 0 {
		return invalidf(badLength)
	}
	r.attributes = int8(head[0])
	delta, n := readVarlong(head, 1)
	if n < 0 || n > left {
		return invalidf(badStructure)
	}
	r.timestampDelta = delta
	s.r += n
	left -= n
	offsetDelta, err := number()
	if err != nil {
		return err
	}
	r.offsetDelta = int32(offsetDelta)
	if r.keyLen, err = bytes(); err != nil {
		return err
	}
	if r.valueLen, err = bytes(); err != nil {
		return err
	}
	headers, err := number()
	if err != nil {
		return err
	}
	if headers < 0 || headers > left {
		return invalidf(badHeaderCount)
	}
	for range headers {
		if n, err := bytes(); err != nil {
			return err
		} else if n < 0 {
			return invalidf(badHeaderKey)
		}
		if _, err := bytes(); err != nil {
			return err
		}
	}
	if left != 0 {
		return invalidf(badSize)
	}
	return nil
}
