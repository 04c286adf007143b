package chaos

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/history"
)

// consumers is one group of consumers of the loaded topic, all of one kind.
type consumers struct {
	group   string
	members int
	start   func(t testing.TB, w *world, l *listener, c *consumers, index int) (stop func())

	mu   sync.Mutex
	seen map[int32]map[int64]bool // offsets of partitions
	stop []func()
}

func (c *consumers) saw(partition int32, offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[partition] == nil {
		c.seen[partition] = map[int64]bool{}
	}
	c.seen[partition][offset] = true
}

// missed is how many records no member has consumed.
func (c *consumers) missed(in map[int32][]history.Read) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, log := range in {
		for _, r := range log {
			if !c.seen[p][r.Offset] {
				n++
			}
		}
	}
	return n
}

func (c *consumers) startAll(t testing.TB, w *world, l *listener) {
	c.seen = map[int32]map[int64]bool{}
	for i := range c.members {
		c.stop = append(c.stop, c.start(t, w, l, c, i))
	}
}

// replace lets one member go and another come. A static one comes in its own place.
func (c *consumers) replace(t testing.TB, w *world, l *listener, index int) {
	c.stop[index]()
	c.stop[index] = c.start(t, w, l, c, index)
}

func (c *consumers) stopAll() {
	for _, stop := range c.stop {
		stop()
	}
}

// kinds of consumers: eager, cooperative, static, and those of another library.
func allConsumers() []*consumers {
	return []*consumers{
		{group: "eager", members: 2, start: franzGo(kgo.RangeBalancer(), false)},
		{group: "cooperative", members: 2, start: franzGo(kgo.CooperativeStickyBalancer(), false)},
		{group: "static", members: 2, start: franzGo(kgo.CooperativeStickyBalancer(), true)},
		{group: "sarama", members: 2, start: saramaMember},
	}
}

const (
	memberSession   = 6 * time.Second
	memberHeartbeat = 300 * time.Millisecond
)

func franzGo(balancer kgo.GroupBalancer, static bool) func(testing.TB, *world, *listener, *consumers, int) func() {
	return func(t testing.TB, w *world, l *listener, c *consumers, index int) func() {
		opts := w.throughTap(l, kgo.ConsumerGroup(c.group), kgo.ConsumeTopics(loaded), kgo.Balancers(balancer),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.HeartbeatInterval(memberHeartbeat), kgo.SessionTimeout(memberSession),
			kgo.RebalanceTimeout(10*time.Second), kgo.FetchMaxWait(200*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond), kgo.RequestTimeoutOverhead(3*time.Second))
		if static {
			opts = append(opts, kgo.InstanceID(c.group+string(rune('a'+index))))
		}
		client, err := kgo.NewClient(opts...)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		var working sync.WaitGroup
		working.Go(func() {
			for ctx.Err() == nil {
				polled, done := context.WithTimeout(ctx, time.Second)
				fetches := client.PollRecords(polled, 200)
				done()
				fetches.EachRecord(func(r *kgo.Record) { c.saw(r.Partition, r.Offset) })
				if !fetches.Empty() {
					limited, done := context.WithTimeout(ctx, 3*time.Second)
					_ = client.CommitUncommittedOffsets(limited) // the listener hears what becomes of it
					done()
				}
				client.AllowRebalance()
			}
		})
		return func() {
			cancel()
			working.Wait()
			client.Close()
		}
	}
}

type saramaHandler struct{ c *consumers }

func (saramaHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (saramaHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h saramaHandler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for m := range claim.Messages() {
		h.c.saw(m.Partition, m.Offset)
		session.MarkMessage(m, "")
	}
	return nil
}

func saramaConfig(w *world, l *listener) *sarama.Config {
	cfg := sarama.NewConfig()
	if w.guard != nil { // the tap has the TLS
		cfg.Net.SASL.Enable, cfg.Net.SASL.Mechanism, cfg.Net.SASL.User, cfg.Net.SASL.Password = true, sarama.SASLTypePlaintext, worker, workersSecret
	}
	cfg.Version = sarama.V2_8_0_0
	cfg.Net.Proxy.Enable, cfg.Net.Proxy.Dialer = true, l.tap
	cfg.Net.ReadTimeout = 5 * time.Second
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Interval = 300 * time.Millisecond
	cfg.Consumer.Group.Session.Timeout, cfg.Consumer.Group.Heartbeat.Interval, cfg.Consumer.Group.Rebalance.Timeout = memberSession, memberHeartbeat, 10*time.Second
	cfg.Metadata.Retry.Max, cfg.Metadata.Retry.Backoff = 100, 200*time.Millisecond
	return cfg
}

func saramaMember(_ testing.TB, w *world, l *listener, c *consumers, _ int) func() {
	cfg := saramaConfig(w, l)
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			consumeWithSarama(ctx, w, c, cfg)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return func() {
		cancel()
		working.Wait()
	}
}

// consumeWithSarama consumes session after session, as its documentation asks, until one ends badly.
func consumeWithSarama(ctx context.Context, w *world, c *consumers, cfg *sarama.Config) {
	g, err := sarama.NewConsumerGroup(w.entries(), c.group, cfg)
	if err != nil {
		return // it asks a broker at once, which may be away
	}
	defer g.Close()
	for ctx.Err() == nil && g.Consume(ctx, []string{loaded}, saramaHandler{c}) == nil {
	}
}
