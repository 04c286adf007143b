package simulation

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/coordinator"
	"barnabas/broker/group"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/txn"
	"barnabas/controller"
)

// The topics of the coordinators, and how many partitions each has.
const (
	offsetsTopic          = "__consumer_offsets"
	transactionTopic      = "__transaction_state"
	coordinatorPartitions = 2
)

// coordinators is the coordinators of one broker: the product's cores, and what the product's shell does around them
// with a goroutine for each partition, here step by step.
type coordinators struct {
	b      *broker
	shards map[controller.TopicPartition]*shard
}

// keeper is a core and what there is to do about what it decides.
type keeper interface {
	coordinator.Core
	// load has the core begin with what the log says.
	load(nowMs int64, batches [][]byte)
	// settle does what the core has decided.
	settle(s *shard)
}

// shard is one partition that this broker coordinates.
type shard struct {
	b        *broker
	tp       controller.TopicPartition
	epoch    int32
	k        keeper
	loaded   bool
	deposed  bool
	waiting  []func(nowMs int64) // what must be known once it is loaded
	clockOff time.Duration
	alarms   int
}

const (
	loadTakes     = 300 * time.Millisecond // at most
	appendTimeout = 3 * time.Second
	never         = int64(10 * 365 * 24 * time.Hour / time.Millisecond)
)

func groupConfig(s *Sim) group.CoreConfig {
	return group.CoreConfig{InitialRebalanceDelayMs: 100, MaxSize: 8, OffsetMetadataMaxBytes: 4096, OffsetsRetentionMs: never, Format: group.FormatSince23, NewID: s.newID}
}

// roles hears which partitions this broker leads from now on, and begins or ends to coordinate.
func (c *coordinators) roles(r partition.Role) {
	tp := controller.TopicPartition(r.TP)
	if tp.Topic != offsetsTopic && tp.Topic != transactionTopic {
		return
	}
	old := c.shards[tp]
	switch {
	case !r.Leader && old != nil:
		if c.b.n.s.planted("coordinators keep what they knew") {
			return
		}
		delete(c.shards, tp)
		old.depose()
		return
	case !r.Leader, old != nil && (tp.Topic == offsetsTopic || old.epoch >= r.LeaderEpoch):
		return // a leader of groups that stays one has nothing to load: nobody else wrote meanwhile
	case old != nil:
		if c.b.n.s.planted("coordinators keep what they knew") {
			return
		}
		old.depose()
	}
	s := &shard{b: c.b, tp: tp, epoch: r.LeaderEpoch, clockOff: c.b.n.clockOff}
	if tp.Topic == offsetsTopic {
		s.k = &groupKeeper{group.NewCore(groupConfig(c.b.n.s))}
	} else {
		s.k = &txnKeeper{txn.NewCore(txn.CoreConfig{MaxTimeoutMs: 15 * 60 * 1000, IDExpirationMs: never}, r.LeaderEpoch)}
	}
	c.shards[tp] = s
	if c.b.n.s.planted("questions are answered before all is loaded") {
		s.loaded = true
	}
	c.b.n.later(c.b.n.s.w.between(0, loadTakes), s.load)
}

// depose ends a shard: nothing of it is appended any more, and who waits is answered soon.
func (s *shard) depose() {
	s.deposed = true
	s.b.n.later(0, func() { s.do(s.k.Unload) })
}

// load reads the log, and goes on when all of it is safe.
func (s *shard) load() {
	log := s.b.logs.Get(commitlog.TopicPartition(s.tp))
	if s.deposed || log == nil || s.b.failed {
		return
	}
	batches, err := readBatches(log)
	if err != nil {
		s.b.n.later(100*time.Millisecond, s.load)
		return
	}
	s.begin(log, log.EndOffset(), batches)
}

func (s *shard) begin(log *commitlog.Log, end int64, batches [][]byte) {
	if s.deposed || s.b.failed {
		return
	}
	if !s.safe(log, end) {
		s.b.n.later(20*time.Millisecond, func() { s.begin(log, end, batches) })
		return
	}
	if s.loaded {
		return
	}
	s.loaded = true
	s.do(func(nowMs int64) {
		s.k.load(nowMs, batches)
		for _, f := range s.waiting {
			f(nowMs)
		}
		s.waiting = nil
	})
	s.b.n.s.Done.Loads++
}

// safe tells that nothing of what was loaded can be lost: it is committed, or, where groups are, all in-sync replicas have
// it.
func (s *shard) safe(log *commitlog.Log, end int64) bool {
	if log.HighWatermark() >= end {
		return true
	}
	p := s.b.replicas.Partition(s.tp.Topic, s.tp.Partition)
	return s.tp.Topic == offsetsTopic && p != nil && p.Held(end)
}

// do lets an event happen, and all that follows from it at this moment.
func (s *shard) do(event func(nowMs int64)) {
	if s.b.failed {
		return
	}
	nowMs := s.nowMs()
	event(nowMs)
	s.k.Tick(nowMs)
	s.k.settle(s)
	s.b.afterwards()
	s.alarms++
	if atMs, any := s.k.Next(); any && !s.deposed {
		mine := s.alarms
		s.b.n.later(time.Duration(max(atMs-s.nowMs(), 0))*time.Millisecond, func() {
			if s.alarms == mine {
				s.do(func(int64) {})
			}
		})
	}
}

// nowMs is the node's clock. When somebody sets it, what waits moves along (H49).
func (s *shard) nowMs() int64 {
	if step := s.b.n.clockOff - s.clockOff; step != 0 {
		s.k.Shift(step.Milliseconds())
		s.clockOff = s.b.n.clockOff
	}
	return s.b.n.clock().UnixMilli()
}

// append writes what one event wants in the log.
func (s *shard) append(a *coordinator.Append) {
	ended := false
	end := func(first int64, err error) {
		s.b.n.later(0, func() {
			if !ended {
				ended = true
				s.do(func(nowMs int64) { a.Ended(nowMs, first, err) })
			}
		})
	}
	if s.deposed {
		end(0, kerr.NotLeaderForPartition)
		return
	}
	o := record.BuilderOptions{}
	req := partition.ProducePartition{Topic: s.tp.Topic, Partition: s.tp.Partition}
	if p := a.Producer; p != nil {
		o.Producer = &record.Producer{ID: p.ID, Epoch: p.Epoch, BaseSequence: record.NoSequence, Transactional: true}
		req.Verification = p.Guard
	}
	batch := record.NewBuilder(o)
	for _, r := range a.Records {
		batch.Append(s.nowMs(), r.Key, r.Value)
	}
	var err error
	if req.Records, err = batch.Build(); err != nil {
		panic(err)
	}
	acks := int16(-1)
	if s.b.n.s.planted("coordinators do not wait for the replicas") {
		acks = 1
	}
	s.b.n.later(appendTimeout, func() { end(0, kerr.RequestTimedOut) })
	s.b.replicas.Produce(&partition.ProduceRequest{Acks: acks, Timeout: farAway, Version: 3, Origin: commitlog.Coordinator,
		RequireVerification: s.b.n.s.verifies(), Partitions: []partition.ProducePartition{req}},
		func(rs []partition.ProduceResult) { end(rs[0].BaseOffset, rs[0].Err) })
}

// readBatches gives all batches of a log.
func readBatches(log *commitlog.Log) ([][]byte, error) {
	var out [][]byte
	end := log.EndOffset()
	for at := log.StartOffset(); at < end; {
		r, err := log.Read(at, commitlog.ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: end})
		if err != nil {
			return nil, err
		}
		buf, err := r.Range.ReadAll()
		r.Range.Release()
		if err != nil {
			return nil, err
		}
		before := at
		for len(buf) > 0 {
			b, rest, err := record.Next(buf)
			if err != nil {
				return nil, err
			}
			out = append(out, b)
			at, buf = b.NextOffset(), rest
		}
		if at == before {
			return nil, errors.New("nothing is read")
		}
	}
	return out, nil
}

// locate finds what coordinates a name here, or says why this broker cannot answer for it.
func (c *coordinators) locate(topic, name string) (*shard, error) {
	switch s := c.shards[coordinates(topic, name)]; {
	case s == nil:
		return nil, kerr.NotCoordinator
	case !s.loaded:
		return nil, kerr.CoordinatorLoadInProgress
	default:
		return s, nil
	}
}

// coordinates is the partition that a group or a transactional id belongs to.
func coordinates(topic, name string) controller.TopicPartition {
	sum := int32(0)
	for _, b := range []byte(name) {
		sum += int32(b)
	}
	return controller.TopicPartition{Topic: topic, Partition: sum % coordinatorPartitions}
}

// ofGroup lets an event happen to the core of a group, or refuses.
func (c *coordinators) ofGroup(name string, event func(core *group.Core, nowMs int64), refuse func(error)) {
	s, err := c.locate(offsetsTopic, name)
	if err != nil {
		refuse(err)
		return
	}
	s.do(func(nowMs int64) { event(s.k.(*groupKeeper).Core, nowMs) })
}

// ofID lets an event happen to the core of a transactional id, or refuses.
func (c *coordinators) ofID(id string, event func(core *txn.Core, nowMs int64), refuse func(error)) {
	s, err := c.locate(transactionTopic, id)
	if err != nil {
		refuse(err)
		return
	}
	s.do(func(nowMs int64) { event(s.k.(*txnKeeper).Core, nowMs) })
}

// tick aborts transactions that are open for too long.
func (c *coordinators) tick() {
	for _, tp := range sortedHosted(c.shards) {
		if s := c.shards[tp]; s != nil && tp.Topic == transactionTopic && s.loaded {
			s.do(func(nowMs int64) { s.k.(*txnKeeper).AbortTimedOut(nowMs) })
		}
	}
}

// endTransaction tells the groups of a partition that a marker was committed in it.
func (c *coordinators) endTransaction(p int32, producer int64, commit bool) {
	s := c.shards[controller.TopicPartition{Topic: offsetsTopic, Partition: p}]
	if s == nil {
		return
	}
	event := func(int64) { s.k.(*groupKeeper).EndTransaction(producer, commit) }
	if s.loaded {
		s.do(event)
	} else {
		s.waiting = append(s.waiting, event)
	}
}

// groupKeeper is the groups of one partition.
type groupKeeper struct{ *group.Core }

func (k *groupKeeper) load(nowMs int64, batches [][]byte) {
	l := group.NewLoader(record.Limits{MaxDecompressed: 1 << 20})
	for _, b := range batches {
		l.Add(record.Entry(b))
	}
	k.Loaded(nowMs, l)
}

func (k *groupKeeper) settle(s *shard) {
	out := k.Take()
	for _, r := range out.Remarks {
		s.b.n.s.w.tell("node %d: groups of %d: %s", s.b.n.id, s.tp.Partition, r)
	}
	for _, a := range out.Appends {
		s.append(a)
	}
	for _, answer := range out.Answers {
		answer()
	}
}

// txnKeeper is the transactional ids of one partition.
type txnKeeper struct{ *txn.Core }

func (k *txnKeeper) load(nowMs int64, batches [][]byte) {
	l := txn.NewLoader(record.Limits{MaxDecompressed: 1 << 20})
	for _, b := range batches {
		l.Add(record.Entry(b))
	}
	k.Loaded(nowMs, l)
}

func (k *txnKeeper) settle(s *shard) {
	out := k.Take()
	for _, r := range out.Remarks {
		s.b.n.s.w.tell("node %d: transactions of %d: %s", s.b.n.id, s.tp.Partition, r)
	}
	for _, a := range out.Appends {
		s.append(a)
	}
	for _, m := range out.Markers {
		s.sendMarker(m)
	}
	for _, w := range out.Wanted {
		s.b.n.later(s.b.n.s.w.between(time.Millisecond, 50*time.Millisecond), func() {
			s.do(func(nowMs int64) { k.Identified(nowMs, w, s.b.n.s.producerID(), nil) })
		})
	}
	for _, answer := range out.Answers {
		answer()
	}
}
