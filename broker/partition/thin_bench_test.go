package partition

import (
	"testing"
	"time"

	"barnabas/broker/commitlog"
)

// What it costs that a leader alone in its ISR answers acks=all from the disk: 64 clients, each with one batch of 10 KB under way.
func BenchmarkAcksAllOfALoneLeader(b *testing.B) {
	for _, row := range []struct {
		name  string
		flush FlushPolicy
	}{{"kafka", FlushAsKafka}, {"thin-isr", FlushThinISR}} {
		b.Run(row.name, func(b *testing.B) {
			w := newWorld(b)
			w.flush = row.flush
			w.close()
			w.open()
			w.lead([]int32{1, 2}, []int32{1})
			records := batch(10, 1000)
			b.SetBytes(int64(len(records)))
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				own := append([]byte(nil), records...)
				done := make(chan struct{}, 1)
				for pb.Next() {
					copy(own, records) // offsets are stamped in place
					w.m.Produce(&ProduceRequest{Acks: -1, Timeout: time.Minute, Version: 9, Origin: commitlog.Client,
						Partitions: []ProducePartition{{Topic: "a", Records: own}}}, func(r []ProduceResult) {
						if r[0].Err != nil {
							b.Error(r[0].Err)
						}
						done <- struct{}{}
					})
					<-done
				}
			})
		})
	}
}
