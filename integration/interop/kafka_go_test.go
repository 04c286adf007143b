package interop

import (
	"context"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"
)

func kafkaGoProduce(t *testing.T, bootstrap, topic, codec string, n int) {
	w := &kafka.Writer{Addr: kafka.TCP(bootstrap), Topic: topic, AllowAutoTopicCreation: true, BatchSize: 5000, BatchTimeout: 10 * time.Millisecond, RequiredAcks: kafka.RequireAll}
	switch codec {
	case "gzip":
		w.Compression = kafka.Gzip
	case "snappy":
		w.Compression = kafka.Snappy
	case "lz4":
		w.Compression = kafka.Lz4
	case "zstd":
		w.Compression = kafka.Zstd
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	batch := make([]kafka.Message, 0, 5000)
	for i := range n {
		batch = append(batch, kafka.Message{Key: keyOf(i), Value: valueOf(i)})
		if len(batch) == cap(batch) || i == n-1 {
			deadline := time.Now().Add(patience)
			for err := w.WriteMessages(ctx, batch...); err != nil; err = w.WriteMessages(ctx, batch...) { // the library does not wait for a topic that is just being made
				require.False(t, time.Now().After(deadline), "%v", err)
				time.Sleep(20 * time.Millisecond) // the pace of trying again
			}
			batch = batch[:0]
		}
	}
}

func kafkaGoConsume(t *testing.T, bootstrap, topic string, n int) {
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, Partition: 0, MinBytes: 1, MaxBytes: 10 << 20, MaxWait: 100 * time.Millisecond})
	defer r.Close()
	require.NoError(t, r.SetOffset(kafka.FirstOffset))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	seen := checker{topic: topic}
	for seen.next < n {
		m, err := r.ReadMessage(ctx)
		require.NoError(t, err, "after %d records", seen.next)
		require.NoError(t, seen.saw(m.Key, m.Value))
	}
}
