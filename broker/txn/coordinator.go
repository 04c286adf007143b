package txn

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/coordinator"
	"barnabas/broker/record"
)

// ProducerIDs hands out producer ids, each once in the life of the cluster.
type ProducerIDs interface {
	Next(ctx context.Context) (int64, error)
}

// NoBroker is the leader of a partition that has none which is alive.
const NoBroker = int32(-1)

// Cluster is how other brokers, and this one, are found and asked. Both requests
// block until they are answered, have failed, or ctx ends.
type Cluster interface {
	// Leader is the broker that leads a partition; false when the metadata does not
	// know the partition.
	Leader(tp TopicPartition) (broker int32, exists bool)
	// Coordinator is the leader of a partition of __transaction_state, or NoBroker.
	Coordinator(partition int32) int32
	// WriteMarkers has a broker write markers to partitions that it leads. There is
	// an error or nil for each partition of each marker.
	WriteMarkers(ctx context.Context, broker int32, markers []*Marker) [][]error
	// Verify asks a coordinator about transactions, each id at most once. There is
	// an error or nil for each partition of each request. A coordinator that knows
	// nothing of such questions has no objection.
	Verify(ctx context.Context, broker int32, reqs []*PartitionsRequest) [][]error
}

// Config is what a Coordinator needs to know.
type Config struct {
	BrokerID int32
	Core     CoreConfig

	AbortCheck  time.Duration // transaction.abort.timed.out.transaction.cleanup.interval.ms
	ExpiryCheck time.Duration // transaction.remove.expired.transaction.cleanup.interval.ms

	// Partitions is how many partitions __transaction_state has, or would have if it
	// existed.
	Partitions func() (count int32, exists bool)

	Limits record.Limits
	Now    func() time.Time
	Log    *logrus.Entry
}

type (
	shell = coordinator.Shell[*Core]
	shard = coordinator.Shard[*Core]
)

// Coordinator is the cores of all partitions of __transaction_state that this
// broker leads, in their shell. Requests are answered through the reply function,
// exactly once, from any goroutine.
type Coordinator struct {
	*shell
	cfg     Config
	ids     ProducerIDs
	cluster Cluster

	cancel  context.CancelFunc
	markers *outbox[outgoingMarker]
	asked   *outbox[*question]
}

// New returns a Coordinator that leads nothing yet. What the topic gives to be
// loaded must be committed when Read returns.
func New(cfg Config, topic coordinator.Topic, ids ProducerIDs, cluster Cluster) *Coordinator {
	c := &Coordinator{cfg: cfg, ids: ids, cluster: cluster}
	c.shell = coordinator.New(coordinator.Config[*Core]{
		NewCore:    func(epoch int32) *Core { return NewCore(cfg.Core, epoch) },
		NewLoader:  func() coordinator.Loader[*Core] { return NewLoader(cfg.Limits) },
		Take:       c.take,
		Reload:     true, // markers carry the epoch, and somebody else may have been coordinator in between
		Partitions: cfg.Partitions, Now: cfg.Now, Log: cfg.Log,
	}, topic)
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.markers = newOutbox(ctx, c.writeMarkers, nil)
	c.asked = newOutbox(ctx, c.ask, func(q *question) string { return q.req.ID })
	c.Every(cfg.AbortCheck, func(core *Core, nowMs int64) { core.AbortTimedOut(nowMs) })
	c.Every(cfg.ExpiryCheck, func(core *Core, nowMs int64) { core.Expire(nowMs) })
	return c
}

// Close answers what waits with NOT_COORDINATOR, ends all goroutines and waits
// for them. What is being appended must still be answered by the topic.
func (c *Coordinator) Close() {
	c.Stop()
	c.cancel()
	c.markers.close()
	c.asked.close()
	c.shell.Close()
}

// take does of what a core wants done all but appending and answering.
func (c *Coordinator) take(s *shard, core *Core) coordinator.Effects {
	out := core.Take()
	for _, m := range out.Markers {
		c.sendMarker(s, m)
	}
	for _, w := range out.Wanted {
		c.identify(s, w)
	}
	return out.Effects
}

// identify gets a producer id. It may take a round trip to ZooKeeper.
func (c *Coordinator) identify(s *shard, w *Wanted) {
	s.Go(func(ctx context.Context) func(*Core, int64) {
		id, err := c.ids.Next(ctx)
		return func(core *Core, nowMs int64) { core.Identified(nowMs, w, id, err) }
	})
}
