package record

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// segments returns the log files of the data directories that Apache Kafka 2.8.2 and 3.9.1 wrote (testdata), by name.
func segments(tb testing.TB) map[string][]byte {
	tb.Helper()
	out := map[string][]byte{}
	archives, err := filepath.Glob("testdata/*-clean.tar.gz")
	require.NoError(tb, err)
	require.Len(tb, archives, 2)
	for _, archive := range archives {
		f, err := os.Open(archive)
		require.NoError(tb, err)
		defer f.Close()
		z, err := gzip.NewReader(f)
		require.NoError(tb, err)
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			require.NoError(tb, err)
			if strings.HasSuffix(h.Name, ".log") {
				data, err := io.ReadAll(r)
				require.NoError(tb, err)
				out[filepath.Base(archive)[:5]+"/"+strings.TrimPrefix(h.Name, "./")] = data
			}
		}
	}
	return out
}

func copyRecord(r Record) Record {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	var headers []Header
	for _, h := range r.Headers {
		headers = append(headers, Header{Key: h.Key, Value: bytes.Clone(h.Value)})
	}
	r.Headers = headers
	return r
}

func collect(tb testing.TB, b Batch) []Record {
	tb.Helper()
	var out []Record
	for r, err := range b.Records(Limits{}) {
		require.NoError(tb, err)
		out = append(out, copyRecord(r))
	}
	return out
}

// rebuild makes the batch anew from its records and the fields of its header.
func rebuild(tb testing.TB, b Batch, c Codec) Batch {
	tb.Helper()
	epoch := b.PartitionLeaderEpoch()
	o := BuilderOptions{Codec: c, BaseOffset: b.BaseOffset(), LeaderEpoch: &epoch, Control: b.IsControl(),
		Producer: &Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(), Transactional: b.IsTransactional()}}
	if b.IsLogAppendTime() {
		t := b.MaxTimestamp()
		o.AppendTime = &t
	}
	if b.HasDeleteHorizon() {
		t := b.BaseTimestamp()
		o.DeleteHorizon = &t
	}
	w := NewBuilder(o)
	for _, r := range collect(tb, b) {
		w.AppendRecord(r)
	}
	w.SetLastOffset(b.LastOffset())
	out, err := w.Build()
	require.NoError(tb, err)
	return out
}

func TestEveryBatchThatKafkaWroteIsReadAndWrittenAlike(t *testing.T) {
	batches, messages, records, compressed := 0, 0, 0, 0
	for name, data := range segments(t) {
		t.Run(name, func(t *testing.T) {
			next := int64(-1)
			for len(data) > 0 {
				magic, ok := PeekMagic(data)
				require.True(t, ok)
				if magic < 2 {
					m, rest, err := NextMessage(data)
					require.NoError(t, err)
					require.NoError(t, m.CheckCRC())
					n := 0
					for r, err := range m.Messages(Limits{}) {
						require.NoError(t, err)
						require.NoError(t, r.Message.CheckCRC())
						require.Greater(t, r.Offset, next)
						next = r.Offset
						records++
						n++
					}
					require.Equal(t, m.Offset(), next)
					if m.Codec() != None {
						require.Greater(t, n, 1)
						compressed++
					} else {
						require.Equal(t, []byte(m), AppendMessage(nil, magic, None, m.IsLogAppendTime(), m.Offset(), m.Timestamp(), m.Key(), m.Value()))
					}
					data = rest
					messages++
					continue
				}
				b, rest, err := Next(data)
				require.NoError(t, err)
				require.NoError(t, b.CheckCRC())
				got := collect(t, b)
				require.Len(t, got, int(b.Count()))
				for _, r := range got {
					require.Greater(t, r.Offset, next)
					require.LessOrEqual(t, r.Offset, b.LastOffset())
					next = r.Offset
				}
				next = b.LastOffset()
				if len(got) > 0 {
					same := rebuild(t, b, b.Codec())
					if b.Codec() == None {
						require.Equal(t, []byte(b), []byte(same))
					} else {
						require.Equal(t, got, collect(t, same))
						compressed++
					}
				}
				if res, err := Validate(b, Rules{AllowControl: true, AllowGaps: true}); !b.IsLogAppendTime() {
					require.NoError(t, err)
					require.Equal(t, len(got), res.Count)
					if len(got) == int(b.LastOffsetDelta())+1 {
						require.Equal(t, b.MaxTimestamp(), res.MaxTimestamp)
					}
				}
				records += len(got)
				data = rest
				batches++
			}
		})
	}
	t.Logf("%d batches, %d messages, %d of both compressed, %d records", batches, messages, compressed, records)
	require.Greater(t, batches, 300)
	require.Greater(t, messages, 500)
}

func TestABatchWithoutRecordsIsItsHeader(t *testing.T) {
	w := NewBuilder(BuilderOptions{Codec: Gzip, BaseOffset: 40, Producer: &Producer{ID: 7, Epoch: 1, BaseSequence: 5, Transactional: true}})
	for i := range 4 {
		w.Append(int64(100+i), []byte("k"), []byte("v"))
	}
	b, err := w.Build()
	require.NoError(t, err)
	e := b.WithoutRecords()
	require.NoError(t, e.CheckCRC())
	parsed, rest, err := Next(e)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Empty(t, collect(t, parsed))
	require.Equal(t, []any{int64(40), int64(43), int64(7), int16(1), int32(5), int32(8), int64(103), NoTimestamp, None, true},
		[]any{e.BaseOffset(), e.LastOffset(), e.ProducerID(), e.ProducerEpoch(), e.BaseSequence(), e.LastSequence(), e.MaxTimestamp(), e.BaseTimestamp(), e.Codec(), e.IsTransactional()})
	require.Equal(t, int32(4), b.Count(), "the original is left alone")
}
