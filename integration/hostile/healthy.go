package hostile

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topicName is where the healthy client works. Broken batches are sent there too: none may be stored.
func topicName(target Target) string { return "storm-" + strconv.FormatUint(target.Seed, 10) }

// healthyClient writes a record and reads it back, over and over.
type healthyClient struct {
	client  *kgo.Client
	target  Target
	count   int
	slowest time.Duration
}

func newHealthyClient(t *testing.T, target Target) *healthyClient {
	t.Helper()
	topic := topicName(target)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(target.Addr), kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()),
		kgo.ProducerLinger(0), kgo.FetchMaxWait(500*time.Millisecond), kgo.MetadataMinAge(10*time.Millisecond),
	)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(context.Background(), target.Patience)
	defer cancel()
	created, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, topic)
	require.NoError(t, err)
	require.NoError(t, created.Err)
	return &healthyClient{client: client, target: target}
}

// roundTrip writes the next record and reads until it comes back, as the next one and nothing in between.
func (h *healthyClient) roundTrip(t *testing.T) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), h.target.Patience)
	defer cancel()
	value := fmt.Sprintf("record %d", h.count)
	require.NoError(t, h.client.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(), "healthy client, writing (%s)", h.target)
	fetches := h.client.PollRecords(ctx, 1)
	require.NoError(t, fetches.Err(), "healthy client, reading (%s)", h.target)
	records := fetches.Records()
	require.Len(t, records, 1)
	require.Equal(t, value, string(records[0].Value), "what was not written by the healthy client was stored")
	require.EqualValues(t, h.count, records[0].Offset)
	h.count++
	h.slowest = max(h.slowest, time.Since(began))
}
