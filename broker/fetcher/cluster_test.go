package fetcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is some brokers' partition managers and fetchers over disks in memory,
// one partition t-0 on all of them, and a controller of a few lines.
type cluster struct {
	t     testing.TB
	ibp   string
	flush partition.FlushPolicy
	lag   time.Duration // replica.lag.time.max.ms
	log   *logrus.Entry
	nodes map[int32]*node

	mu             sync.Mutex // the controller's
	alive          map[int32]bool
	registrations  int64
	epochs         map[int32]int64 // broker epochs of the living
	leader         int32           // -1: none
	leaderEpoch    int32
	partitionEpoch int32
	isr            []int32
	replicas       []int32
	minISR         int32
}

type node struct {
	id       int32
	disk     *vfs.CrashFS
	logs     *commitlog.Manager
	replicas *partition.Manager
	fetchers *Manager
	cut      chan struct{} // closed when the node dies: what is on the wire is lost
}

// newCluster makes one in which only who dies leaves the ISR, however long others are held up.
func newCluster(t testing.TB, ibp string, flush partition.FlushPolicy, minISR int32, ids ...int32) *cluster {
	return newClusterWithLag(t, ibp, flush, time.Hour, minISR, ids...)
}

func newClusterWithLag(t testing.TB, ibp string, flush partition.FlushPolicy, lag time.Duration, minISR int32, ids ...int32) *cluster {
	l := logrus.New()
	l.SetOutput(io.Discard)
	c := &cluster{t: t, ibp: ibp, flush: flush, lag: lag, log: logrus.NewEntry(l), nodes: map[int32]*node{}, alive: map[int32]bool{}, epochs: map[int32]int64{},
		replicas: ids, isr: slices.Clone(ids), leader: ids[0], leaderEpoch: 1, partitionEpoch: 1, minISR: minISR, registrations: 100}
	for _, id := range ids {
		c.start(id, vfs.NewCrashFS())
	}
	c.order()
	t.Cleanup(func() {
		for _, id := range ids {
			if c.alive[id] {
				close(c.nodes[id].cut)
				c.nodes[id].stop(c.t)
			}
		}
	})
	return c
}

func (c *cluster) start(id int32, disk *vfs.CrashFS) {
	config := commitlog.DefaultConfig()
	config.MinInsync = c.minISR
	config.SegmentBytes = 64 << 10
	logs, err := commitlog.Open(commitlog.ManagerConfig{
		Dirs: []string{"/data"}, FS: disk, Default: config, TopicConfig: func(string) commitlog.Config { return config },
		HighWatermarkInterval: 20 * time.Millisecond, CheckpointInterval: 50 * time.Millisecond, Now: time.Now, Log: c.log.WithField("broker", id),
	})
	require.NoError(c.t, err)
	if l := logs.Get(tp0); l != nil {
		c.note("%d starts: %d..%d, high watermark %d, recovery %+v", id, l.StartOffset(), l.EndOffset(), l.HighWatermark(), l.Recovery())
		c.whole(id, l)
	}
	n := &node{id: id, disk: disk, logs: logs, cut: make(chan struct{})}
	c.mu.Lock()
	c.registrations++
	epoch := c.registrations
	c.epochs[id] = epoch
	c.alive[id] = true
	c.mu.Unlock()
	n.fetchers, err = New(Config{
		BrokerID: id, BrokerEpoch: func() int64 { return epoch }, IBP: c.ibp, MaxWait: 20 * time.Millisecond, Backoff: 5 * time.Millisecond,
		PartitionMax: 8 << 10, Log: c.log.WithField("broker", id), Now: time.Now,
		Dial: func(to partition.Endpoint, _ int) Transport {
			return &pipe{c: c, from: n, to: to.ID, sessions: map[int32][]kmsg.FetchRequestTopic{}}
		},
	})
	require.NoError(c.t, err)
	n.replicas = partition.NewManager(partition.Config{
		BrokerID: id, ReplicaLagTimeMax: c.lag, Flush: c.flush, FS: disk, Log: c.log.WithField("broker", id), Now: time.Now,
	}, logs, controllerFor{c, id}, n.fetchers)
	n.replicas.SetBrokerEpoch(epoch)
	c.mu.Lock()
	c.nodes[id] = n
	c.mu.Unlock()
}

func (n *node) stop(testing.TB) {
	n.fetchers.Close()
	n.replicas.Close()
	_ = n.logs.Close()
}

// die ends a node as kill -9 does, or a power cut: its disk is what had been
// written, or what had been made durable and whatever the adversary leaves.
func (c *cluster) die(id int32, how vfs.Adversary, seed uint64) *vfs.CrashFS {
	n := c.nodes[id]
	c.note("%d dies: %s", id, how)
	c.mu.Lock()
	c.alive[id] = false
	delete(c.epochs, id)
	c.mu.Unlock()
	close(n.cut) // from here on nothing it says is heard: it may know what its disk will not
	disk := n.disk.Image(n.disk.Ops(), how, seed)
	n.stop(c.t)
	c.mu.Lock()
	if len(c.isr) > 1 && slices.Contains(c.isr, id) {
		c.isr = slices.DeleteFunc(slices.Clone(c.isr), func(m int32) bool { return m == id })
	}
	if c.leader == id {
		c.electLocked()
	} else {
		c.leaderEpoch++
		c.partitionEpoch++
	}
	c.mu.Unlock()
	c.order()
	return disk
}

// electLocked chooses the first living member of the ISR.
func (c *cluster) electLocked() {
	c.leader = -1
	c.leaderEpoch++
	c.partitionEpoch++
	for _, id := range c.replicas {
		if c.alive[id] && slices.Contains(c.isr, id) {
			c.leader = id
			return
		}
	}
}

func (c *cluster) revive(id int32, disk *vfs.CrashFS) {
	c.start(id, disk)
	c.mu.Lock()
	if c.leader < 0 {
		c.electLocked()
	}
	c.mu.Unlock()
	c.order()
}

// move gives leadership to another living member of the ISR.
func (c *cluster) move(to int32) {
	c.mu.Lock()
	if !c.alive[to] || !slices.Contains(c.isr, to) {
		c.mu.Unlock()
		return
	}
	c.leader = to
	c.leaderEpoch++
	c.partitionEpoch++
	c.mu.Unlock()
	c.order()
}

// order tells every living broker how things are.
func (c *cluster) order() {
	c.mu.Lock()
	brokers := map[int32]partition.BrokerInfo{}
	for id, epoch := range c.epochs {
		brokers[id] = partition.BrokerInfo{Endpoint: partition.Endpoint{ID: id, Host: "h", Port: 1}, Epoch: epoch}
	}
	o := partition.LeaderAndISRPartition{
		Topic: "t", TopicID: idT, ControllerEpoch: 1, Leader: c.leader, LeaderEpoch: c.leaderEpoch,
		ISR: slices.Clone(c.isr), PartitionEpoch: c.partitionEpoch, Replicas: c.replicas,
	}
	var living []*node
	for _, id := range c.replicas {
		if c.alive[id] {
			living = append(living, c.nodes[id])
		}
	}
	c.mu.Unlock()
	for _, n := range living {
		n.replicas.SetAliveBrokers(brokers)
		c.note("to %d: leader %d epoch %d ISR %v", n.id, o.Leader, o.LeaderEpoch, o.ISR)
		all, _ := n.replicas.ApplyLeaderAndISR(partition.LeaderAndISR{ControllerID: 1, ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []partition.LeaderAndISRPartition{o}})
		require.NoError(c.t, all)
	}
}

// controllerFor carries ISR changes of one broker out.
type controllerFor struct {
	c  *cluster
	id int32
}

func (a controllerFor) ChangeISR(req partition.ISRChange, done func(partition.ISRChanged, error)) {
	got, err := a.decide(req)
	done(got, err)
}

func (a controllerFor) decide(req partition.ISRChange) (partition.ISRChanged, error) {
	c := a.c
	c.mu.Lock()
	defer c.mu.Unlock()
	none := partition.ISRChanged{LeaderEpoch: -1, PartitionEpoch: -1}
	switch {
	case !c.alive[a.id]:
		return none, errors.New("connection lost")
	case req.LeaderEpoch != c.leaderEpoch || c.leader != a.id:
		return none, kerr.FencedLeaderEpoch
	case req.PartitionEpoch != c.partitionEpoch:
		return none, kerr.InvalidUpdateVersion
	}
	var isr []int32
	for _, m := range req.ISR {
		if !c.alive[m.ID] || (m.BrokerEpoch >= 0 && m.BrokerEpoch != c.epochs[m.ID]) {
			return none, kerr.IneligibleReplica
		}
		isr = append(isr, m.ID)
	}
	c.isr = isr
	c.partitionEpoch++
	return partition.ISRChanged{LeaderID: a.id, LeaderEpoch: c.leaderEpoch, ISR: slices.Clone(isr), PartitionEpoch: c.partitionEpoch}, nil
}

func (c *cluster) living(id int32) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.alive[id] {
		return nil
	}
	return c.nodes[id]
}

func (c *cluster) leading() *node {
	c.mu.Lock()
	id := c.leader
	c.mu.Unlock()
	return c.living(id)
}

// produce sends one record with acks=all to whoever leads.
func (c *cluster) produce(value string) (offset int64, ok bool) {
	n := c.leading()
	if n == nil {
		return 0, false
	}
	b := record.NewBuilder(record.BuilderOptions{})
	b.Append(1, nil, []byte(value))
	records, err := b.Build()
	if err != nil {
		panic(err)
	}
	out := make(chan partition.ProduceResult, 2)
	n.replicas.Produce(&partition.ProduceRequest{Acks: -1, Timeout: time.Minute, Version: 9, Partitions: []partition.ProducePartition{{Topic: "t", Records: records}}},
		func(r []partition.ProduceResult) { out <- r[0] })
	select {
	case r := <-out:
		return r.BaseOffset, r.Err == nil && !n.dead()
	case <-n.cut:
		return 0, false
	}
}

// flushed waits until a leader that was left alone has on its disk what the larger
// ISR had committed. From then on it acknowledges nothing else.
func (c *cluster) flushed(id int32) {
	log := c.nodes[id].logs.Get(tp0)
	hw := log.HighWatermark()
	require.Eventually(c.t, func() bool { return log.RecoveryPoint() >= hw }, time.Minute, time.Millisecond, "%s", c)
}

func (n *node) dead() bool {
	select {
	case <-n.cut:
		return true
	default:
		return false
	}
}

// whole checks that a log has no gap: nothing here compacts.
func (c *cluster) whole(id int32, log *commitlog.Log) {
	next := log.StartOffset()
	for next < log.EndOffset() {
		r, err := log.Read(next, commitlog.ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: log.EndOffset()})
		require.NoError(c.t, err)
		data, err := r.Range.ReadAll()
		r.Range.Release()
		require.NoError(c.t, err)
		for len(data) > 0 {
			b, rest, err := record.Next(data)
			require.NoError(c.t, err)
			if b.BaseOffset() != next {
				c.t.Errorf("replica %d has a gap from %d to %d", id, next, b.BaseOffset())
			}
			next, data = b.LastOffset()+1, rest
		}
	}
}

// note keeps what happened, for a run that fails.
func (c *cluster) note(format string, args ...any) {
	c.t.Logf(time.Now().Format("05.000 ")+format, args...)
}

// values reads a node's whole log.
func (n *node) values(t testing.TB) (values []string, raw []byte) {
	log := n.logs.Get(tp0)
	for from := log.StartOffset(); from < log.EndOffset(); {
		r, err := log.Read(from, commitlog.ReadOptions{MaxBytes: 1 << 20, MinOneBatch: true, UpTo: log.EndOffset()})
		require.NoError(t, err)
		data, err := r.Range.ReadAll()
		r.Range.Release()
		require.NoError(t, err)
		raw = append(raw, data...)
		for len(data) > 0 {
			b, rest, err := record.Next(data)
			require.NoError(t, err)
			for rec, err := range b.Records(record.Limits{}) {
				require.NoError(t, err)
				require.EqualValues(t, len(values), rec.Offset)
				values = append(values, string(rec.Value))
			}
			from, data = b.LastOffset()+1, rest
		}
	}
	return values, raw
}

// settled waits until everybody is in sync and has the same log.
func (c *cluster) settled() {
	require.Eventually(c.t, func() bool {
		n := c.leading()
		if n == nil {
			return false
		}
		s := n.replicas.Partition("t", 0).Status()
		if len(s.ISR) != len(c.replicas) {
			return false
		}
		end := n.logs.Get(tp0).EndOffset()
		for _, id := range c.replicas {
			if l := c.nodes[id].logs.Get(tp0); l.EndOffset() != end || l.HighWatermark() != end {
				return false
			}
		}
		return true
	}, time.Minute, 5*time.Millisecond, "%s", c)
}

func (c *cluster) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := fmt.Sprintf("leader %d epoch %d partition epoch %d ISR %v", c.leader, c.leaderEpoch, c.partitionEpoch, c.isr)
	for _, id := range c.replicas {
		if p := c.nodes[id].replicas.Partition("t", 0); p != nil {
			s += fmt.Sprintf("\n%d: %+v end %d", id, p.Status(), c.nodes[id].logs.Get(tp0).EndOffset())
		}
	}
	return s
}

// pipe is a Transport that calls the leader's Manager, with the bytes of the
// protocol in between.
type pipe struct {
	c        *cluster
	from     *node
	to       int32
	sessions map[int32][]kmsg.FetchRequestTopic
	last     int32
}

func (p *pipe) Close() error { return nil }

var errCut = errors.New("connection lost")

func (p *pipe) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	n := p.c.living(p.to)
	if n == nil {
		return nil, errCut
	}
	switch req := recode(req).(type) {
	case *kmsg.OffsetForLeaderEpochRequest:
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		for _, t := range req.Topics {
			rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
			rt.Topic = t.Topic
			for _, q := range t.Partitions {
				rp := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				epoch, end, err := n.replicas.OffsetForLeaderEpoch(t.Topic, q.Partition, q.CurrentLeaderEpoch, q.LeaderEpoch)
				rp.Partition, rp.LeaderEpoch, rp.EndOffset, rp.ErrorCode = q.Partition, epoch, end, code(err)
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil
	case *kmsg.ListOffsetsRequest:
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, t := range req.Topics {
			rt := kmsg.NewListOffsetsResponseTopic()
			rt.Topic = t.Topic
			for _, q := range t.Partitions {
				rp := kmsg.NewListOffsetsResponseTopicPartition()
				ts, offset, epoch, err := n.replicas.ListOffset(t.Topic, q.Partition, q.Timestamp, false, req.ReplicaID, q.CurrentLeaderEpoch, req.Version)
				rp.Partition, rp.Timestamp, rp.Offset, rp.LeaderEpoch, rp.ErrorCode = q.Partition, ts, offset, epoch, code(err)
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil
	}
	return nil, errors.New("not served")
}

func code(err error) int16 {
	if err == nil {
		return 0
	}
	var k *kerr.Error
	if errors.As(err, &k) {
		return k.Code
	}
	return -1
}

// recode sends a request through its bytes.
func recode(req kmsg.Request) kmsg.Request {
	out := kmsg.RequestForKey(req.Key())
	out.SetVersion(req.GetVersion())
	if err := out.ReadFrom(req.AppendTo(nil)); err != nil {
		panic(err)
	}
	return out
}

func (p *pipe) Fetch(ctx context.Context, sent *kmsg.FetchRequest) (*kmsg.FetchResponse, func(), error) {
	n := p.c.living(p.to)
	if n == nil || p.from.dead() {
		return nil, nil, errCut
	}
	req := recode(sent).(*kmsg.FetchRequest)
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	topics := req.Topics
	if req.Version >= 7 {
		if req.SessionEpoch == 0 {
			p.last++
			resp.SessionID = p.last
		} else {
			resp.SessionID = req.SessionID
			topics = p.sessions[req.SessionID]
			if len(req.Topics) > 0 {
				topics = req.Topics // one partition: named means replaced
			}
			if len(req.ForgottenTopics) > 0 && len(req.Topics) == 0 {
				topics = nil
			}
		}
		p.sessions[resp.SessionID] = topics
	}
	in := &partition.FetchRequest{
		ReplicaID: req.ReplicaID, ReplicaEpoch: -1, Version: req.Version, MaxWait: time.Duration(req.MaxWaitMillis) * time.Millisecond,
		MinBytes: req.MinBytes, MaxBytes: req.MaxBytes,
	}
	if req.Version >= 15 {
		in.ReplicaID, in.ReplicaEpoch = req.ReplicaState.ID, req.ReplicaState.Epoch
	}
	for _, t := range topics {
		for _, q := range t.Partitions {
			in.Partitions = append(in.Partitions, partition.FetchPartition{
				Topic: "t", TopicID: t.TopicID, Partition: q.Partition, FetchOffset: q.FetchOffset, LogStartOffset: q.LogStartOffset,
				MaxBytes: q.PartitionMaxBytes, CurrentLeaderEpoch: q.CurrentLeaderEpoch, LastFetchedEpoch: q.LastFetchedEpoch,
			})
		}
	}
	answered := make(chan []partition.FetchResult, 1)
	n.replicas.Fetch(in, func(r []partition.FetchResult) { answered <- r })
	results := <-answered // a dying manager answers too
	for _, r := range results {
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic, rt.TopicID = r.Topic, idT
		rp := kmsg.NewFetchResponseTopicPartition()
		rp.Partition, rp.ErrorCode = r.Partition, code(r.Err)
		rp.HighWatermark, rp.LogStartOffset = r.HighWatermark, r.LogStartOffset
		rp.DivergingEpoch.Epoch, rp.DivergingEpoch.EndOffset = r.DivergingEpoch, r.DivergingEndOffset
		data, err := r.Records.ReadAll()
		r.Records.Release()
		if err != nil {
			rp.ErrorCode = kerr.KafkaStorageError.Code
		}
		rp.RecordBatches = data
		rt.Partitions = append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
	}
	back := kmsg.NewPtrFetchResponse()
	back.SetVersion(resp.Version)
	if err := back.ReadFrom(resp.AppendTo(nil)); err != nil {
		panic(err)
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if p.from.dead() || n.dead() {
		return nil, nil, errCut
	}
	return back, func() {}, nil
}
