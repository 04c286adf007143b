package group

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
)

// Appender writes to the partitions of the offsets topic that this broker leads.
type Appender interface {
	// Append writes one batch and calls done exactly once, from any goroutine and
	// maybe before it returns: with the offset of the first record when the batch
	// is committed as offsets.commit.required.acks asks, or with the error. The
	// batch is not touched any more when Append has returned. The guard goes with
	// offsets of a transaction whose coordinator was asked about it (KIP-890); nil
	// otherwise.
	Append(partition int32, batch []byte, guard *commitlog.VerificationGuard, done func(firstOffset int64, err error))
}

// Reader reads the partitions of the offsets topic that this broker leads.
type Reader interface {
	// Read gives every batch from the start of the log to its end, in order. A
	// batch is valid during the call. It ends early with ctx.
	Read(ctx context.Context, partition int32, each func(record.Batch)) error
}

// Config is what a Coordinator needs to know.
type Config struct {
	Core CoreConfig // NewID nil: random UUIDs

	MinSessionTimeoutMs int32 // group.min.session.timeout.ms
	MaxSessionTimeoutMs int32 // group.max.session.timeout.ms

	// ExpiryCheck is offsets.retention.check.interval.ms.
	ExpiryCheck time.Duration

	// Codec of the batches that are written (offsets.topic.compression.codec).
	Codec  record.Codec
	Limits record.Limits

	// Partitions is how many partitions the offsets topic has, or would have if it
	// existed.
	Partitions func() (count int32, exists bool)

	Now func() time.Time
	Log *logrus.Entry
}

// Coordinator is the shell around the cores of all offsets partitions that this
// broker leads. Requests are answered through the reply function, exactly once,
// from any goroutine.
type Coordinator struct {
	cfg      Config
	appender Appender
	reader   Reader

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
func New(cfg Config, appender Appender, reader Reader) *Coordinator {
	if cfg.Core.NewID == nil {
		cfg.Core.NewID = uuid.NewString
	}
	c := &Coordinator{cfg: cfg, appender: appender, reader: reader}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.mu.shards = map[int32]*shard{}
	c.done.Go(c.expire)
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
	c.done.Wait()
}

// Lead says that this broker leads a partition of the offsets topic now. Its
// groups are loaded, in a goroutine of its own; while that goes on, they are
// answered with COORDINATOR_LOAD_IN_PROGRESS. A leader that stays one in another
// epoch has nothing to load: nobody else wrote meanwhile.
func (c *Coordinator) Lead(partition int32, epoch int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed || c.mu.shards[partition] != nil {
		return
	}
	s := newShard(c, partition, epoch)
	c.mu.shards[partition] = s
	c.done.Go(s.run)
}

// Resign says that this broker does not lead a partition any more. When it
// returns, nothing more of its groups is appended, even if the broker leads again
// at once (H54); who waits is answered soon after.
func (c *Coordinator) Resign(partition int32) {
	c.mu.Lock()
	s := c.mu.shards[partition]
	delete(c.mu.shards, partition)
	c.mu.Unlock()
	if s != nil {
		s.depose()
	}
}

// PartitionFor is the partition of the offsets topic that a group belongs to:
// Java's hash of its name, modulo. The number of partitions counts as it was
// first seen: with another one, groups would lose their offsets.
func (c *Coordinator) PartitionFor(group string) int32 { return hash(group) % c.partitions() }

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

// hash is what Java computes over a string's UTF-16 units, without its sign; 0 for
// the one number that has no counterpart.
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
	switch {
	case h == math.MinInt32:
		return 0
	case h < 0:
		return -h
	}
	return h
}

// locate finds the shard of a group, or says why this broker cannot answer for
// it.
func (c *Coordinator) locate(group string) (*shard, error) {
	p := c.PartitionFor(group)
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

// do runs f with the core of a group, or refuses.
func (c *Coordinator) do(group string, f func(core *Core, nowMs int64), refuse func(error)) {
	s, err := c.locate(group)
	if err != nil {
		refuse(err)
		return
	}
	s.submit(event{run: f, refuse: refuse})
}

// expire is the goroutine that looks for expired offsets.
func (c *Coordinator) expire() {
	tick := time.NewTicker(c.cfg.ExpiryCheck)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
			shards, _ := c.all()
			for _, s := range shards {
				s.submit(event{run: func(core *Core, nowMs int64) {
					if n := core.Expire(nowMs); n > 0 {
						s.log.Infof("%d expired offsets are removed", n)
					}
				}})
			}
		}
	}
}
