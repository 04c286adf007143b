package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// How long it takes: acknowledgements and deliveries at a fixed rate, through a failover, and over many connections.

// dists returns the percentiles of latencies, in milliseconds.
func dists(l []time.Duration) map[string]any {
	sort.Slice(l, func(i, j int) bool { return l[i] < l[j] })
	m := map[string]any{"samples": len(l)}
	for _, p := range []float64{50, 95, 99, 99.9} {
		if len(l) > 0 {
			m["p"+strconv.FormatFloat(p, 'f', -1, 64)] = float64(l[min(len(l)-1, int(float64(len(l))*p/100))].Microseconds()) / 1000
		}
	}
	if len(l) > 0 {
		m["max"] = float64(l[len(l)-1].Microseconds()) / 1000
	}
	return m
}

// pace calls f at the fixed rate until the time is over, with the precision of nanosleep(2).
func pace(f func(i int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t0, gap := time.Now(), time.Second/time.Duration(*rate)
	for i := 0; time.Since(t0) < *dur; i++ {
		if d := time.Until(t0.Add(time.Duration(i) * gap)); d > 0 {
			ts := syscall.NsecToTimespec(int64(d))
			syscall.Nanosleep(&ts, nil)
		}
		f(i)
	}
}

func e2e() {
	cl := producer(kgo.ProducerLinger(0))
	co := client(kgo.ConsumeTopics(*topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()), kgo.MetadataMinAge(50*time.Millisecond))
	var mu sync.Mutex
	var lat []time.Duration
	ready := make(chan bool, 1)
	go func() {
		for {
			f := co.PollFetches(context.Background())
			now := time.Since(start)
			mu.Lock()
			f.EachRecord(func(r *kgo.Record) {
				if ts := int64(binary.BigEndian.Uint64(r.Value)); ts > 0 {
					lat = append(lat, now-time.Duration(ts))
				} else {
					select {
					case ready <- true:
					default:
					}
				}
			})
			mu.Unlock()
		}
	}()
	buf := make([]byte, *size)
	for ok := false; !ok; { // the consumer is in place once it sees a marker
		check(cl.ProduceSync(context.Background(), &kgo.Record{Value: buf}).FirstErr())
		select {
		case ok = <-ready:
		case <-time.After(100 * time.Millisecond):
		}
	}
	var ackl []time.Duration
	sent := 0
	pace(func(i int) {
		v := make([]byte, *size)
		ts := time.Since(start)
		binary.BigEndian.PutUint64(v, uint64(ts))
		sent++
		cl.Produce(context.Background(), &kgo.Record{Value: v}, func(_ *kgo.Record, err error) {
			check(err)
			mu.Lock()
			ackl = append(ackl, time.Since(start)-ts)
			mu.Unlock()
		})
	})
	check(cl.Flush(context.Background()))
	time.Sleep(time.Second)
	mu.Lock()
	m := dists(lat)
	m["sent"], m["ack"] = sent, dists(ackl)
	out(m)
}

// failover produces at a fixed rate, prints READY after three seconds, and reports the longest gap between acks.
func failover() {
	cl := producer(kgo.ProducerLinger(0), kgo.MaxBufferedRecords(1000000), kgo.RecordDeliveryTimeout(60*time.Second))
	var mu sync.Mutex
	var ackl []time.Duration
	last, gap, bad, acked, kinds := time.Duration(0), time.Duration(0), 0, 0, map[string]int{}
	go func() { time.Sleep(3 * time.Second); fmt.Println("READY") }()
	pace(func(i int) {
		ts := time.Since(start)
		cl.Produce(context.Background(), &kgo.Record{Value: make([]byte, *size)}, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Since(start)
			if err != nil {
				bad++
				kinds[err.Error()]++
				return
			}
			acked++
			ackl = append(ackl, now-ts)
			if ts > 2*time.Second { // after the client is warm
				gap = max(gap, now-last)
			}
			last = now
		})
	})
	check(cl.Flush(context.Background()))
	out(map[string]any{"gap_ms": float64(gap.Microseconds()) / 1000, "errors": bad, "error_kinds": kinds, "acked": acked, "ack": dists(ackl)})
}

// many holds -n connections that each send small batches and wait for the ack.
func many() {
	lead := leaders(*addr, *topic)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	conns := make([]*rc, *n)
	t0 := time.Now()
	for i := range conns {
		var err error
		conns[i], err = dial(lead[i%len(lead)])
		check(err)
	}
	connect := time.Since(t0).Seconds()
	b := batch(10, *size, "none", 1)
	t0 = time.Now()
	for i, c := range conns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			frame := c.fm.AppendRequest(nil, produceReq(*topic, int32(i%len(lead)), int16(*acks), b), 1)
			var l []time.Duration
			for time.Since(t0) < *dur {
				t1 := time.Now()
				_, err := c.Write(frame)
				check(err)
				check(c.produced())
				l = append(l, time.Since(t1))
			}
			mu.Lock()
			all = append(all, l...)
			mu.Unlock()
		}()
	}
	wg.Wait()
	s := time.Since(t0).Seconds()
	m := dists(all)
	m["connect_s"], m["requests_s"], m["seconds"], m["gb"] = connect, float64(len(all))/s, s, float64(len(all)*10**size)/1e9
	out(m)
}
