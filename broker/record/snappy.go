package record

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
)

// Snappy comes in two dresses: as one raw block (librdkafka, franz-go) or in the framing of xerial's snappy-java, which
// Kafka itself and sarama write: a header of 16 bytes, then chunks of a 4 byte length and a raw block each.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const (
	xerialHeader = 16
	xerialBlock  = 32 << 10 // uncompressed bytes in a chunk, as snappy-java cuts them
)

var errSnappy = errors.New("broken snappy framing")

func isXerial(src []byte) bool {
	return len(src) >= xerialHeader && string(src[:len(xerialMagic)]) == string(xerialMagic)
}

// snappyDecoder hands out the chunks of src one after the other; only one is in memory decompressed.
type snappyDecoder struct {
	src    []byte // undecoded
	raw    bool
	block  []byte // pooled
	unread []byte // part of block
}

// snappyBlockKept bounds what a pooled decoder holds on to.
const snappyBlockKept = 1 << 20

func newSnappy(src []byte) (io.ReadCloser, error) {
	d, _ := snappyDecoders.Get().(*snappyDecoder)
	if d == nil {
		d = new(snappyDecoder)
	}
	d.src, d.raw, d.unread = src, !isXerial(src), nil
	return d, nil
}

func (d *snappyDecoder) Close() error {
	d.src, d.unread = nil, nil
	if cap(d.block) > snappyBlockKept {
		d.block = nil
	}
	snappyDecoders.Put(d)
	return nil
}

func (d *snappyDecoder) Read(p []byte) (int, error) {
	for len(d.unread) == 0 {
		chunk, err := d.next()
		if err != nil {
			return 0, err
		}
		// A snappy block can say that it is 4 GiB long, but no block expands more than this.
		n, err := snappy.DecodedLen(chunk)
		if err != nil {
			return 0, err
		}
		if n/snappyMaxRatio > len(chunk) {
			return 0, errSnappy
		}
		if cap(d.block) < n {
			d.block = make([]byte, n)
		}
		if d.unread, err = snappy.Decode(d.block[:n], chunk); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.unread)
	d.unread = d.unread[n:]
	return n, nil
}

// snappyMaxRatio: the densest element of a snappy block, a copy of 64 bytes, takes 3.
const snappyMaxRatio = 22

func (d *snappyDecoder) next() ([]byte, error) {
	if d.raw {
		if d.src == nil {
			return nil, io.EOF
		}
		chunk := d.src
		d.src = nil
		return chunk, nil
	}
	for isXerial(d.src) { // streams may follow one another
		d.src = d.src[xerialHeader:]
	}
	if len(d.src) == 0 {
		return nil, io.EOF
	}
	if len(d.src) < 4 {
		return nil, errSnappy
	}
	n := binary.BigEndian.Uint32(d.src)
	d.src = d.src[4:]
	if uint64(n) > uint64(len(d.src)) {
		return nil, errSnappy
	}
	chunk := d.src[:n]
	d.src = d.src[n:]
	return chunk, nil
}

// appendXerial compresses src in the framing that every Kafka client reads.
func appendXerial(dst, src []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = binary.BigEndian.AppendUint32(dst, 1) // version
	dst = binary.BigEndian.AppendUint32(dst, 1) // oldest version that can read it
	for len(src) > 0 {
		n := min(len(src), xerialBlock)
		at := len(dst)
		dst = append(dst, make([]byte, 4+s2.MaxEncodedLen(n))...)
		block := s2.EncodeSnappy(dst[at+4:], src[:n])
		binary.BigEndian.PutUint32(dst[at:], uint32(len(block)))
		dst = dst[:at+4+len(block)]
		src = src[n:]
	}
	return dst
}
