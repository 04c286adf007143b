package commitlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
	"barnabas/integration/lane"
)

// dirtyLog fills a log with about total bytes of records of the given size, each key four times.
func dirtyLog(b *testing.B, dir string, c Config, codec record.Codec, size, total int) *opened {
	m := openManager(b, vfs.OS, c, newClock(), dir)
	l := m.log()
	rng := rand.New(rand.NewPCG(1, 2))
	keys := total / size / 4
	random := make([]byte, 1<<16)
	for i := range random {
		random[i] = byte('a' + rng.IntN(16))
	}
	for written := 0; written < total; {
		build := record.NewBuilder(record.BuilderOptions{Codec: codec})
		for range max(1, 16_000/size) {
			at := rng.IntN(len(random) - size)
			build.Append(newClock().at.UnixMilli(), fmt.Appendf(nil, "key-%09d", rng.IntN(keys)), random[at:at+size-20])
			written += size
		}
		batch, err := build.Build()
		require.NoError(b, err)
		_, err = l.AppendAsLeader(batch, 0, AppendOptions{})
		require.NoError(b, err)
	}
	require.NoError(b, roll(l))
	l.SetHighWatermark(l.EndOffset())
	require.NoError(b, l.Flush())
	return m
}

func cleanerBenchConfig() Config {
	c := compacted()
	c.SegmentBytes, c.SegmentIndexBytes, c.IndexInterval = 32<<20, 10<<20, 4096
	return c
}

// BenchmarkClean measures the bytes of log that are cleaned per second: read twice, a quarter written.
func BenchmarkClean(b *testing.B) {
	const total = 128 << 20
	for _, size := range []int{100, 1000} {
		for _, codec := range []record.Codec{record.None, record.LZ4, record.Zstd} {
			b.Run(fmt.Sprintf("%d-%s", size, codec), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					dir := b.TempDir()
					m := dirtyLog(b, dir, cleanerBenchConfig(), codec, size, total)
					b.SetBytes(m.log().Size())
					b.StartTimer()
					require.True(b, m.cleanWithin(128<<20))
					b.StopTimer()
					require.NoError(b, m.Close())
					require.NoError(b, os.RemoveAll(dir))
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkKafkasCleaner has Kafka's cleaner do the same, in a JVM of its own; the time is what it says of the cleaning alone.
func BenchmarkKafkasCleaner(b *testing.B) {
	const total = 128 << 20
	java, jars := lane.Java(b), lane.KafkaJars(b, "3.9.1")
	classes := compileJudge(b, java, jars)
	for _, size := range []int{100, 1000} {
		for _, codec := range []record.Codec{record.None, record.LZ4, record.Zstd} {
			b.Run(fmt.Sprintf("%d-%s", size, codec), func(b *testing.B) {
				c := cleanerBenchConfig()
				dir := b.TempDir()
				m := dirtyLog(b, dir, c, codec, size, total)
				bytes := m.log().Size()
				at := m.clock.at.UnixMilli()
				require.NoError(b, m.Close())
				for b.Loop() {
					work := filepath.Join(b.TempDir(), "topic-0")
					require.NoError(b, os.CopyFS(work, os.DirFS(filepath.Join(dir, "topic-0"))))
					_, ms := kafkaCleans(b, java, jars, classes, work, at, 0, c, 128<<20)
					b.ReportMetric(float64(bytes)/1e6/(float64(ms)/1000), "MB/s-of-the-cleaning")
				}
			})
		}
	}
}

// compileJudge compiles Clean.java.
func compileJudge(t testing.TB, java, jars string) (classes string) {
	source, err := filepath.Abs("testdata/judge/Clean.java")
	require.NoError(t, err)
	classes = t.TempDir()
	compiler := filepath.Join(filepath.Dir(java), "javac")
	_, err = os.Stat(compiler)
	lane.Need(t, err == nil, "javac")
	out, err := exec.Command(compiler, "-proc:none", "-d", classes, "-cp", filepath.Join(jars, "*"), source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return classes
}

// kafkaCleans has Kafka clean the log in dir once; upTo is the offset below which it is clean then.
func kafkaCleans(t testing.TB, java, jars, classes, dir string, at, dirty int64, c Config, mapBytes int) (upTo, ms int64) {
	cmd := exec.Command(java, "-Xmx1g", "-XX:+UseSerialGC", "-cp", classes+string(os.PathListSeparator)+filepath.Join(jars, "*"), "Clean",
		dir, fmt.Sprint(at), fmt.Sprint(dirty), fmt.Sprint(c.SegmentBytes), fmt.Sprint(c.DeleteRetentionMs), fmt.Sprint(mapBytes))
	said, err := cmd.Output()
	require.NoError(t, err, "%s", said)
	_, line, found := strings.Cut(string(said), "clean to ")
	require.True(t, found, "%s", said)
	_, err = fmt.Sscanf(line, "%d in %d ms", &upTo, &ms)
	require.NoError(t, err, "%s", said)
	return upTo, ms
}
