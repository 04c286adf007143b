package record

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Of a gzip member (RFC 1952): magic, method, flags, six bytes about the file, what the flags say, deflated data, CRC-32
// and size of the content.
const (
	gzipHead  = 10
	gzipTail  = 8
	gzipExtra = 0x04
	gzipName  = 0x08
	gzipNote  = 0x10
	gzipUsual = gzipExtra | gzipName | gzipNote
)

// gunzipWhole takes one or more members, one behind the other.
func gunzipWhole(dst, src []byte) ([]byte, bool) {
	d := inflaters.Get().(*inflater)
	defer inflaters.Put(d)
	for {
		src = afterGzipHead(src)
		begin := len(dst)
		out, rest, ok := d.inflate(dst, src)
		if !ok || len(rest) < gzipTail {
			return dst, false
		}
		content := out[begin:]
		if crc32.ChecksumIEEE(content) != binary.LittleEndian.Uint32(rest) || uint32(len(content)) != binary.LittleEndian.Uint32(rest[4:]) {
			return dst, false
		}
		if dst, src = out, rest[gzipTail:]; len(src) == 0 {
			return dst, true
		}
	}
}

// afterGzipHead is what follows the header of a member; nothing if it is no usual one.
func afterGzipHead(src []byte) []byte {
	if len(src) < gzipHead || src[0] != 0x1f || src[1] != 0x8b || src[2] != 8 || src[3]&^gzipUsual != 0 {
		return nil
	}
	flags, src := src[3], src[gzipHead:]
	if flags&gzipExtra != 0 {
		if len(src) < 2 || len(src) < 2+int(binary.LittleEndian.Uint16(src)) {
			return nil
		}
		src = src[2+int(binary.LittleEndian.Uint16(src)):]
	}
	for _, text := range []byte{gzipName, gzipNote} {
		if flags&text != 0 {
			src = src[bytes.IndexByte(src, 0)+1:]
		}
	}
	return src
}
