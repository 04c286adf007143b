package record

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// wholeSize is how much a batch may decompress to and still be decompressed in one go. Most batches are smaller, and
// one go is several times cheaper than a stream: what a later block copies from is still in place, and no decoder has
// to be started anew.
const wholeSize = 1 << 20

var wholes = sync.Pool{New: func() any { b := make([]byte, 0, wholeSize); return &b }}

// decompressWhole decompresses all of src into the room behind len(dst), which must be empty. It says no to what does
// not fit and to whatever is unusual or broken: a stream takes the one and has a name for the other.
func decompressWhole(c Codec, dst, src []byte) (out []byte, ok bool) {
	switch c {
	case Gzip:
		return gunzipWhole(dst, src)
	case Snappy:
		return snappyWhole(dst, src)
	case LZ4:
		return lz4Whole(dst, src)
	case Zstd:
		return zstdWhole(dst, src)
	}
	return dst, false
}

func snappyWhole(dst, src []byte) ([]byte, bool) {
	d := snappyDecoder{src: src, raw: !isXerial(src)}
	for {
		chunk, err := d.next()
		if err != nil {
			return dst, err == io.EOF
		}
		n, err := snappy.DecodedLen(chunk)
		if err != nil || n > cap(dst)-len(dst) {
			return dst, false
		}
		if _, err := snappy.Decode(dst[len(dst):len(dst)+n], chunk); err != nil {
			return dst, false
		}
		dst = dst[:len(dst)+n]
	}
}

// Of an LZ4 frame's descriptor: flags, the code of the largest block, maybe the size of the content, a checksum.
const (
	lz4Usual    = 0x60 // version 1, blocks that do not depend on one another
	lz4HasSize  = 0x08
	lz4HasSum   = 0x04
	lz4Stored   = 1 << 31 // in a block's size: it is not compressed
	lz4Smallest = 4       // code of blocks of 64 KiB; each further one means four times as much
	lz4Largest  = 7
)

// lz4Whole takes frames as Kafka's clients write them. As in Kafka, the checksum of the content is passed over: the
// batch's own covers the same bytes, compressed.
func lz4Whole(dst, src []byte) ([]byte, bool) {
	for len(src) > 0 {
		if len(src) < 7 || binary.LittleEndian.Uint32(src) != lz4Magic {
			return dst, false
		}
		flags, code, head := src[4], int(src[5]>>4), 6
		if flags&^(lz4HasSize|lz4HasSum) != lz4Usual || code < lz4Smallest || code > lz4Largest {
			return dst, false
		}
		if flags&lz4HasSize != 0 {
			head += 8
		}
		if len(src) <= head || src[head] != byte(xxh32(src[4:head])>>8) {
			return dst, false
		}
		begin := len(dst)
		out, rest, ok := lz4Blocks(dst, src[head+1:], 64<<10<<(2*(code-lz4Smallest)))
		if !ok {
			return dst, false
		}
		if flags&lz4HasSize != 0 && binary.LittleEndian.Uint64(src[6:]) != uint64(len(out)-begin) {
			return dst, false
		}
		if flags&lz4HasSum != 0 {
			if len(rest) < 4 {
				return dst, false
			}
			rest = rest[4:]
		}
		dst, src = out, rest
	}
	return dst, true
}

// lz4Blocks decompresses the blocks of a frame, none of which may be larger than most.
func lz4Blocks(dst, src []byte, most int) (out, rest []byte, ok bool) {
	for len(src) >= 4 {
		size := binary.LittleEndian.Uint32(src)
		src = src[4:]
		if size == 0 {
			return dst, src, true
		}
		n := int(size &^ lz4Stored)
		if n > len(src) || n > most {
			return dst, src, false
		}
		room := dst[len(dst):min(cap(dst), len(dst)+most)]
		if size&lz4Stored == 0 {
			var err error
			if n, err = lz4.UncompressBlock(src[:n], room); err != nil {
				return dst, src, false
			}
		} else if copy(room, src[:n]) < n {
			return dst, src, false
		}
		dst, src = dst[:len(dst)+n], src[size&^lz4Stored:]
	}
	return dst, src, false
}

var zstdWholeDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(windowLargest), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}}

func zstdWhole(dst, src []byte) ([]byte, bool) {
	d := zstdWholeDecoders.Get().(*zstd.Decoder)
	defer zstdWholeDecoders.Put(d)
	out, err := d.DecodeAll(src, dst)
	if err != nil {
		return dst, false
	}
	return out, true
}
