package netserver

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/vfs"
	"barnabas/broker/wire"
)

// nullBroker decodes produce requests and answers them at once, without keeping anything.
func nullBroker(r *wire.Request) {
	h, body, err := wire.ParseHeader(r.Frame)
	if err != nil {
		r.Close(err)
		return
	}
	req, err := wire.DecodeRequest(h, body)
	if err != nil {
		r.Close(err)
		return
	}
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, topic := range req.(*kmsg.ProduceRequest).Topics {
		answer := kmsg.NewProduceResponseTopic()
		answer.Topic = topic.Topic
		for _, partition := range topic.Partitions {
			row := kmsg.NewProduceResponseTopicPartition()
			row.Partition = partition.Partition
			answer.Partitions = append(answer.Partitions, row)
		}
		resp.Topics = append(resp.Topics, answer)
	}
	r.Reply(wire.Encode(h, resp))
}

func produceFrame(recordBytes int) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version = 9
	req.Acks = 1
	topic, partition := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	topic.Topic = "benchmark"
	partition.Records = make([]byte, recordBytes)
	topic.Partitions = append(topic.Partitions, partition)
	req.Topics = append(req.Topics, topic)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 1)
}

// exchange sends the frame n times and reads as many answers, with so many under way at once.
func exchangeFrames(b *testing.B, socket net.Conn, frame []byte, n, window int) {
	slots := make(chan struct{}, window)
	go func() {
		for range n {
			slots <- struct{}{}
			if _, err := socket.Write(frame); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	in := bufio.NewReaderSize(socket, 256<<10)
	for range n {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			b.Error(err)
			return
		}
		if _, err := in.Discard(int(binary.BigEndian.Uint32(head[:]))); err != nil {
			b.Error(err)
			return
		}
		<-slots
	}
}

// cpu is the processor time of this process, client included.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkProduce(b *testing.B) {
	for _, size := range []int{100, 10_000, 1 << 20} {
		for _, conns := range []int{1, 50} {
			b.Run(fmt.Sprintf("%dB/%dconns", size, conns), func(b *testing.B) {
				s := start(b, testConfig(), handler{handle: nullBroker})
				frame := produceFrame(size)
				var clients sync.WaitGroup
				b.SetBytes(int64(size))
				b.ResetTimer()
				began := cpu()
				for range conns {
					socket, err := net.Dial("tcp", s.Addr("TEST").String())
					if err != nil {
						b.Fatal(err)
					}
					clients.Go(func() {
						exchangeFrames(b, socket, frame, b.N/conns+1, 5)
						_ = socket.Close()
					})
				}
				clients.Wait()
				b.ReportMetric(float64(cpu()-began)/float64(b.N)/1000, "cpu-us/op")
			})
		}
	}
}

func BenchmarkFetch(b *testing.B) {
	for _, size := range []int{4 << 10, 32 << 10, 64 << 10, 128 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			file, _ := testFile(b, 8<<20)
			s := start(b, testConfig(), handler{handle: func(r *wire.Request) {
				p := wire.NewFetchPartition(0)
				p.Records = vfs.NewRange(file, 12345, int64(size), nil)
				r.Reply(wire.EncodeFetch(wire.Header{Key: 1, Version: 12}, &wire.FetchResponse{
					Topics: []wire.FetchTopic{{Topic: "benchmark", Partitions: []wire.FetchPartition{p}}},
				}))
			}})
			socket, err := net.Dial("tcp", s.Addr("TEST").String())
			if err != nil {
				b.Fatal(err)
			}
			defer socket.Close()
			b.SetBytes(int64(size))
			b.ResetTimer()
			began := cpu()
			exchangeFrames(b, socket, produceFrame(50), b.N, 2)
			b.ReportMetric(float64(cpu()-began)/float64(b.N)/1000, "cpu-us/op")
		})
	}
}

// BenchmarkIdleConnection tells what a connection costs that has asked once and waits.
func BenchmarkIdleConnection(b *testing.B) {
	s := start(b, testConfig(), handler{handle: nullBroker})
	frame := produceFrame(100)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	sockets := make([]net.Conn, 0, b.N)
	for range min(b.N, 5000) {
		socket, err := net.Dial("tcp", s.Addr("TEST").String())
		if err != nil {
			b.Fatal(err)
		}
		sockets = append(sockets, socket)
		exchangeFrames(b, socket, frame, 1, 1)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse
	b.ReportMetric(float64(used)/float64(len(sockets)), "bytes/conn")
	for _, socket := range sockets {
		_ = socket.Close()
	}
}

// BenchmarkConnect tells how long many take that come at once.
func BenchmarkConnect(b *testing.B) {
	s := start(b, testConfig(), handler{handle: nullBroker})
	frame := produceFrame(100)
	for range b.N {
		var clients sync.WaitGroup
		for range 500 {
			clients.Go(func() {
				socket, err := net.Dial("tcp", s.Addr("TEST").String())
				if err != nil {
					b.Error(err)
					return
				}
				exchangeFrames(b, socket, frame, 1, 1)
				_ = socket.Close()
			})
		}
		clients.Wait()
	}
}
