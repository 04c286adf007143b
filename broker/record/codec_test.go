package record

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

func sample(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	p := make([]byte, n)
	for i := 0; i < n; {
		i += copy(p[i:], []string{"some", "words", " that ", "come again", "\x00\x01"}[rng.IntN(5)])
	}
	return p
}

func TestEveryCodecAndLevelRestoresWhatItCompressed(t *testing.T) {
	levels := map[Codec][]int{None: {DefaultLevel}, Snappy: {DefaultLevel}, Gzip: {DefaultLevel, -1, 1, 6, 9},
		LZ4: {DefaultLevel, 1, 5, 9, 12, 17}, Zstd: {DefaultLevel, -131072, -1, 1, 3, 10, 22}}
	for c, list := range levels {
		for _, level := range list {
			for _, n := range []int{0, 1, 100, 32 << 10, 32<<10 + 1, 100_000} {
				src := sample(n)
				packed, err := Compress(c, level, []byte("head"), src)
				require.NoError(t, err)
				require.Equal(t, "head", string(packed[:4]))
				if c != None && n > 1000 {
					require.Less(t, len(packed), n)
				}
				got, err := Decompress(c, packed[4:], Limits{MaxDecompressed: max(n, 1)})
				require.NoError(t, err, "%s level %d, %d bytes", c, level, n)
				require.Equal(t, string(src), string(got))
			}
		}
	}
}

func TestStreamsInOneAnother(t *testing.T) {
	a, b := sample(50_000), sample(70_001)
	both := string(a) + string(b)
	join := func(c Codec) []byte {
		p, err := Compress(c, DefaultLevel, nil, a)
		require.NoError(t, err)
		p, err = Compress(c, DefaultLevel, p, b)
		require.NoError(t, err)
		return p
	}
	for _, c := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		got, err := Decompress(c, join(c), Limits{})
		require.NoError(t, err, c)
		require.Equal(t, both, string(got), c)
	}
}

// What other writers of the formats do and ours do not.
func TestForeignFrames(t *testing.T) {
	src := sample(200_000)
	frames := map[string]struct {
		codec Codec
		make  func(w io.Writer) error
	}{
		"raw snappy": {Snappy, func(w io.Writer) error { _, err := w.Write(snappy.Encode(nil, src)); return err }},
		"raw snappy of s2, better": {Snappy, func(w io.Writer) error {
			_, err := w.Write(s2.EncodeSnappyBest(nil, src))
			return err
		}},
		"lz4 with linked blocks of 4 MiB, checksums and size": {LZ4, func(w io.Writer) error {
			z := lz4.NewWriter(w)
			if err := z.Apply(lz4.BlockSizeOption(lz4.Block4Mb), lz4.ChecksumOption(true), lz4.BlockChecksumOption(true), lz4.SizeOption(uint64(len(src)))); err != nil {
				return err
			}
			if _, err := z.Write(src); err != nil {
				return err
			}
			return z.Close()
		}},
		"lz4 of one incompressible block": {LZ4, func(w io.Writer) error {
			z := lz4.NewWriter(w)
			_, err := z.Write(src)
			return firstError(err, z.Close())
		}},
		"gzip with a name, no compression": {Gzip, func(w io.Writer) error {
			z, err := gzip.NewWriterLevel(w, gzip.NoCompression)
			if err != nil {
				return err
			}
			z.Name, z.Comment = "records", "and a comment"
			_, err = z.Write(src)
			return firstError(err, z.Close())
		}},
		"zstd of unknown size, with checksum": {Zstd, func(w io.Writer) error {
			z, err := zstd.NewWriter(w, zstd.WithEncoderCRC(true), zstd.WithWindowSize(1<<20))
			if err != nil {
				return err
			}
			_, err = z.Write(src)
			return firstError(err, z.Close())
		}},
		"zstd with a window of 32 MiB": {Zstd, func(w io.Writer) error {
			z, err := zstd.NewWriter(w, zstd.WithWindowSize(32<<20), zstd.WithEncoderConcurrency(1))
			if err != nil {
				return err
			}
			_, err = z.Write(bytes.Repeat(src, 20))
			return firstError(err, z.Close())
		}},
	}
	for name, f := range frames {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, f.make(&out))
			got, err := Decompress(f.codec, out.Bytes(), Limits{})
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(string(got), string(src)))
			require.Zero(t, len(got)%len(src))
		})
	}
}

// streamed is what the decoder of streams makes of src.
func streamed(c Codec, src []byte) ([]byte, error) {
	d, err := newDecoder(c, src)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return io.ReadAll(d)
}

// Small batches are decompressed at once, large ones as a stream.
func TestBothWaysOfDecompressingGiveTheSame(t *testing.T) {
	for _, c := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		for _, n := range []int{0, 1, 100, 32 << 10, 64<<10 + 1, 300_000, wholeSize - outSlack, wholeSize + 1} {
			src := sample(n)
			packed, err := Compress(c, DefaultLevel, nil, src)
			require.NoError(t, err)
			got, err := streamed(c, packed)
			require.NoError(t, err, "%s, %d bytes", c, n)
			require.Equal(t, string(src), string(got))
			got, ok := decompressWhole(c, make([]byte, 0, wholeSize), packed)
			require.Equal(t, n <= wholeSize, ok, "%s, %d bytes", c, n)
			if ok {
				require.Equal(t, string(src), string(got))
			}
		}
	}
}

func TestOnlyUsualLZ4FramesAreDecompressedAtOnce(t *testing.T) {
	packed, err := Compress(LZ4, DefaultLevel, nil, sample(1000))
	require.NoError(t, err)
	for name, p := range map[string][]byte{
		"no frame": packed[4:], "flags": flip(packed, 4), "size of blocks": flip(packed, 5), "checksum of the head": flip(packed, 6),
		"size of a block": flip(packed, 9), "no end": packed[:len(packed)-4], "cut": packed[:len(packed)-9], "only a head": packed[:7],
		"head cut": packed[:5],
	} {
		_, ok := decompressWhole(LZ4, make([]byte, 0, wholeSize), p)
		require.False(t, ok, name)
	}
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestBrokenFramesAreTheClientsFault(t *testing.T) {
	for _, c := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		good, err := Compress(c, DefaultLevel, nil, sample(5000))
		require.NoError(t, err)
		for name, p := range map[string][]byte{"garbage": []byte("no such frame at all"), "cut": good[:len(good)/2], "flipped": flip(good, len(good)/2)} {
			got, err := Decompress(c, p, Limits{})
			if err == nil {
				require.NotEqual(t, string(sample(5000)), string(got), "%s %s: no checksum there to find it", c, name)
				continue
			}
			require.ErrorIs(t, err, kerr.InvalidRecord, "%s %s", c, name)
		}
		got, err := Decompress(c, good, Limits{})
		require.NoError(t, err, "the pool is none the worse for it")
		require.Equal(t, string(sample(5000)), string(got))
	}
	_, err := Decompress(6, nil, Limits{})
	require.ErrorIs(t, err, kerr.UnsupportedCompressionType)
}

func flip(p []byte, at int) []byte {
	out := bytes.Clone(p)
	out[at] ^= 0x55
	return out
}

// A bomb: many megabytes of zeros in a few kilobytes, as one record or as many.
func bomb(t *testing.T, c Codec, record, count int) Batch {
	t.Helper()
	w := NewBuilder(BuilderOptions{Codec: c})
	for range count {
		w.Append(0, []byte("k"), make([]byte, record))
	}
	b, err := w.Build()
	require.NoError(t, err)
	return b
}

func TestBombsCostNoMoreThanTheirLimit(t *testing.T) {
	const size = 16 << 20
	for _, c := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		for _, shape := range [][2]int{{size, 1}, {1 << 20, size >> 20}} {
			t.Run(fmt.Sprintf("%s/%d", c, shape[1]), func(t *testing.T) {
				b := bomb(t, c, shape[0], shape[1])
				limits := Limits{MaxDecompressed: 1 << 20}
				for range 2 { // the first fills the pools
					before := allocated()
					_, err := Validate(b, Rules{Limits: limits})
					require.ErrorIs(t, err, kerr.MessageTooLarge)
					for _, err = range b.Records(limits) {
					}
					require.ErrorIs(t, err, kerr.MessageTooLarge)
					_, err = Decompress(c, b.Payload(), limits)
					require.ErrorIs(t, err, kerr.MessageTooLarge)
					require.Less(t, allocated()-before, uint64(24<<20), "of three times 16 MiB")
				}
				before := allocated()
				res, err := Validate(b, Rules{})
				require.NoError(t, err, "within the limit")
				require.Equal(t, shape[1], res.Count)
				require.Less(t, allocated()-before, uint64(8<<20), "validation holds a window, not the records")
			})
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestASnappyBlockIsNotBelievedToBeLarge(t *testing.T) {
	claim := []byte{0xff, 0xff, 0xff, 0xff, 0x07, 1, 2, 3} // 2 GiB
	before := allocated()
	_, err := Decompress(Snappy, claim, Limits{})
	require.ErrorIs(t, err, kerr.InvalidRecord)
	require.Less(t, allocated()-before, uint64(2*wholeSize), "one buffer, if the pool had none")
}

func TestCodecsFromManyGoroutines(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := codecs[i%len(codecs)]
			src := sample(10_000 + i)
			for range 30 {
				p, err := Compress(c, DefaultLevel, nil, src)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := Decompress(c, p, Limits{})
				if err != nil || !bytes.Equal(got, src) {
					t.Error(c, err)
					return
				}
			}
		}()
	}
	wg.Wait()
}

func TestNamesOfCodecs(t *testing.T) {
	for c, name := range []string{"none", "gzip", "snappy", "lz4", "zstd", "unknown(5)"} {
		require.Equal(t, name, Codec(c).String())
	}
}

// Decompress returns all of src decompressed in a slice of the caller's own. It fails with an *Invalid error: of
// MESSAGE_TOO_LARGE past l.MaxDecompressed bytes, of INVALID_RECORD if src cannot be decompressed.
func Decompress(c Codec, src []byte, l Limits) ([]byte, error) {
	if c == None {
		if len(src) > l.max() {
			return nil, decompressError(c, errTooLarge)
		}
		return bytes.Clone(src), nil
	}
	var s stream
	if err := s.open(c, src, l); err != nil {
		return nil, err
	}
	defer s.close()
	out := make([]byte, 0, min(4*len(src), l.max()))
	for {
		more, err := s.more()
		if err != nil {
			return nil, err
		}
		if !more {
			return out, nil
		}
		out = append(out, s.buf[s.r:s.w]...)
		s.r = s.w
	}
}
