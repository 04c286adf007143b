package record

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

// lz4Samples are kinds of content: text, bytes that repeat after each distance, long runs, noise.
func lz4Samples(tb testing.TB) map[string][]byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 1<<17)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	var near []byte
	for len(near) < 1<<17 {
		from := rnd.IntN(len(noise) - 400)
		near = append(near, noise[from:from+rnd.IntN(400)]...)
		for n := rnd.IntN(600); n > 0 && len(near) > 0; n-- {
			near = append(near, near[len(near)-1-rnd.IntN(min(len(near), 3))])
		}
	}
	return map[string][]byte{
		"text": logLines(tb, None, 140, 1000).Payload(), "zeros": make([]byte, 1<<17), "noise": noise, "mixed": near,
		"noise again": append(bytes.Clone(noise[:60_000]), noise[:72_000]...),
	}
}

// unpackedLZ4 is what the library makes of a frame.
func unpackedLZ4(t testing.TB, frame []byte) []byte {
	var out bytes.Buffer
	_, err := out.ReadFrom(lz4.NewReader(bytes.NewReader(frame)))
	require.NoError(t, err)
	return out.Bytes()
}

func TestEveryReaderUnpacksOurLZ4(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for name, data := range lz4Samples(t) {
		sizes := []int{0, 1, 4, 5, 11, 12, 13, 14, 16, 17, 18, 19, 31, 32, 33, 270, 65_523, 65_524, 65_535, 65_536, 65_537, 65_549, 1 << 17}
		for range 15 {
			sizes = append(sizes, rnd.IntN(300), rnd.IntN(1<<17))
		}
		for _, size := range sizes {
			from := rnd.IntN(len(data) - size + 1)
			src := data[from : from+size]
			packed := compressLZ4Fast([]byte("before"), src)
			require.Equal(t, "before", string(packed[:6]))
			require.True(t, bytes.Equal(src, unpackedLZ4(t, packed[6:])), "%s, %d bytes", name, size)
			out, ok := lz4Whole(make([]byte, 0, wholeSize), packed[6:])
			require.True(t, ok)
			require.True(t, bytes.Equal(src, out), "%s, %d bytes", name, size)
			require.True(t, bytes.Equal(packed[6:], compressLZ4Fast(nil, src)), "what was compressed before must not show")
		}
	}
}

// Kafka 3.9.1 makes frames of these sizes of the same bytes (Lz4BlockOutputStream, level 9, its default).
func TestOurLZ4IsAsSmallAsKafkas(t *testing.T) {
	kafkas := map[string]int{"text": 62_502, "zeros": 553, "noise": 131_091, "mixed": 51_018, "noise again": 126_754}
	for name, data := range lz4Samples(t) {
		require.InEpsilon(t, kafkas[name], len(compressLZ4Fast(nil, data)), 0.01, name)
	}
}

func FuzzCompressLZ4(f *testing.F) {
	for _, data := range lz4Samples(f) {
		f.Add(data[:5000])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.True(t, bytes.Equal(data, unpackedLZ4(t, compressLZ4Fast(nil, data))))
	})
}
