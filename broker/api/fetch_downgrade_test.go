package api

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// memory is a source in memory.
type memory []byte

func (m memory) Name() string { return "memory" }

func (m memory) ReadAt(p []byte, off int64) (int, error) { return copy(p, m[off:]), nil }

// Old readers are told of no markers, and cannot be told to go on behind them: they ask for the same offset for ever, and
// Kafka lets them.
func TestAnOldReaderComesPastMarkers(t *testing.T) {
	p := &formatPlay{t: t, ask: newFormatWorld(t, formatStages["3.9.1"]).ask}
	fetch := func(offset int64, room int32) kmsg.FetchResponseTopicPartition {
		req := fetchAsk{epoch: -1, replica: -1, topics: []fetchAskTopic{{name: "plain", offset: offset, maxBytes: room, leader: -1, fetched: -1}}}.request(3)
		req.MaxWaitMillis = 1
		return p.ask(req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	}
	for range 5 {
		p.marker("plain")
	}
	r := fetch(1, 200)
	require.Zero(t, r.ErrorCode)
	require.Empty(t, r.RecordBatches)
	require.Equal(t, int64(5), r.HighWatermark)
	p.produce(3, "plain", "behind markers", batchOf(record.None, 2, nil))
	r = fetch(1, 100)
	m, _, err := record.NextMessage(r.RecordBatches)
	require.NoError(t, err)
	require.Equal(t, int64(5), m.Offset())
}

func TestConvertedRecordsAreReadOnceFromTheFirstByteToTheLast(t *testing.T) {
	data := joined(batchOf(record.Gzip, 3, nil), batchOf(record.None, 4, nil), batchOf(record.None, 1, nil)[:40])
	read := func(piece int) []byte {
		d := newDowngraded(vfs.NewRange(memory(data), 0, int64(len(data)), nil), record.Downgrade{To: 1})
		require.NoError(t, d.begin())
		require.Equal(t, int64(len(data)), d.length)
		var out []byte
		for int64(len(out)) < d.length {
			p := make([]byte, min(int64(piece), d.length-int64(len(out))))
			_, err := d.ReadAt(p, int64(len(out)))
			require.NoError(t, err)
			out = append(out, p...)
		}
		_, err := d.ReadAt(make([]byte, 1), 0)
		require.Error(t, err, "what was sent is not made again")
		return out
	}
	whole := read(len(data))
	for _, piece := range []int{1, 7, 64, 100} {
		require.Equal(t, whole, read(piece))
	}
}

// A large batch that is cut off at the end of what was read is nothing to send zeros for.
func TestAnAnswerIsNotFilledUpForABatchThatIsCut(t *testing.T) {
	big := func() []byte {
		build := record.NewBuilder(record.BuilderOptions{})
		for range 100 {
			build.Append(goldenTime, nil, make([]byte, 1000))
		}
		b, err := build.Build()
		require.NoError(t, err)
		return b
	}
	whole := joined(big(), big())
	read := func(data []byte) (length int64, messages int) {
		d := newDowngraded(vfs.NewRange(memory(data), 0, int64(len(data)), nil), record.Downgrade{To: 1})
		require.NoError(t, d.begin())
		out := make([]byte, d.length)
		_, err := d.ReadAt(out, 0)
		require.NoError(t, err)
		for {
			var err error
			if _, out, err = record.NextMessage(out); err != nil {
				return d.length, messages
			}
			messages++
		}
	}
	length, messages := read(joined(whole, big()[:90_000]))
	require.Equal(t, 200, messages)
	require.Greater(t, length, int64(200*1034-1))
	require.Less(t, length, int64(200*1040))
	length, _ = read(whole)
	require.Equal(t, int64(len(whole)), length, "never more than what was asked for")
	length, messages = read(joined(batchOf(record.None, 1, nil), whole, big()[:90_000]))
	require.Equal(t, 201, messages)
	require.Greater(t, length, int64(len(whole)+90_000), "nobody looks through small ones")
}

// What cannot be converted ends the answer where it stands; asked for by itself it is refused.
func TestZstdBehindOtherRecordsEndsTheAnswer(t *testing.T) {
	head := batchOf(record.None, 1, nil)
	data := joined(head, batchOf(record.Zstd, 3, nil))
	d := newDowngraded(vfs.NewRange(memory(data), 0, int64(len(data)), nil), record.Downgrade{To: 1})
	require.NoError(t, d.begin())
	out := make([]byte, d.length)
	_, err := d.ReadAt(out, 0)
	require.NoError(t, err)
	_, rest, err := record.NextMessage(out)
	require.NoError(t, err)
	size, ok := record.PeekSize(rest)
	require.True(t, ok)
	require.Greater(t, size, int64(len(rest)), "an entry that is not whole")

	d = newDowngraded(vfs.NewRange(memory(data), int64(len(head)), int64(len(data)-len(head)), nil), record.Downgrade{To: 1})
	require.ErrorIs(t, d.begin(), kerr.UnsupportedCompressionType)
}

// Whatever a log holds: the answer is as long as it was said to be.
func FuzzDowngradedRange(f *testing.F) {
	for _, c := range oldCodecs {
		f.Add(joined(batchOf(c, 3, nil), messages(1, c, 2), batchOf(c, 3, nil)[:70]), uint16(13), false)
	}
	f.Add(batchOf(record.Zstd, 1, nil), uint16(1), true)
	f.Fuzz(func(t *testing.T, data []byte, piece uint16, asItIs bool) {
		d := newDowngraded(vfs.NewRange(memory(data), 0, int64(len(data)), nil), record.Downgrade{To: 1, Limits: record.Limits{MaxDecompressed: 1 << 20}})
		d.asItIs = asItIs
		if d.begin() != nil {
			return
		}
		for at := int64(0); at < d.length; {
			p := make([]byte, min(int64(piece)+1, d.length-at))
			n, err := d.ReadAt(p, at)
			if err != nil || n != len(p) {
				t.Fatalf("%d of %d bytes at %d of %d: %v", n, len(p), at, d.length, err)
			}
			at += int64(n)
		}
	})
}

// The memory of a fetch that is done serves the next one, and none that is still being read.
func TestConvertedRecordsDoNotShareMemory(t *testing.T) {
	data := joined(batchOf(record.None, 5, nil), batchOf(record.LZ4, 5, nil))
	begun := func() *downgraded {
		d := newDowngraded(vfs.NewRange(memory(data), 0, int64(len(data)), nil), record.Downgrade{To: 1})
		require.NoError(t, d.begin())
		return d
	}
	rest := func(d *downgraded) []byte {
		p := make([]byte, d.length-d.at)
		_, err := d.ReadAt(p, d.at)
		require.NoError(t, err)
		return p
	}
	want := rest(begun())
	slow := begun()
	head := make([]byte, 10)
	_, err := slow.ReadAt(head, 0)
	require.NoError(t, err)
	for range 3 {
		quick := begun()
		require.Equal(t, want, rest(quick))
		quick.done()
		quick.done() // a second time it has nothing to give
	}
	require.Equal(t, want, append(head, rest(slow)...))
}
