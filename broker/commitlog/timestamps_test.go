package commitlog

import (
	"barnabas/broker/record"
	"barnabas/broker/vfs"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestBR050RetentionByRecordTime(t *testing.T) {
	clk := newClock()
	now := clk.at.UnixMilli()
	for _, c := range []struct {
		name   string
		ts     int64
		delete bool
	}{
		{"seconds for milliseconds", now / 1000, true},
		{"microseconds", now * 1000, false},
		{"in ten years", now + 10*365*24*3600*1000, false},
		{"zero", 0, true},
		{"none", -1, false},
		{"now", now, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			clk := &clock{at: clk.at}
			cfg := smallConfig()
			cfg.RetentionMs, cfg.SegmentMs = 60_000, 10_000
			l := openManager(t, vfs.NewCrashFS(), cfg, clk, "/data").log()
			produce(t, l, batchSpec{ts: c.ts})
			require.NoError(t, roll(l))
			produce(t, l, batchSpec{ts: now})
			l.SetHighWatermark(2)
			require.NoError(t, l.applyRetention(now))
			require.Equal(t, c.delete, l.StartOffset() == 1)
			all := readAll(t, l, l.StartOffset(), 2)
			require.Equal(t, l.StartOffset(), all[0].Offset, "the first offset is the first that can be read")
			require.Equal(t, c.ts > now+futureMs, l.mu.warned)
			require.NoError(t, l.applyRetention(now-3600_000), "a step back of the clock")
			require.NoError(t, l.applyRetention(now+61_000))
			if c.ts == -1 {
				require.EqualValues(t, 2, l.StartOffset(), "the age of the file counts when records have no time")
			}
		})
	}
}

func TestBR050TimestampsOutOfBoundsAreRefusedRecordByRecord(t *testing.T) {
	clk := newClock()
	now := clk.at.UnixMilli()
	c := smallConfig()
	c.TimestampBefore, c.TimestampAfter = 3600_000, 3600_000
	l := openManager(t, vfs.NewCrashFS(), c, clk, "/data").log()
	b := record.NewBuilder(record.BuilderOptions{})
	for _, ts := range []int64{now, now - 3600_001, now, now + 3600_001} {
		b.Append(ts, nil, []byte("x"))
	}
	batch, err := b.Build()
	require.NoError(t, err)
	info, err := l.AppendAsLeader(batch, 0, AppendOptions{})
	require.ErrorIs(t, err, kerr.InvalidTimestamp)
	require.Len(t, info.RecordErrors, 2)
	require.EqualValues(t, 1, info.RecordErrors[0].BatchIndex)
	require.EqualValues(t, 3, info.RecordErrors[1].BatchIndex)
	require.NotEmpty(t, info.ErrorMessage)
	require.EqualValues(t, -1, info.FirstOffset)
	c.LogAppendTime = true
	l.SetConfig(c)
	info = produce(t, l, batchSpec{count: 3, ts: 5})
	require.Equal(t, now, info.LogAppendTime)
	for _, r := range readAll(t, l, 0, 3) {
		require.Equal(t, now, r.Timestamp)
	}
}

func TestBR005TimesAreFoundExactlyWhateverTheCodec(t *testing.T) {
	for codec := record.None; codec <= record.Zstd; codec++ {
		for _, damage := range []string{"", indexSuffix, timeSuffix} {
			t.Run(fmt.Sprintf("%s without %s", codec, damage), func(t *testing.T) {
				fs, clk := vfs.NewCrashFS(), newClock()
				c := smallConfig()
				c.IndexInterval = 100
				c.RetentionMs = -1
				m := openManager(t, fs, c, clk, "/data")
				l := m.log()
				for i := range int64(3) {
					produce(t, l, batchSpec{count: 50, ts: 1 + 50*i, step: 1, size: 100, codec: codec})
				}
				if damage != "" {
					require.NoError(t, m.Close())
					require.NoError(t, fs.Remove("/data/topic-0/"+fileName(0, damage)))
					l = openManager(t, fs, c, clk, "/data").log()
				}
				for _, ts := range []int64{0, 1, 25, 50, 51, 101, 150} {
					offset, got, _, found, err := l.OffsetForTimestamp(ts)
					require.NoError(t, err)
					require.True(t, found)
					require.Equal(t, max(ts, 1), got)
					require.Equal(t, max(ts, 1)-1, offset)
				}
				offset, got, epoch, found, err := l.OffsetForTimestamp(151)
				require.NoError(t, err)
				require.False(t, found)
				require.EqualValues(t, []int64{-1, -1, -1}, []int64{offset, got, int64(epoch)})
			})
		}
	}
}

func TestTheLargestTimestampIsFoundToTheRecord(t *testing.T) {
	for codec := record.None; codec <= record.Zstd; codec++ {
		l := openManager(t, vfs.NewCrashFS(), smallConfig(), newClock(), "/data").log()
		_, _, _, found, err := l.MaxTimestampOffset()
		require.NoError(t, err)
		require.False(t, found)
		b := record.NewBuilder(record.BuilderOptions{Codec: codec})
		for _, ts := range []int64{5, 9, 7, 9} {
			b.Append(ts, nil, []byte("value"))
		}
		batch, err := b.Build()
		require.NoError(t, err)
		_, err = l.AppendAsLeader(batch, 3, AppendOptions{})
		require.NoError(t, err)
		_, err = l.AppendAsLeader(batchSpec{ts: 8}.build(t), 3, AppendOptions{})
		require.NoError(t, err)
		offset, ts, epoch, found, err := l.MaxTimestampOffset()
		require.NoError(t, err)
		require.True(t, found)
		require.EqualValues(t, []int64{1, 9, 3}, []int64{offset, ts, int64(epoch)})
		l.SetHighWatermark(5)
		_, err = l.AdvanceStartOffset(4, "test")
		require.NoError(t, err)
		offset, ts, _, _, err = l.MaxTimestampOffset()
		require.NoError(t, err)
		require.EqualValues(t, []int64{4, 8}, []int64{offset, ts}, "the holder lies before the start")
	}
}
