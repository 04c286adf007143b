package record

// Integers in records are zigzag varints of at most 5 (32 bit) or 10 bytes (64 bit), as in protocol buffers. The readers
// take an index and return the next one, negative when the bytes end or run on too long.

const (
	maxVarint  = 5
	maxVarlong = 10
)

// shortVarint reads a number of one or two bytes; small enough to be inlined.
func shortVarint(b []byte, i int) (v, next int) {
	if i+1 >= len(b) {
		return 0, -1
	}
	u := int(b[i])
	if u < 0x80 {
		return u>>1 ^ -(u & 1), i + 1
	}
	u = u&0x7f | int(b[i+1])<<7
	if u > 0x3fff {
		return 0, -1
	}
	return u>>1 ^ -(u & 1), i + 2
}

// readVarint reads 32 bits.
func readVarint(b []byte, i int) (int32, int) {
	var u uint32
	for shift := 0; shift < 35; shift += 7 {
		if uint(i) >= uint(len(b)) {
			return 0, -1
		}
		c := b[i]
		i++
		u |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), i
		}
	}
	return 0, -1
}

func readVarlong(b []byte, i int) (int64, int) {
	var u uint64
	for shift := 0; shift < 70; shift += 7 {
		if uint(i) >= uint(len(b)) {
			return 0, -1
		}
		c := b[i]
		i++
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i
		}
	}
	return 0, -1
}

func appendVarint(dst []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	for u >= 0x80 {
		dst = append(dst, byte(u)|0x80)
		u >>= 7
	}
	return append(dst, byte(u))
}

func varintSize(v int64) int {
	u := uint64(v<<1) ^ uint64(v>>63)
	n := 1
	for u >= 0x80 {
		u >>= 7
		n++
	}
	return n
}
