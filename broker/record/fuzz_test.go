package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// bounded is what hostile bytes may decompress to in these tests.
var bounded = Limits{MaxDecompressed: 1 << 20}

// seedBatches are batches of every codec, and some of Kafka's own.
func seedBatches(f *testing.F) [][]byte {
	var out [][]byte
	for _, c := range codecs {
		out = append(out, batchOf(f, c, 5, 40), batchOf(f, c, 1, 0))
		w := NewBuilder(BuilderOptions{Codec: c, BaseOffset: 9, Producer: &Producer{ID: 4, BaseSequence: 1, Transactional: true}})
		w.Append(-5, []byte{}, nil, Header{Key: "h"}, Header{Key: "", Value: []byte("x")})
		w.Append(1<<40, nil, bytes.Repeat([]byte("z"), 70_000))
		b, err := w.Build()
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, b)
	}
	return append(out, NewEndTxnBatch(EndTxnMarker{Type: Commit}, 1, 1, 1))
}

// Whatever the bytes are: no panic, the records that Validate counted are those that Records yields, and what is
// rebuilt from them reads the same.
func FuzzBatch(f *testing.F) {
	for _, b := range seedBatches(f) {
		f.Add([]byte(b))
	}
	for _, data := range segments(f) {
		if magic, ok := PeekMagic(data); ok && magic == 2 {
			f.Add(data[:min(len(data), 2000)])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, rest, err := Next(data); err == nil && len(b)+len(rest) != len(data) {
			t.Fatal("bytes went missing")
		}
		if len(data) < HeaderSize {
			return
		}
		// hostile, but not by accident
		data = bytes.Clone(data)
		data[offMagic] = 2
		binary.BigEndian.PutUint32(data[offLength:], uint32(len(data)-Overhead))
		b, _, err := Next(data)
		if err != nil {
			t.Fatal(err)
		}
		b.setCRC()
		if err := b.CheckCRC(); err != nil {
			t.Fatal(err)
		}
		res, invalid := Validate(b, Rules{AllowControl: true, AllowGaps: true, Limits: bounded})
		var records []Record
		var broken error
		for r, err := range b.Records(bounded) {
			if broken = err; err == nil {
				records = append(records, copyRecord(r))
			}
		}
		if b.IsLogAppendTime() {
			return // refused for that alone
		}
		if (invalid == nil) != (broken == nil) {
			t.Fatalf("Validate says %v, Records says %v", invalid, broken)
		}
		if invalid != nil {
			for _, err := range []error{invalid, broken} {
				if !errors.Is(err, kerr.InvalidRecord) && !errors.Is(err, kerr.MessageTooLarge) && !errors.Is(err, kerr.UnsupportedCompressionType) {
					t.Fatalf("no code for clients: %v", err)
				}
			}
			return
		}
		if res.Count != len(records) {
			t.Fatalf("%d records validated, %d read", res.Count, len(records))
		}
		if !res.Gaps && len(records) > 0 && len(records) < 1<<16 {
			same := rebuild(t, withoutTail(b, len(records)), b.Codec())
			if again := collect(t, same); len(again) != len(records) {
				t.Fatalf("%d records rebuilt of %d", len(again), len(records))
			}
		}
	})
}

// withoutTail makes the header agree with the records: it may say anything about the last offset.
func withoutTail(b Batch, n int) Batch {
	return with(with(b, offLastOffsetDelta, 0, 0, byte((n-1)>>8), byte(n-1)), offBaseOffset, 0, 0)
}

func FuzzMessageSet(f *testing.F) {
	for _, magic := range []int8{0, 1} {
		for _, c := range []Codec{None, Gzip, Snappy, LZ4} {
			var set []byte
			for i := range 3 {
				set = AppendMessage(set, magic, None, false, int64(i), 5, []byte("k"), nil)
			}
			if c != None {
				packed, err := Compress(c, DefaultLevel, nil, set)
				if err != nil {
					f.Fatal(err)
				}
				set = AppendMessage(nil, magic, c, false, 12, 5, nil, packed)
			}
			f.Add(set)
		}
	}
	for _, data := range segments(f) {
		if magic, ok := PeekMagic(data); ok && magic < 2 {
			f.Add(data[:min(len(data), 2000)])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for len(data) > 0 {
			m, rest, err := NextMessage(data)
			if err != nil {
				return
			}
			if len(rest) >= len(data) {
				t.Fatal("no progress")
			}
			_ = m.CheckCRC()
			for r, err := range m.Messages(bounded) {
				if err == nil && m.Codec() == None && !bytes.Equal(r.Value, m.Value()) {
					t.Fatal("another value")
				}
			}
			data = rest
		}
	})
}

func FuzzDecompress(f *testing.F) {
	for _, c := range codecs {
		p, err := Compress(c, DefaultLevel, nil, sample(3000))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(int8(c), p)
	}
	f.Add(int8(LZ4), withLZ4HeaderChecksum([]byte("\x04\x22\x4d\x18\x60\x40\x00\x00\x00\x00\x00")))
	f.Fuzz(func(t *testing.T, c int8, data []byte) {
		out, err := Decompress(Codec(c), data, bounded)
		if err == nil && len(out) > bounded.MaxDecompressed {
			t.Fatalf("%d bytes", len(out))
		}
		if err != nil && !errors.Is(err, kerr.InvalidRecord) && !errors.Is(err, kerr.MessageTooLarge) && !errors.Is(err, kerr.UnsupportedCompressionType) {
			t.Fatalf("no code for clients: %v", err)
		}
		if again := withLZ4HeaderChecksum(data); len(again) != len(data) {
			t.Fatal("the length changed")
		}
		if whole, ok := decompressWhole(Codec(c), make([]byte, 0, wholeSize), data); ok && Codec(c) != LZ4 { // which skips a checksum
			if streamed, err := streamed(Codec(c), data); err != nil || !bytes.Equal(streamed, whole) {
				t.Fatalf("at once %d bytes, as a stream %d: %v", len(whole), len(streamed), err)
			}
		}
	})
}

func FuzzControlRecord(f *testing.F) {
	m := EndTxnMarker{Type: Commit, CoordinatorEpoch: 5}
	f.Add(m.Key(), m.Value())
	f.Add([]byte{0, 0, 0, 2}, []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m, ok, err := ParseEndTxnMarker(Record{Key: key, Value: value})
		if err != nil || !ok {
			return
		}
		again, ok, err := ParseEndTxnMarker(Record{Key: m.Key(), Value: m.Value()})
		if err != nil || !ok || again != m {
			t.Fatalf("%v became %v", m, again)
		}
	})
}
