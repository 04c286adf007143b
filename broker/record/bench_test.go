package record

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// batchOf builds a batch of n records with values of size bytes.
func batchOf(tb testing.TB, c Codec, n, size int) Batch {
	tb.Helper()
	b := NewBuilder(BuilderOptions{Codec: c})
	for i := range n {
		value := bytes.Repeat([]byte{byte(i), byte(i >> 8), 'v', byte(i * 7)}, size/4+1)[:size]
		b.Append(1700000000000+int64(i), nil, value)
	}
	out, err := b.Build()
	require.NoError(tb, err)
	return out
}

var rules = Rules{Partition: "t-0", CheckTimestamps: true, Now: 1700000000000, BeforeMax: 1 << 62, AfterMax: 3600000}

// BenchmarkValidate reports the time per record: it is paid under the lock of a log.
func BenchmarkValidate(b *testing.B) {
	for _, c := range []Codec{None, Gzip, Snappy, LZ4, Zstd} {
		b.Run(fmt.Sprintf("%s/100", c), func(b *testing.B) {
			batch := batchOf(b, c, 150, 100)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if _, err := Validate(batch, rules); err != nil {
					b.Fatal(err)
				}
				n += 150
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/record")
		})
	}
}

// logLines builds a batch of n records of size bytes that look like an application's log.
func logLines(tb testing.TB, c Codec, n, size int) Batch {
	tb.Helper()
	words := []string{"error", "order", "user", "created", "payment", "checkout", "timeout", "region", "eu-west", "us-east"}
	rnd := rand.New(rand.NewPCG(1, 2))
	b := NewBuilder(BuilderOptions{Codec: c})
	for i := range n {
		var line bytes.Buffer
		for line.Len() < size {
			fmt.Fprintf(&line, `{"ts":%d,"id":"%x","event":"%s","where":"%s","amount":%d},`,
				1700000000000+rnd.Int64N(1e9), rnd.Int64(), words[rnd.IntN(10)], words[rnd.IntN(10)], rnd.IntN(10000))
		}
		b.Append(1700000000000+int64(i), nil, line.Bytes()[:size])
	}
	out, err := b.Build()
	require.NoError(tb, err)
	return out
}

// BenchmarkValidateLogLines reports bytes of uncompressed records: a small batch shows what a decoder costs to begin with.
func BenchmarkValidateLogLines(b *testing.B) {
	for _, c := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		for _, n := range []int{4, 256} {
			b.Run(fmt.Sprintf("%s/%d", c, n), func(b *testing.B) {
				batch := logLines(b, c, n, 1000)
				b.SetBytes(int64(n) * 1000)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Validate(batch, rules); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkCompressLogLines reports bytes that are compressed; a small batch shows what an encoder costs to begin with.
func BenchmarkCompressLogLines(b *testing.B) {
	for _, c := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		for _, n := range []int{1, 256} {
			b.Run(fmt.Sprintf("%s/%d", c, n), func(b *testing.B) {
				lines := logLines(b, None, n, 1000).Payload()
				b.SetBytes(int64(len(lines)))
				b.ReportAllocs()
				var out []byte
				for b.Loop() {
					var err error
					if out, err = Compress(c, DefaultLevel, out[:0], lines); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCheckCRC(b *testing.B) {
	batch := batchOf(b, None, 150, 100)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Next(batch); err != nil {
			b.Fatal(err)
		}
		if err := batch.CheckCRC(); err != nil {
			b.Fatal(err)
		}
		batch.SetBaseOffset(7)
	}
}
