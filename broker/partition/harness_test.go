package partition

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var topicA = commitlog.TopicPartition{Topic: "a", Partition: 0}

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

// noFetchers notes who was asked for.
type noFetchers struct {
	mu      sync.Mutex
	added   []FetchFrom
	removed []commitlog.TopicPartition
}

func (f *noFetchers) Add(from []FetchFrom) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added = append(f.added, from...)
}

func (f *noFetchers) Remove(tps []commitlog.TopicPartition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed = append(f.removed, tps...)
}

// agreeing commits every ISR change at once, as a controller would.
type agreeing struct {
	mu   sync.Mutex
	asks []ISRChange
	lose int // answers that get lost

	asked func()
}

func (a *agreeing) ChangeISR(req ISRChange, done func(ISRChanged, error)) {
	a.mu.Lock()
	a.asks = append(a.asks, req)
	a.lose--
	lost := a.lose >= 0
	a.mu.Unlock()
	if a.asked != nil {
		a.asked()
	}
	if lost {
		done(ISRChanged{PartitionEpoch: None, LeaderEpoch: None}, errors.New("connection lost"))
		return
	}
	done(ISRChanged{LeaderID: req.LeaderID, LeaderEpoch: req.LeaderEpoch, ISR: ids(&req), PartitionEpoch: req.PartitionEpoch + 1}, nil)
}

// world is a Manager over real logs in a temporary directory.
type world struct {
	t        testing.TB
	fs       vfs.FS
	dir      string
	spare    []string // more directories
	config   commitlog.Config
	flush    FlushPolicy
	logs     *commitlog.Manager
	m        *Manager
	isr      *agreeing
	fetchers *noFetchers
	epoch    int32 // leader epoch of the latest order
}

func newWorld(t testing.TB) *world {
	return newWorldOn(t, vfs.OS, t.TempDir())
}

func newWorldOn(t testing.TB, fs vfs.FS, dir string, spare ...string) *world {
	w := &world{t: t, fs: fs, dir: dir, spare: spare, config: commitlog.DefaultConfig(), isr: &agreeing{}, fetchers: &noFetchers{}}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) open() {
	logs, err := commitlog.Open(commitlog.ManagerConfig{
		Dirs: append([]string{w.dir}, w.spare...), FS: w.fs, Default: w.config,
		TopicConfig: func(string) commitlog.Config { return w.config },
		Now:         time.Now, Log: quiet(),
	})
	require.NoError(w.t, err)
	w.logs = logs
	w.m = NewManager(Config{BrokerID: 1, ReplicaLagTimeMax: time.Hour, Flush: w.flush, FS: w.fs, Log: quiet(), Now: time.Now, Selector: RackAware{}}, logs, w.isr, w.fetchers)
	w.m.SetAliveBrokers(map[int32]BrokerInfo{1: {Rack: "a"}, 2: {Rack: "b"}, 3: {Rack: "c"}})
	w.m.SetBrokerEpoch(100)
}

func (w *world) close() {
	if w.m == nil {
		return
	}
	w.m.Close()
	require.NoError(w.t, w.logs.Close())
	w.m = nil
}

func (w *world) order(leader int32, replicas, isr []int32) LeaderAndISRPartition {
	w.epoch++
	return LeaderAndISRPartition{Topic: "a", Leader: leader, LeaderEpoch: w.epoch, ISR: isr, PartitionEpoch: w.epoch, Replicas: replicas, ControllerEpoch: 1, IsNew: w.epoch == 1, TopicID: commitlog.TopicID{1}}
}

func (w *world) apply(ps ...LeaderAndISRPartition) []PartitionError {
	w.t.Helper()
	all, each := w.m.ApplyLeaderAndISR(LeaderAndISR{ControllerID: 1, ControllerEpoch: 1, BrokerEpoch: 100, Version: 7, Partitions: ps})
	require.NoError(w.t, all)
	return each
}

// lead makes broker 1 the leader of a-0.
func (w *world) lead(replicas, isr []int32) {
	w.t.Helper()
	require.NoError(w.t, w.apply(w.order(1, replicas, isr))[0].Err)
}

// follow makes broker 1 a follower of 2.
func (w *world) follow(replicas []int32) {
	w.t.Helper()
	require.NoError(w.t, w.apply(w.order(2, replicas, replicas))[0].Err)
}

func batch(n, valueSize int) []byte {
	b := record.NewBuilder(record.BuilderOptions{})
	for i := range n {
		b.Append(time.Now().UnixMilli(), []byte{byte(i)}, make([]byte, valueSize))
	}
	out, err := b.Build()
	if err != nil {
		panic(err)
	}
	return out
}

// produce starts a produce; the result comes by the channel.
func (w *world) produce(acks int16, timeout time.Duration, records []byte) <-chan []ProduceResult {
	out := make(chan []ProduceResult, 2)
	w.m.Produce(&ProduceRequest{Acks: acks, Timeout: timeout, Version: 9, Partitions: []ProducePartition{{Topic: "a", Records: records}}},
		func(r []ProduceResult) { out <- r })
	return out
}

func (w *world) produced(acks int16, records []byte) ProduceResult {
	return (<-w.produce(acks, time.Minute, records))[0]
}

// fetch starts a fetch.
func (w *world) fetch(change func(*FetchRequest)) <-chan []FetchResult {
	req := &FetchRequest{ReplicaID: -1, ReplicaEpoch: -1, Version: 12, MinBytes: 1, MaxBytes: 1 << 20, Partitions: []FetchPartition{
		{Topic: "a", MaxBytes: 1 << 20, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, LogStartOffset: -1},
	}}
	change(req)
	out := make(chan []FetchResult, 2)
	w.m.Fetch(req, func(r []FetchResult) { out <- r })
	return out
}

// fetched runs a fetch that must be answered at once.
func (w *world) fetched(change func(*FetchRequest)) []FetchResult {
	w.t.Helper()
	select {
	case r := <-w.fetch(change):
		for i := range r {
			r[i].Records.Release()
		}
		return r
	default:
		w.t.Fatal("the fetch waits")
		return nil
	}
}

// follower runs a fetch of a follower from an offset.
func (w *world) follower(id int32, offset int64) FetchResult {
	w.t.Helper()
	return w.fetched(func(r *FetchRequest) {
		r.ReplicaID = id
		r.Partitions[0].FetchOffset = offset
		r.Partitions[0].CurrentLeaderEpoch = w.epoch
		r.Partitions[0].LogStartOffset = 0
	})[0]
}
