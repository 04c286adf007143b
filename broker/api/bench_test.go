package api

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/wire"
)

// instant replicas succeed at once, reusing their results.
type instant struct {
	playedReplicas
	produced []partition.ProduceResult
	fetched  []partition.FetchResult
}

func (r *instant) Produce(req *partition.ProduceRequest, done func([]partition.ProduceResult)) {
	r.produced[0].Topic = req.Partitions[0].Topic
	done(r.produced)
}

func (r *instant) Fetch(req *partition.FetchRequest, done func([]partition.FetchResult)) {
	r.fetched[0].Topic, r.fetched[0].TopicID = req.Partitions[0].Topic, req.Partitions[0].TopicID
	done(r.fetched)
}

type discard struct{}

func (discard) Answered(_ *wire.Request, answer wire.Response, _ error) { answer.Sent() }

func benchmarkHandle(b *testing.B, req kmsg.Request) {
	w := newPlayedWorld(b)
	w.d.deps.Replicas = &instant{
		produced: []partition.ProduceResult{{LeaderID: -1, LeaderEpoch: -1, LogAppendTime: -1}},
		fetched:  []partition.FetchResult{failedFetch(&partition.FetchPartition{}, nil)},
	}
	request := frame(req)
	b.ReportAllocs()
	for b.Loop() {
		w.d.Handle(wire.NewRequest(w.conns["PLAINTEXT"], request, time.Time{}, discard{}))
	}
}

func BenchmarkProduceOnePartition(b *testing.B) {
	builder := record.NewBuilder(record.BuilderOptions{})
	builder.Append(goldenTime, nil, make([]byte, 100))
	batch, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	benchmarkHandle(b, produceOne(1, "one", 0, batch))
}

func BenchmarkFetchOnePartition(b *testing.B) {
	benchmarkHandle(b, fetchAsk{epoch: -1, replica: -1, topics: []fetchAskTopic{{name: "one", id: [16]byte{1}, leader: -1, fetched: -1}}}.request(17))
}
