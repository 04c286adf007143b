package api

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/record"
)

// What becomes of records that come in one format, are kept in a second and are asked for in a third is told by plays: a script
// produces, fetches and looks up offsets, and what is answered is written down, record by record. TestRecordFormatPlays has
// them performed by Apache Kafka, TestFormatPlays by this broker; the transcripts must be equal.

// formatPlay is one performance, with its transcript.
type formatPlay struct {
	t    *testing.T
	ask  func(kmsg.Request) kmsg.Response
	text strings.Builder
	// exact: nothing here is compressed, so that sizes can be compared too.
	exact bool
	// first: only the first entry of an answer is told. How many more there are is decided by the size of what was compressed.
	first bool
}

func (p *formatPlay) notef(format string, a ...any) { fmt.Fprintf(&p.text, format+"\n", a...) }

func errorName(code int16) string {
	var e *kerr.Error
	if errors.As(kerr.ErrorForCode(code), &e) {
		return e.Message
	}
	return "none"
}

// when makes the time of the performance equal in all of them.
func when(ms int64) string {
	if at := time.UnixMilli(ms); time.Since(at).Abs() < 72*time.Hour {
		return "now"
	}
	return fmt.Sprint(ms)
}

// produce sends records and returns the offset that the first one got.
func (p *formatPlay) produce(version int16, topic, what string, records []byte) int64 {
	req := produceOne(-1, topic, 0, records)
	req.Version = version
	r := p.ask(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	p.notef("produce v%d to %s: %s", version, topic, what)
	p.notef("  %s, base %d, time %s, start %d, %d refused", errorName(r.ErrorCode), r.BaseOffset, when(r.LogAppendTime), r.LogStartOffset, len(r.ErrorRecords))
	return r.BaseOffset
}

// fetch asks for records and tells what came.
func (p *formatPlay) fetch(version int16, topic string, offset int64, maxBytes int32) {
	ask := fetchAsk{epoch: -1, replica: -1, topics: []fetchAskTopic{{name: topic, offset: offset, maxBytes: maxBytes, leader: -1, fetched: -1}}}
	r := p.ask(ask.request(version)).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	p.notef("fetch v%d from %s at %d, at most %d bytes", version, topic, offset, maxBytes)
	size := ""
	if p.exact {
		size = fmt.Sprintf(", %d bytes", len(r.RecordBatches))
	}
	p.notef("  %s, high watermark %d%s", errorName(r.ErrorCode), r.HighWatermark, size)
	p.entries(r.RecordBatches)
}

func (p *formatPlay) entries(data []byte) {
	for len(data) > 0 {
		var rest []byte
		magic, _ := record.PeekMagic(data)
		if magic == 2 {
			b, next, err := record.Next(data)
			if err != nil {
				break
			}
			require.NoError(p.t, b.CheckCRC())
			p.notef("    v2 %s %d..%d %s append time %t epoch %d producer %d", b.Codec(), b.BaseOffset(), b.LastOffset(), when(b.MaxTimestamp()), b.IsLogAppendTime(), b.PartitionLeaderEpoch(), b.ProducerID())
			for r, err := range b.Records(record.Limits{}) {
				require.NoError(p.t, err)
				p.record("", &r)
			}
			rest = next
		} else {
			m, next, err := record.NextMessage(data)
			if err != nil {
				break
			}
			p.message(m)
			rest = next
		}
		if data = rest; p.first {
			return
		}
	}
	if p.exact && len(data) > 0 {
		p.notef("    %d bytes: %x", len(data), data[:min(len(data), 12)])
	}
}

func (p *formatPlay) message(m record.Message) {
	require.NoError(p.t, m.CheckCRC())
	head := ""
	if m.Codec() == record.LZ4 {
		head = fmt.Sprintf(" frame %x", m.Value()[:7])
	}
	p.notef("    v%d %s %d %s append time %t%s", m.Magic(), m.Codec(), m.Offset(), when(m.Timestamp()), m.IsLogAppendTime(), head)
	for r, err := range m.Messages(record.Limits{}) {
		require.NoError(p.t, err)
		require.NoError(p.t, r.Message.CheckCRC())
		within := fmt.Sprintf(" within: %d", r.Message.Offset())
		if !m.IsLogAppendTime() { // else nobody looks at those within
			within += fmt.Sprintf(" %s %t", when(r.Message.Timestamp()), r.Message.IsLogAppendTime())
		}
		p.record(within, &r.Record)
	}
}

func (p *formatPlay) record(within string, r *record.Record) {
	p.notef("      %d %s%s key %s value %s headers %d", r.Offset, when(r.Timestamp), within, shown(r.Key), shown(r.Value), len(r.Headers))
}

func shown(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 20:
		return fmt.Sprintf("of %d bytes", len(b))
	}
	return fmt.Sprintf("%q", b)
}

// offsets looks up offsets by time.
func (p *formatPlay) offsets(version int16, topic string, times ...int64) {
	for _, at := range times {
		req := kmsg.NewPtrListOffsetsRequest()
		req.Version, req.ReplicaID = version, -1
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		ask := kmsg.NewListOffsetsRequestTopicPartition()
		ask.Timestamp, ask.MaxNumOffsets = at, 10
		t.Partitions = append(t.Partitions, ask)
		req.Topics = append(req.Topics, t)
		r := p.ask(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
		p.notef("offsets v%d of %s at %s: %s, %d, %d at %s", version, topic, when(at), errorName(r.ErrorCode), r.OldStyleOffsets, r.Offset, when(r.Timestamp))
	}
}

// marker writes the end of a transaction.
func (p *formatPlay) marker(topic string) {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch, m.Committed = 77, 0, true
	t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	t.Topic, t.Partitions = topic, []int32{0}
	m.Topics = append(m.Topics, t)
	req.Markers = append(req.Markers, m)
	r := p.ask(req).(*kmsg.WriteTxnMarkersResponse).Markers[0].Topics[0].Partitions[0]
	p.notef("marker to %s: %s", topic, errorName(r.ErrorCode))
}

// messages makes a set of n messages, in a wrapper if it is compressed. Their offsets are those that clients give them.
func messages(magic int8, c record.Codec, n int) []byte {
	b := record.NewMessageBuilder(nil, nil, record.MessageOptions{Magic: magic, Codec: c})
	for i := range n {
		b.Append(&record.Record{Offset: int64(i), Timestamp: goldenTime + int64(i), Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "v%d", i)})
	}
	out, err := b.Build()
	if err != nil {
		panic(err)
	}
	return out
}

// wrapper puts a set that is compressed already into a message.
func wrapper(magic int8, c record.Codec, offset int64, value []byte) []byte {
	return record.AppendMessage(nil, magic, c, false, offset, goldenTime, nil, value)
}

func packed(c record.Codec, set []byte) []byte {
	out, err := record.Compress(c, record.DefaultLevel, nil, set)
	if err != nil {
		panic(err)
	}
	return out
}

// innerSet is messages with offsets and format as told.
func innerSet(magic int8, c record.Codec, offsets ...int64) (set []byte) {
	for _, o := range offsets {
		set = record.AppendMessage(set, magic, c, false, o, goldenTime+o, []byte("k"), []byte("v"))
	}
	return set
}

func flipped(b []byte, at int) []byte {
	out := append([]byte(nil), b...)
	if at < 0 {
		at += len(out)
	}
	out[at] ^= 1
	return out
}

func joined(parts ...[]byte) (out []byte) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// batchOf makes a batch of n records with headers, or without for logs of formats that have none.
func batchOf(c record.Codec, n int, producer *record.Producer) []byte {
	return batchWith(c, n, producer, record.Header{Key: "h", Value: []byte{1}})
}

func batchWith(c record.Codec, n int, producer *record.Producer, headers ...record.Header) []byte {
	b := record.NewBuilder(record.BuilderOptions{Codec: c, Producer: producer})
	for i := range n {
		b.Append(goldenTime+int64(i), fmt.Appendf(nil, "k%d", i), fmt.Appendf(nil, "v%d", i), headers...)
	}
	out, err := b.Build()
	if err != nil {
		panic(err)
	}
	return out
}

var oldCodecs = []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4}

// sentSets are what old clients send: right, odd and wrong.
func sentSets(magic int8) (names []string, sets [][]byte) {
	add := func(name string, set []byte) {
		names, sets = append(names, fmt.Sprintf("v%d %s", magic, name)), append(sets, set)
	}
	add("one", messages(magic, record.None, 1))
	add("three", messages(magic, record.None, 3))
	add("nulls", record.AppendMessage(nil, magic, record.None, false, 0, goldenTime, nil, nil))
	add("no time", record.AppendMessage(nil, magic, record.None, false, 0, -1, []byte("k"), []byte{}))
	for _, c := range oldCodecs[1:] {
		add(c.String(), messages(magic, c, 3))
		add(c.String()+", wrapper at 0", wrapper(magic, c, 0, packed(c, innerSet(magic, record.None, 0, 1, 2))))
		add(c.String()+", all within at 0", wrapper(magic, c, 0, packed(c, innerSet(magic, record.None, 0, 0, 0))))
	}
	set := innerSet(magic, record.None, 0, 1)
	xerial := packed(record.Snappy, set)
	add("snappy without a frame", wrapper(magic, record.Snappy, 1, xerial[20:]))
	binary.BigEndian.PutUint32(xerial[8:], 0x01000000) // what some clients wrote: the other order of bytes
	binary.BigEndian.PutUint32(xerial[12:], 0x01000000)
	add("snappy, versions little endian", wrapper(magic, record.Snappy, 1, xerial))
	add("lz4, header checksum of the other format", wrapper(magic, record.LZ4, 1, otherChecksum(magic, set)))
	add("checksum wrong", flipped(messages(magic, record.None, 1), -1))
	add("checksum of the second wrong", flipped(messages(magic, record.None, 2), -1))
	add("checksum within wrong", wrapper(magic, record.Gzip, 1, packed(record.Gzip, flipped(set, -1))))
	add("compressed within compressed", wrapper(magic, record.Gzip, 0, packed(record.Gzip, innerSet(magic, record.Gzip, 0))))
	add("another format within", wrapper(magic, record.Gzip, 0, packed(record.Gzip, innerSet(1-magic, record.None, 0))))
	add("wrapper without a value", wrapper(magic, record.Gzip, 0, nil))
	add("empty wrapper", wrapper(magic, record.Gzip, 0, packed(record.Gzip, nil)))
	add("wrapper's offset too small", wrapper(magic, record.Gzip, 1, packed(record.Gzip, innerSet(magic, record.None, 0, 1, 2))))
	add("zstd", wrapper(magic, record.Zstd, 1, packed(record.Zstd, set)))
	add("two wrappers", joined(messages(magic, record.Gzip, 1), messages(magic, record.Gzip, 1)))
	add("a wrapper behind a message", joined(messages(magic, record.None, 1), messages(magic, record.Gzip, 1)))
	add("a message of the other format behind", joined(messages(magic, record.None, 1), messages(1-magic, record.None, 1)))
	add("cut off", messages(magic, record.None, 2)[:50])
	add("cut off in the first", messages(magic, record.None, 1)[:20])
	add("cut off within", wrapper(magic, record.Gzip, 1, packed(record.Gzip, set[:len(set)-3])))
	add("nothing", []byte{})
	return names, sets
}

// otherChecksum is a frame with the header checksum that the other format's clients compute (KAFKA-3160).
func otherChecksum(magic int8, set []byte) []byte {
	frame := packed(record.LZ4, set)
	if magic == 0 {
		return frame
	}
	m, _, err := record.NextMessage(messages(0, record.LZ4, 1))
	if err != nil {
		panic(err)
	}
	frame[6] = m.Value()[6]
	return frame
}
