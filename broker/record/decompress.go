package record

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kerr"
)

// decoder is a pooled decompressor over bytes in memory; Close gives it back.
type decoder struct {
	io.Reader
	in     bytes.Reader
	giveIn func()
}

func (d *decoder) Close() error {
	d.in.Reset(nil) // the pool must not keep a request's memory alive
	d.giveIn()
	return nil
}

var gzipDecoders, lz4Decoders, zstdDecoders, snappyDecoders sync.Pool

func newDecoder(c Codec, src []byte) (io.ReadCloser, error) {
	switch c {
	case Gzip:
		return newGzip(src)
	case Snappy:
		return newSnappy(src)
	case LZ4:
		return newLZ4(src), nil
	case Zstd:
		return newZstd(src)
	}
	return nil, &Invalid{Err: kerr.UnsupportedCompressionType, Message: fmt.Sprintf("Unknown compression type id: %d", c)}
}

func newGzip(src []byte) (io.ReadCloser, error) {
	d, _ := gzipDecoders.Get().(*decoder)
	if d == nil {
		g := new(gzipStream)
		d = &decoder{Reader: g}
		d.giveIn = func() {
			g.src = nil
			gzipDecoders.Put(d)
		}
	}
	if err := d.Reader.(*gzipStream).reset(src, &d.in); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func newLZ4(src []byte) io.ReadCloser {
	d, _ := lz4Decoders.Get().(*decoder)
	if d == nil {
		d = &decoder{Reader: lz4.NewReader(nil)}
		d.giveIn = func() { lz4Decoders.Put(d) }
	}
	d.in.Reset(src)
	d.Reader.(*lz4.Reader).Reset(&d.in)
	return d
}

// zstd's memory is its window, which a frame of a few bytes may set to anything. Up to windowPooled frames share pooled
// decoders. What needs more, which levels 20 to 22 of zstd do, takes turns with a decoder that is dropped after use.
const (
	windowPooled  = 8 << 20
	windowLargest = 128 << 20 // what zstd's own decoder accepts by default
)

var largeZstd sync.Mutex

func newZstd(src []byte) (io.ReadCloser, error) {
	if zstdWindow(src) > windowPooled {
		return newLargeZstd(src)
	}
	d, _ := zstdDecoders.Get().(*decoder)
	if d == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(windowPooled))
		if err != nil {
			return nil, err
		}
		d = &decoder{Reader: z}
		d.giveIn = func() { zstdDecoders.Put(d) }
	}
	d.in.Reset(src)
	if err := d.Reader.(*zstd.Decoder).Reset(&d.in); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func newLargeZstd(src []byte) (io.ReadCloser, error) {
	largeZstd.Lock()
	d := &decoder{}
	d.in.Reset(src)
	z, err := zstd.NewReader(&d.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(windowLargest))
	if err != nil {
		largeZstd.Unlock()
		return nil, err
	}
	d.Reader = z
	d.giveIn = func() {
		z.Close()
		largeZstd.Unlock()
	}
	return d, nil
}

// zstdWindow is the window that the first frame of src asks for. A later frame with a larger one fails.
func zstdWindow(src []byte) uint64 {
	var h zstd.Header
	if h.Decode(src) != nil {
		return 0 // the decoder tells what is wrong
	}
	if h.SingleSegment {
		return h.FrameContentSize
	}
	return h.WindowSize
}
