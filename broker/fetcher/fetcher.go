package fetcher

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/peer"
)

// Transport is one connection to a leader. *peer.Line is one, made by Dial.
type Transport interface {
	Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	// Fetch is Do for a fetch. The records of the answer are valid until release.
	Fetch(ctx context.Context, req *kmsg.FetchRequest) (resp *kmsg.FetchResponse, release func(), err error)
	Close() error
}

var _ Transport = (*peer.Line)(nil)

// Config is what the fetchers need to know. Zero sizes and times take Kafka's
// defaults.
type Config struct {
	BrokerID     int32
	BrokerEpoch  func() int64  // of the present registration; nil: not told to leaders
	IBP          string        // inter.broker.protocol.version, such as "3.9" or "2.7-IV2"
	NumFetchers  int           // num.replica.fetchers, per leader
	MaxBytes     int32         // replica.fetch.response.max.bytes
	PartitionMax int32         // replica.fetch.max.bytes
	MinBytes     int32         // replica.fetch.min.bytes
	MaxWait      time.Duration // replica.fetch.wait.max.ms
	Backoff      time.Duration // replica.fetch.backoff.ms

	// Throttle is follower.replication.throttled.rate; nil lets everything pass.
	Throttle *partition.Throttle

	// Dial makes the connection of one fetcher to a leader. It does not block.
	Dial func(leader partition.Endpoint, fetcher int) Transport

	Log *logrus.Entry
	Now func() time.Time
}

// key is one fetcher: a leader, at an address, and a number.
type key struct {
	leader partition.Endpoint
	number int
}

// Manager owns the fetcher goroutines. It implements partition.Fetchers.
type Manager struct {
	cfg      Config
	versions versions

	mu struct {
		sync.Mutex
		loops  map[key]*loop
		of     map[commitlog.TopicPartition]fetched
		closed bool
	}
}

// fetched is a partition that is to be fetched: by which loop, and as it was ordered.
type fetched struct {
	by   *loop
	from partition.FetchFrom
}

// New returns a Manager without goroutines; each starts with the first partition
// that is to be fetched from its leader, and ends with the last. The error is an
// IBP that cannot be read.
func New(cfg Config) (*Manager, error) {
	v, err := versionsFor(cfg.IBP)
	if err != nil {
		return nil, err
	}
	defaultTo(&cfg.NumFetchers, 1)
	defaultTo(&cfg.MaxBytes, 10<<20)
	defaultTo(&cfg.PartitionMax, 1<<20)
	defaultTo(&cfg.MinBytes, 1)
	defaultTo(&cfg.MaxWait, 500*time.Millisecond)
	defaultTo(&cfg.Backoff, time.Second)
	m := &Manager{cfg: cfg, versions: v}
	m.mu.loops = map[key]*loop{}
	m.mu.of = map[commitlog.TopicPartition]fetched{}
	return m, nil
}

func defaultTo[T int | int32 | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Add implements partition.Fetchers.
func (m *Manager) Add(from []partition.FetchFrom) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mu.closed {
		m.addLocked(from)
	}
}

// Resize changes the number of fetchers per leader (num.replica.fetchers) and deals the partitions anew.
func (m *Manager) Resize(fetchers int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed || fetchers < 1 || fetchers == m.cfg.NumFetchers {
		return
	}
	m.cfg.NumFetchers = fetchers
	all := make([]partition.FetchFrom, 0, len(m.mu.of))
	for tp, f := range m.mu.of {
		if f.by.key.number != int(fetcherNumber(tp, fetchers)) {
			all = append(all, f.from)
		}
	}
	m.addLocked(all)
}

func (m *Manager) addLocked(from []partition.FetchFrom) {
	perLoop := map[*loop][]partition.FetchFrom{}
	var order []*loop
	for _, f := range from {
		k := key{leader: f.Leader, number: int(fetcherNumber(f.Partition.TP(), m.cfg.NumFetchers))}
		l := m.mu.loops[k]
		if l == nil {
			l = newLoop(&m.cfg, k, m.versions, m.cfg.Dial(f.Leader, k.number))
			m.mu.loops[k] = l
		}
		tp := f.Partition.TP()
		if before := m.mu.of[tp].by; before != nil && before != l {
			before.remove([]commitlog.TopicPartition{tp})
		}
		m.mu.of[tp] = fetched{by: l, from: f}
		if perLoop[l] == nil {
			order = append(order, l)
		}
		perLoop[l] = append(perLoop[l], f)
	}
	for _, l := range order {
		l.add(perLoop[l])
	}
	m.endIdleLocked()
}

// Remove implements partition.Fetchers.
func (m *Manager) Remove(tps []commitlog.TopicPartition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	perLoop := map[*loop][]commitlog.TopicPartition{}
	for _, tp := range tps {
		if l := m.mu.of[tp].by; l != nil {
			perLoop[l] = append(perLoop[l], tp)
			delete(m.mu.of, tp)
		}
	}
	for l, gone := range perLoop {
		l.remove(gone)
	}
}

// endIdleLocked ends fetchers without partitions. Only additions do it: between
// the removal and the addition of one order a fetcher is often idle for a moment.
func (m *Manager) endIdleLocked() {
	for k, l := range m.mu.loops {
		if l.remove(nil) == 0 {
			delete(m.mu.loops, k)
			l.stop()
		}
	}
}

// fetcherNumber spreads partitions over the fetchers of a leader, evenly within
// a topic.
func fetcherNumber(tp commitlog.TopicPartition, fetchers int) uint32 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(tp.Topic) {
		h = (h ^ uint32(tp.Topic[i])) * 16777619
	}
	return (h + uint32(tp.Partition)) % uint32(fetchers)
}

// Counts are numbers for metrics.
type Counts struct {
	Fetchers   int
	Partitions int
	Failed     int   // given up until an order brings them again
	MaxLag     int64 // records behind a leader's high watermark
}

// Counts counts.
func (m *Manager) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Counts{Fetchers: len(m.mu.loops)}
	for _, l := range m.mu.loops {
		lag, partitions := l.maxLag()
		c.Partitions += partitions
		c.MaxLag = max(c.MaxLag, lag)
	}
	c.Failed = len(m.mu.of) - c.Partitions
	return c
}

// Close stops every goroutine and waits for it.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.closed = true
	for k, l := range m.mu.loops {
		delete(m.mu.loops, k)
		l.stop()
	}
	clear(m.mu.of)
}

var _ partition.Fetchers = (*Manager)(nil)
