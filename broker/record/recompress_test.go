package record

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestARecompressedBatchSaysTheSameInAnotherCodec(t *testing.T) {
	for _, from := range codecs {
		w := NewBuilder(BuilderOptions{Codec: from, BaseOffset: 9, Producer: &Producer{ID: 4, Epoch: 2, BaseSequence: 1, Transactional: true}})
		w.Append(50, []byte("k"), sample(1000), Header{Key: "h", Value: []byte("v")})
		w.Append(40, nil, nil)
		w.Append(60, []byte{}, sample(70_000))
		b, err := w.Build()
		require.NoError(t, err)
		for _, to := range codecs {
			got, err := b.Recompress(to, 0, Limits{})
			require.NoError(t, err)
			require.NoError(t, got.CheckCRC())
			require.Equal(t, to, got.Codec())
			_, rest, err := Next(got)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.Equal(t, collect(t, b), collect(t, got))
			same, err := got.Recompress(from, 0, Limits{})
			require.NoError(t, err)
			require.Equal(t, b[:HeaderSize], same[:HeaderSize], "all else in the header stayed")
		}
		if from != None {
			_, err = b.Recompress(None, 0, Limits{MaxDecompressed: 1000})
			require.ErrorIs(t, err, kerr.MessageTooLarge)
		}
	}
}

func BenchmarkRecompress(b *testing.B) {
	for _, c := range []Codec{Gzip, LZ4, Zstd} {
		b.Run("none to "+c.String(), func(b *testing.B) {
			batch := logLines(b, None, 2000, 100)
			b.SetBytes(2000 * 100)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := batch.Recompress(c, 0, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
