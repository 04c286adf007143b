package api

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/vfs"
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

// numbers is text of some bytes that can be compressed by about a half.
func numbers(rnd *rand.Rand, size int) (text []byte) {
	for len(text) < size {
		text = fmt.Appendf(text, "number: %d, ", rnd.Uint32())
	}
	return text[:size]
}

// BenchmarkDowngraded converts what one fetch of an old client finds, as it is sent.
func BenchmarkDowngraded(b *testing.B) {
	for _, codec := range []record.Codec{record.None, record.LZ4} {
		b.Run(codec.String(), func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			var data []byte
			for range 4 {
				build := record.NewBuilder(record.BuilderOptions{Codec: codec})
				for range 250 {
					build.Append(1, nil, numbers(rnd, 1000))
				}
				batch, err := build.Build()
				require.NoError(b, err)
				data = append(data, batch...)
			}
			piece := make([]byte, 32<<10)
			b.SetBytes(4 * 250 * 1000)
			b.ReportAllocs()
			for b.Loop() {
				d := newDowngraded(vfs.NewRange(memory(data), 0, int64(len(data)), nil), record.Downgrade{To: 1})
				require.NoError(b, d.begin())
				for at := int64(0); at < d.length; at += int64(len(piece)) {
					_, err := d.ReadAt(piece[:min(int64(len(piece)), d.length-at)], at)
					require.NoError(b, err)
				}
				d.done()
			}
		})
	}
}

func BenchmarkFetchOnePartition(b *testing.B) {
	benchmarkHandle(b, fetchAsk{epoch: -1, replica: -1, topics: []fetchAskTopic{{name: "one", id: [16]byte{1}, leader: -1, fetched: -1}}}.request(17))
}
