package coordinator

import "math"

// hash is what Java computes over a string's UTF-16 units, without its sign; 0 for
// the one number that has no counterpart.
func hash(s string) int32 {
	h := int32(0)
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			h = 31*h + (0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	switch {
	case h == math.MinInt32:
		return 0
	case h < 0:
		return -h
	}
	return h
}
