package record

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABatchIsTheSameInUsedRoom(t *testing.T) {
	var room Room
	for i, codec := range []Codec{None, LZ4, LZ4, None, Zstd, None, Gzip, Snappy} {
		build := func(room *Room) Batch {
			b := NewBuilder(BuilderOptions{Codec: codec, Room: room})
			for k := range 40 - 4*i {
				b.Append(int64(k), fmt.Appendf(nil, "key %d of %d", k, i), []byte("value value value"), Header{Key: "h"})
			}
			batch, err := b.Build()
			require.NoError(t, err)
			return batch
		}
		require.Equal(t, build(nil), build(&room), "%s, batch %d", codec, i)
	}
}
