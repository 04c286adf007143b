package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuffersHaveRoomForWhatWasAsked(t *testing.T) {
	for _, n := range []int{0, 1, 1023, 1024, 1025, 1280, 1281, 1 << 20, 1<<20 + 1, 1<<20 + 100, 100 << 20, 1<<27 + 1} {
		for range 2 { // fresh, and from the pool
			buf := GetBuffer(n)
			require.Empty(t, buf)
			require.GreaterOrEqual(t, cap(buf), n)
			if n > 1024 {
				require.LessOrEqual(t, cap(buf), n+n/4+1, "no more than a quarter is wasted")
			}
			PutBuffer(buf)
		}
	}
}

func TestForeignBuffersArePooledWhereTheyFit(t *testing.T) {
	for n := range 5000 {
		PutBuffer(make([]byte, n))
		require.GreaterOrEqual(t, cap(GetBuffer(n)), n)
	}
	PutBuffer(nil)
}
