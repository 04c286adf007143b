package record

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

// readAll reads every record of a piece of a log.
func readAll(t testing.TB, data []byte) (records []Record, err error) {
	t.Helper()
	for len(data) > 0 {
		e, rest, err := NextEntry(data)
		if err != nil {
			return records, err
		}
		for r, err := range e.Records(bounded) {
			if err != nil {
				return records, err
			}
			records = append(records, copyRecord(r))
		}
		data = rest
	}
	return records, nil
}

func downgraded(t testing.TB, to int8, from int64, entry []byte) ([]byte, error) {
	t.Helper()
	e, rest, err := NextEntry(entry)
	require.NoError(t, err)
	require.Empty(t, rest)
	d := Downgrade{To: to, From: from, Limits: bounded}
	return d.Append([]byte("before"), e)
}

func TestARecordKeepsOffsetKeyValueAndTimeInOlderFormats(t *testing.T) {
	at := int64(99)
	for _, c := range []Codec{None, Gzip, Snappy, LZ4} {
		for _, appendTime := range []*int64{nil, &at} {
			for to := int8(0); to <= 1; to++ {
				t.Run(fmt.Sprint(c, " v", to, " ", appendTime != nil), func(t *testing.T) {
					w := NewBuilder(BuilderOptions{Codec: c, BaseOffset: 7, AppendTime: appendTime})
					w.Append(5, []byte("k"), nil, Header{Key: "h"})
					w.Append(3, nil, []byte("v"))
					w.AppendRecord(Record{Offset: 12, Timestamp: 4, Key: []byte{}, Value: []byte{}}) // compaction leaves gaps
					b, err := w.Build()
					require.NoError(t, err)
					out, err := downgraded(t, to, 7, b)
					require.NoError(t, err)
					require.Equal(t, "before", string(out[:6]))
					got, err := readAll(t, out[6:])
					require.NoError(t, err)
					want, err := readAll(t, b)
					require.NoError(t, err)
					for i := range want {
						want[i].Headers = nil
						if to == 0 {
							want[i].Timestamp = NoTimestamp
						}
						got[i].Headers = nil
					}
					require.Equal(t, want, got)
				})
			}
		}
	}
}

func TestRecordsBeforeTheAskedOffsetAreLeftOutUnlessCompressed(t *testing.T) {
	for c, want := range map[Codec]int{None: 2, Gzip: 5} {
		out, err := downgraded(t, 1, 3, batchOf(t, c, 5, 3))
		require.NoError(t, err)
		got, err := readAll(t, out[6:])
		require.NoError(t, err)
		require.Len(t, got, want)
	}
}

func TestMarkersHaveNoPlaceInOlderFormatsAndZstdIsRefused(t *testing.T) {
	out, err := downgraded(t, 1, 0, NewEndTxnBatch(EndTxnMarker{Type: Commit}, 1, 1, 1))
	require.NoError(t, err)
	require.Equal(t, "before", string(out))
	out, err = downgraded(t, 1, 0, batchOf(t, Zstd, 2, 3))
	require.ErrorIs(t, err, kerr.UnsupportedCompressionType)
	require.Equal(t, "before", string(out))
}

// KAFKA-3160: readers of format v0 compute the header's checksum over more than they should.
func TestFramesOfLZ4HaveTheChecksumThatTheirFormatExpects(t *testing.T) {
	for magic, want := range map[int8]byte{0: 0x1a, 1: 0x82} { // as Kafka 3.9.1 writes them
		b := NewMessageBuilder(nil, nil, MessageOptions{Magic: magic, Codec: LZ4})
		b.Append(&Record{Offset: 4, Timestamp: 5, Value: []byte("v")})
		out, err := b.Build()
		require.NoError(t, err)
		m, _, err := NextMessage(out)
		require.NoError(t, err)
		require.Equal(t, want, m.Value()[6])
	}
}

func TestSetsThatCannotBeBuiltAreRefused(t *testing.T) {
	for name, o := range map[string]MessageOptions{"format": {Magic: 2}, "codec": {Magic: 1, Codec: Zstd}} {
		b := NewMessageBuilder([]byte("x"), nil, o)
		b.Append(&Record{Offset: 4})
		out, err := b.Build()
		require.Error(t, err, name)
		require.Equal(t, "x", string(out))
	}
	b := NewMessageBuilder(nil, nil, MessageOptions{Magic: 1})
	b.Append(&Record{Offset: 4})
	b.Append(&Record{Offset: 4})
	_, err := b.Build()
	require.Error(t, err)
}

// Whatever stands in a log: what is made of it can be read by those who asked, and holds the same keys and values.
func FuzzDowngrade(f *testing.F) {
	for _, b := range seedBatches(f) {
		f.Add([]byte(b), false, int64(0))
	}
	for _, c := range []Codec{None, Gzip, Snappy, LZ4} {
		b := NewMessageBuilder(nil, nil, MessageOptions{Magic: 1, Codec: c})
		b.Append(&Record{Offset: 4, Timestamp: 5, Value: []byte("v")})
		b.Append(&Record{Offset: 6, Timestamp: 2, Key: []byte("k")})
		set, err := b.Build()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(set, true, int64(5))
	}
	f.Fuzz(func(t *testing.T, data []byte, oldest bool, from int64) {
		e, _, err := NextEntry(data)
		if err != nil {
			return
		}
		to := int8(1)
		if oldest {
			to = 0
		}
		d := Downgrade{To: to, From: from, Limits: bounded}
		out, err := d.Append(nil, e)
		if err != nil {
			if len(out) > 0 {
				t.Fatal("bytes beside an error")
			}
			return
		}
		source, sourceErr := readAll(t, e)
		if m := Message(e); sourceErr != nil && int8(m[offMagic]) <= to {
			return // passed on as it is
		}
		if e.IsControl() {
			source = nil
		}
		got, err := readAll(t, out)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got {
			for len(source) > 0 && source[0].Offset < r.Offset {
				source = source[1:]
			}
			if len(source) == 0 || source[0].Offset != r.Offset || !bytes.Equal(source[0].Key, r.Key) || !bytes.Equal(source[0].Value, r.Value) {
				t.Fatalf("record %d is another", r.Offset)
			}
		}
	})
}

// What old clients send is refused or understood; never both, and never a panic.
func FuzzValidateMessages(f *testing.F) {
	for magic := int8(0); magic <= 1; magic++ {
		for _, c := range []Codec{None, Gzip, Snappy, LZ4} {
			b := NewMessageBuilder(nil, nil, MessageOptions{Magic: magic, Codec: c})
			for i := range 3 {
				b.Append(&Record{Offset: int64(i), Timestamp: 5, Value: []byte("v")})
			}
			set, err := b.Build()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(set, true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, keyed bool) {
		var set []Message
		for {
			m, rest, err := NextMessage(data)
			if err != nil {
				break
			}
			set, data = append(set, m), rest
		}
		n := 0
		res, err := ValidateMessages(set, Rules{RequireKey: keyed, CheckTimestamps: true, Now: 5, BeforeMax: 1 << 40, AfterMax: 1 << 40, Limits: bounded}, func(*Record) { n++ })
		if err == nil && res.Count != n {
			t.Fatalf("%d records counted, %d told", res.Count, n)
		}
	})
}

func TestAHeaderTellsHowMuchABatchBecomesAtMost(t *testing.T) {
	build := NewBuilder(BuilderOptions{BaseOffset: 5})
	for i := range int64(300) {
		build.Append(1000+i, nil, nil)
	}
	least, err := build.Build()
	require.NoError(t, err)
	for _, b := range []Batch{least, batchOf(t, None, 262, 1000), batchOf(t, None, 1, 0)} {
		for to := range int8(2) {
			d := Downgrade{To: to}
			most, ok := d.Most(b[:HeaderSize])
			require.True(t, ok)
			out, err := d.Append(nil, Entry(b))
			require.NoError(t, err)
			require.GreaterOrEqual(t, most, int64(len(out)))
			require.Less(t, most, int64(len(out)+6*int(b.Count())+1), "what lengths and deltas take of more than a byte")
		}
	}
	var d Downgrade
	for name, head := range map[string][]byte{"compressed": batchOf(t, LZ4, 3, 100), "cut": least[:HeaderSize-1], "nothing": nil,
		"message": AppendMessage(nil, 1, None, false, 1, 1, nil, make([]byte, 100))} {
		_, ok := d.Most(head)
		require.False(t, ok, name)
	}
}
