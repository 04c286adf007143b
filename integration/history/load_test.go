package history

import (
	"math"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestNamesAreReadBackAndAreText(t *testing.T) {
	for _, n := range []Name{{1, 1}, {127, 128}, {1<<28 - 1, 1<<56 - 1}, {0xabcdef, math.MaxUint32 << 7}} {
		value := n.AppendTo(nil)
		require.Len(t, value, NameSize)
		require.Equal(t, n, NameOf(value))
		require.True(t, utf8.Valid(value))
	}
}
