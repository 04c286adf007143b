package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

func build(tb testing.TB, o BuilderOptions, records ...Record) Batch {
	tb.Helper()
	w := NewBuilder(o)
	for i, r := range records {
		if r.Offset == 0 {
			r.Offset = o.BaseOffset + int64(i)
		}
		w.AppendRecord(r)
	}
	b, err := w.Build()
	require.NoError(tb, err)
	return b
}

func kv(ts int64) Record { return Record{Timestamp: ts, Key: []byte("k"), Value: []byte("v")} }

// with changes a field of the header of a copy.
func with(b Batch, at int, value ...byte) Batch {
	out := append(Batch(nil), b...)
	copy(out[at:], value)
	return out
}

var codecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

// refusal is a batch that must be refused, and how.
type refusal struct {
	what    string
	batch   Batch
	rules   Rules
	err     *kerr.Error
	message string
	records []RecordError
}

const now = int64(1_000_000)

// The rules of a topic that keeps the producers' time, and of others.
var (
	create          = Rules{Partition: "t-3", CheckTimestamps: true, Now: now, BeforeMax: 1000, AfterMax: 500}
	appendTime      = Rules{Partition: "t-3", Now: now}
	compacted       = Rules{Partition: "t-3", CheckTimestamps: true, Now: now, BeforeMax: 1000, AfterMax: 500, RequireKey: true}
	fromCoordinator = Rules{Partition: "t-3", CheckTimestamps: true, Now: now, BeforeMax: 1000, AfterMax: 500, AllowControl: true}
	logTime         = now - 10
)

func refusals(t *testing.T, codec Codec) []refusal {
	good := good(t, codec)
	name := map[bool]string{true: "DefaultRecord", false: "PartialDefaultRecord"}[codec == None]
	return []refusal{
		{"unknown codec", with(good, offAttributes, 0, 5), create, kerr.UnsupportedCompressionType, "Unknown compression type id: 5", nil},
		{"base offset", with(good, offBaseOffset, 0, 0, 0, 0, 0, 0, 0, 7), create, kerr.InvalidRecord, "The baseOffset of the record batch in the append to t-3 should be 0, but it is 7", nil},
		{"negative delta", with(good, offLastOffsetDelta, 0xff, 0xff, 0xff, 0xff), create, kerr.InvalidRecord, "Batch has an invalid offset range: [0, -1] in topic partition t-3", nil},
		{"no records", with(good, offCount, 0, 0, 0, 0), create, kerr.InvalidRecord, "Invalid reported count for record batch: 0 in topic partition t-3", nil},
		{"negative count", with(good, offCount, 0xff, 0xff, 0xff, 0xfe), create, kerr.InvalidRecord, "Invalid reported count for record batch: -2 in topic partition t-3", nil},
		{"count and delta", with(good, offCount, 0, 0, 0, 2), create, kerr.InvalidRecord, "Inconsistent batch offset range [0, 2] and count of records 2 in topic partition t-3", nil},
		{"control", with(good, offAttributes+1, byte(codec)|attrControl), create, kerr.InvalidRecord, "Clients are not allowed to write control records in topic partition t-3", nil},
		{"sequence", build(t, BuilderOptions{Codec: codec, Producer: &Producer{ID: 9, BaseSequence: -1}}, kv(now)), create, kerr.InvalidRecord, "Invalid sequence number -1 in record batch with producerId 9 in topic partition t-3", nil},
		{"too few records", with(with(good, offLastOffsetDelta, 0, 0, 0, 3), offCount, 0, 0, 0, 4), create, kerr.InvalidRecord, badEnd, nil},
		{"too many records", with(with(good, offLastOffsetDelta, 0, 0, 0, 1), offCount, 0, 0, 0, 2), create, kerr.InvalidRecord, "Incorrect declared batch size, records still remaining in file", nil},
		{"gap", build(t, BuilderOptions{Codec: codec}, kv(now), Record{Offset: 2, Timestamp: now}), fromCoordinator, kerr.InvalidRecord, "Offset deltas of the records of the batch are not consecutive in topic partition t-3", nil},
		{"no key", build(t, BuilderOptions{Codec: codec}, kv(now), Record{Timestamp: now}, kv(now), Record{Timestamp: now, Value: []byte("v")}), compacted, kerr.InvalidRecord,
			"One or more records have been rejected due to 2 record errors in total, and only showing the first three errors at most: " +
				"[RecordError(batchIndex=1, message='Compacted topic cannot accept message without key in topic partition t-3'), " +
				"RecordError(batchIndex=3, message='Compacted topic cannot accept message without key in topic partition t-3')]",
			[]RecordError{{1, "Compacted topic cannot accept message without key in topic partition t-3"}, {3, "Compacted topic cannot accept message without key in topic partition t-3"}}},
		{"too old and too new", build(t, BuilderOptions{Codec: codec}, kv(now-1001), kv(now), kv(now+501), kv(now-1000), kv(now+500)), create, kerr.InvalidTimestamp,
			"One or more records have been rejected due to invalid timestamp",
			[]RecordError{{0, "Timestamp 998999 of message with offset 0 is out of range. The timestamp should be within [999000, 1000500]"},
				{2, "Timestamp 1000501 of message with offset 2 is out of range. The timestamp should be within [999000, 1000500]"}}},
		{"the producer sets append time", build(t, BuilderOptions{Codec: codec, AppendTime: &logTime}, kv(now)), appendTime, kerr.InvalidTimestamp,
			"One or more records have been rejected due to invalid timestamp",
			[]RecordError{{0, "Invalid timestamp type in message " + name + "(offset=0, timestamp=999990, key=1 bytes, value=1 bytes). Producer should not set timestamp type to LogAppendTime."}}},
	}
}

// good is a batch that must be accepted.
func good(t *testing.T, codec Codec) Batch {
	return build(t, BuilderOptions{Codec: codec}, kv(now), kv(now+1), kv(now-1))
}

func TestWhatIsRefusedAndInWhichWords(t *testing.T) {
	for _, codec := range codecs {
		good := good(t, codec)
		for _, c := range refusals(t, codec) {
			t.Run(fmt.Sprintf("%s/%s", codec, c.what), func(t *testing.T) {
				_, err := Validate(c.batch, c.rules)
				require.ErrorIs(t, err, c.err)
				var inv *Invalid
				require.ErrorAs(t, err, &inv)
				require.Equal(t, c.message, inv.Message)
				require.Equal(t, c.records, inv.Records)
			})
		}

		t.Run(codec.String()+"/accepted", func(t *testing.T) {
			res, err := Validate(good, create)
			require.NoError(t, err)
			require.Equal(t, Result{Count: 3, MaxTimestamp: now + 1, OffsetDeltaOfMax: 1, Uncompressed: res.Uncompressed}, res)
			require.Positive(t, res.Uncompressed)

			res, err = Validate(build(t, BuilderOptions{Codec: codec}, kv(NoTimestamp), kv(NoTimestamp)), create)
			require.NoError(t, err, "a record without a time is out of no range")
			require.Equal(t, NoTimestamp, res.MaxTimestamp)

			_, err = Validate(build(t, BuilderOptions{Codec: codec, AppendTime: &logTime}, kv(1)), create)
			require.NoError(t, err, "the log takes the flag away again")

			_, err = Validate(build(t, BuilderOptions{Codec: codec}, kv(1)), appendTime)
			require.NoError(t, err, "times that are overwritten need no bounds")

			gaps := fromCoordinator
			gaps.AllowGaps = true
			res, err = Validate(build(t, BuilderOptions{Codec: codec, BaseOffset: 5}, Record{Offset: 6, Timestamp: now}, Record{Offset: 9, Timestamp: now}), gaps)
			require.NoError(t, err)
			require.True(t, res.Gaps)
			require.Equal(t, int32(1), res.OffsetDeltaOfMax, "the first of those that have it")
		})
	}

	marker := NewEndTxnBatch(EndTxnMarker{Type: Commit, CoordinatorEpoch: 3}, 7, 1, now)
	_, err := Validate(marker, fromCoordinator)
	require.NoError(t, err)
	_, err = Validate(marker, create)
	require.ErrorIs(t, err, kerr.InvalidRecord)
}

func TestThereAreAtMostSoManyRecordErrors(t *testing.T) {
	w := NewBuilder(BuilderOptions{})
	for range 3 * MaxRecordErrors {
		w.Append(0, nil, nil)
	}
	b, err := w.Build()
	require.NoError(t, err)
	_, err = Validate(b, Rules{RequireKey: true, Partition: "t-0"})
	var inv *Invalid
	require.ErrorAs(t, err, &inv)
	require.Len(t, inv.Records, MaxRecordErrors)
	require.ErrorContains(t, err, "3000 record errors in total")
}

// Each field of a record, set to what cannot be.
func brokenRecords() map[string][]byte {
	record := func(body ...byte) []byte { return append(appendVarint(nil, int64(len(body))), body...) }
	z := func(v int64) byte { return appendVarint(nil, v)[0] }
	return map[string][]byte{
		"nothing":                  {},
		"length runs on":           {0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
		"negative length":          {z(-1)},
		"length beyond the end":    {z(60)},
		"empty":                    record(),
		"attributes only":          record(0),
		"timestamp runs on":        record(0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
		"no offset":                record(0, 0),
		"key beyond the end":       record(0, 0, 0, z(20), 'k'),
		"no value":                 record(0, 0, 0, z(1), 'k'),
		"value beyond the end":     record(0, 0, 0, z(-1), z(9), 'v'),
		"no headers":               record(0, 0, 0, z(-1), z(-1)),
		"negative headers":         record(0, 0, 0, z(-1), z(-1), z(-2)),
		"more headers than bytes":  record(0, 0, 0, z(-1), z(-1), z(3), z(0)),
		"null header key":          record(0, 0, 0, z(-1), z(-1), z(1), z(-1), z(-1)),
		"header key beyond":        record(0, 0, 0, z(-1), z(-1), z(1), z(9), 'h'),
		"no header value":          record(0, 0, 0, z(-1), z(-1), z(1), z(1), 'h'),
		"bytes behind the headers": record(0, 0, 0, z(-1), z(-1), z(0), 0),
	}
}

func TestRecordsThatCannotBe(t *testing.T) {
	for name, raw := range brokenRecords() {
		for _, codec := range codecs {
			t.Run(fmt.Sprintf("%s/%s", name, codec), func(t *testing.T) {
				b := batchOfRaw(t, codec, 1, raw)
				_, err := Validate(b, Rules{})
				require.ErrorIs(t, err, kerr.InvalidRecord)
				var last error
				n := 0
				for _, err := range b.Records(Limits{}) {
					if err == nil {
						n++
					}
					last = err
				}
				require.ErrorIs(t, last, kerr.InvalidRecord)
				require.Zero(t, n)
			})
		}
		// the same, too large for the window
		t.Run(name+"/large", func(t *testing.T) {
			if len(raw) < 3 || raw[0] >= 0x80 {
				return
			}
			body := append([]byte(nil), raw[1:]...)
			large := append(appendVarint(nil, int64(len(body)+100_000)), body...)
			large = append(large, make([]byte, 100_000)...)
			for _, codec := range codecs {
				_, err := Validate(batchOfRaw(t, codec, 1, large), Rules{})
				require.ErrorIs(t, err, kerr.InvalidRecord, codec)
			}
		})
	}
}

// batchOfRaw puts bytes in the place of records.
func batchOfRaw(tb testing.TB, c Codec, count int32, raw []byte) Batch {
	tb.Helper()
	w := NewBuilder(BuilderOptions{Codec: c})
	w.buf = append(w.buf, raw...)
	w.count, w.last = count, int64(count)-1
	b, err := w.Build()
	require.NoError(tb, err)
	return b
}

func TestLargeRecordsAreValidatedAlike(t *testing.T) {
	for _, codec := range codecs {
		w := NewBuilder(BuilderOptions{Codec: codec})
		for i := range 9 {
			value := make([]byte, (i%3)*70_000)
			for k := range value {
				value[k] = byte(k * k * (i + 1) >> 3)
			}
			headers := []Header{{Key: "h", Value: value}, {Key: string(value[:len(value)/2])}}
			w.Append(int64(i), value[:len(value)/3], value, headers[:i%3]...)
		}
		b, err := w.Build()
		require.NoError(t, err)
		res, err := Validate(b, Rules{})
		require.NoError(t, err, codec)
		require.Equal(t, Result{Count: 9, MaxTimestamp: 8, OffsetDeltaOfMax: 8, Uncompressed: len(w.buf) - HeaderSize}, res)
		require.Len(t, collect(t, b), 9)
	}
}

func TestValidationOfAnUncompressedBatchAllocatesNothing(t *testing.T) {
	b := batchOf(t, None, 100, 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		got, _, err := Next(b)
		if err != nil || got.CheckCRC() != nil {
			t.Error("broken")
		}
		if _, err := Validate(got, rules); err != nil {
			t.Error(err)
		}
		got.SetBaseOffset(0)
		got.SetMaxTimestamp(got.MaxTimestamp()+1, false)
	}))
}

func TestNextTellsAShortBufferFromACorruptOne(t *testing.T) {
	b := batchOf(t, None, 3, 10)
	two := append(append([]byte(nil), b...), b...)
	first, rest, err := Next(two)
	require.NoError(t, err)
	require.Equal(t, []byte(b), []byte(first))
	require.Equal(t, []byte(b), rest)
	require.Equal(t, len(first), cap(first), "appending to a batch must not write into the next")
	for n := range len(b) {
		_, rest, err := Next(b[:n:n])
		if n == 0 {
			require.EqualError(t, err, "EOF")
		} else {
			require.EqualError(t, err, "unexpected EOF", n)
			require.Len(t, rest, n)
		}
	}
	var corrupt *Corrupt
	_, _, err = Next(with(b, offMagic, 3))
	require.ErrorAs(t, err, &corrupt)
	require.ErrorIs(t, err, kerr.CorruptMessage)
	for _, length := range []uint32{0, 48, 1 << 31, 0xffffffff} {
		broken := with(b, offLength, binary.BigEndian.AppendUint32(nil, length)...)
		_, _, err = Next(broken)
		require.ErrorAs(t, err, &corrupt, length)
	}
	require.NoError(t, b.CheckCRC())
	require.ErrorAs(t, with(b, offAttributes+1, 0x10).CheckCRC(), &corrupt)
	require.NoError(t, with(with(b, offBaseOffset, 1), offLeaderEpoch, 1).CheckCRC(), "what a broker stamps is not covered")
}

func TestSettingTheTimeKeepsTheBatchWhole(t *testing.T) {
	b := batchOf(t, LZ4, 3, 10)
	before := b.CRC()
	b.SetMaxTimestamp(b.MaxTimestamp(), false)
	require.Equal(t, before, b.CRC())
	b.SetMaxTimestamp(99, true)
	require.NoError(t, b.CheckCRC())
	require.NotEqual(t, before, b.CRC())
	for _, r := range collect(t, b) {
		require.Equal(t, int64(99), r.Timestamp)
	}
	b.SetMaxTimestamp(1700000000002, false)
	require.Equal(t, before, b.CRC())
}

func TestSequencesWrap(t *testing.T) {
	b := build(t, BuilderOptions{Producer: &Producer{ID: 1, BaseSequence: 0x7ffffffe}}, kv(0), kv(0), kv(0), kv(0))
	require.Equal(t, int32(1), b.LastSequence())
	require.Equal(t, NoSequence, build(t, BuilderOptions{}, kv(0), kv(0)).LastSequence())
}

func TestMarkers(t *testing.T) {
	for _, m := range []EndTxnMarker{{Abort, 0}, {Commit, 7}} {
		b := NewEndTxnBatch(m, 12, 3, 55)
		require.True(t, b.IsControl() && b.IsTransactional())
		records := collect(t, b)
		require.Len(t, records, 1)
		got, ok, err := ParseEndTxnMarker(records[0])
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, m, got)
	}
	_, ok, err := ParseEndTxnMarker(Record{Key: []byte{0, 0, 0, 2}})
	require.NoError(t, err)
	require.False(t, ok, "a leader change")
	for _, r := range []Record{{}, {Key: []byte{0, 0, 0}}, {Key: []byte{0xff, 0xff, 0, 0}}, {Key: []byte{0, 0, 0, 0}, Value: []byte{0, 0, 0, 0, 0}},
		{Key: []byte{0, 0, 0, 1}, Value: []byte{0xff, 0xfe, 0, 0, 0, 0}}} {
		_, _, err := ParseEndTxnMarker(r)
		require.ErrorIs(t, err, kerr.InvalidRecord)
	}
}

func TestTheBuilderRefusesWhatWouldMakeABrokenBatch(t *testing.T) {
	_, err := NewBuilder(BuilderOptions{}).Build()
	require.Error(t, err, "no records")
	w := NewBuilder(BuilderOptions{BaseOffset: 10})
	w.AppendRecord(Record{Offset: 11})
	w.AppendRecord(Record{Offset: 11})
	_, err = w.Build()
	require.Error(t, err, "an offset twice")
	w = NewBuilder(BuilderOptions{BaseOffset: 10})
	w.AppendRecord(Record{Offset: 10 + 1<<31})
	_, err = w.Build()
	require.Error(t, err, "offset deltas have 32 bits")
	w = NewBuilder(BuilderOptions{BaseOffset: 10})
	w.AppendRecord(Record{Offset: 15})
	w.SetLastOffset(14)
	_, err = w.Build()
	require.Error(t, err)
	require.False(t, errors.Is(err, kerr.InvalidRecord), "a mistake of ours is no client's fault")
}

// The bounds of time, at the edges of what 64 bits hold.
func TestTimestampBoundsAtTheEdges(t *testing.T) {
	const far = int64(1) << 62
	edges := []int64{-1 << 63, -far - 1, -far, -1001, -2, -1, 0, 1, 499, 500, 501, now - 1001, now - 1000, now, now + 500, now + 501, far, 1<<63 - 1}
	for _, at := range []int64{0, now, far} {
		for _, before := range []int64{0, 1000, far, 1<<63 - 1} {
			for _, after := range []int64{0, 500, far, 1<<63 - 1} {
				for _, ts := range edges {
					age := at - ts
					refused := ts != NoTimestamp && (age > before || -age > after)
					_, err := Validate(build(t, BuilderOptions{}, kv(ts)), Rules{CheckTimestamps: true, Now: at, BeforeMax: before, AfterMax: after})
					require.Equal(t, refused, err != nil, "now %d, before %d, after %d, timestamp %d: %v", at, before, after, ts, err)
				}
			}
		}
	}
}
