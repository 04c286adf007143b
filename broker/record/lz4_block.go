package record

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// The fast LZ4 compressor: the method, the table and so the sizes of the C library that Java's clients and brokers use. It is
// half again as fast as the one of the library that decompresses here and serves the higher levels: the table stays in the
// processor's nearest cache, and because a block is copied to where every index of 16 bits is in range, Go checks no bounds.
//
// A block is sequences of literals and a match, a copy of bytes before it:
//
//	token     1 byte   count of literals, length of the match - 4; four bits each, 15: more follows
//	more      n bytes  of literals, while 255
//	literals
//	offset    2 bytes  little endian, how far back the match begins
//	more      n bytes  of the match
//
// The last sequence ends after its literals. No match begins in the last 12 bytes or reaches into the last 5.
const (
	lz4BlockSize  = 1 << 16
	lz4MatchLeast = 4
	lz4MatchLimit = 12
	lz4EndsPlain  = 5
	lz4TableBits  = 13
	lz4Patience   = 6 // probes without a match, as a power of two, until one byte more is passed over
)

type lz4Encoder struct {
	table [1 << lz4TableBits]uint16 // by hash of four bytes: where they stood last
	src   [lz4BlockSize + 16]byte   // the block, and room to read past its end
	out   [lz4BlockSize + lz4BlockSize/255 + 32]byte
}

var lz4FastEncoders = sync.Pool{New: func() any { return new(lz4Encoder) }}

// compressLZ4Fast appends src as one frame of independent blocks of 64 KiB, without checksum of the content.
func compressLZ4Fast(dst, src []byte) []byte {
	e := lz4FastEncoders.Get().(*lz4Encoder)
	defer lz4FastEncoders.Put(e)
	dst = binary.LittleEndian.AppendUint32(dst, lz4Magic)
	descriptor := [2]byte{lz4Usual, lz4Smallest << 4}
	dst = append(dst, descriptor[0], descriptor[1], byte(xxh32(descriptor[:])>>8))
	for len(src) > 0 {
		block := src[:min(len(src), lz4BlockSize)]
		src = src[len(block):]
		if packed := e.compress(block); len(packed) < len(block) {
			dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(packed))), packed...)
		} else {
			dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(block))|lz4Stored), block...)
		}
	}
	return append(dst, 0, 0, 0, 0)
}

// compress returns the block compressed, valid until the next call. It must not be larger than lz4BlockSize.
func (e *lz4Encoder) compress(block []byte) []byte {
	size := copy(e.src[:lz4BlockSize], block)
	if size > lz4MatchLimit {
		e.table = [1 << lz4TableBits]uint16{}
	}
	src, table := &e.src, &e.table
	o, anchor := 0, 0 // what is before anchor stands in a sequence
	limit, ends := size-lz4MatchLimit, size-lz4EndsPlain
	i := 1 // nothing stands before byte 0, which is what an empty place of the table says
search:
	for i <= limit {
		var offset int
		for probes := 1 << lz4Patience; ; probes++ {
			x := lz4Four(src, i)
			h := lz4Hash(x)
			ref := int(table[h])
			table[h] = uint16(i)
			if lz4Four(src, ref) == x {
				offset = i - ref
				break
			}
			if i += probes >> lz4Patience; i > limit {
				break search
			}
		}
		for i > anchor && i > offset && src[uint16(i-1)] == src[uint16(i-1-offset)] {
			i--
		}
		next := i + lz4MatchLeast
		for next < ends {
			x := lz4Eight(src, next) ^ lz4Eight(src, next-offset)
			if x != 0 {
				next += bits.TrailingZeros64(x) >> 3
				break
			}
			next += 8
		}
		next = min(next, ends)
		literals, match := i-anchor, next-i-lz4MatchLeast
		if literals < 15 && match < 15 {
			w := e.out[o : o+20]
			w[0] = byte(literals<<4 | match)
			binary.LittleEndian.PutUint64(w[1:], lz4Eight(src, anchor)) // sixteen bytes cost less than the right number
			binary.LittleEndian.PutUint64(w[9:], lz4Eight(src, anchor+8))
			binary.LittleEndian.PutUint16(w[1+literals:], uint16(offset))
			o += 1 + literals + 2
		} else {
			o = e.longSequence(o, anchor, literals, offset, match)
		}
		i, anchor = next, next
		table[lz4Hash(lz4Four(src, i-2))] = uint16(i - 2)
	}
	o = e.literals(o, anchor, size-anchor)
	return e.out[:o]
}

// Indexes are below lz4BlockSize; the compiler sees it by their type.
func lz4Four(src *[lz4BlockSize + 16]byte, i int) uint32 {
	return binary.LittleEndian.Uint32(src[uint16(i):][:4])
}

func lz4Eight(src *[lz4BlockSize + 16]byte, i int) uint64 {
	return binary.LittleEndian.Uint64(src[uint16(i):][:8])
}

func lz4Hash(x uint32) uint32 { return x * 2654435761 >> (32 - lz4TableBits) } // Knuth's multiplier

// literals writes a token for n literals, and them.
func (e *lz4Encoder) literals(o, from, n int) int {
	e.out[o] = byte(min(n, 15) << 4)
	o++
	if n >= 15 {
		o = e.length(o, n-15)
	}
	return o + copy(e.out[o:], e.src[from:from+n])
}

// longSequence writes a sequence whose counts may be longer than their four bits.
func (e *lz4Encoder) longSequence(o, anchor, literals, offset, match int) int {
	token := o
	o = e.literals(o, anchor, literals)
	binary.LittleEndian.PutUint16(e.out[o:], uint16(offset))
	o += 2
	e.out[token] |= byte(min(match, 15))
	if match >= 15 {
		o = e.length(o, match-15)
	}
	return o
}

// length writes what a token has no room for.
func (e *lz4Encoder) length(o, n int) int {
	for ; n >= 255; n -= 255 {
		e.out[o] = 255
		o++
	}
	e.out[o] = byte(n)
	return o + 1
}
