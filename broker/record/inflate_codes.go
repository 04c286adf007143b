package record

import (
	"bytes"
	"math/bits"
	"sync"
)

// The codes of deflate are looked up by their next bits in a table: those of up to litBits or distBits at once, longer
// ones in a second table that the first points to. Where two literals are short enough for the first table together,
// their entry has both. An entry is
//
//	bits 0-4    bits to consume: of the code, and of the extra bits behind it
//	bits 5-6    number of literals
//	bit 7       special: neither literals nor a length or distance. Alone: no code leads here
//	bits 8-11   bits of the code alone; of a second table, bits of its index
//	bit 12      special: end of the block
//	bit 13      special: go on in a second table
//	bits 16-31  one or two literals, base of a length or distance, or place of the second table
const (
	litBits  = 10
	distBits = 8

	// Room for the first table and the most that second ones can need, with codes of up to 15 bits: 1334 and 402.
	litTable  = 1 << 11
	distTable = 1 << 9

	taken    = 1<<5 - 1
	litCount = 5
	aLiteral = 1 << litCount
	special  = 1 << 7
	isEnd    = 1 << 12
	isSecond = 1 << 13
)

const (
	litCodes   = 286
	distCodes  = 30
	fixedLits  = 288 // fixed blocks have codes for two more lengths, and two more distances, which must not come up
	fixedDists = 32
	maxCodeLen = 15
)

// The entries of all symbols, without the bits of their codes. Symbols that must not come up have special alone.
var litEntries, distEntries, plainEntries = func() (lits, dists, plain [fixedLits]uint32) {
	for sym := range fixedLits {
		lits[sym], dists[sym], plain[sym] = special, special, uint32(sym)<<16|aLiteral
	}
	copy(lits[:256], plain[:])
	lits[256] = special | isEnd
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
	return lits, dists, plain
}()

// codes are the tables of a block.
type codes struct {
	lit  [litTable]uint32
	dist [distTable]uint32
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

// dynamicCodes reads the codes of a block that brings them.
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
		if e&special != 0 {
			return false
		}
		d.take(uint(e & taken))
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
	if lens[256] == 0 || // a block without an end
		!buildCodes(d.own.lit[:], litBits, lens[:lits], &litEntries) || !buildCodes(d.own.dist[:], distBits, lens[lits:], &distEntries) {
		return false
	}
	pairLiterals((*[1 << litBits]uint32)(d.own.lit[:]))
	return true
}

// buildCodes fills a table for the codes whose lengths are given. It refuses what is no prefix code. As in zlib, one that
// leaves bits without a meaning is only allowed with a single code of one bit, or with none.
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
	var sorted [fixedLits]uint16 // by length
	at := start
	for sym, n := range lens {
		if n > 0 {
			sorted[at[n]] = uint16(sym)
			at[n]++
		}
	}

	// Codes are sent from their highest bit on. A table for n bits is twice that for one bit less, with the codes of n
	// bits put into it.
	code, i := uint(0), 0
	table[0] = special
	for n := uint(1); n <= first; n++ {
		half := 1 << (n - 1)
		copy(table[half:2*half], table[:half])
		code <<= 1
		for ; i < start[n+1]; i++ {
			table[reversed(code, n)] = entryOf(entries[sorted[i]], n)
			code++
		}
	}
	return secondTables(table, first, sorted[i:used], &count, code, entries)
}

func reversed(code, n uint) uint { return uint(bits.Reverse16(uint16(code)) >> (16 - n)) }

// entryOf is the entry of a symbol behind n bits.
func entryOf(e uint32, n uint) uint32 {
	if e == special {
		return e
	}
	if e&(aLiteral|special) == 0 {
		e += uint32(n) << 8 // behind which the extra bits begin
	}
	return e + uint32(n)
}

// secondTables fills the tables of the codes of more than first bits, sorted by length. code is the last code of first bits, plus 1.
func secondTables(table []uint32, first uint, sorted []uint16, count *[maxCodeLen + 2]int, code uint, entries *[fixedLits]uint32) bool {
	n, left := first, 0 // bits of the present code; how many of that length are left
	next := uint(1) << first
	second, prefix, secondBits := uint(0), uint(1)<<first, uint(0)
	for _, sym := range sorted {
		for left == 0 {
			code <<= 1
			n++
			left = count[n]
		}
		r := reversed(code, n)
		if low := r & (1<<first - 1); low != prefix {
			prefix, second = low, next
			// As many bits as the codes with this prefix have more.
			secondBits = n - first
			for space, in := 1<<secondBits, left; in < space && secondBits+first < maxCodeLen; in = count[secondBits+first] {
				space = (space - in) << 1
				secondBits++
			}
			next += 1 << secondBits
			if next > uint(len(table)) {
				return false
			}
			table[low] = uint32(second)<<16 | special | isSecond | uint32(secondBits)<<8
		}
		e := entryOf(entries[sym], n-first)
		for j := r >> first; j < 1<<secondBits; j += 1 << (n - first) {
			table[second+j] = e
		}
		code++
		left--
	}
	return true
}

// pairLiterals gives entries of one literal the next one too, where the table's bits hold both.
func pairLiterals(table *[1 << litBits]uint32) {
	for i := len(table) - 1; i >= 0; i-- { // the second of a pair stands before it, and is not a pair yet
		e := table[i]
		if e&aLiteral == 0 {
			continue
		}
		n := e & taken
		next := table[i>>n]
		if next&aLiteral != 0 && n+next&taken <= litBits {
			table[i] = e&^aLiteral + aLiteral<<1 + next&taken + next&^0xffff<<8
		}
	}
}
