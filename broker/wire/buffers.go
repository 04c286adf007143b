package wire

import (
	"math/bits"
	"sync"
)

// Buffers come in size classes of powers of two, from 1 KiB to 128 MiB, each with a pool of its own, so that
// requests of a megabyte do not feed the garbage collector and small ones do not pin big buffers.
const (
	smallestClass = 10
	largestClass  = 27
)

var classes [largestClass - smallestClass + 1]sync.Pool

// boxes hold the slice headers of pooled buffers, so that giving one back allocates nothing.
var boxes = sync.Pool{New: func() any { return new([]byte) }}

// GetBuffer gives an empty buffer with room for at least n bytes. It may be appended to, and grow out of its
// class.
func GetBuffer(n int) []byte {
	class := classFor(n)
	if class > largestClass {
		return make([]byte, 0, n)
	}
	if box, ok := classes[class-smallestClass].Get().(*[]byte); ok {
		buf := *box
		*box = nil
		boxes.Put(box)
		return buf[:0]
	}
	return make([]byte, 0, 1<<class)
}

// PutBuffer gives a buffer back. Nobody may touch it, or what aliases it, afterwards. One that did not come from
// GetBuffer is welcome too.
func PutBuffer(buf []byte) {
	class := bits.Len(uint(cap(buf))) - 1 // rounded down: what is pooled in a class has at least its size
	if class < smallestClass || class > largestClass {
		return
	}
	box := boxes.Get().(*[]byte)
	*box = buf[:0]
	classes[class-smallestClass].Put(box)
}

// classFor is the exponent of the smallest class that holds n bytes.
func classFor(n int) int {
	if n <= 1<<smallestClass {
		return smallestClass
	}
	return bits.Len(uint(n - 1))
}
