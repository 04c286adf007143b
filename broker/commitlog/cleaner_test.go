package commitlog

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// compacted is a configuration under which every sealed segment is cleaned.
func compacted() Config {
	c := smallConfig()
	c.SegmentBytes, c.SegmentIndexBytes, c.IndexInterval = 2000, 4096, 300
	c.CleanupDelete, c.CleanupCompact = false, true
	c.MinCleanableDirtyRatio = 0.01
	c.RetentionMs = -1
	return c
}

// cleanOnce runs one cleaning, without threads.
func (m *Manager) cleanOnce() bool { return m.cleanWithin(1 << 20) }

// cleanWithin is cleanOnce with a map of the given size.
func (m *Manager) cleanWithin(bytes int64) bool {
	return m.cleanPaced(bytes, func(int64) error { return nil })
}

// cleanPaced is cleanWithin that asks pace, between its steps, whether to go on.
func (m *Manager) cleanPaced(bytes int64, pace func(n int64) error) bool {
	cfg := CleanerConfig{Threads: 1, DedupeBytes: bytes, Backoff: time.Millisecond}.withDefaults()
	return m.cleaner.cleanDirtiest(&cleanerRun{cfg: cfg, stop: make(chan struct{}), pace: pace})
}

// keyed is a record of a compacted topic.
type keyed struct {
	key, value string
	tombstone  bool
}

func keyedBatch(t testing.TB, o record.BuilderOptions, ts int64, records ...keyed) record.Batch {
	b := record.NewBuilder(o)
	for _, r := range records {
		value := []byte(r.value)
		if r.tombstone {
			value = nil
		}
		b.Append(ts, []byte(r.key), value)
	}
	batch, err := b.Build()
	require.NoError(t, err)
	return batch
}

func appendKeyed(t testing.TB, l *Log, o record.BuilderOptions, ts int64, records ...keyed) AppendInfo {
	info, err := l.AppendAsLeader(keyedBatch(t, o, ts, records...), 0, AppendOptions{RequireV2: true})
	require.NoError(t, err)
	l.SetHighWatermark(l.EndOffset())
	return info
}

// kept is what is left of a log: offset by key.
func kept(t testing.TB, l *Log) (values map[string]keyed, offsets []int64) {
	values = map[string]keyed{}
	for _, r := range readAll(t, l, l.StartOffset(), l.EndOffset()) {
		offsets = append(offsets, r.Offset)
		values[string(r.Key)] = keyed{string(r.Key), string(r.Value), r.Value == nil}
	}
	return values, offsets
}

func TestOfEachKeyTheLastRecordIsLeft(t *testing.T) {
	for _, codec := range []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		t.Run(codec.String(), func(t *testing.T) {
			fs, clk := vfs.NewCrashFS(), newClock()
			m := openManager(t, fs, compacted(), clk, "/data")
			l := m.log()
			rng := rand.New(rand.NewPCG(1, uint64(codec)))
			want := map[string]keyed{}
			last := map[string]int64{}
			before := 0
			for i := range 330 {
				if i == 300 {
					before = l.Segments()
					require.True(t, m.cleanOnce())
				}
				var rs []keyed
				for j := range 1 + rng.IntN(4) {
					r := keyed{key: fmt.Sprint("key-", rng.IntN(20)), value: fmt.Sprint("value-", i, "-", j)}
					rs = append(rs, r)
				}
				info := appendKeyed(t, l, record.BuilderOptions{Codec: codec}, clk.at.UnixMilli(), rs...)
				for j, r := range rs {
					want[r.key], last[r.key] = r, info.FirstOffset+int64(j)
				}
			}
			require.True(t, m.cleanOnce())
			require.NoError(t, l.CleanerError())
			require.Less(t, l.Segments(), before/2)
			got, offsets := kept(t, l)
			require.Equal(t, want, got)
			for _, o := range last {
				require.Contains(t, offsets, o)
			}
			require.False(t, m.cleanOnce(), "nothing is dirty any more")
			clk.advance(time.Minute)
			m.removeDue(clk.at)

			require.NoError(t, m.Close())
			problems, err := Verify(fs, l.Dir())
			require.NoError(t, err)
			require.Empty(t, problems)
			m = openManager(t, fs, compacted(), clk, "/data")
			again, _ := kept(t, m.log())
			require.Equal(t, want, again)
			require.Equal(t, l.active().base, m.log().cleaned.Load(), "the checkpoint tells how far the log is clean")
		})
	}
}
