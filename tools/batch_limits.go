package tools

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin/cluster"
)

// batchLimits are the sizes of batches that topics take (max.message.bytes). The original's client splits a batch that turns out to be too large; ours would fail all of its records, so its batches
// are kept within what the topic takes.
type batchLimits struct {
	most    int32 // that the client's settings allow
	mu      sync.Mutex
	byTopic map[string]int32
}

func newBatchLimits(most int32) *batchLimits {
	return &batchLimits{most: most, byTopic: map[string]int32{}}
}

// of is the limit of a topic, in bytes. The client asks for it when it hears of the topic.
func (l *batchLimits) of(topic string) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit, known := l.byTopic[topic]; known {
		return limit
	}
	return l.most
}

// learn asks for the limit of a topic, before the first record is sent there. Where it is not told, the topic not there yet or its settings not to be read, that of the client's settings holds.
func (l *batchLimits) learn(ctx context.Context, client *kgo.Client, topic string) {
	const patience = 10 * time.Second
	l.mu.Lock()
	_, known := l.byTopic[topic]
	l.mu.Unlock()
	if known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	settings, _ := cluster.New(client).TopicConfig(ctx, topic)
	limit := l.most
	for _, s := range settings {
		if s.Name != "max.message.bytes" || s.Value == nil {
			continue
		}
		if n, err := strconv.ParseInt(*s.Value, 10, 32); err == nil {
			limit = min(limit, int32(n))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byTopic[topic] = limit
}
