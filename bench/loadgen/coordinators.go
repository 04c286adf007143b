package main

// What coordinators do: rebalances, commits, transactions, and loading what they know.

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// group has -n members join one group on -parts partitions, then one leaves.
func group() {
	var mu sync.Mutex
	held, last := map[int]int{}, time.Now()
	set := func(i, d int) { mu.Lock(); held[i] += d; last = time.Now(); mu.Unlock() }
	opts := func(i int) []kgo.Opt {
		return []kgo.Opt{kgo.ConsumeTopics(*topic), kgo.ConsumerGroup("g200"), kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(),
			kgo.HeartbeatInterval(500 * time.Millisecond), kgo.SessionTimeout(20 * time.Second), kgo.MetadataMinAge(time.Second), kgo.FetchMaxWait(5 * time.Second),
			kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { set(i, len(m[*topic])) }),
			kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { set(i, -len(m[*topic])) })}
	}
	stable := func(members int, t0 time.Time) float64 { // all partitions held by that many members, and quiet for 3 s
		for end := time.Now().Add(*dur); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			mu.Lock()
			sum, holders := 0, 0
			for _, h := range held {
				sum += h
				if h > 0 {
					holders++
				}
			}
			l := last
			mu.Unlock()
			if sum == *parts && holders == members && time.Since(l) > 3*time.Second {
				return l.Sub(t0).Seconds()
			}
		}
		die("group not stable in %v", *dur)
		return 0
	}
	t0 := time.Now()
	var cls []*kgo.Client
	for i := 0; i < *n; i++ {
		cls = append(cls, client(opts(i)...))
	}
	join := stable(*n, t0)
	t0 = time.Now()
	go cls[*n-1].Close()
	leave := stable(*n-1, t0)
	out(map[string]any{"join_s": join, "leave_s": leave, "members": *n})
	os.Exit(0)
}

// coordinator finds the coordinator of a group (kind 0) or a transactional id (1); the first answers may say that it is still being made.
func coordinator(kind int8, name string) string {
	q := kmsg.NewPtrFindCoordinatorRequest()
	q.CoordinatorType, q.CoordinatorKey = kind, name
	q.SetVersion(2)
	p := kmsg.NewPtrFindCoordinatorResponse()
	p.SetVersion(2)
	for ; ; time.Sleep(50 * time.Millisecond) {
		c, err := dial(*addr)
		if err == nil {
			err = c.do(q, p)
			c.Close()
			if err == nil && p.ErrorCode == 0 && p.Port > 0 {
				return fmt.Sprintf("%s:%d", p.Host, p.Port)
			}
		}
		if time.Since(start) > time.Minute {
			die("no coordinator: %v %v", err, kerr.ErrorForCode(p.ErrorCode))
		}
	}
}

// again tells whether a coordinator asks for patience.
func again(code int16) bool {
	switch kerr.ErrorForCode(code) {
	case nil:
		return false
	case kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator, kerr.ConcurrentTransactions:
		return true
	}
	die("%v", kerr.ErrorForCode(code))
	return false
}

// clients runs f -n times at once until the time is over; f tells of each operation how long it took.
func clients(name string, f func(i int, over func() bool, done func(time.Duration))) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	t0 := time.Now()
	for i := 0; i < *n; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var mine []time.Duration
			f(i, func() bool { return time.Since(t0) > *dur }, func(d time.Duration) { mine = append(mine, d) })
			mu.Lock()
			all = append(all, mine...)
			mu.Unlock()
		}()
	}
	wg.Wait()
	m := dists(all)
	m[name+"_s"], m["ops"] = float64(len(all))/time.Since(t0).Seconds(), len(all)
	out(m)
}

func offsetCommit(group string) (*kmsg.OffsetCommitRequest, *kmsg.OffsetCommitResponse) {
	q, p := kmsg.NewPtrOffsetCommitRequest(), kmsg.NewPtrOffsetCommitResponse()
	q.SetVersion(7)
	p.SetVersion(7)
	q.Group, q.Generation = group, -1
	return q, p
}

func offsetsOf(first, count int, offset int64) []kmsg.OffsetCommitRequestTopic {
	t := kmsg.OffsetCommitRequestTopic{Topic: *topic}
	for i := first; i < first+count; i++ {
		t.Partitions = append(t.Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: int32(i), Offset: offset, LeaderEpoch: -1})
	}
	return []kmsg.OffsetCommitRequestTopic{t}
}

// commits sends OffsetCommit requests of one partition each from -n connections.
func commits() {
	at := coordinator(0, "gcommit")
	clients("commits", func(i int, over func() bool, done func(time.Duration)) {
		c, err := dial(at)
		check(err)
		q, p := offsetCommit("gcommit")
		for offset := int64(1); !over(); offset++ {
			q.Topics = offsetsOf(i%*parts, 1, offset)
			t0 := time.Now()
			check(c.do(q, p))
			if again(p.Topics[0].Partitions[0].ErrorCode) {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			done(time.Since(t0))
		}
	})
}

// transactions has -n producers write transactions of one record to one partition.
func transactions() {
	lead := leaders(*addr, *topic)
	clients("transactions", func(i int, over func() bool, done func(time.Duration)) {
		id := fmt.Sprintf("t%d", i)
		c, err := dial(coordinator(1, id))
		check(err)
		part := int32(i % len(lead))
		d, err := dial(lead[part])
		check(err)

		iq, ip := kmsg.NewPtrInitProducerIDRequest(), kmsg.NewPtrInitProducerIDResponse()
		iq.SetVersion(1)
		ip.SetVersion(1)
		iq.TransactionalID, iq.TransactionTimeoutMillis = &id, 60000
		for patient(func() int16 { check(c.do(iq, ip)); return ip.ErrorCode }) {
		}
		aq, ap := kmsg.NewPtrAddPartitionsToTxnRequest(), kmsg.NewPtrAddPartitionsToTxnResponse()
		aq.SetVersion(2)
		ap.SetVersion(2)
		aq.TransactionalID, aq.ProducerID, aq.ProducerEpoch = id, ip.ProducerID, ip.ProducerEpoch
		aq.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: *topic, Partitions: []int32{part}}}
		eq, ep := kmsg.NewPtrEndTxnRequest(), kmsg.NewPtrEndTxnResponse()
		eq.SetVersion(2)
		ep.SetVersion(2)
		eq.TransactionalID, eq.ProducerID, eq.ProducerEpoch, eq.Commit = id, ip.ProducerID, ip.ProducerEpoch, true
		b := batch(1, *size, "none", int64(i))
		for sequence := uint32(0); !over(); sequence++ {
			t0 := time.Now()
			for patient(func() int16 { check(c.do(aq, ap)); return ap.Topics[0].Partitions[0].ErrorCode }) {
			}
			transactional(b, ip.ProducerID, ip.ProducerEpoch, sequence)
			q := produceReq(*topic, part, -1, b)
			q.TransactionID = &id
			check(d.send(q))
			check(d.produced())
			for patient(func() int16 { check(c.do(eq, ep)); return ep.ErrorCode }) {
			}
			done(time.Since(t0))
		}
	})
}

// patient asks, and waits a little if it is to ask again.
func patient(ask func() int16) bool {
	if again(ask()) {
		time.Sleep(time.Millisecond)
		return true
	}
	return false
}

func holder(i int) string { return fmt.Sprintf("holder-%d", i) }

// fillOffsets has -n groups commit an offset for each of -parts partitions.
func fillOffsets() {
	at := coordinator(0, holder(0))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, err := dial(at)
			check(err)
			for i := int(next.Add(1)); i <= *n; i = int(next.Add(1)) {
				q, p := offsetCommit(holder(i))
				q.Topics = offsetsOf(0, *parts, int64(i))
				for patient(func() int16 { check(c.do(q, p)); return p.Topics[0].Partitions[*parts-1].ErrorCode }) {
				}
			}
		}()
	}
	wg.Wait()
	out(map[string]any{"offsets": *n * *parts, "seconds": time.Since(start).Seconds()})
}

// awaitOffsets waits for a broker that is being started to answer what fillOffsets has put there: it asks every twentieth group for the last of its
// partitions. load_s is the time from the broker's first word as coordinator, that it is still loading, to the last answer.
func awaitOffsets() {
	waiting := map[string]int64{}
	for i := 1; i <= *n; i += 20 {
		waiting[holder(i)] = int64(i)
	}
	var began time.Time
	for end := start.Add(*dur); len(waiting) > 0; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			die("%d groups are not loaded in %v", len(waiting), *dur)
		}
		c, err := dial(*addr)
		for err == nil && len(waiting) > 0 {
			err = askOffsets(c, waiting, &began)
			time.Sleep(2 * time.Millisecond)
		}
		if c != nil {
			c.Close()
		}
	}
	out(map[string]any{"load_s": time.Since(began).Seconds(), "coordinating_s": time.Since(start).Seconds()})
}

// askOffsets asks once and takes out of waiting who is answered.
func askOffsets(c *rc, waiting map[string]int64, began *time.Time) error {
	q, p := kmsg.NewPtrOffsetFetchRequest(), kmsg.NewPtrOffsetFetchResponse()
	q.SetVersion(8)
	p.SetVersion(8)
	for name := range waiting {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = name
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = *topic, []int32{int32(*parts - 1)}
		g.Topics = append(g.Topics, t)
		q.Groups = append(q.Groups, g)
	}
	if err := c.do(q, p); err != nil {
		return err
	}
	for _, g := range p.Groups {
		err := kerr.ErrorForCode(g.ErrorCode)
		if began.IsZero() && err != kerr.NotCoordinator && err != kerr.CoordinatorNotAvailable {
			*began = time.Now()
		}
		if again(g.ErrorCode) {
			continue
		}
		if got := g.Topics[0].Partitions[0].Offset; got != waiting[g.Group] {
			die("%s has offset %d, want %d", g.Group, got, waiting[g.Group])
		}
		delete(waiting, g.Group)
	}
	return nil
}
