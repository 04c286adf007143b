package api

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/wire"
)

// TestManyConnectionsAtOnce produces, fetches in sessions, looks up and changes
// the metadata from many goroutines; every request is answered once and every
// record is fetched.
func TestManyConnectionsAtOnce(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	const writers, records = 4, 25
	var all sync.WaitGroup
	ask := func(req kmsg.Request) kmsg.Response {
		sink := &caught{t: t, done: make(chan outcome, 2)}
		w.d.Handle(wire.NewRequest(w.conns["PLAINTEXT"], frame(req), time.Now(), sink))
		o := <-sink.done
		if o.closed != nil {
			t.Errorf("%s: %v", kmsg.NameForKey(req.Key()), o.closed)
			return nil
		}
		return decodeAnswer(t, req.Key(), req.GetVersion(), o.response)
	}
	for range writers {
		all.Go(func() {
			for range records {
				if r := ask(produceOne(-1, "one", 0, oneBatch(t, "v"))).(*kmsg.ProduceResponse); r.Topics[0].Partitions[0].ErrorCode != 0 {
					t.Error("produce", r.Topics[0].Partitions[0].ErrorCode)
				}
			}
		})
		all.Go(func() {
			next, epoch := int64(0), int32(0)
			fetch := fetchAsk{replica: -1, minBytes: 1, topics: []fetchAskTopic{part0(cluster, "one", 0), part0(cluster, "fresh", 0)}}
			for next < writers*records {
				req := fetch.request(17)
				req.MaxWaitMillis = 5000
				r := ask(req).(*kmsg.FetchResponse)
				if r.ErrorCode != 0 || r.SessionID == 0 {
					t.Error("fetch", r.ErrorCode)
					return
				}
				epoch++
				fetch = fetchAsk{replica: -1, minBytes: 1, session: r.SessionID, epoch: epoch}
				for _, topic := range r.Topics {
					if hw := topic.Partitions[0].HighWatermark; topic.TopicID == cluster.topicIDs["one"] && hw > next {
						next = hw
						fetch.topics = []fetchAskTopic{part0(cluster, "one", next)}
					}
				}
			}
		})
		all.Go(func() {
			for range records {
				m := kmsg.NewPtrMetadataRequest()
				m.Version = 12
				if r := ask(m).(*kmsg.MetadataResponse); len(r.Topics) < len(goldenTopics) {
					t.Error("topics are missing")
				}
			}
		})
	}
	for i := range 50 {
		w.tell(cluster, topicState("other", [16]byte{9, byte(i)}, [][]int32{{2}}))
	}
	all.Wait()
	require.Equal(t, int64(writers*records), w.replicas.Partition("one", 0).Log().EndOffset())
}
