package record

import (
	"encoding/binary"
	"sync"
)

// Deflate (RFC 1951), decompressed from memory into memory. A decoder of streams asks at each symbol whether its input
// and its window go on. Here that is asked once for up to six literals and a match:
//
//   - Whatever begins before a place that has outSlack bytes of room behind it fits, so nothing that is written needs to
//     be measured, and matches are copied in words that may reach beyond their end.
//   - Bits come from a word of 64, which is refilled by eight bytes without a branch. Where that would reach over the end
//     of the input, what is left of it is read from a copy with zeros behind (tail). Who takes bits of the zeros was
//     given a stream that is cut off; that is looked at after each block.
//
// It does not name errors: what it cannot read, a stream is asked about (whole.go).
const (
	longestMatch = 258
	outSlack     = 6 + longestMatch + 16
	inSlack      = 15 // what one round of the loop may look ahead: a word, after moving on by up to seven bytes
	tailSize     = 48 // less than inSlack bytes, then zeros until surely more is taken than there was, and one look ahead
)

// inflater is the state of one decompression.
type inflater struct {
	own  codes // of the present block, if it brought them
	lens [litCodes + distCodes]uint8

	all    []byte // the input
	src    []byte // what is read: all, or tail
	at     int    // of the next byte of src that is not in hold
	base   int    // where src begins in all
	ending bool   // src is tail
	tail   [tailSize]byte

	hold uint64 // bits that have been read, the next one lowest; those above have are not counted, but right
	have uint   // how many of them are valid, at most 63
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

// seek goes to a byte of the input.
func (d *inflater) seek(at int) {
	d.src, d.at, d.base, d.ending = d.all, at, 0, false
	d.hold, d.have = 0, 0
}

// toTail goes on in the copy of the input's end. It says no if that is where it is.
func (d *inflater) toTail() bool {
	if d.ending {
		return false
	}
	n := copy(d.tail[:], d.src[d.at:])
	clear(d.tail[n:])
	d.src, d.at, d.base, d.ending = d.tail[:], 0, d.at, true
	return true
}

// refill brings at least 56 bits into hold.
func (d *inflater) refill() {
	if d.at+8 > len(d.src) && !d.toTail() {
		d.at = tailSize - 8 // all zeros
	}
	d.hold |= binary.LittleEndian.Uint64(d.src[d.at:]) << (d.have & 63)
	d.at += int((63 - d.have) >> 3)
	d.have |= 56
}

func (d *inflater) take(n uint) uint {
	v := uint(d.hold) & (1<<n - 1)
	d.hold >>= n
	d.have -= n
	return v
}

// consumed is how many bytes of the input have been taken, a started one included.
func (d *inflater) consumed() int { return d.base + d.at - int(d.have/8) }

// inflate decompresses the stream that src begins with behind dst, within its capacity, and returns what follows it.
// The last outSlack bytes of the capacity may stay unused.
func (d *inflater) inflate(dst, src []byte) (out, rest []byte, ok bool) {
	d.all = src
	d.seek(0)
	defer func() { d.all, d.src = nil, nil }() // the pool must not keep a request's memory alive
	room := dst[:cap(dst)]
	begin := len(dst) // nothing before it belongs to this stream
	o := begin
	for last := uint(0); last == 0; {
		d.refill()
		last = d.take(1)
		switch d.take(2) {
		case 0:
			o, ok = d.stored(room, o)
		case 1:
			o, ok = d.block(fixedCodes(), room, o, begin)
		case 2:
			if ok = d.dynamicCodes(); ok {
				o, ok = d.block(&d.own, room, o, begin)
			}
		default:
			ok = false
		}
		if !ok || d.consumed() > len(src) {
			return dst, nil, false
		}
	}
	return room[:o], src[d.consumed():], true
}

// stored copies a block that is not compressed.
func (d *inflater) stored(out []byte, o int) (int, bool) {
	at := d.consumed()
	if at+4 > len(d.all) {
		return o, false
	}
	n := int(binary.LittleEndian.Uint16(d.all[at:]))
	if n != int(^binary.LittleEndian.Uint16(d.all[at+2:])) {
		return o, false
	}
	at += 4
	if at+n > len(d.all) || o+n > len(out) {
		return o, false
	}
	copy(out[o:], d.all[at:at+n])
	d.seek(at + n)
	return o + n, true
}

// block decompresses a block with the given codes from out[o] on and returns where it ended. begin is where the stream
// began: no match reaches before it.
func (d *inflater) block(c *codes, out []byte, o, begin int) (int, bool) {
	most := len(out) - outSlack
	for {
		src, at, hold, have := d.src, d.at, d.hold, d.have
		for last := len(src) - inSlack; at <= last && o <= most; {
			hold |= binary.LittleEndian.Uint64(src[at:]) << (have & 63)
			at += int((63 - have) >> 3)
			have |= 56

			// 56 bits are three entries of the first table, of one or two literals each. What is then no literal takes
			// at most 20 with its extra bits.
			e := c.lit[hold&(1<<litBits-1)]
			if n := e >> litCount & 3; n != 0 {
				binary.LittleEndian.PutUint16(out[o:], uint16(e>>16))
				o += int(n)
				hold >>= e & taken
				have -= uint(e & taken)
				e = c.lit[hold&(1<<litBits-1)]
				if n := e >> litCount & 3; n != 0 {
					binary.LittleEndian.PutUint16(out[o:], uint16(e>>16))
					o += int(n)
					hold >>= e & taken
					have -= uint(e & taken)
					e = c.lit[hold&(1<<litBits-1)]
					if n := e >> litCount & 3; n != 0 {
						binary.LittleEndian.PutUint16(out[o:], uint16(e>>16))
						o += int(n)
						hold >>= e & taken
						have -= uint(e & taken)
						continue
					}
				}
			}
			if e&special != 0 {
				if e&isSecond != 0 {
					hold >>= litBits
					have -= litBits
					e = c.lit[(uint(e>>16)+uint(hold)&(1<<(e>>8&0xf)-1))&(litTable-1)]
					if e>>litCount&3 != 0 {
						out[o] = byte(e >> 16)
						o++
						hold >>= e & taken
						have -= uint(e & taken)
						continue
					}
				}
				if e&isEnd != 0 {
					d.at, d.hold, d.have = at, hold>>(e&taken), have-uint(e&taken)
					return o, true
				}
				if e&special != 0 {
					return o, false
				}
			}
			length := int(e>>16) + int(hold&(1<<(e&taken)-1)>>(e>>8&0xf))
			hold >>= e & taken
			have -= uint(e & taken)

			hold |= binary.LittleEndian.Uint64(src[at:]) << (have & 63)
			at += int((63 - have) >> 3)
			have |= 56
			e = c.dist[hold&(1<<distBits-1)]
			if e&special != 0 {
				if e&isSecond != 0 {
					hold >>= distBits
					have -= distBits
					e = c.dist[(uint(e>>16)+uint(hold)&(1<<(e>>8&0xf)-1))&(distTable-1)]
				}
				if e&special != 0 {
					return o, false
				}
			}
			distance := int(e>>16) + int(hold&(1<<(e&taken)-1)>>(e>>8&0xf))
			hold >>= e & taken
			have -= uint(e & taken)
			from := o - distance
			if from < begin {
				return o, false
			}
			end := o + length
			if distance >= 16 {
				for {
					*(*[16]byte)(out[o:]) = *(*[16]byte)(out[from:])
					if o += 16; o >= end {
						break
					}
					from += 16
				}
			} else {
				copyNear(out, o, distance, end)
			}
			o = end
		}
		d.at, d.hold, d.have = at, hold, have
		if o > most || !d.toTail() {
			return o, false
		}
	}
}

// copyNear copies what repeats after distance bytes, fewer than 16, to out[o:end]. It may write up to 15 bytes more.
func copyNear(out []byte, o, distance, end int) {
	word := binary.LittleEndian.Uint64(out[o-distance:])
	if distance >= 8 {
		for from := o - distance; o < end; o, from = o+8, from+8 {
			binary.LittleEndian.PutUint64(out[o:], binary.LittleEndian.Uint64(out[from:]))
		}
		return
	}
	bits := uint(distance) * 8
	word &= 1<<bits - 1
	for ; bits < 64; bits *= 2 {
		word |= word << bits
	}
	for step := 8 - 8%distance; o < end; o += step {
		binary.LittleEndian.PutUint64(out[o:], word)
	}
}
