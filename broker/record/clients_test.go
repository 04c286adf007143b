package record

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// desk is a broker for one partition, t-0, as far as clients need one to write a batch and to read some: it keeps what
// is produced, and answers a fetch at offset 0 with what it was given.
type desk struct {
	listener net.Listener
	serve    []byte
	end      int64

	mu       sync.Mutex
	produced [][]byte
	conns    []net.Conn
	wg       sync.WaitGroup
}

// The versions offered: the last ones without tagged fields, which need no other header.
var deskVersions = []kmsg.ApiVersionsResponseApiKey{
	{ApiKey: 0, MaxVersion: 8}, {ApiKey: 1, MaxVersion: 11}, {ApiKey: 2, MaxVersion: 5}, {ApiKey: 3, MaxVersion: 8},
	{ApiKey: 18, MaxVersion: 2}, {ApiKey: 22, MaxVersion: 1},
}

func openDesk(t *testing.T, serve []byte, end int64) *desk {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &desk{listener: l, serve: serve, end: end}
	d.wg.Add(1)
	go func() {
		defer d.wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.conns = append(d.conns, c)
			d.mu.Unlock()
			d.wg.Add(1)
			go func() {
				defer d.wg.Done()
				defer c.Close()
				for d.answer(c) == nil {
				}
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		d.mu.Lock()
		for _, c := range d.conns {
			c.Close()
		}
		d.mu.Unlock()
		d.wg.Wait()
	})
	return d
}

func (d *desk) addr() string { return d.listener.Addr().String() }

func (d *desk) answer(c net.Conn) error {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	p := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, p); err != nil {
		return err
	}
	key, version, id := int16(binary.BigEndian.Uint16(p)), int16(binary.BigEndian.Uint16(p[2:])), p[4:8]
	body := p[10:]
	if n := int16(binary.BigEndian.Uint16(p[8:])); n > 0 {
		body = body[n:]
	}
	req := kmsg.RequestForKey(key)
	if key == 18 && version > 2 {
		version = 0 // answered with UNSUPPORTED_VERSION in the oldest form; the client asks again
		req.SetVersion(0)
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.ErrorCode, resp.ApiKeys = 35, deskVersions
		return d.reply(c, id, resp)
	}
	req.SetVersion(version)
	if err := req.ReadFrom(body); err != nil {
		return err
	}
	resp := d.handle(req)
	if resp == nil {
		return nil
	}
	resp.SetVersion(version)
	return d.reply(c, id, resp)
}

func (d *desk) reply(c net.Conn, id []byte, resp kmsg.Response) error {
	out := append(make([]byte, 4), id...)
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	_, err := c.Write(out)
	return err
}

func (d *desk) handle(req kmsg.Request) kmsg.Response {
	switch req := req.(type) {
	case *kmsg.ApiVersionsRequest:
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.ApiKeys = deskVersions
		return resp
	case *kmsg.MetadataRequest:
		host, port, _ := net.SplitHostPort(d.addr())
		var n int32
		fmt.Sscan(port, &n)
		resp := kmsg.NewPtrMetadataResponse()
		resp.Brokers = []kmsg.MetadataResponseBroker{{NodeID: 1, Host: host, Port: n}}
		resp.ControllerID = 1
		resp.Topics = []kmsg.MetadataResponseTopic{{Topic: kmsg.StringPtr("t"),
			Partitions: []kmsg.MetadataResponseTopicPartition{{Leader: 1, LeaderEpoch: 0, Replicas: []int32{1}, ISR: []int32{1}}}}}
		return resp
	case *kmsg.InitProducerIDRequest:
		resp := kmsg.NewPtrInitProducerIDResponse()
		resp.ProducerID = 5
		return resp
	case *kmsg.ProduceRequest:
		d.mu.Lock()
		d.produced = append(d.produced, req.Topics[0].Partitions[0].Records)
		d.mu.Unlock()
		resp := kmsg.NewPtrProduceResponse()
		resp.Topics = []kmsg.ProduceResponseTopic{{Topic: "t", Partitions: []kmsg.ProduceResponseTopicPartition{kmsg.NewProduceResponseTopicPartition()}}}
		return resp
	case *kmsg.ListOffsetsRequest:
		resp := kmsg.NewPtrListOffsetsResponse()
		p := kmsg.NewListOffsetsResponseTopicPartition()
		if req.Topics[0].Partitions[0].Timestamp == -1 {
			p.Offset = d.end
		}
		p.LeaderEpoch = 0
		resp.Topics = []kmsg.ListOffsetsResponseTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsResponseTopicPartition{p}}}
		return resp
	case *kmsg.FetchRequest:
		resp := kmsg.NewPtrFetchResponse()
		if len(req.Topics) == 0 {
			return resp
		}
		p := kmsg.NewFetchResponseTopicPartition()
		p.HighWatermark, p.LastStableOffset, p.LogStartOffset = d.end, d.end, 0
		if req.Topics[0].Partitions[0].FetchOffset < d.end {
			p.RecordBatches = d.serve
		}
		resp.Topics = []kmsg.FetchResponseTopic{{Topic: "t", Partitions: []kmsg.FetchResponseTopicPartition{p}}}
		return resp
	}
	return nil
}

// taken are the records of what was produced, in any format.
func (d *desk) taken(t *testing.T) (records []Record, formats map[string]bool) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	formats = map[string]bool{}
	for _, data := range d.produced {
		for len(data) > 0 {
			magic, _ := PeekMagic(data)
			if magic < 2 {
				m, rest, err := NextMessage(data)
				require.NoError(t, err)
				require.NoError(t, m.CheckCRC())
				for r, err := range m.Messages(Limits{}) {
					require.NoError(t, err)
					require.NoError(t, r.Message.CheckCRC())
					records = append(records, copyRecord(r.Record))
				}
				formats[fmt.Sprintf("v%d %s", magic, m.Codec())] = true
				data = rest
				continue
			}
			b, rest, err := Next(data)
			require.NoError(t, err)
			require.NoError(t, b.CheckCRC())
			res, err := Validate(b, Rules{Partition: "t-0", CheckTimestamps: true, Now: time.Now().UnixMilli(), BeforeMax: 1 << 62, AfterMax: 1 << 40})
			require.NoError(t, err)
			require.Equal(t, b.MaxTimestamp(), res.MaxTimestamp)
			records = append(records, collect(t, b)...)
			formats[fmt.Sprintf("v%d %s", magic, b.Codec())] = true
			data = rest
		}
	}
	return records, formats
}

// sent is what every client is made to write, and to read.
func sent(headers bool) []Record {
	var out []Record
	for i := range 300 {
		r := Record{Key: []byte(fmt.Sprint("key-", i)), Value: []byte(fmt.Sprintf("value %d of those that are sent again and again", i))}
		if i%7 == 0 {
			r.Key = nil
		}
		if headers && i%3 == 0 {
			r.Headers = []Header{{Key: "a", Value: []byte("b")}, {Key: "c", Value: []byte{}}}
		}
		out = append(out, r)
	}
	return out
}

func requireRecords(t *testing.T, want, got []Record) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, string(want[i].Key), string(got[i].Key))
		require.Equal(t, want[i].Key == nil, got[i].Key == nil)
		require.Equal(t, string(want[i].Value), string(got[i].Value))
		require.Len(t, got[i].Headers, len(want[i].Headers))
		for k, h := range want[i].Headers {
			require.Equal(t, h.Key, got[i].Headers[k].Key)
			require.Equal(t, string(h.Value), string(got[i].Headers[k].Value))
		}
	}
}

func TestWhatFranzGoWritesIsRead(t *testing.T) {
	for c, kc := range map[Codec]kgo.CompressionCodec{None: kgo.NoCompression(), Gzip: kgo.GzipCompression(), Snappy: kgo.SnappyCompression(), LZ4: kgo.Lz4Compression(), Zstd: kgo.ZstdCompression()} {
		d := openDesk(t, nil, 0)
		cl, err := kgo.NewClient(kgo.SeedBrokers(d.addr()), kgo.ProducerBatchCompression(kc), kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		require.NoError(t, err)
		var records []*kgo.Record
		for _, r := range sent(true) {
			k := &kgo.Record{Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				k.Headers = append(k.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
			}
			records = append(records, k)
		}
		require.NoError(t, cl.ProduceSync(context.Background(), records...).FirstErr())
		cl.Close()
		got, formats := d.taken(t)
		requireRecords(t, sent(true), got)
		require.True(t, formats[fmt.Sprintf("v2 %s", c)], formats)
	}
}

func TestWhatSaramaWritesIsRead(t *testing.T) {
	versions := map[string]sarama.KafkaVersion{"v0": sarama.V0_9_0_0, "v1": sarama.V0_10_2_0, "v2": sarama.V2_1_0_0}
	for name, version := range versions {
		for c, sc := range map[Codec]sarama.CompressionCodec{None: sarama.CompressionNone, Gzip: sarama.CompressionGZIP, Snappy: sarama.CompressionSnappy, LZ4: sarama.CompressionLZ4, Zstd: sarama.CompressionZSTD} {
			if (c == Zstd && name != "v2") || (c == LZ4 && name == "v0") {
				continue // the client refuses it
			}
			t.Run(fmt.Sprintf("%s %s", name, c), func(t *testing.T) {
				d := openDesk(t, nil, 0)
				cfg := sarama.NewConfig()
				cfg.Version = version
				cfg.ApiVersionsRequest = false
				cfg.Producer.Compression = sc
				cfg.Producer.Return.Successes = true
				cfg.Producer.Partitioner = sarama.NewManualPartitioner
				cfg.Producer.Flush.Frequency = 5 * time.Millisecond
				p, err := sarama.NewSyncProducer([]string{d.addr()}, cfg)
				require.NoError(t, err)
				var messages []*sarama.ProducerMessage
				for _, r := range sent(name == "v2") {
					m := &sarama.ProducerMessage{Topic: "t", Value: sarama.ByteEncoder(r.Value)}
					if r.Key != nil {
						m.Key = sarama.ByteEncoder(r.Key)
					}
					for _, h := range r.Headers {
						m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
					}
					messages = append(messages, m)
				}
				require.NoError(t, p.SendMessages(messages))
				require.NoError(t, p.Close())
				got, formats := d.taken(t)
				requireRecords(t, sent(name == "v2"), got)
				require.True(t, formats[fmt.Sprintf("%s %s", name, c)], formats)
			})
		}
	}
}

func TestWhatKafkaGoWritesIsRead(t *testing.T) {
	for c, kc := range map[Codec]kafka.Compression{None: 0, Gzip: kafka.Gzip, Snappy: kafka.Snappy, LZ4: kafka.Lz4, Zstd: kafka.Zstd} {
		d := openDesk(t, nil, 0)
		transport := &kafka.Transport{}
		w := &kafka.Writer{Addr: kafka.TCP(d.addr()), Topic: "t", Compression: kc, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireOne, Transport: transport}
		var messages []kafka.Message
		for _, r := range sent(true) {
			m := kafka.Message{Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
			}
			messages = append(messages, m)
		}
		require.NoError(t, w.WriteMessages(context.Background(), messages...))
		require.NoError(t, w.Close())
		transport.CloseIdleConnections()
		got, formats := d.taken(t)
		requireRecords(t, sent(true), got)
		require.True(t, formats[fmt.Sprintf("v2 %s", c)], formats)
	}
}

// ours is one batch of each codec, one behind the other.
func ours(t *testing.T) (data []byte, want []Record) {
	t.Helper()
	for _, c := range codecs {
		w := NewBuilder(BuilderOptions{Codec: c, BaseOffset: int64(len(want))})
		for i, r := range sent(true) {
			w.Append(1_700_000_000_000+int64(i), r.Key, r.Value, r.Headers...)
		}
		b, err := w.Build()
		require.NoError(t, err)
		b.SetPartitionLeaderEpoch(0)
		data = append(data, b...)
		want = append(want, sent(true)...)
	}
	return data, want
}

func TestWhatWeWriteIsReadByFranzGo(t *testing.T) {
	data, want := ours(t)
	d := openDesk(t, data, int64(len(want)))
	cl, err := kgo.NewClient(kgo.SeedBrokers(d.addr()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(0)}}))
	require.NoError(t, err)
	defer cl.Close()
	var got []Record
	for len(got) < len(want) {
		fetches := cl.PollFetches(context.Background())
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			require.Equal(t, int64(len(got)), r.Offset)
			g := Record{Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				g.Headers = append(g.Headers, Header{Key: h.Key, Value: h.Value})
			}
			got = append(got, g)
		})
	}
	requireRecords(t, want, got)
}

func TestWhatWeWriteIsReadBySarama(t *testing.T) {
	data, want := ours(t)
	d := openDesk(t, data, int64(len(want)))
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V2_1_0_0
	cfg.ApiVersionsRequest = false
	c, err := sarama.NewConsumer([]string{d.addr()}, cfg)
	require.NoError(t, err)
	p, err := c.ConsumePartition("t", 0, 0)
	require.NoError(t, err)
	var got []Record
	for len(got) < len(want) {
		m := <-p.Messages()
		require.Equal(t, int64(len(got)), m.Offset)
		g := Record{Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			g.Headers = append(g.Headers, Header{Key: string(h.Key), Value: h.Value})
		}
		got = append(got, g)
	}
	requireRecords(t, want, got)
	require.NoError(t, p.Close())
	require.NoError(t, c.Close())
}
