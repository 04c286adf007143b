package commitlog

// The formats of the model: what clients of each age send, what a log keeps of it, and what clients of before batches are
// sent. In half of the seeds the log's format changes with its policy, there and back.
//
// Faults that were planted by hand, and the share of 12 seeds that found each:
//
//	a v0 wrapper counts its offsets from 0                          12
//	a wrapper's offsets count from its first message                12
//	a log that is cut inside of a wrapper ends at the cut           10
//	a wrapper keeps what a cleaning wanted to take out               7
//	tombstones in messages go at once                                7
//	the time of the append is lost when a wrapper is cleaned         1
//	of a wrapper only the last key is known to a cleaning            7
//	a cleaned wrapper keeps the offset of a message that is gone     6
//	times inside of wrappers are those of the last message          12
//	the time index does not see messages                            10
//	a wrapper's time is that of its first message                    7
//	leader epochs outlive messages: in an append; in recovery   10;  2
//	messages without time are cleaned within their lag               1
//	messages without time get one when they become a batch          10
//	a message without value gets an empty one                       12
//	readers of old get what lies before the offset they asked for   10
//	readers of old get pieces of wrappers                           12

import (
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
)

// format chooses the log's, and how it compresses.
func (m *model) format() {
	c := &m.config
	c.Format, c.Compression = FormatV2, Compression{Producer: true}
	if !m.messages {
		return
	}
	c.Format = Format(m.rng.IntN(3))
	if m.rng.IntN(3) == 0 {
		c.Compression = Compression{Codec: record.Codec(m.rng.IntN(4))}
	}
}

// wording is how records are sent and how they are kept.
type wording struct {
	magic, kept      int8
	codec, keptCodec record.Codec
}

func (m *model) wording(pid int64) wording {
	w := wording{magic: 2, kept: m.config.Format.Magic(), codec: record.Codec(m.rng.IntN(5))}
	if m.messages && pid == 0 {
		w.magic = int8(m.rng.IntN(3))
	}
	if w.magic < 2 || w.kept < 2 {
		w.codec %= record.Zstd
	}
	w.keptCodec = w.codec
	if !m.config.Compression.Producer {
		w.keptCodec = m.config.Compression.Codec
	}
	return w
}

// say is what the client sends; it counts offsets from 0.
func (w wording) say(t *testing.T, list []record.Record, p *record.Producer) []byte {
	if w.magic < 2 {
		return sent(t, w.magic, w.codec, list)
	}
	build := record.NewBuilder(record.BuilderOptions{Codec: w.codec, Producer: p})
	for _, r := range list {
		build.Append(r.Timestamp, r.Key, r.Value)
	}
	out, err := build.Build()
	require.NoError(t, err)
	return out
}

// plain is what has to be in the log then.
func (w wording) plain(m *model, list []record.Record, p *record.Producer) []plainBatch {
	h := plainHeader{
		magic: w.kept, epoch: m.epoch, pid: record.NoProducerID, lastSeq: record.NoSequence, horizon: -1, newest: record.NoTimestamp,
		appendTime: m.config.LogAppendTime && w.kept > 0,
	}
	if w.kept < 2 {
		h.epoch = record.NoLeaderEpoch
	}
	if p != nil {
		h.pid, h.transactional, h.lastSeq = p.ID, p.Transactional, record.AddSequence(p.BaseSequence, int32(len(list)-1))
	}
	var out []plainBatch
	for i, r := range list {
		if i == 0 || w.kept < 2 && w.keptCodec == record.None {
			out = append(out, plainBatch{plainHeader: h})
		}
		b := &out[len(out)-1]
		stored := plainRecord{offset: r.Offset, ts: r.Timestamp, key: string(r.Key), value: string(r.Value), keyless: r.Key == nil, null: r.Value == nil}
		switch {
		case h.appendTime:
			stored.ts = m.nowMs()
		case w.magic == 0 || w.kept == 0:
			stored.ts = record.NoTimestamp
		}
		if len(b.records) == 0 || w.kept < 2 {
			b.base = r.Offset
		}
		b.last, b.newest, b.records = r.Offset, max(b.newest, stored.ts), append(b.records, stored)
	}
	return out
}

func plainOfMessage(t *testing.T, m record.Message) plainBatch {
	p := plainBatch{plainHeader: plainHeader{
		magic: m.Magic(), base: m.Offset(), last: m.Offset(), epoch: record.NoLeaderEpoch, pid: record.NoProducerID, lastSeq: record.NoSequence,
		appendTime: m.IsLogAppendTime(), newest: m.Timestamp(), horizon: -1,
	}}
	for r, err := range m.Messages(record.Limits{}) {
		require.NoError(t, err)
		p.records = append(p.records, plainRecord{
			offset: r.Offset, ts: r.Timestamp, key: string(r.Key), keyless: r.Key == nil, value: string(r.Value), null: r.Value == nil,
		})
	}
	return p
}

// forget takes note of messages, behind which no epoch of before is known.
func (m *model) forget() {
	m.forgotten = max(m.forgotten, m.lastMessage())
}

// checkEpoch compares the leader epoch of a record. What lies before messages that are in the log has none; what lies before
// messages that were may have.
func (m *model) checkEpoch(b plainBatch, offset int64) {
	epoch, known := m.log.EpochAt(offset)
	if !known && offset > m.forgotten || known && (b.epoch != epoch || offset <= m.lastMessage()) { // asked too often for a require
		require.Fail(m.t, "leader epoch", "offset %d has epoch %d (known: %v), was written in %d: %v", offset, epoch, known, b.epoch, m.trace)
	}
}

// lastMessage is the offset of the last message in the log.
func (m *model) lastMessage() int64 {
	for _, b := range slices.Backward(m.plain.batches) {
		if b.magic < 2 {
			return b.last
		}
	}
	return -1
}

// checkDowngraded compares what a client of before batches is sent from an offset on: control batches and what is compressed
// with zstd apart, the same records.
func (m *model) checkDowngraded(from int64) {
	r, err := m.log.Read(from, ReadOptions{MaxBytes: 2000, MinOneBatch: true, UpTo: m.plain.high})
	require.NoError(m.t, err, "%v", m.trace)
	data, err := r.Range.ReadAll()
	require.NoError(m.t, err)
	r.Range.Release()
	d := record.Downgrade{To: int8(m.rng.IntN(2)), From: from}
	for len(data) > 0 {
		e, rest, err := record.NextEntry(data)
		if err == io.ErrUnexpectedEOF {
			return
		}
		require.NoError(m.t, err)
		m.requireDowngraded(&d, e)
		data = rest
	}
}

func (m *model) requireDowngraded(d *record.Downgrade, e record.Entry) {
	var want []record.Record
	b, isBatch := e.Batch()
	for _, p := range m.plain.batches {
		if p.last != e.LastOffset() || p.control {
			continue
		}
		for _, r := range p.records {
			if r.offset < d.From && isBatch && b.Codec() == record.None {
				continue
			}
			if d.To == 0 {
				r.ts = record.NoTimestamp
			}
			want = append(want, r.record())
		}
	}
	out, err := d.Append(nil, e)
	if isBatch && b.Codec() == record.Zstd {
		require.ErrorIs(m.t, err, kerr.UnsupportedCompressionType)
		return
	}
	require.NoError(m.t, err, "%v", m.trace)
	m.counts["down-converted"]++
	var got []record.Record
	for len(out) > 0 {
		message, rest, err := record.NextMessage(out)
		require.NoError(m.t, err, "%v", m.trace)
		require.NoError(m.t, message.CheckCRC())
		require.LessOrEqual(m.t, message.Magic(), d.To)
		for r, err := range message.Messages(record.Limits{}) {
			require.NoError(m.t, err)
			got = append(got, record.Record{Offset: r.Offset, Timestamp: r.Timestamp, Key: clonedOrNil(r.Key), Value: clonedOrNil(r.Value)})
		}
		out = rest
	}
	require.Equal(m.t, want, got, "to magic %d from %d: %v", d.To, d.From, m.trace)
}

func (r plainRecord) record() record.Record {
	out := record.Record{Offset: r.offset, Timestamp: r.ts}
	if !r.keyless {
		out.Key = []byte(r.key)
	}
	if !r.null {
		out.Value = []byte(r.value)
	}
	return out
}

// seeMessages adds to what a consumer finds in batches what it finds in messages.
func (m *model) seeMessages(view map[string]lastRecord, stable int64) {
	for _, e := range allEntries(m.t, m.log) {
		if _, isBatch := e.Batch(); isBatch || e.LastOffset() >= stable {
			continue
		}
		for r, err := range e.Records(record.Limits{}) {
			require.NoError(m.t, err)
			if seen, ok := view[string(r.Key)]; !ok || seen.offset < r.Offset {
				view[string(r.Key)] = lastRecord{r.Offset, string(r.Value), r.Value == nil}
			}
		}
	}
}
