package commitlog

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

func benchConfig() Config {
	c := DefaultConfig()
	c.SegmentBytes = 256 << 20
	return c
}

func BenchmarkAppendAsLeader(b *testing.B) {
	for _, size := range []int{100, 10_000, 500_000} {
		b.Run(fmt.Sprintf("batch-of-%d-bytes", size), func(b *testing.B) {
			l := openManager(b, vfs.OS, benchConfig(), newClock(), b.TempDir()).log()
			batch := record.Batch(batchSpec{count: 10, size: size / 10, ts: 1}.build(b))
			b.SetBytes(int64(len(batch)))
			b.ReportAllocs()
			for b.Loop() {
				batch.SetBaseOffset(0)
				if _, err := l.AppendAsLeader(batch, 0, AppendOptions{RequireV2: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// numbers is text of some bytes that can be compressed by about a half.
func numbers(rnd *rand.Rand, size int) (text []byte) {
	for len(text) < size {
		text = fmt.Appendf(text, "number: %d, ", rnd.Uint32())
	}
	return text[:size]
}

// BenchmarkAppendOfMessages makes batches of what clients of before 0.11 send.
func BenchmarkAppendOfMessages(b *testing.B) {
	for _, codec := range []record.Codec{record.None, record.LZ4} {
		b.Run(codec.String(), func(b *testing.B) {
			l := openManager(b, vfs.OS, benchConfig(), newClock(), b.TempDir()).log()
			rnd := rand.New(rand.NewPCG(1, 2))
			build := record.NewMessageBuilder(nil, nil, record.MessageOptions{Magic: 1, Codec: codec})
			for i := range int64(250) {
				build.Append(&record.Record{Offset: i, Timestamp: 1, Value: numbers(rnd, 1000)})
			}
			set, err := build.Build()
			require.NoError(b, err)
			b.SetBytes(250 * 1000)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.AppendAsLeader(set, 0, AppendOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	l := openManager(b, vfs.OS, benchConfig(), newClock(), b.TempDir()).log()
	for range 20_000 {
		produce(b, l, batchSpec{count: 10, size: 100, ts: 1})
	}
	end := l.EndOffset()
	l.SetHighWatermark(end)
	for name, from := range map[string]func(i int64) int64{
		"tail":   func(int64) int64 { return end - 10 },
		"middle": func(i int64) int64 { return i * 7919 % end },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := int64(0)
			for b.Loop() {
				i++
				r, err := l.Read(from(i), ReadOptions{MaxBytes: 1 << 20, UpTo: end})
				if err != nil {
					b.Fatal(err)
				}
				r.Range.Release()
			}
		})
	}
}

// BenchmarkCleanStart opens 2,000 partitions with some data each, and tells what one idle log keeps in memory.
func BenchmarkCleanStart(b *testing.B) {
	const partitions = 2000
	dir := b.TempDir()
	clk := newClock()
	m := openManager(b, vfs.OS, benchConfig(), clk, dir)
	batch := record.Batch(batchSpec{count: 10, size: 100, ts: 1}.build(b))
	for p := range int32(partitions) {
		l, err := m.GetOrCreate(TopicPartition{"topic", p}, TopicID{1}, false)
		require.NoError(b, err)
		for range 10 {
			batch.SetBaseOffset(0)
			_, err = l.AppendAsLeader(batch, 0, AppendOptions{})
			require.NoError(b, err)
		}
	}
	require.NoError(b, m.Close())
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		m = openManager(b, vfs.OS, benchConfig(), clk, dir)
		b.ReportMetric(time.Since(start).Seconds(), "s/open")
		m.sweep()
		m.sweep()
		m.sweep()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/partitions, "B/idle-log")
		require.Len(b, m.All(), partitions)
		start = time.Now()
		require.NoError(b, m.Close())
		b.ReportMetric(time.Since(start).Seconds(), "s/close")
	}
}
