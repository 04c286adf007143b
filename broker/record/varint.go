package record

// Integers in records are zigzag varints of at most 5 (32 bit) or 10 bytes (64 bit), as in protocol buffers. The readers
// take an index and return the next one, negative when the bytes end or run on too long.

const (
	maxVarint  = 5
	maxVarlong = 10
)

// readVarint reads 32 bits. Nearly all in a record take one byte, which the inlined part reads.
func readVarint(b []byte, i int) (int32, int) {
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		u := uint32(b[i])
		return int32(u>>1) ^ -int32(u&1), i + 1
	}
	return readVarintSlow(b, i)
}

//go:noinline
func readVarintSlow(b []byte, i int) (int32, int) {
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
