package txn

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/record"
)

// Appender writes to the partitions of __transaction_state that this broker leads.
type Appender interface {
	// Append writes one batch with acks=all and calls done exactly once, from any
	// goroutine and maybe before it returns. The batch is not touched any more when
	// Append has returned.
	Append(partition int32, batch []byte, done func(error))
}

// Reader reads the partitions of __transaction_state that this broker leads.
type Reader interface {
	// Read gives every batch from the start of the log to its end, in order, and
	// returns when all of them are committed. A batch is valid during the call. It
	// ends early with ctx.
	Read(ctx context.Context, partition int32, each func(record.Batch)) error
}

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

// Coordinator is the shell around the cores of all partitions of
// __transaction_state that this broker leads. Requests are answered through the
// reply function, exactly once, from any goroutine.
type Coordinator struct {
	cfg      Config
	appender Appender
	reader   Reader
	ids      ProducerIDs
	cluster  Cluster

	markers *outbox[outgoingMarker]
	asked   *outbox[*question]

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu struct {
		sync.RWMutex
		shards map[int32]*shard
		count  int32 // partitions of the topic as first seen; 0 while it does not exist
		closed bool
	}
}

// New returns a Coordinator that leads nothing yet.
func New(cfg Config, appender Appender, reader Reader, ids ProducerIDs, cluster Cluster) *Coordinator {
	c := &Coordinator{cfg: cfg, appender: appender, reader: reader, ids: ids, cluster: cluster}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.mu.shards = map[int32]*shard{}
	c.markers = newOutbox(c.ctx, c.writeMarkers, nil)
	c.asked = newOutbox(c.ctx, c.ask, func(q *question) string { return q.req.ID })
	c.done.Go(c.watch)
	return c
}

// Close answers what waits with NOT_COORDINATOR, ends all goroutines and waits
// for them. What is being appended must still be answered by the Appender.
func (c *Coordinator) Close() {
	c.mu.Lock()
	c.mu.closed = true
	for p, s := range c.mu.shards {
		delete(c.mu.shards, p)
		s.depose()
	}
	c.mu.Unlock()
	c.cancel()
	c.markers.close()
	c.asked.close()
	c.done.Wait()
}

// Lead says that this broker leads a partition of __transaction_state now, in an
// epoch. Its ids are loaded, in a goroutine of its own; while that goes on, they
// are answered with COORDINATOR_LOAD_IN_PROGRESS. In another epoch they are loaded
// again: somebody else may have been coordinator in between.
func (c *Coordinator) Lead(partition int32, epoch int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.mu.shards[partition]
	if c.mu.closed || old != nil && old.epoch >= epoch {
		return
	}
	if old != nil {
		old.depose()
	}
	s := newShard(c, partition, epoch)
	c.mu.shards[partition] = s
	c.done.Go(s.run)
}

// Resign says that this broker does not lead a partition any more. When it
// returns, nothing more of its ids is appended, even if the broker leads again at
// once; who waits is answered soon after.
func (c *Coordinator) Resign(partition int32) {
	c.mu.Lock()
	s := c.mu.shards[partition]
	delete(c.mu.shards, partition)
	c.mu.Unlock()
	if s != nil {
		s.depose()
	}
}

// PartitionFor is the partition of __transaction_state that an id belongs to:
// Java's hash of it, modulo. The number of partitions counts as it was first seen:
// with another one, ids would lose their producers.
func (c *Coordinator) PartitionFor(id string) int32 { return hash(id) % c.partitions() }

func (c *Coordinator) partitions() int32 {
	count, exists := c.cfg.Partitions()
	if !exists {
		return count
	}
	c.mu.RLock()
	seen := c.mu.count
	c.mu.RUnlock()
	if seen != 0 {
		return seen
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.count == 0 {
		c.mu.count = count
	}
	return c.mu.count
}

// hash is what Java computes over a string's UTF-16 units, without its sign.
func hash(s string) int32 {
	h := int32(0)
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			h = 31*h + (0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	return h & 0x7fffffff
}

// locate finds the shard of an id, or says why this broker cannot answer for it.
func (c *Coordinator) locate(id string) (*shard, error) {
	p := c.PartitionFor(id)
	c.mu.RLock()
	s := c.mu.shards[p]
	c.mu.RUnlock()
	switch {
	case s == nil:
		return nil, kerr.NotCoordinator
	case !s.loaded.Load():
		return nil, kerr.CoordinatorLoadInProgress
	}
	return s, nil
}

// all are the shards that are loaded; loading tells whether there are others.
func (c *Coordinator) all() (list []*shard, loading bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.mu.shards {
		if s.loaded.Load() {
			list = append(list, s)
		} else {
			loading = true
		}
	}
	return list, loading
}

// do runs f with the core of an id, or refuses.
func (c *Coordinator) do(id string, f func(core *Core, nowMs int64), refuse func(error)) {
	s, err := c.locate(id)
	if err != nil {
		refuse(err)
		return
	}
	s.submit(event{run: f, refuse: refuse})
}

// watch is the goroutine that looks for timed out transactions and expired ids.
func (c *Coordinator) watch() {
	late, idle := time.NewTicker(c.cfg.AbortCheck), time.NewTicker(c.cfg.ExpiryCheck)
	defer late.Stop()
	defer idle.Stop()
	for {
		search := (*Core).AbortTimedOut
		select {
		case <-c.ctx.Done():
			return
		case <-late.C:
		case <-idle.C:
			search = (*Core).Expire
		}
		shards, _ := c.all()
		for _, s := range shards {
			s.submit(event{run: func(core *Core, nowMs int64) { search(core, nowMs) }})
		}
	}
}
