package record

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sync"
)

// Deflate (RFC 1951), decompressed from memory into memory. A decoder of streams asks after each symbol whether its
// input and its window go on; this one asks once per symbol whether there is room for the longest match, and takes bits
// from a word of 64 that it refills without a loop. That makes it about twice as fast.
//
// It does not name errors: what it cannot read, a stream is asked about (whole.go).
//
// Codes are looked up by their next bits in a table: those of up to litBits or distBits at once, longer ones in a second
// table that the first points to. An entry of the tables is
//
//	bits 0-7    bits to consume: of the code, and of the extra bits behind it
//	bits 8-11   bits of the code alone, within this table
//	bits 12-14  what it is
//	bits 16-31  literal, base of a length or distance, or place of the second table
//
// and 0 where no code leads.
const (
	litBits  = 10
	distBits = 8

	// Room for the first table and the most that second ones can need, with codes of up to 15 bits.
	litTable  = 1 << 11
	distTable = 1 << 9

	isLiteral = 1 << 12
	isEnd     = 1 << 13 // of the block
	isSecond  = 1 << 14

	longestMatch = 258
	// Matches are copied in words, which may write beyond their end.
	outSlack = longestMatch + 8
)

const (
	litCodes   = 286
	distCodes  = 30
	fixedLits  = 288 // fixed blocks have codes for two more lengths, and two more distances, which must not come up
	fixedDists = 32
	maxCodeLen = 15
)

// The entries of all symbols, without the bits of their codes. Symbols that must not come up have none.
var litEntries, distEntries, plainEntries = func() (lits, dists, plain [fixedLits]uint32) {
	for sym := range 256 {
		lits[sym] = uint32(sym)<<16 | isLiteral
	}
	lits[256] = isEnd
	base := 3
	for i := range litCodes - 257 {
		extra := max(i/4-1, 0)
		lits[257+i] = uint32(base)<<16 | uint32(extra)
		base += 1 << extra
	}
	lits[litCodes-1] = longestMatch << 16 // has a code of its own beside the last of those before
	base = 1
	for i := range distCodes {
		extra := max(i/2-1, 0)
		dists[i] = uint32(base)<<16 | uint32(extra)
		base += 1 << extra
	}
	for sym := range 19 {
		plain[sym] = uint32(sym)<<16 | isLiteral
	}
	return lits, dists, plain
}()

// codes are the tables of a block.
type codes struct {
	lit  [litTable]uint32
	dist [distTable]uint32
}

// inflater is the state of one decompression.
type inflater struct {
	own  codes // of the present block, if it brought them
	lens [litCodes + distCodes]uint8

	src  []byte
	at   int    // of the next byte that is not in hold
	hold uint64 // bits that have been read, the next one lowest
	have uint   // how many of them are valid
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

// refill brings at least 56 bits into hold. Behind the end of src zeros follow; ended tells of it.
func (d *inflater) refill() {
	if d.at+8 <= len(d.src) {
		d.hold |= binary.LittleEndian.Uint64(d.src[d.at:]) << d.have
		d.at += int((63 - d.have) >> 3)
		d.have |= 56
		return
	}
	for d.have <= 56 {
		if d.at < len(d.src) {
			d.hold |= uint64(d.src[d.at]) << d.have
		}
		d.at++
		d.have += 8
	}
}

func (d *inflater) take(n uint) uint {
	v := uint(d.hold) & (1<<n - 1)
	d.hold >>= n
	d.have -= n
	return v
}

// consumed is how many bytes of src have been taken, a started one included.
func (d *inflater) consumed() int { return d.at - int(d.have/8) }

func (d *inflater) ended() bool { return d.consumed() > len(d.src) }

// inflate decompresses the stream that src begins with behind dst, within its capacity less outSlack, and returns what
// follows it.
func (d *inflater) inflate(dst, src []byte) (out, rest []byte, ok bool) {
	d.src, d.at, d.hold, d.have = src, 0, 0, 0
	defer func() { d.src = nil }()
	begin := len(dst) // nothing before it belongs to this stream
	for last := uint(0); last == 0; {
		d.refill()
		last = d.take(1)
		switch d.take(2) {
		case 0:
			dst, ok = d.stored(dst)
		case 1:
			dst, ok = d.block(fixedCodes(), dst, begin)
		case 2:
			if ok = d.dynamicCodes(); ok {
				dst, ok = d.block(&d.own, dst, begin)
			}
		default:
			ok = false
		}
		if !ok || d.ended() {
			return dst, nil, false
		}
	}
	return dst, src[d.consumed():], true
}

// stored copies a block that is not compressed.
func (d *inflater) stored(dst []byte) ([]byte, bool) {
	d.at, d.hold, d.have = d.consumed(), 0, 0
	if d.at+4 > len(d.src) {
		return dst, false
	}
	n := int(binary.LittleEndian.Uint16(d.src[d.at:]))
	if n != int(^binary.LittleEndian.Uint16(d.src[d.at+2:])) {
		return dst, false
	}
	d.at += 4
	if d.at+n > len(d.src) || len(dst)+n > cap(dst)-outSlack {
		return dst, false
	}
	dst = append(dst, d.src[d.at:d.at+n]...)
	d.at += n
	return dst, true
}

// fixedCodes are those of blocks that bring none.
var fixedCodes = sync.OnceValue(func() *codes {
	var lits [fixedLits]uint8
	for sym := range lits {
		switch {
		case sym < 144, sym >= 280:
			lits[sym] = 8
		case sym < 256:
			lits[sym] = 9
		default:
			lits[sym] = 7
		}
	}
	c := new(codes)
	buildCodes(c.lit[:], litBits, lits[:], &litEntries)
	buildCodes(c.dist[:], distBits, bytes.Repeat([]byte{5}, fixedDists), &distEntries)
	return c
})

// codeOrder is the order in which the lengths of the code of the lengths are sent.
var codeOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

func (d *inflater) dynamicCodes() bool {
	lits, dists, codes := int(d.take(5))+257, int(d.take(5))+1, int(d.take(4))+4
	if lits > litCodes || dists > distCodes {
		return false
	}
	var pre [19]uint8
	for i := range codes {
		if d.have < 3 {
			d.refill()
		}
		pre[codeOrder[i]] = uint8(d.take(3))
	}
	const preBits = 7
	table := d.own.lit[:1<<preBits] // free as yet
	if !buildCodes(table, preBits, pre[:], &plainEntries) {
		return false
	}
	lens := d.lens[:lits+dists]
	for i := 0; i < len(lens); {
		if d.have < preBits+7 {
			d.refill()
		}
		e := table[d.hold&(1<<preBits-1)]
		if e == 0 {
			return false
		}
		d.take(uint(e & 0xff))
		sym, again, of := e>>16, 1, uint8(0)
		switch {
		case sym < 16:
			of = uint8(sym)
		case sym == 16:
			if i == 0 {
				return false
			}
			of, again = lens[i-1], 3+int(d.take(2))
		case sym == 17:
			again = 3 + int(d.take(3))
		default:
			again = 11 + int(d.take(7))
		}
		if i+again > len(lens) {
			return false
		}
		for ; again > 0; again-- {
			lens[i] = of
			i++
		}
	}
	return lens[256] != 0 && // a block without an end
		buildCodes(d.own.lit[:], litBits, lens[:lits], &litEntries) && buildCodes(d.own.dist[:], distBits, lens[lits:], &distEntries)
}

// buildCodes fills a table for the codes whose lengths are given. It refuses what is no prefix code; one that is not
// complete is only allowed with a single code of one bit, or with none.
func buildCodes(table []uint32, first uint, lens []uint8, entries *[fixedLits]uint32) bool {
	var count, start [maxCodeLen + 2]int
	for _, n := range lens {
		count[n]++
	}
	used := len(lens) - count[0]
	count[0] = 0
	space := 0
	for n := 1; n <= maxCodeLen; n++ {
		start[n+1] = start[n] + count[n]
		space += count[n] << (maxCodeLen - n)
	}
	if space > 1<<maxCodeLen || space < 1<<maxCodeLen && (used > 1 || count[1] != used) {
		return false
	}
	if space < 1<<maxCodeLen {
		clear(table[:1<<first])
	}
	var sorted [fixedLits]uint16
	at := start
	for sym, n := range lens {
		if n > 0 {
			sorted[at[n]] = uint16(sym)
			at[n]++
		}
	}
	longest := uint(maxCodeLen)
	for longest > 1 && count[longest] == 0 {
		longest--
	}

	code, next := uint(0), 1<<first // next: free room for a second table
	second, prefix, secondBits := 0, -1, uint(0)
	for i, n := 0, uint(1); i < used; i++ {
		for int(n) < maxCodeLen && i == start[n+1] {
			code <<= 1
			n++
		}
		e := entries[sorted[i]]
		reversed := int(bits.Reverse16(uint16(code)) >> (16 - n))
		code++
		if n <= first {
			if e&^0xff != 0 {
				e += uint32(n)<<8 | uint32(n)
			}
			for j := reversed; j < 1<<first; j += 1 << n {
				table[j] = e
			}
			continue
		}
		if low := reversed & (1<<first - 1); low != prefix {
			prefix, second = low, next
			// As many bits as the codes with this prefix have more.
			secondBits = n - first
			for left := 1 << secondBits; secondBits+first < longest; secondBits++ {
				in := count[secondBits+first]
				if secondBits+first == n {
					in -= i - start[n] // those before have other prefixes
				}
				if left -= in; left <= 0 {
					break
				}
				left <<= 1
			}
			next += 1 << secondBits
			if next > len(table) {
				return false
			}
			table[low] = uint32(second)<<16 | isSecond | uint32(secondBits)<<8 | uint32(first)
		}
		if e&^0xff != 0 {
			e += uint32(n-first)<<8 | uint32(n-first)
		}
		for j := reversed >> first; j < 1<<secondBits; j += 1 << (n - first) {
			table[second+j] = e
		}
	}
	return true
}

// block decompresses a block with the given codes. begin is where the stream began: no match reaches before it.
func (d *inflater) block(c *codes, dst []byte, begin int) ([]byte, bool) {
	out := dst[:cap(dst)]
	o, most := len(dst), cap(dst)-outSlack
	src, at, hold, have := d.src, d.at, d.hold, d.have
	for o <= most {
		if at+8 <= len(src) {
			hold |= binary.LittleEndian.Uint64(src[at:]) << have
			at += int((63 - have) >> 3)
			have |= 56
		} else {
			d.at, d.hold, d.have = at, hold, have
			d.refill()
			if d.ended() {
				return dst, false
			}
			at, hold, have = d.at, d.hold, d.have
		}

		// 56 bits are enough for two literals of the first table and a length with its distance, or another literal.
		e := c.lit[hold&(1<<litBits-1)]
		if e&isLiteral != 0 {
			out[o] = byte(e >> 16)
			o++
			hold >>= e & 0xff
			have -= uint(e & 0xff)
			e = c.lit[hold&(1<<litBits-1)]
			if e&isLiteral != 0 {
				out[o] = byte(e >> 16)
				o++
				hold >>= e & 0xff
				have -= uint(e & 0xff)
				continue
			}
		}
		if e&isSecond != 0 {
			hold >>= litBits
			have -= litBits
			e = c.lit[(uint(e>>16)+uint(hold)&(1<<(e>>8&0xf)-1))&(litTable-1)]
			if e&isLiteral != 0 {
				out[o] = byte(e >> 16)
				o++
				hold >>= e & 0xff
				have -= uint(e & 0xff)
				continue
			}
		}
		if e&isEnd != 0 {
			d.at, d.hold, d.have = at, hold>>(e&0xff), have-uint(e&0xff)
			return out[:o], true
		}
		if e == 0 {
			return dst, false
		}
		length := int(e>>16) + int(hold&(1<<(e&0xff)-1)>>(e>>8&0xf))
		hold >>= e & 0xff
		have -= uint(e & 0xff)

		e = c.dist[hold&(1<<distBits-1)]
		if e&isSecond != 0 {
			hold >>= distBits
			have -= distBits
			e = c.dist[(uint(e>>16)+uint(hold)&(1<<(e>>8&0xf)-1))&(distTable-1)]
		}
		if e == 0 {
			return dst, false
		}
		distance := int(e>>16) + int(hold&(1<<(e&0xff)-1)>>(e>>8&0xf))
		hold >>= e & 0xff
		have -= uint(e & 0xff)
		from := o - distance
		if from < begin {
			return dst, false
		}
		copyMatch(out, o, from, length)
		o += length
	}
	return dst, false
}

// copyMatch copies length bytes that were written from from on to at, where the source may run into what is being
// written: then it repeats. It may write up to 7 bytes more.
func copyMatch(out []byte, at, from, length int) {
	if at-from >= 8 {
		for i := 0; i < length; i += 8 {
			binary.LittleEndian.PutUint64(out[at+i:], binary.LittleEndian.Uint64(out[from+i:]))
		}
		return
	}
	for i := range length {
		out[at+i] = out[from+i]
	}
}
