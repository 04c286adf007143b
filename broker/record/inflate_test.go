package record

import (
	"bufio"
	"bytes"
	stdflate "compress/flate"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/stretchr/testify/require"
)

// gzipOf compresses in the way of the standard library.
func gzipOf(tb testing.TB, level int, src []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	require.NoError(tb, err)
	_, err = w.Write(src)
	require.NoError(tb, firstError(err, w.Close()))
	return out.Bytes()
}

// shapes are contents that make deflate use what it has: literals, long and short matches near and far, long codes.
func shapes() map[string][]byte {
	rnd := rand.New(rand.NewPCG(5, 6))
	random := make([]byte, 70_000)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	skewed := make([]byte, 90_000) // frequencies from 1 to 2^16: codes of up to 15 bits
	for i := range skewed {
		skewed[i] = byte(min(rnd.ExpFloat64()*1.5, 255))
		if rnd.IntN(30000) == 0 {
			skewed[i] = byte(rnd.Uint32())
		}
	}
	var periods []byte
	for n := 1; n <= 17; n++ {
		periods = append(periods, bytes.Repeat(random[:n], 2000/n)...)
	}
	return map[string][]byte{
		"nothing": nil, "one byte": {7}, "zeros": make([]byte, 90_000), "random": random, "words": sample(90_000), "skewed": skewed,
		"far":     append(append(bytes.Clone(random[:32_000]), random[:32_000]...), 1),
		"periods": periods,
	}
}

// whole inflates into a buffer of which only room bytes may be written, and sees to it that no others are.
func whole(tb testing.TB, deflated []byte, room int) (out, rest []byte, ok bool) {
	tb.Helper()
	const guard = 64
	buf := bytes.Repeat([]byte{0xa5}, room+guard)
	var d inflater
	out, rest, ok = d.inflate(buf[:0:room], deflated)
	require.Equal(tb, guard, bytes.Count(buf[room:], []byte{0xa5}), "written behind the end")
	return out, rest, ok
}

func TestInflatingAtOnceRestoresWhatEveryLevelCompressed(t *testing.T) {
	for name, src := range shapes() {
		for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
			var packed [2]bytes.Buffer
			std, err := stdflate.NewWriter(&packed[0], level)
			require.NoError(t, err)
			ours, err := flate.NewWriter(&packed[1], level)
			require.NoError(t, err)
			for i, w := range []io.WriteCloser{std, ours} {
				_, err := w.Write(src)
				require.NoError(t, firstError(err, w.Close()))
				got, rest, ok := whole(t, packed[i].Bytes(), len(src)+outSlack)
				require.True(t, ok, "%s level %d", name, level)
				require.Empty(t, rest)
				require.True(t, bytes.Equal(src, got), "%s level %d", name, level)
			}
		}
	}
}

// zlibVerdicts are streams as zlib wrote them, streams that zlib refuses, and some that nobody writes but zlib takes.
func zlibVerdicts(tb testing.TB) (streams [][]byte, verdicts, names []string) {
	tb.Helper()
	f, err := os.Open("testdata/zlib.txt")
	require.NoError(tb, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		parts := strings.SplitN(lines.Text(), " ", 3)
		require.Len(tb, parts, 3)
		p, err := base64.StdEncoding.DecodeString(parts[0])
		require.NoError(tb, err)
		streams, verdicts, names = append(streams, p), append(verdicts, parts[1]), append(names, parts[2])
	}
	return streams, verdicts, names
}

func TestInflatingAtOnceJudgesAsZlibDoes(t *testing.T) {
	streams, verdicts, names := zlibVerdicts(t)
	require.Greater(t, len(streams), 80)
	for i, p := range streams {
		for _, behind := range []string{"", "x", strings.Repeat("more", 20)} { // the end is read in another way than the rest
			got, rest, ok := whole(t, append(bytes.Clone(p), behind...), 1<<16)
			verdict := "-"
			if ok {
				verdict = fmt.Sprintf("%d:%08x", len(got), crc32.ChecksumIEEE(got))
			}
			if behind != "" && verdicts[i] == "-" {
				continue // what was cut off may go on there
			}
			require.Equal(t, verdicts[i], verdict, names[i])
			require.True(t, !ok || behind == string(rest), names[i])
		}
	}
}

func TestInflatingAtOnceStaysWithinItsRoom(t *testing.T) {
	for name, src := range shapes() {
		packed := gzipOf(t, 6, src)[gzipHead:]
		_, _, ok := whole(t, packed, len(src)+outSlack)
		require.True(t, ok, name)
		for _, room := range []int{0, 1, outSlack - 1, len(src) / 2, len(src) - 1} {
			if room >= 0 && room < len(src) {
				_, _, ok := whole(t, packed, room)
				require.False(t, ok, "%s in %d", name, room)
			}
		}
	}
}

func TestInflatingAtOnceRefusesEveryCut(t *testing.T) {
	for _, level := range []int{gzip.NoCompression, gzip.BestSpeed, gzip.DefaultCompression} {
		packed := gzipOf(t, level, sample(1000))
		for n := range packed[:len(packed)-gzipTail] {
			_, _, ok := whole(t, packed[min(n, gzipHead):n], 2000)
			require.False(t, ok, n)
		}
	}
}

func TestInflatingBlocksThatHoldNothing(t *testing.T) {
	empty := []byte{0, 0, 0, 0xff, 0xff} // stored
	got, rest, ok := whole(t, append(bytes.Repeat(empty, 50_000), 3, 0), outSlack)
	require.True(t, ok)
	require.Empty(t, got)
	require.Empty(t, rest)
}

// FuzzInflate holds the inflater against the standard library's: the same bytes and the same rest, or refused by both.
func FuzzInflate(f *testing.F) {
	streams, _, _ := zlibVerdicts(f)
	for _, p := range streams {
		f.Add(p, uint16(1<<12))
	}
	for _, src := range shapes() {
		for _, level := range []int{-2, 0, 1, 9} {
			f.Add(gzipOf(f, level, src[:min(len(src), 3000)])[gzipHead:], uint16(2000))
		}
	}
	f.Fuzz(func(t *testing.T, deflated []byte, room uint16) {
		got, rest, ok := whole(t, deflated, int(room))
		in := bytes.NewReader(deflated)
		want, err := io.ReadAll(io.LimitReader(stdflate.NewReader(in), int64(room)+1))
		switch {
		case err != nil || len(want) > int(room):
			require.False(t, ok, err)
		case ok:
			require.True(t, bytes.Equal(want, got))
			require.Len(t, rest, in.Len())
		default:
			require.Greater(t, len(want)+outSlack, int(room), "refused without need")
		}
	})
}
