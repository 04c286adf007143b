package record

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compress appends src, compressed, to dst. level is DefaultLevel or a level of the codec as Kafka counts them (KIP-390):
// gzip 1..9 (-1: default), lz4 1..17, zstd -131072..22. A level that the encoder here does not have is served by the
// nearest one.
func Compress(c Codec, level int, dst, src []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		return compressGzip(level, dst, src)
	case Snappy:
		return appendXerial(dst, src), nil
	case LZ4:
		return compressLZ4(level, dst, src)
	case Zstd:
		return compressZstd(level, dst, src)
	}
	return nil, fmt.Errorf("compress: %s", c)
}

var gzipEncoders [gzip.BestCompression + 1]sync.Pool // by level; 0 is the default

func compressGzip(level int, dst, src []byte) ([]byte, error) {
	if level < 1 || level > gzip.BestCompression {
		level = 0
	}
	w, _ := gzipEncoders[level].Get().(*gzip.Writer)
	if w == nil {
		at := level
		if at == 0 {
			at = gzip.DefaultCompression
		}
		var err error
		if w, err = gzip.NewWriterLevel(nil, at); err != nil {
			return nil, err
		}
	}
	defer gzipEncoders[level].Put(w)
	out := bytes.NewBuffer(dst)
	w.Reset(out)
	return finish(w, out, src)
}

// lz4DefaultLevel is Kafka's; there, too, it means the fast compressor and not one of the thorough ones.
const lz4DefaultLevel = 9

var lz4Levels = [...]lz4.CompressionLevel{lz4.Level1, lz4.Level2, lz4.Level3, lz4.Level4, lz4.Level5, lz4.Level6,
	lz4.Level7, lz4.Level8, lz4.Level9}

var lz4Encoders sync.Pool

func compressLZ4(level int, dst, src []byte) ([]byte, error) {
	if level < 1 || level == lz4DefaultLevel {
		return compressLZ4Fast(dst, src), nil
	}
	w, _ := lz4Encoders.Get().(*lz4.Writer)
	if w == nil {
		w = lz4.NewWriter(nil)
	}
	defer lz4Encoders.Put(w)
	out := bytes.NewBuffer(dst)
	w.Reset(out)
	// Kafka's own reader takes independent blocks only, and wants no checksum of the content.
	if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.BlockChecksumOption(false),
		lz4.CompressionLevelOption(lz4Levels[min(level, len(lz4Levels))-1]), lz4.ConcurrencyOption(1)); err != nil {
		return nil, err
	}
	return finish(w, out, src)
}

func finish(w io.WriteCloser, out *bytes.Buffer, src []byte) ([]byte, error) {
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// zstdDefaultLevel is Kafka's.
const zstdDefaultLevel = 3

// zstdEncoders is one encoder for each level the library tells apart, made when first used. EncodeAll may be called
// from many goroutines.
var zstdEncoders [zstd.SpeedBestCompression + 1]struct {
	once sync.Once
	enc  *zstd.Encoder
	err  error
}

func compressZstd(level int, dst, src []byte) ([]byte, error) {
	if level == 0 || level == DefaultLevel {
		level = zstdDefaultLevel
	}
	at := zstd.EncoderLevelFromZstd(level)
	e := &zstdEncoders[at]
	e.once.Do(func() {
		e.enc, e.err = zstd.NewWriter(nil, zstd.WithEncoderLevel(at), zstd.WithLowerEncoderMem(true),
			zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false))
	})
	if e.err != nil {
		return nil, e.err
	}
	return e.enc.EncodeAll(src, dst), nil
}
