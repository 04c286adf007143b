package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"hash/crc32"
	"math"
	"net"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// harmless are APIs that change nothing of a cluster when a mutated request of theirs happens to be obeyed.
var harmless = []int16{0, 1, 2, 3, 18, 23, 32, 35, 46, 60}

// administrative APIs are sent in forms only that cannot be decoded.
var administrative = []int16{4, 5, 6, 7, 19, 20, 21, 22, 33, 37, 43, 44, 45, 56}

// ghost is a topic that cannot be: its name is not legal, so that nobody creates it on the way.
const ghost = "no/such topic!"

// frame encodes a request with its header.
func frame(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("hostile")).AppendRequest(nil, req, 1)
}

// resize makes the length in front true again.
func resize(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

func (a *attacker) bytes(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(a.rnd.Uint32())
	}
	return p
}

func (a *attacker) pick(keys []int16) int16 { return keys[a.rnd.IntN(len(keys))] }

// request makes a request of some version with a little content.
func (a *attacker) request(key int16) kmsg.Request {
	req := kmsg.RequestForKey(key)
	req.SetVersion(int16(a.rnd.IntN(int(req.MaxVersion()) + 1)))
	switch r := req.(type) {
	case *kmsg.ProduceRequest:
		topic, partition := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		topic.Topic = ghost
		partition.Records = batch(1, 0, a.bytes(100))
		topic.Partitions = append(topic.Partitions, partition)
		r.Topics = append(r.Topics, topic)
		r.Acks = int16(a.rnd.IntN(5) - 2)
	case *kmsg.FetchRequest:
		topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		topic.Topic = ghost
		partition.FetchOffset, partition.PartitionMaxBytes = int64(a.rnd.Uint64()), int32(a.rnd.Uint32())
		topic.Partitions = append(topic.Partitions, partition)
		r.Topics = append(r.Topics, topic)
		r.SessionID, r.SessionEpoch = int32(a.rnd.Uint32()), int32(a.rnd.IntN(4)-1)
		r.MaxWaitMillis, r.MinBytes, r.MaxBytes = int32(a.rnd.IntN(100)), int32(a.rnd.Uint32()), int32(a.rnd.Uint32())
	case *kmsg.MetadataRequest:
		r.Version = max(r.Version, 4) // from here on it can say: do not create
		r.AllowAutoTopicCreation = false
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(ghost)
		r.Topics = append(r.Topics, topic)
	}
	return req
}

func (a *attacker) randomBytes(ctx context.Context) {
	for ctx.Err() == nil {
		junk := a.bytes(1 + a.rnd.IntN(3000))
		if a.rnd.IntN(2) == 0 { // the length is right, the rest is not
			if len(junk) < 4 {
				continue
			}
			resize(junk)
		}
		a.oneShot(junk)
	}
}

func (a *attacker) cutFrames(ctx context.Context) {
	for ctx.Err() == nil {
		keys := harmless
		if a.rnd.IntN(2) == 0 {
			keys = administrative
		}
		whole := frame(a.request(a.pick(keys)))
		a.oneShot(whole[:1+a.rnd.IntN(len(whole)-1)])
	}
}

func (a *attacker) impossibleLengths(ctx context.Context) {
	lengths := []uint32{0, 1, 7, math.MaxInt32, math.MaxInt32 - 4, 1 << 31, math.MaxUint32, 1 << 30, 104857601}
	for ctx.Err() == nil {
		length := lengths[a.rnd.IntN(len(lengths))]
		a.oneShot(append(binary.BigEndian.AppendUint32(nil, length), a.bytes(a.rnd.IntN(2000))...))
	}
}

// impossibleCounts follows a header at once with counts that no body can hold, negative ones among them. What comes
// after the first field is filler, so nothing of it can be obeyed.
func (a *attacker) impossibleCounts(ctx context.Context) {
	counts := [][]byte{
		{0xff, 0xff, 0xff, 0xfe}, {0x80, 0, 0, 0}, {0x7f, 0xff, 0xff, 0xff}, {0, 0x10, 0, 0},
		{0xff, 0xff, 0xff, 0xff, 0x0f}, {0x80, 0x80, 0x80, 0x80, 0x08}, {0xff, 0xff, 0x7f},
	}
	for ctx.Err() == nil {
		a.session(ctx, func() []byte {
			keys := harmless
			if a.rnd.IntN(3) == 0 {
				keys = administrative
			}
			req := kmsg.RequestForKey(a.pick(keys))
			req.SetVersion(int16(a.rnd.IntN(int(req.MaxVersion()) + 1)))
			whole := frame(req)
			head := len(whole) - len(req.AppendTo(nil))
			out := whole[:head:head]
			for range 1 + a.rnd.IntN(6) {
				out = append(out, make([]byte, a.rnd.IntN(12))...)
				out = append(out, counts[a.rnd.IntN(len(counts))]...)
			}
			return resize(append(out, make([]byte, a.rnd.IntN(64<<10))...))
		})
	}
}

func (a *attacker) unknownVersions(ctx context.Context) {
	for ctx.Err() == nil {
		a.session(ctx, func() []byte {
			req := frame(a.request(a.pick(harmless)))
			binary.BigEndian.PutUint16(req[4:], uint16(a.rnd.IntN(200)-20))
			binary.BigEndian.PutUint16(req[6:], uint16(90+a.rnd.IntN(60000)))
			return req
		})
	}
}

func (a *attacker) mutatedRequests(ctx context.Context) {
	for ctx.Err() == nil {
		a.session(ctx, func() []byte {
			req := a.request(a.pick(harmless))
			whole := frame(req)
			head := len(whole) - len(req.AppendTo(nil))
			for range 1 + a.rnd.IntN(4) {
				if head == len(whole) {
					break
				}
				whole[head+a.rnd.IntN(len(whole)-head)] ^= 1 << a.rnd.IntN(8)
			}
			if a.rnd.IntN(4) == 0 {
				whole = append(whole, a.bytes(a.rnd.IntN(50))...)
			}
			return resize(whole)
		})
	}
}

// batch builds a record batch of format 2 whose checksum is right, whatever the payload is.
func batch(count int32, attributes int16, payload []byte) []byte {
	b := make([]byte, 61, 61+len(payload))
	binary.BigEndian.PutUint32(b[8:], uint32(49+len(payload)))
	binary.BigEndian.PutUint32(b[12:], math.MaxUint32) // leader epoch -1
	b[16] = 2
	binary.BigEndian.PutUint16(b[21:], uint16(attributes))
	binary.BigEndian.PutUint32(b[23:], uint32(count-1))
	binary.BigEndian.PutUint64(b[43:], math.MaxUint64) // no producer id, epoch, sequence
	binary.BigEndian.PutUint16(b[51:], math.MaxUint16)
	binary.BigEndian.PutUint32(b[53:], math.MaxUint32)
	binary.BigEndian.PutUint32(b[57:], uint32(count))
	b = append(b, payload...)
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// produce makes a request that writes records to the healthy client's topic.
func (a *attacker) produce(records []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version = int16(3 + a.rnd.IntN(7))
	req.Acks, req.TimeoutMillis = 1, 1000
	topic, partition := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	topic.Topic = topicName(a.target)
	partition.Records = records
	topic.Partitions = append(topic.Partitions, partition)
	req.Topics = append(req.Topics, topic)
	return frame(req)
}

// brokenBatches never make a batch that could be stored: the payload is no record, or the batch is damaged.
func (a *attacker) brokenBatches(ctx context.Context) {
	for ctx.Err() == nil {
		a.session(ctx, func() []byte {
			records := batch(int32(a.rnd.Uint32()), int16(a.rnd.IntN(5)), append([]byte{0xff, 0xff, 0xff, 0xff}, a.bytes(a.rnd.IntN(500))...))
			switch a.rnd.IntN(4) {
			case 0:
				records = records[:a.rnd.IntN(len(records))]
			case 1:
				binary.BigEndian.PutUint32(records[8:], a.rnd.Uint32())
			case 2:
				records[17] ^= 0xff // the checksum
			}
			return a.produce(records)
		})
	}
}

// bombs are batches that are small on the wire and 256 MiB when decompressed.
func (a *attacker) bombs(ctx context.Context) {
	const size = 256 << 20
	var made [][]byte
	for codec, compress := range []func(int) []byte{1: gzipZeros, 2: snappyZeros, 3: lz4Zeros, 4: zstdZeros} {
		if compress == nil || ctx.Err() != nil {
			continue
		}
		made = append(made, a.produce(batch(1, int16(codec), compress(size))))
	}
	for ctx.Err() == nil {
		a.session(ctx, func() []byte { return made[a.rnd.IntN(len(made))] })
	}
}

func zeros(size int, write func([]byte)) {
	block := make([]byte, 1<<20)
	for ; size > 0; size -= len(block) {
		write(block)
	}
}

func gzipZeros(size int) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	zeros(size, func(p []byte) { _, _ = w.Write(p) })
	_ = w.Close() // writing to memory does not fail
	return out.Bytes()
}

// snappyZeros is one block: its length is announced in front.
func snappyZeros(size int) []byte { return s2.EncodeSnappy(nil, make([]byte, size/4)) }

func lz4Zeros(size int) []byte {
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	zeros(size, func(p []byte) { _, _ = w.Write(p) })
	_ = w.Close()
	return out.Bytes()
}

func zstdZeros(size int) []byte {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil
	}
	zeros(size, func(p []byte) { _, _ = w.Write(p) })
	_ = w.Close()
	return out.Bytes()
}

// slowSenders keep many connections busy with big frames that come one byte a second.
func (a *attacker) slowSenders(ctx context.Context) {
	var sockets []net.Conn
	defer func() {
		for _, socket := range sockets {
			_ = socket.Close()
		}
	}()
	for range 200 {
		socket := a.dial()
		if socket == nil {
			continue
		}
		_ = socket.SetDeadline(time.Time{})
		sockets = append(sockets, socket)
		_, _ = socket.Write(binary.BigEndian.AppendUint32(nil, 90<<20))
		a.frames.Add(1)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, socket := range sockets {
				_, _ = socket.Write([]byte{0})
			}
		}
	}
}

// neverReading asks as much as the broker takes, and reads no answer.
func (a *attacker) neverReading(ctx context.Context) {
	ask := frame(func() kmsg.Request {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = 0
		return req
	}())
	many := bytes.Repeat(ask, 200)
	for ctx.Err() == nil {
		var sockets []net.Conn
		for range 20 {
			socket := a.dial()
			if socket == nil {
				continue
			}
			sockets = append(sockets, socket)
			_ = socket.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
			for ctx.Err() == nil {
				if _, err := socket.Write(many); err != nil {
					break
				}
				a.frames.Add(200)
			}
		}
		for _, socket := range sockets {
			_ = socket.Close()
		}
	}
}

func (a *attacker) comeAndGo(ctx context.Context) {
	for ctx.Err() == nil {
		var sockets []net.Conn
		for range 1 + a.rnd.IntN(100) {
			if socket := a.dial(); socket != nil {
				_, _ = socket.Write([]byte{0, 0, 1}[:a.rnd.IntN(4)])
				a.frames.Add(1)
				sockets = append(sockets, socket)
			}
		}
		for _, socket := range sockets {
			if tcp, ok := socket.(*net.TCPConn); ok && a.rnd.IntN(2) == 0 {
				_ = tcp.SetLinger(0) // leaves with a reset
			}
			_ = socket.Close()
		}
	}
}
