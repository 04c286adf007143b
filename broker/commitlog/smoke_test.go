package commitlog

import (
	"testing"

	"github.com/stretchr/testify/require"

	"barnabas/broker/vfs"
)

func TestAppendedRecordsAreReadBackOverSegmentsAndRestarts(t *testing.T) {
	dir := t.TempDir()
	clk := newClock()
	m := openManager(t, vfs.OS, smallConfig(), clk, dir)
	l := m.log()
	for i := range 200 {
		info := produce(t, l, batchSpec{count: 3, size: 200, ts: 1000 + int64(i)})
		require.EqualValues(t, i*3, info.FirstOffset)
	}
	require.Greater(t, l.Segments(), 5)
	check := func(l *Log) {
		all := readAll(t, l, 0, 600)
		require.Len(t, all, 600)
		for i, r := range all {
			require.EqualValues(t, i, r.Offset)
		}
		require.Len(t, readAll(t, l, 301, 500), 197) // bound inside a batch: 498 is the last whole one
		for _, ts := range []int64{0, 1000, 1050, 1199} {
			o, got, _, found, err := l.OffsetForTimestamp(ts)
			require.NoError(t, err)
			require.True(t, found)
			require.EqualValues(t, max(ts, 1000), got)
			require.EqualValues(t, (max(ts, 1000)-1000)*3, o)
		}
	}
	check(l)
	l.SetHighWatermark(600)
	require.NoError(t, m.Close())
	m = openManager(t, vfs.OS, smallConfig(), clk, dir)
	l = m.Get(tp0)
	require.EqualValues(t, 600, l.EndOffset())
	require.EqualValues(t, 600, l.HighWatermark())
	require.EqualValues(t, 600, l.RecoveryPoint())
	check(l)
	require.False(t, l.Recovery().Ran)
	produce(t, l, batchSpec{count: 1, size: 10, ts: 5000})
	require.EqualValues(t, 601, l.EndOffset())
}
