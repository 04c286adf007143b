package commitlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// sent encodes records as a client of a format does, which counts offsets from 0.
func sent(t testing.TB, magic int8, c record.Codec, records []record.Record) []byte {
	t.Helper()
	if magic == 2 {
		b := record.NewBuilder(record.BuilderOptions{Codec: c})
		for _, r := range records {
			b.Append(r.Timestamp, r.Key, r.Value)
		}
		out, err := b.Build()
		require.NoError(t, err)
		return out
	}
	b := record.NewMessageBuilder(nil, nil, record.MessageOptions{Magic: magic, Codec: c})
	for i, r := range records {
		r.Offset = int64(i)
		b.Append(&r)
	}
	out, err := b.Build()
	require.NoError(t, err)
	return out
}

// mixedLog appends in all formats to a log whose own format changes, and remembers what has to be in it.
type mixedLog struct {
	t    *testing.T
	rng  *rand.Rand
	m    *opened
	want []record.Record
	cuts []int64 // where appends began
	key  int
}

var mixedCodecs = []record.Codec{record.None, record.None, record.Gzip, record.Snappy, record.LZ4}

func (x *mixedLog) config() Config {
	c := smallConfig()
	c.SegmentBytes, c.IndexInterval = 2000, 100
	c.Format = Format(x.rng.IntN(3))
	if codec := mixedCodecs[x.rng.IntN(len(mixedCodecs))]; x.rng.IntN(2) == 0 {
		c.Compression = Compression{Codec: codec}
	}
	return c
}

func (x *mixedLog) append(l *Log) {
	magic, c := int8(x.rng.IntN(3)), l.Config()
	end := l.EndOffset()
	records := make([]record.Record, 1+x.rng.IntN(6))
	for i := range records {
		x.key++
		records[i] = record.Record{Offset: end + int64(i), Timestamp: 1000 + int64(x.rng.IntN(500)), Key: fmt.Append(nil, x.key%37), Value: fmt.Appendf(nil, "value %d", x.key)}
	}
	info, err := l.AppendAsLeader(sent(x.t, magic, mixedCodecs[x.rng.IntN(len(mixedCodecs))], records), 0, AppendOptions{RequireV2: magic == 2})
	require.NoError(x.t, err)
	require.Equal(x.t, end, info.FirstOffset)
	require.Equal(x.t, end+int64(len(records))-1, info.LastOffset)
	l.SetHighWatermark(l.EndOffset())
	x.cuts = append(x.cuts, end)
	for _, r := range records {
		if magic == 0 || c.Format == FormatV0 {
			r.Timestamp = record.NoTimestamp
		}
		x.want = append(x.want, r)
	}
}

func (x *mixedLog) cut(l *Log) {
	to := x.cuts[x.rng.IntN(len(x.cuts))]
	if to < int64(len(x.want))/2 {
		return
	}
	l.SetHighWatermark(to)
	require.NoError(x.t, l.TruncateTo(to))
	x.want = x.want[:to]
	for x.cuts[len(x.cuts)-1] >= to {
		x.cuts = x.cuts[:len(x.cuts)-1]
		if len(x.cuts) == 0 {
			break
		}
	}
	require.Equal(x.t, to, l.EndOffset())
}

func (x *mixedLog) check(l *Log) {
	got := readAll(x.t, l, 0, l.EndOffset())
	require.Len(x.t, got, len(x.want))
	for i, r := range got {
		r.Headers = nil
		require.Equal(x.t, x.want[i], r)
	}
	newest := record.Record{Timestamp: record.NoTimestamp, Offset: -1}
	for _, r := range x.want {
		if r.Timestamp > newest.Timestamp {
			newest = r
		}
	}
	for ts := int64(990); ts <= newest.Timestamp+1; ts += 3 {
		offset, at, _, found, err := l.OffsetForTimestamp(ts)
		require.NoError(x.t, err)
		first := -1
		for i, r := range x.want {
			if r.Timestamp >= ts {
				first = i
				break
			}
		}
		require.Equal(x.t, first >= 0, found, ts)
		if found {
			require.Equal(x.t, x.want[first].Offset, offset, ts)
			require.Equal(x.t, x.want[first].Timestamp, at)
		}
	}
	offset, at, _, found, err := l.MaxTimestampOffset()
	require.NoError(x.t, err)
	require.Equal(x.t, newest.Offset >= 0, found)
	if found {
		require.Equal(x.t, []int64{newest.Offset, newest.Timestamp}, []int64{offset, at})
	}
}

func TestALogOfManyFormatsIsReadAsOne(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			fs, clk := vfs.NewCrashFS(), newClock()
			x := &mixedLog{t: t, rng: rand.New(rand.NewPCG(seed, 0))}
			x.m = openManager(t, fs, x.config(), clk, "/data")
			l := x.m.log()
			for step := range 150 {
				switch n := x.rng.IntN(20); {
				case n == 0 && step > 10:
					require.NoError(t, x.m.Close())
					x.m = openManager(t, fs, x.config(), clk, "/data")
					l = x.m.log()
				case n == 1 && len(x.cuts) > 1:
					x.cut(l)
				case n < 5:
					l.SetConfig(x.config())
				default:
					x.append(l)
				}
			}
			x.check(l)
			require.Greater(t, l.Segments(), 3)

			follower := openManager(t, fs, x.config(), clk, "/follower").log()
			for follower.EndOffset() < l.EndOffset() {
				r, err := l.Read(follower.EndOffset(), ReadOptions{MaxBytes: 700, MinOneBatch: true, UpTo: l.EndOffset()})
				require.NoError(t, err)
				data, err := r.Range.ReadAll()
				require.NoError(t, err)
				r.Range.Release()
				_, err = follower.AppendAsFollower(data)
				require.NoError(t, err)
			}
			x.check(follower)

			require.NoError(t, x.m.Close())
			problems, err := Verify(fs, l.Dir())
			require.NoError(t, err)
			require.Empty(t, problems)
			x.m = openManager(t, fs, x.config(), clk, "/data")
			x.check(x.m.log())
		})
	}
}

// A leader of messages has no epochs to truncate by; those of batches before them would be taken for theirs.
func TestMessagesEndTheHistoryOfEpochs(t *testing.T) {
	m := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data")
	l := m.log()
	require.NoError(t, l.AssignEpochStart(3, 0))
	_, err := l.AppendAsLeader(batchSpec{}.build(t), 3, AppendOptions{RequireV2: true})
	require.NoError(t, err)
	c := l.Config()
	c.Format = FormatV1
	l.SetConfig(c)
	_, err = l.AppendAsLeader(batchSpec{}.build(t), 3, AppendOptions{RequireV2: true})
	require.NoError(t, err)
	require.NoError(t, l.AssignEpochStart(4, 2))
	_, known := l.LatestEpoch()
	require.False(t, known)
}

func TestRecordsThatAnOldFormatHasNoWordForAreRefused(t *testing.T) {
	m := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data")
	l := m.log()
	c := l.Config()
	c.Format = FormatV1
	l.SetConfig(c)
	headers := record.NewBuilder(record.BuilderOptions{})
	headers.Append(5, nil, nil, record.Header{Key: "h"})
	withHeaders, err := headers.Build()
	require.NoError(t, err)
	for name, refused := range map[string]struct {
		data []byte
		code error
	}{
		"idempotent": {batchSpec{pid: 5}.build(t), kerr.UnsupportedForMessageFormat},
		"marker":     {record.NewEndTxnBatch(record.EndTxnMarker{}, 5, 0, 1), kerr.UnsupportedForMessageFormat},
		"headers":    {withHeaders, kerr.UnsupportedForMessageFormat},
		"zstd":       {batchSpec{codec: record.Zstd}.build(t), kerr.UnsupportedCompressionType},
	} {
		_, err := l.AppendAsLeader(refused.data, 0, AppendOptions{RequireV2: true, Origin: Coordinator})
		require.ErrorIs(t, err, refused.code, name)
	}
	require.Zero(t, l.EndOffset())
}

// ListOffsets version 0: the newest beginnings of segments that nothing was written to after a time.
func TestOffsetsBeforeATimeAreThoseOfSegments(t *testing.T) {
	clk := newClock()
	m := openManager(t, vfs.NewCrashFS(), smallConfig(), clk, "/data")
	l := m.log()
	require.Equal(t, []int64{0}, l.OffsetsBefore(OffsetsLatest, 5), "an empty log begins where it ends")
	times := []int64{}
	for range 3 {
		produce(t, l, batchSpec{count: 10})
		times = append(times, clk.at.UnixMilli())
		clk.advance(1000)
		require.NoError(t, roll(l))
		clk.advance(1000 * 1000 * 1000)
	}
	require.Equal(t, []int64{30, 20, 10}, l.OffsetsBefore(OffsetsLatest, 3))
	require.Equal(t, []int64{0}, l.OffsetsBefore(OffsetsEarliest, 3))
	require.Equal(t, []int64{10, 0}, l.OffsetsBefore(times[1], 9))
	require.Empty(t, l.OffsetsBefore(times[0]-1, 9))
	l.SetHighWatermark(30)
	_, err := l.AdvanceStartOffset(12, "test")
	require.NoError(t, err)
	require.Equal(t, int64(12), l.OffsetsBefore(OffsetsEarliest, 1)[0])
}

// wrappers makes a log of a format with two wrappers of 5 messages each.
func wrappers(t *testing.T, fs vfs.FS, f Format) *opened {
	c := smallConfig()
	c.Format, c.Compression = f, Compression{Codec: record.Gzip}
	m := openManager(t, fs, c, newClock(), "/data")
	for range 2 {
		_, err := m.log().AppendAsLeader(batchSpec{count: 5, ts: 7}.build(t), 0, AppendOptions{RequireV2: true})
		require.NoError(t, err)
	}
	return m
}

// Where it ends must not depend on whether the broker was started since.
func TestALogCutInsideOfAWrapperEndsWithItsLastMessage(t *testing.T) {
	for _, f := range []Format{FormatV0, FormatV1} {
		fs := vfs.NewCrashFS()
		m := wrappers(t, fs, f)
		require.NoError(t, m.log().TruncateTo(8))
		require.Equal(t, int64(5), m.log().EndOffset())
		require.Equal(t, int64(0), m.log().RecoveryPoint())
		require.NoError(t, m.log().Flush())
		m = openManager(t, fs.Image(fs.Ops(), vfs.Synced, 1), m.log().Config(), newClock(), "/data")
		require.Equal(t, int64(5), m.log().EndOffset())
		require.False(t, m.log().Recovery().LostCommitted())
	}
}

func TestMessagesEndTheHistoryOfEpochsAlsoInRecovery(t *testing.T) {
	fs := vfs.NewCrashFS()
	m := openManager(t, fs, smallConfig(), newClock(), "/data")
	l := m.log()
	_, err := l.AppendAsLeader(batchSpec{}.build(t), 3, AppendOptions{RequireV2: true})
	require.NoError(t, err)
	c := l.Config()
	c.Format = FormatV1
	l.SetConfig(c)
	_, err = l.AppendAsLeader(batchSpec{}.build(t), 3, AppendOptions{RequireV2: true})
	require.NoError(t, err)
	m = openManager(t, fs.Image(fs.Ops(), vfs.Everything, 1), c, newClock(), "/data")
	require.Equal(t, int64(2), m.log().EndOffset())
	_, known := m.log().LatestEpoch()
	require.False(t, known)
}

// Messages of v0 have no time: it is the file's that counts, as for retention.ms.
func TestMessagesWithoutTimeAreNotCompactedBeforeTheirTime(t *testing.T) {
	c := compacted()
	c.Format, c.MinCompactionLagMs = FormatV0, 60_000
	clk := newClock()
	m := openManager(t, vfs.NewCrashFS(), c, clk, "/data")
	l := m.log()
	for range 3 {
		_, err := l.AppendAsLeader(batchSpec{count: 5, keys: true}.build(t), 0, AppendOptions{RequireV2: true})
		require.NoError(t, err)
		require.NoError(t, roll(l))
	}
	l.SetHighWatermark(l.EndOffset())
	clk.advance(59 * time.Second)
	require.False(t, m.cleanOnce())
	clk.advance(2 * time.Second)
	require.True(t, m.cleanOnce())
}

// A start knows of messages without timestamps only what their file says.
func TestACompactionKeepsTheTimeOfTheFile(t *testing.T) {
	c := compacted()
	c.Format = FormatV0
	clk := newClock()
	m := openManager(t, vfs.OS, c, clk, t.TempDir())
	l := m.log()
	for range 3 {
		_, err := l.AppendAsLeader(batchSpec{count: 5, keys: true}.build(t), 0, AppendOptions{RequireV2: true})
		require.NoError(t, err)
		require.NoError(t, roll(l))
	}
	written := clk.at
	l.SetHighWatermark(l.EndOffset())
	clk.advance(time.Hour)
	require.True(t, m.cleanOnce())
	info, err := os.Stat(filepath.Join(l.Dir(), fileName(0, logSuffix)))
	require.NoError(t, err)
	require.Equal(t, written.UnixMilli(), info.ModTime().UnixMilli())
}
