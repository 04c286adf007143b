package chaos

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	askEvery   = 5 * time.Millisecond
	answerWait = 500 * time.Millisecond
)

// watchMetadata asks every broker again and again about the topic, until stop, which returns what was wrong: a broker that tells of some partitions only, which makes a client give up
// what it has for the others.
func (w *world) watchMetadata(t testing.TB) (stop func() []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	var mu sync.Mutex
	var faults []string
	for _, b := range w.Brokers {
		client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
		require.NoError(t, err)
		watching.Go(func() {
			defer client.Close()
			for ctx.Err() == nil {
				if n := partitionsTold(ctx, client); n >= 0 && n != w.partitions {
					mu.Lock()
					faults = append(faults, fmt.Sprintf("%s: broker %d tells of %d partitions", time.Now().Format("15:04:05.000"), b.ID, n))
					mu.Unlock()
				}
				select {
				case <-time.After(askEvery):
				case <-ctx.Done():
				}
			}
		})
	}
	t.Cleanup(cancel)
	return func() []string {
		cancel()
		watching.Wait()
		return faults
	}
}

// partitionsTold is how many partitions a broker tells of, -1 if it tells of no topic or does not answer.
func partitionsTold(ctx context.Context, client *kgo.Client) int {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(loaded)
	req.Topics = append(req.Topics, topic)
	resp, err := client.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return -1
	}
	told := resp.(*kmsg.MetadataResponse).Topics[0]
	if told.ErrorCode != 0 {
		return -1
	}
	return len(told.Partitions)
}
