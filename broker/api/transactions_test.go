package api

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/metadata"
	"barnabas/broker/txn"
)

// alone is a cluster of one broker that leads every partition in its metadata.
type alone struct {
	cache *metadata.Cache
	d     func() *Dispatcher
}

func (a alone) Leader(tp txn.TopicPartition) (int32, bool) {
	return 1, a.cache.Load().Partition(tp.Topic, tp.Partition) != nil
}

func (a alone) Coordinator(int32) int32 {
	if a.cache.Load().Topic(transactionsTopic) == nil {
		return txn.NoBroker
	}
	return 1
}

func (a alone) WriteMarkers(_ context.Context, _ int32, markers []*txn.Marker) [][]error {
	written := make(chan [][]error, 1)
	a.d().WriteMarkers(markers, func(results [][]error) { written <- results })
	return <-written
}

func (a alone) Verify(context.Context, int32, []*txn.PartitionsRequest) [][]error { return nil }

// newTransactions is the coordinator of every transactional id, over 50
// partitions that are all led here.
func newTransactions(t testing.TB, cache *metadata.Cache, ids txn.ProducerIDs, d func() *Dispatcher) *txn.Coordinator {
	c := txn.New(txn.Config{
		BrokerID: 1, Core: txn.CoreConfig{MaxTimeoutMs: 900_000, IDExpirationMs: time.Hour.Milliseconds()},
		AbortCheck: time.Hour, ExpiryCheck: time.Hour,
		Partitions: func() (int32, bool) { return 50, true }, Now: time.Now, Log: quiet(),
	}, &playedTopic{}, ids, alone{cache, d})
	t.Cleanup(c.Close)
	for p := range int32(50) {
		c.Lead(p, 0)
	}
	require.Eventually(t, func() bool {
		loaded := make(chan error, 1)
		c.List(&txn.ListRequest{LongerMs: -1}, func(_ []txn.Listed, err error) { loaded <- err })
		return <-loaded == nil
	}, time.Minute, time.Millisecond)
	return c
}
