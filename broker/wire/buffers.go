package wire

import (
	"math/bits"
	"sync"
)

// Buffers come in size classes, four to a doubling, from 1 KiB to 128 MiB, each with a pool of its own, so that
// requests of a megabyte do not feed the garbage collector, and small ones do not pin big buffers.
const (
	smallestShift = 10
	largestShift  = 27
	perDoubling   = 4
	classCount    = (largestShift-smallestShift)*perDoubling + 1
)

var classes [classCount]sync.Pool

// boxes hold the slice headers of pooled buffers, so that giving one back allocates nothing.
var boxes = sync.Pool{New: func() any { return new([]byte) }}

// GetBuffer gives an empty buffer with room for at least n bytes. It may be appended to, and grow out of its
// class. What it held before is not cleared.
func GetBuffer(n int) []byte {
	class := classFor(n)
	if class >= classCount {
		return make([]byte, 0, n)
	}
	if box, ok := classes[class].Get().(*[]byte); ok {
		buf := *box
		*box = nil
		boxes.Put(box)
		return buf
	}
	return make([]byte, 0, classSize(class))
}

// PutBuffer gives a buffer back. Nobody may touch it, or what aliases it, afterwards. One that did not come from
// GetBuffer is welcome too.
func PutBuffer(buf []byte) {
	class := classFor(cap(buf))
	if class < classCount && classSize(class) > cap(buf) {
		class-- // what is pooled in a class has at least its size
	}
	if class < 0 || class >= classCount {
		return
	}
	box := boxes.Get().(*[]byte)
	*box = buf[:0]
	classes[class].Put(box)
}

// classSize is the size of the buffers of a class: 1, 5/4, 6/4 and 7/4 of a power of two.
func classSize(class int) int {
	return (perDoubling + class%perDoubling) << (smallestShift - 2 + class/perDoubling)
}

// classFor is the smallest class whose buffers have room for n bytes.
func classFor(n int) int {
	if n <= 1<<smallestShift {
		return 0
	}
	shift := bits.Len(uint(n-1)) - 1 // 2^shift <= n-1 < 2^(shift+1)
	quarter := 1 << (shift - 2)
	return (shift-smallestShift)*perDoubling + (n-1-1<<shift)/quarter + 1
}
