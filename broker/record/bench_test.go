package record

import (
	"bytes"
	"fmt"
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
