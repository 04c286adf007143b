package coordinator

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
)

// Topic is the internal topic, as far as this broker leads its partitions.
type Topic interface {
	// Append writes one batch and calls done exactly once, from any goroutine and
	// maybe before it returns: with the offset of the first record when the batch
	// is as much committed as the topic's coordinator asks for, or with the error.
	// The batch is not touched any more when Append has returned. The guard goes
	// with records of a transaction whose coordinator was asked about it (KIP-890);
	// nil otherwise.
	Append(partition int32, batch []byte, guard *commitlog.VerificationGuard, done func(firstOffset int64, err error))
	// Read gives every entry from the start of the log to its end, in order. An
	// entry is valid during the call. It ends early with ctx.
	Read(ctx context.Context, partition int32, each func(record.Entry)) error
}

// Loader gathers what the entries of a partition say, from the first to the last.
type Loader[C Core] interface {
	Add(e record.Entry)
	// Load gives it to a core that knows nothing yet. It tells what that is for the
	// log; the Loader is not used again.
	Load(core C, nowMs int64) (what string)
}

// Config is what a Shell needs to know.
type Config[C Core] struct {
	// NewCore makes a core for a leadership in an epoch of the partition.
	NewCore   func(epoch int32) C
	NewLoader func() Loader[C]
	// Take takes what a core wants done out of it, and does what the shell does not
	// know of.
	Take func(s *Shard[C], core C) Effects

	// Reload: a leader that stays one in another epoch loads again.
	Reload bool

	// Partitions is how many partitions the topic has, or would have if it existed.
	Partitions func() (count int32, exists bool)

	Codec record.Codec // of the batches that are written
	Now   func() time.Time
	Log   *logrus.Entry
}

// Shell drives the cores of all partitions of a topic that this broker leads.
type Shell[C Core] struct {
	cfg   Config[C]
	topic Topic

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	// mu is not held while a shard is deposed: that waits for an append, which may
	// take the disk's time, and wakes others whose answers may lead back here.
	mu struct {
		sync.RWMutex
		shards map[int32]*Shard[C]
		count  int32 // partitions of the topic as first seen; 0 while it does not exist
		closed bool
	}
}

// New returns a Shell that leads nothing yet.
func New[C Core](cfg Config[C], topic Topic) *Shell[C] {
	sh := &Shell[C]{cfg: cfg, topic: topic}
	sh.ctx, sh.cancel = context.WithCancel(context.Background())
	sh.mu.shards = map[int32]*Shard[C]{}
	return sh
}

// Stop answers what waits with NOT_COORDINATOR and lets nothing new begin.
func (sh *Shell[C]) Stop() {
	sh.mu.Lock()
	sh.mu.closed = true
	led := sh.mu.shards
	sh.mu.shards = map[int32]*Shard[C]{}
	sh.mu.Unlock()
	for _, s := range led {
		s.depose()
	}
	sh.cancel()
}

// Close stops, ends all goroutines and waits for them. What is being appended must
// still be answered by the Topic.
func (sh *Shell[C]) Close() {
	sh.Stop()
	sh.running.Wait()
}

// Lead says that this broker leads a partition of the topic now, in an epoch. What
// belongs there is loaded, in a goroutine of its own; while that goes on, it is
// answered with COORDINATOR_LOAD_IN_PROGRESS.
func (sh *Shell[C]) Lead(partition int32, epoch int32) {
	s, old := sh.succeed(partition, epoch)
	if old != nil {
		old.depose()
	}
	if s != nil {
		sh.start(s.run)
	}
}

// succeed puts a new shard in the place of an old one, if there is one; nil: the
// old one goes on, or all has ended.
func (sh *Shell[C]) succeed(partition int32, epoch int32) (s, old *Shard[C]) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.tell(partition, true)
	old = sh.mu.shards[partition]
	if sh.mu.closed || old != nil && (!sh.cfg.Reload || old.epoch >= epoch) {
		return nil, nil
	}
	s = newShard(sh, partition, epoch)
	sh.mu.shards[partition] = s
	return s, old
}

// start runs f in a goroutine that Close waits for, unless the shell has stopped.
func (sh *Shell[C]) start(f func()) bool {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	if !sh.mu.closed {
		sh.running.Go(f)
	}
	return !sh.mu.closed
}

// Resign says that this broker does not lead a partition any more. When it
// returns, nothing more of what belongs there is appended, even if the broker
// leads again at once (H54); who waits is answered soon after.
func (sh *Shell[C]) Resign(partition int32) {
	sh.mu.Lock()
	s := sh.mu.shards[partition]
	sh.tell(partition, false)
	delete(sh.mu.shards, partition)
	sh.mu.Unlock()
	if s != nil {
		s.depose()
	}
}

// PartitionFor is the partition of the topic that a name belongs to. The number
// of partitions counts as it was first seen: with another one, what is in the log
// would belong to others.
func (sh *Shell[C]) PartitionFor(name string) int32 { return hash(name) % sh.partitions() }

func (sh *Shell[C]) partitions() int32 {
	count, exists := sh.cfg.Partitions()
	if !exists {
		return count
	}
	sh.mu.RLock()
	seen := sh.mu.count
	sh.mu.RUnlock()
	if seen != 0 {
		return seen
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.mu.count == 0 {
		sh.mu.count = count
	}
	return sh.mu.count
}

// Do runs f with the core that a name belongs to, or calls refuse with the reason
// why this broker cannot answer for it.
func (sh *Shell[C]) Do(name string, f func(core C, nowMs int64), refuse func(error)) {
	s := sh.shard(sh.PartitionFor(name))
	switch {
	case s == nil:
		refuse(kerr.NotCoordinator)
	case !s.loaded.Load():
		refuse(kerr.CoordinatorLoadInProgress)
	default:
		s.submit(event[C]{run: f, refuse: refuse})
	}
}

// Tell has f run with the core of a partition, if this broker leads it. One that
// is being loaded hears of it afterwards.
func (sh *Shell[C]) Tell(partition int32, f func(core C, nowMs int64)) {
	if s := sh.shard(partition); s != nil {
		s.Tell(f)
	}
}

func (sh *Shell[C]) shard(partition int32) *Shard[C] {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	return sh.mu.shards[partition]
}

// all are the shards that are loaded; loading tells whether there are others.
func (sh *Shell[C]) all() (list []*Shard[C], loading bool) {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	for _, s := range sh.mu.shards {
		if s.loaded.Load() {
			list = append(list, s)
		} else {
			loading = true
		}
	}
	return list, loading
}

// Each has f run with all cores that are loaded.
func (sh *Shell[C]) Each(f func(core C, nowMs int64)) {
	shards, _ := sh.all()
	for _, s := range shards {
		s.Tell(f)
	}
}

// Every does so at intervals, until Close.
func (sh *Shell[C]) Every(interval time.Duration, f func(core C, nowMs int64)) {
	sh.running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-sh.ctx.Done():
				return
			case <-tick.C:
				sh.Each(f)
			}
		}
	})
}

// Collect asks all cores that are loaded, and then gives all that they said, in no
// order, with COORDINATOR_LOAD_IN_PROGRESS if there are others.
func Collect[C Core, T any](sh *Shell[C], ask func(core C, nowMs int64) []T, done func([]T, error)) {
	shards, loading := sh.all()
	var err error
	if loading {
		err = kerr.CoordinatorLoadInProgress
	}
	if len(shards) == 0 {
		done(nil, err)
		return
	}
	var mu sync.Mutex
	var all []T
	left := len(shards)
	add := func(list []T) {
		mu.Lock()
		all = append(all, list...)
		left--
		last := left == 0
		mu.Unlock()
		if last {
			done(all, err)
		}
	}
	for _, s := range shards {
		s.submit(event[C]{run: func(core C, nowMs int64) { add(ask(core, nowMs)) }, refuse: func(error) { add(nil) }})
	}
}
