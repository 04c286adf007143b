package record

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// gzipOf compresses in the way of the standard library; level -2 is Huffman only.
func gzipOf(tb testing.TB, level int, src []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	require.NoError(tb, err)
	_, err = w.Write(src)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return out.Bytes()
}

// shapes are contents that make deflate use what it has: literals, long and short matches near and far, long codes.
func shapes() map[string][]byte {
	rnd := rand.New(rand.NewPCG(5, 6))
	random := make([]byte, 70_000)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	skewed := make([]byte, 200_000) // frequencies from 1 to 2^17: codes of up to 15 bits
	for i := range skewed {
		skewed[i] = byte(min(rnd.ExpFloat64()*1.5, 255))
		if rnd.IntN(30000) == 0 {
			skewed[i] = byte(rnd.Uint32())
		}
	}
	return map[string][]byte{
		"nothing": nil, "one byte": {7}, "zeros": make([]byte, 300_000), "random": random, "words": sample(250_000), "skewed": skewed,
		"period 3": bytes.Repeat([]byte("abc"), 30_000), "far": append(append(bytes.Clone(random[:32_000]), random[:32_000]...), 1),
	}
}

func TestInflatingAtOnceRestoresWhatTheStandardLibraryCompressed(t *testing.T) {
	for name, src := range shapes() {
		for _, level := range []int{gzip.HuffmanOnly, gzip.NoCompression, gzip.BestSpeed, gzip.DefaultCompression, gzip.BestCompression} {
			got, ok := gunzipWhole(make([]byte, 0, wholeSize), gzipOf(t, level, src))
			require.True(t, ok, "%s level %d", name, level)
			require.True(t, bytes.Equal(src, got), "%s level %d", name, level)
		}
	}
}

func TestInflatingAtOnceRefusesWhatDoesNotFit(t *testing.T) {
	src := sample(10_000)
	packed := gzipOf(t, 6, src)
	_, ok := gunzipWhole(make([]byte, 0, len(src)+outSlack), packed)
	require.True(t, ok)
	for _, room := range []int{0, 1, outSlack, len(src), len(src) + outSlack - longestMatch} {
		_, ok := gunzipWhole(make([]byte, 0, room), packed)
		require.False(t, ok, room)
	}
}

func TestInflatingAtOnceRefusesEveryCutAndEveryWrongChecksum(t *testing.T) {
	packed := gzipOf(t, 6, sample(1000))
	buf := make([]byte, 0, wholeSize)
	for n := 1; n < len(packed); n++ {
		_, ok := gunzipWhole(buf, packed[:n])
		require.False(t, ok, n)
	}
	for _, back := range []int{1, 5} { // size, CRC
		_, ok := gunzipWhole(buf, flip(packed, len(packed)-back))
		require.False(t, ok)
	}
}

// FuzzInflate holds the two decoders of gzip against each other: whatever the one of memory takes, the standard
// library takes too, with the same content.
func FuzzInflate(f *testing.F) {
	for _, src := range shapes() {
		for _, level := range []int{-2, 0, 1, 9} {
			packed := gzipOf(f, level, src[:min(len(src), 5000)])
			f.Add(packed[gzipHead:])
		}
	}
	f.Add([]byte{0x4b, 4, 0}) // fixed codes
	buf := make([]byte, 0, wholeSize)
	f.Fuzz(func(t *testing.T, deflated []byte) {
		var d inflater
		got, rest, ok := d.inflate(buf, deflated)
		if !ok {
			return
		}
		member := append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, deflated[:len(deflated)-len(rest)]...)
		member = binary.LittleEndian.AppendUint64(member, 0) // a wrong tail: everything is read before it is noticed
		r, err := gzip.NewReader(bytes.NewReader(member))
		require.NoError(t, err)
		want, err := io.ReadAll(r)
		if len(got) > 0 {
			require.ErrorIs(t, err, gzip.ErrChecksum)
		}
		require.True(t, bytes.Equal(want, got))
	})
}
