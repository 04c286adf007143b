package main

import (
	"context"
	"encoding/binary"
	"math/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// How much goes through: by a client, and by prepared requests that cost the client next to nothing.

func produce() {
	vals := make([][]byte, 1024)
	rnd := rand.New(rand.NewSource(7))
	for i := range vals {
		vals[i] = value(rnd, *size, *codec != "none")
	}
	cl := producer(kgo.ProducerBatchMaxBytes(1000000), kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(200000), kgo.MaxBufferedBytes(64<<20),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(*bsize, false, false, nil)))
	check(cl.Ping(context.Background()))
	num := int(*total / int64(*size))
	var slab []kgo.Record
	var bad atomic.Int64
	t0 := time.Now()
	for i := 0; i < num; i++ {
		if i&1023 == 0 {
			slab = make([]kgo.Record, 1024)
		}
		slab[i&1023].Value = vals[i&1023]
		cl.Produce(context.Background(), &slab[i&1023], func(_ *kgo.Record, err error) {
			if err != nil {
				bad.Add(1)
			}
		})
	}
	check(cl.Flush(context.Background()))
	report(time.Since(t0), num, bad.Load(), 0)
}

func report(d time.Duration, num int, bad int64, wire int64) {
	s := d.Seconds()
	out(map[string]any{"seconds": s, "records": num, "records_s": float64(num) / s, "mb_s": float64(num) * float64(*size) / 1e6 / s,
		"gb": float64(num) * float64(*size) / 1e9, "errors": bad, "wire_gb": float64(wire) / 1e9})
}

// rawproduce sends prepared requests, one pipelined connection for each partition.
func rawproduce() {
	lead := leaders(*addr, *topic)
	per := max(1, *bsize / *size)
	rounds := int(*total/int64(per**size))/len(lead) + 1
	var wg sync.WaitGroup
	var wire atomic.Int64
	frames := make([][]byte, len(lead))
	for i := range lead {
		c := rc{fm: kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench"))}
		made := batch
		if produceVersion() == 2 {
			made = messages
		}
		frames[i] = c.fm.AppendRequest(nil, produceReq(*topic, int32(i), int16(*acks), made(per, *size, *codec, int64(i))), 1)
	}
	t0 := time.Now()
	for i, a := range lead {
		c, err := dial(a)
		check(err)
		slots := make(chan bool, *flight)
		wg.Add(1)
		go func() {
			for r := 0; r < rounds; r++ {
				slots <- true
				_, err := c.Write(frames[i])
				check(err)
				wire.Add(int64(len(frames[i])))
			}
		}()
		go func() {
			defer wg.Done()
			for r := 0; r < rounds; r++ {
				check(c.produced())
				<-slots
			}
		}()
	}
	wg.Wait()
	report(time.Since(t0), rounds*per*len(lead), 0, wire.Load())
}

// consume reads the whole topic with one kgo consumer; rawconsume with -n plain fetchers that each read all of it.
func consume() {
	end, err := kadm.NewClient(client()).ListEndOffsets(context.Background(), *topic)
	check(err)
	want, got, bytes := int64(0), int64(0), int64(0)
	end.Each(func(o kadm.ListedOffset) { want += o.Offset })
	cl := client(kgo.ConsumeTopics(*topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	t0 := time.Now()
	for got < want {
		f := cl.PollFetches(context.Background())
		check(f.Err())
		f.EachRecord(func(r *kgo.Record) { got++; bytes += int64(len(r.Value)) })
	}
	*size = int(bytes / got)
	report(time.Since(t0), int(got), 0, bytes)
}

func rawconsume() {
	end, err := kadm.NewClient(client()).ListEndOffsets(context.Background(), *topic)
	check(err)
	lead := map[string][]int32{}
	for i, a := range leaders(*addr, *topic) {
		lead[a] = append(lead[a], int32(i))
	}
	var wg sync.WaitGroup
	var wire, recs atomic.Int64
	t0 := time.Now()
	for i := 0; i < *n; i++ {
		for a, ps := range lead {
			wg.Add(1)
			go func() {
				defer wg.Done()
				c, err := dial(a)
				check(err)
				at, left := map[int32]int64{}, len(ps)
				q, p := kmsg.NewPtrFetchRequest(), kmsg.NewPtrFetchResponse()
				v := int16(11)
				if *version > 0 {
					v = int16(*version)
				}
				q.SetVersion(v)
				p.SetVersion(v)
				for left > 0 {
					q.MaxWaitMillis, q.MinBytes, q.MaxBytes, q.SessionEpoch = 500, 1, 50<<20, -1
					t := kmsg.NewFetchRequestTopic()
					t.Topic = *topic
					for j := range ps { // rotate, as the byte limit serves the first partitions first
						fp := kmsg.NewFetchRequestTopicPartition()
						fp.Partition = ps[(j+int(wire.Load()))%len(ps)]
						if o, _ := end.Lookup(*topic, fp.Partition); at[fp.Partition] >= o.Offset {
							continue
						}
						fp.FetchOffset, fp.PartitionMaxBytes, fp.CurrentLeaderEpoch = at[fp.Partition], 1<<20, -1
						t.Partitions = append(t.Partitions, fp)
					}
					q.Topics = []kmsg.FetchRequestTopic{t}
					check(c.do(q, p))
					for _, fp := range p.Topics[0].Partitions {
						check(kerr.ErrorForCode(fp.ErrorCode))
						for b := fp.RecordBatches; len(b) > 16; {
							l := 12 + int(binary.BigEndian.Uint32(b[8:]))
							if l > len(b) {
								break
							}
							next := int64(binary.BigEndian.Uint64(b)) + 1 // a message is at its last offset, a batch at its first
							if b[16] == 2 {
								next += int64(binary.BigEndian.Uint32(b[23:]))
							}
							wire.Add(int64(l))
							recs.Add(next - at[fp.Partition]) // there are no gaps
							at[fp.Partition] = next
							b = b[l:]
						}
						if o, _ := end.Lookup(*topic, fp.Partition); at[fp.Partition] >= o.Offset {
							left--
						}
					}
				}
			}()
		}
	}
	wg.Wait()
	report(time.Since(t0), int(recs.Load()), 0, wire.Load())
}
