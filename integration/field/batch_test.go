package field

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// batch is a batch of format 2 as a client would write it, or as it would not.
type batch struct {
	codec      int16
	attributes int16 // beside the codec
	producer   *producer
	sequence   int32
	records    []record
}

// producer is one life of an idempotent producer.
type producer struct {
	id    int64
	epoch int16
}

type record struct {
	timestamp  int64
	key, value []byte
}

const (
	transactional = 1 << 4
	control       = 1 << 5
)

var codecNames = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// plainly makes records of values, all of them at the same time.
func plainly(timestamp int64, values ...string) []record {
	var all []record
	for _, v := range values {
		all = append(all, record{timestamp: timestamp, value: []byte(v)})
	}
	return all
}

func (b batch) encode(t testing.TB) []byte {
	t.Helper()
	by, sequence := producer{id: -1, epoch: -1}, int32(-1)
	if b.producer != nil {
		by, sequence = *b.producer, b.sequence
	}
	first, largest := int64(-1), int64(-1)
	if len(b.records) > 0 {
		first = b.records[0].timestamp
	}
	var body []byte
	for i, r := range b.records {
		largest = max(largest, r.timestamp)
		encoded := kmsg.Record{TimestampDelta64: r.timestamp - first, OffsetDelta: int32(i), Key: r.key, Value: r.value}
		encoded.Length = int32(len(encoded.AppendTo(nil)) - 1) // a length of 0 takes one byte
		body = encoded.AppendTo(body)
	}
	if b.codec != 0 {
		kinds := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
		compressor, err := kgo.DefaultCompressor(kinds[b.codec])
		require.NoError(t, err)
		var dst bytes.Buffer
		body, _ = compressor.Compress(&dst, body)
		body = bytes.Clone(body)
	}
	out := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: b.attributes | b.codec, LastOffsetDelta: int32(len(b.records)) - 1, FirstTimestamp: first, MaxTimestamp: largest,
		ProducerID: by.id, ProducerEpoch: by.epoch, FirstSequence: sequence, NumRecords: int32(len(b.records)), Records: body,
	}
	out.Length = int32(len(out.AppendTo(nil)) - 12)
	raw := out.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

// produce sends bytes to one partition and returns what is said of it.
func produce(c *conn, version int16, topic string, partition int32, acks int16, records []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	resp := ask[*kmsg.ProduceResponse](c, produceRequest(version, topic, partition, acks, records))
	require.Len(c.t, resp.Topics, 1)
	require.Len(c.t, resp.Topics[0].Partitions, 1)
	return resp.Topics[0].Partitions[0]
}

func produceRequest(version int16, topic string, partition int32, acks int16, records []byte) *kmsg.ProduceRequest {
	req := at(version, kmsg.NewPtrProduceRequest())
	req.Acks, req.TimeoutMillis = acks, 5000
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, records
	in := kmsg.NewProduceRequestTopic()
	in.Topic, in.Partitions = topic, append(in.Partitions, part)
	req.Topics = append(req.Topics, in)
	return req
}

// stored produces a batch that must be accepted, and returns the offset of its first record.
func stored(c *conn, topic string, partition int32, b batch) int64 {
	c.t.Helper()
	p := produce(c, 9, topic, partition, -1, b.encode(c.t))
	require.Zero(c.t, p.ErrorCode, "%+v", p)
	return p.BaseOffset
}

// listOffset asks for the offset at a time or special time.
func listOffset(c *conn, version int16, topic string, partition int32, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	c.t.Helper()
	req := at(version, kmsg.NewPtrListOffsetsRequest())
	req.ReplicaID = -1
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp, part.MaxNumOffsets = partition, timestamp, 1
	in := kmsg.NewListOffsetsRequestTopic()
	in.Topic, in.Partitions = topic, append(in.Partitions, part)
	req.Topics = append(req.Topics, in)
	resp := ask[*kmsg.ListOffsetsResponse](c, req)
	return resp.Topics[0].Partitions[0]
}

const (
	latest   = -1
	earliest = -2
	largest  = -3
)

// fetchRequest asks for one partition from an offset on, without a session.
func fetchRequest(version int16, topic string, partition int32, offset int64, maxBytes int32) *kmsg.FetchRequest {
	req := at(version, kmsg.NewPtrFetchRequest())
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 500, 1, 50<<20, -1
	addToFetch(req, topic, partition, offset, maxBytes)
	return req
}

func addToFetch(req *kmsg.FetchRequest, topic string, partition int32, offset int64, maxBytes int32) {
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes, part.LogStartOffset = partition, offset, maxBytes, -1
	for i := range req.Topics {
		if req.Topics[i].Topic == topic {
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, part)
			return
		}
	}
	in := kmsg.NewFetchRequestTopic()
	in.Topic, in.Partitions = topic, append(in.Partitions, part)
	req.Topics = append(req.Topics, in)
}

// fetch reads one partition from an offset on.
func fetch(c *conn, topic string, partition int32, offset int64) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	resp := ask[*kmsg.FetchResponse](c, fetchRequest(11, topic, partition, offset, 10<<20))
	require.Zero(c.t, resp.ErrorCode)
	return resp.Topics[0].Partitions[0]
}

// batchSizes takes apart what a fetch gave: the sizes of whole batches, and the bytes of one that is cut off.
func batchSizes(records []byte) (whole []int, rest int) {
	for len(records) >= 12 {
		size := 12 + int(binary.BigEndian.Uint32(records[8:]))
		if size > len(records) {
			break
		}
		whole = append(whole, size)
		records = records[size:]
	}
	return whole, len(records)
}

// values reads all records of a partition from an offset on, whatever their batches.
func values(t testing.TB, c *conn, topic string, partition int32, offset int64) []string {
	t.Helper()
	var all []string
	for {
		got := fetch(c, topic, partition, offset)
		require.Zero(t, got.ErrorCode)
		if len(got.RecordBatches) == 0 {
			return all
		}
		p := kgo.ProcessFetchPartitionOpts{Topic: topic, Partition: partition, Offset: offset}
		fetched, next := kgo.ProcessFetchPartition(p, &got, kgo.DefaultDecompressor(), nil)
		require.NoError(t, fetched.Err)
		for _, r := range fetched.Records {
			all = append(all, string(r.Value))
		}
		require.Greater(t, next, offset)
		offset = next
	}
}
