package record

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// Of a gzip member (RFC 1952): magic, method, flags, six bytes about the file, what the flags say, deflated data, CRC-32
// and size of the content.
const (
	gzipHead = 10
	gzipTail = 8

	gzipHeadSum = 0x02
	gzipExtra   = 0x04
	gzipName    = 0x08
	gzipNote    = 0x10
)

// afterGzipHead is what follows the header that src begins with. Flags that have no meaning are passed over, as by Java.
func afterGzipHead(src []byte) (rest []byte, ok bool) {
	if len(src) < gzipHead || src[0] != 0x1f || src[1] != 0x8b || src[2] != 8 {
		return nil, false
	}
	flags, rest := src[3], src[gzipHead:]
	if flags&gzipExtra != 0 {
		if len(rest) < 2 || len(rest) < 2+int(binary.LittleEndian.Uint16(rest)) {
			return nil, false
		}
		rest = rest[2+int(binary.LittleEndian.Uint16(rest)):]
	}
	for _, text := range []byte{gzipName, gzipNote} {
		if flags&text == 0 {
			continue
		}
		end := bytes.IndexByte(rest, 0)
		if end < 0 {
			return nil, false
		}
		rest = rest[end+1:]
	}
	if flags&gzipHeadSum != 0 {
		if len(rest) < 2 || binary.LittleEndian.Uint16(rest) != uint16(crc32.ChecksumIEEE(src[:len(src)-len(rest)])) {
			return nil, false
		}
		rest = rest[2:]
	}
	return rest, true
}

// nextGzip tells whether another member follows. Java's GZIPInputStream, by which Kafka reads, goes on behind the end of a
// member if a header follows and at least a byte behind the shortest one and a tail. Anything else there it passes over.
func nextGzip(src []byte) bool {
	_, ok := afterGzipHead(src)
	return ok && len(src) > gzipHead+gzipTail
}

// gunzipWhole takes one or more members, one behind the other.
func gunzipWhole(dst, src []byte) ([]byte, bool) {
	d := inflaters.Get().(*inflater)
	defer inflaters.Put(d)
	for {
		deflated, ok := afterGzipHead(src)
		if !ok {
			return dst, false
		}
		begin := len(dst)
		out, rest, ok := d.inflate(dst, deflated)
		if !ok || len(rest) < gzipTail {
			return dst, false
		}
		content := out[begin:]
		if crc32.ChecksumIEEE(content) != binary.LittleEndian.Uint32(rest) || uint32(len(content)) != binary.LittleEndian.Uint32(rest[4:]) {
			return dst, false
		}
		if dst, src = out, rest[gzipTail:]; !nextGzip(src) {
			return dst, true
		}
	}
}

// gzipStream reads what gunzipWhole takes, as a stream.
type gzipStream struct {
	src      []byte // from the present member's data on
	in       *bytes.Reader
	inflater io.ReadCloser
	sum      uint32
	size     uint32
}

// reset begins with the member that src begins with.
func (g *gzipStream) reset(src []byte, in *bytes.Reader) error {
	deflated, ok := afterGzipHead(src)
	if !ok {
		return gzip.ErrHeader
	}
	g.src, g.in, g.sum, g.size = deflated, in, 0, 0
	in.Reset(deflated)
	if g.inflater == nil {
		g.inflater = flate.NewReader(in)
		return nil
	}
	return g.inflater.(flate.Resetter).Reset(in, nil)
}

func (g *gzipStream) Read(p []byte) (int, error) {
	for {
		n, err := g.inflater.Read(p)
		g.sum = crc32.Update(g.sum, crc32.IEEETable, p[:n])
		g.size += uint32(n)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // the end will be told again
		}
		rest := g.src[len(g.src)-g.in.Len():]
		if len(rest) < gzipTail {
			return 0, io.ErrUnexpectedEOF
		}
		if binary.LittleEndian.Uint32(rest) != g.sum || binary.LittleEndian.Uint32(rest[4:]) != g.size {
			return 0, gzip.ErrChecksum
		}
		if rest = rest[gzipTail:]; !nextGzip(rest) {
			return 0, io.EOF
		}
		if err := g.reset(rest, g.in); err != nil {
			return 0, err
		}
	}
}
