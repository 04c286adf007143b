package partition

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/purgatory"
)

// defaultMaxWaiting bounds the parked requests of each kind.
const defaultMaxWaiting = 1_000_000

// retryCheck is how often ISR changes without a certain answer are looked at.
const retryCheck = 100 * time.Millisecond

// Manager is all replicas of this broker.
//
// Goroutines, all started by NewManager and ended by Close: one that looks after
// ISRs and failed directories, one per kind of waiting request for deadlines
// (purgatory), and the flushers of thin ISRs.
type Manager struct {
	cfg      Config
	logs     *commitlog.Manager
	isr      ISRChanger
	fetchers Fetchers

	LeaderThrottle Throttle // leader.replication.throttled.rate

	brokerEpoch atomic.Int64 // of this broker's own registration; -1: not registered yet

	// orders is held while a controller's order is carried out: one at a time.
	orders struct {
		sync.Mutex
		controllerEpoch int32
		closed          bool
	}

	mu struct {
		sync.RWMutex
		partitions map[commitlog.TopicPartition]*Partition // nil value: offline
		offline    map[commitlog.TopicPartition]offline
		brokers    map[int32]BrokerInfo
		traffic    map[string]*traffic // by topic
	}

	waiting struct {
		produces, fetches, deletes *purgatory.Purgatory
	}

	counts struct {
		isrExpanded, isrShrunk, isrFailed atomic.Int64
	}

	traffic traffic // of all replicas

	retries struct {
		sync.Mutex
		due map[*Partition]bool // with an ISR change that is to be sent again
	}

	flusher flusher // of thin ISRs

	transitions int // replicas that change their role at the same time

	dirs struct {
		sync.Mutex
		events []dirEvent // in the order in which they happened
		tell   chan struct{}
	}

	stop    chan struct{}
	stopped chan struct{}
}

// NewManager returns a Manager without replicas; they come with the first orders
// of a controller. Logs that are there already have the high watermark of their
// checkpoint, and keep it even if no order ever names a leader for them
// (KAFKA-1647, H34).
func NewManager(cfg Config, logs *commitlog.Manager, isr ISRChanger, fetchers Fetchers) *Manager {
	m := newManager(cfg, logs, isr, fetchers)
	m.transitions = transitionsAtOnce
	m.flusher.start()
	go m.housekeep()
	return m
}

// newManager is NewManager without its goroutines but those of the deadlines.
func newManager(cfg Config, logs *commitlog.Manager, isr ISRChanger, fetchers Fetchers) *Manager {
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = defaultMaxWaiting
	}
	if cfg.Movers == nil {
		cfg.Movers = noMovers{}
	}
	m := &Manager{cfg: cfg, logs: logs, isr: isr, fetchers: fetchers, stop: make(chan struct{}), stopped: make(chan struct{})}
	m.retries.due = map[*Partition]bool{}
	m.dirs.tell = make(chan struct{}, 1)
	m.brokerEpoch.Store(None)
	m.mu.partitions = map[commitlog.TopicPartition]*Partition{}
	m.mu.offline = map[commitlog.TopicPartition]offline{}
	m.mu.brokers = map[int32]BrokerInfo{}
	m.mu.traffic = map[string]*traffic{}
	m.waiting.produces = purgatory.New(cfg.MaxWaiting)
	m.waiting.fetches = purgatory.New(cfg.MaxWaiting)
	m.waiting.deletes = purgatory.New(cfg.MaxWaiting)
	m.flusher.init()
	return m
}

// Close answers what waits and ends the goroutines. Fetchers are the caller's to
// close before, logs after.
func (m *Manager) Close() {
	m.orders.Lock()
	closed := m.orders.closed
	m.orders.closed = true
	m.orders.Unlock()
	if closed {
		return
	}
	close(m.stop)
	<-m.stopped
	m.flusher.stop()
	m.waiting.produces.Close()
	m.waiting.fetches.Close()
	m.waiting.deletes.Close()
}

// housekeep is the goroutine that shrinks ISRs, every half of
// replica.lag.time.max.ms, repeats changes whose answer was uncertain, takes the
// replicas of failed directories offline, and brings back those of directories
// that came back.
func (m *Manager) housekeep() {
	defer close(m.stopped)
	shrink := time.NewTicker(max(m.cfg.ReplicaLagTimeMax/2, time.Millisecond))
	defer shrink.Stop()
	retry := time.NewTicker(retryCheck)
	defer retry.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-shrink.C:
			m.shrinkISRs()
		case <-retry.C:
			m.retryISRs()
		case <-m.dirs.tell:
			m.followDirs()
		}
	}
}

func (m *Manager) shrinkISRs() {
	for _, p := range m.All() {
		p.shrinkISR()
	}
}

// retryLater notes that a change of p's ISR is to be sent again.
func (m *Manager) retryLater(p *Partition) {
	m.retries.Lock()
	m.retries.due[p] = true
	m.retries.Unlock()
}

func (m *Manager) retryISRs() {
	m.retries.Lock()
	due := m.retries.due
	if len(due) > 0 {
		m.retries.due = map[*Partition]bool{}
	}
	m.retries.Unlock()
	for p := range due {
		p.retryISR()
	}
}

// All returns the replicas that are not offline, in no particular order.
func (m *Manager) All() []*Partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([]*Partition, 0, len(m.mu.partitions))
	for _, p := range m.mu.partitions {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// Partition returns a replica of this broker, or nil if it has none or it is
// offline.
func (m *Manager) Partition(topic string, partition int32) *Partition {
	return m.lookup(commitlog.TopicPartition{Topic: topic, Partition: partition})
}

func (m *Manager) lookup(tp commitlog.TopicPartition) *Partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mu.partitions[tp]
}

// hosted returns a replica for a client's request, or the error that tells the
// client what to do.
func (m *Manager) hosted(tp commitlog.TopicPartition) (*Partition, error) {
	m.mu.RLock()
	p, known := m.mu.partitions[tp]
	m.mu.RUnlock()
	switch {
	case p != nil:
		return p, nil
	case known:
		return nil, kerr.KafkaStorageError
	case m.cfg.InMetadata != nil && m.cfg.InMetadata(tp):
		return nil, kerr.NotLeaderForPartition
	}
	return nil, kerr.UnknownTopicOrPartition
}

// Counts are numbers of replicas, for metrics.
type Counts struct {
	Replicas, Leaders, Offline          int
	UnderReplicated, UnderMinISR, AtMin int
	Reassigning                         int
	WaitingFetches, WaitingProduces     int
	WaitingDeletes                      int   // DeleteRecords
	ISRExpanded, ISRShrunk, ISRFailed   int64 // since start
}

// Counts counts.
func (m *Manager) Counts() Counts {
	c := Counts{
		WaitingFetches: m.waiting.fetches.Len(), WaitingProduces: m.waiting.produces.Len(), WaitingDeletes: m.waiting.deletes.Len(),
		ISRExpanded: m.counts.isrExpanded.Load(), ISRShrunk: m.counts.isrShrunk.Load(), ISRFailed: m.counts.isrFailed.Load(),
	}
	m.mu.RLock()
	for _, p := range m.mu.partitions {
		if p == nil {
			c.Offline++
		}
	}
	m.mu.RUnlock()
	for _, p := range m.All() {
		c.Replicas++
		s := p.Status()
		if !s.IsLeader {
			continue
		}
		c.Leaders++
		if len(s.ISR) < len(s.Replicas) {
			c.UnderReplicated++
		}
		if s.UnderMinISR {
			c.UnderMinISR++
		}
		if s.AtMinISR {
			c.AtMin++
		}
		if s.Reassigning {
			c.Reassigning++
		}
	}
	return c
}

// SetBrokerEpoch tells under which registration this broker is known now.
// Controllers' orders for an older one are refused (KIP-380, H26).
func (m *Manager) SetBrokerEpoch(epoch int64) { m.brokerEpoch.Store(epoch) }

// SetAliveBrokers tells which brokers are alive. The map is kept: it must not be
// changed afterwards. A broker whose epoch grew has restarted; leaders forget
// what they knew of its replicas (KIP-903, H17).
func (m *Manager) SetAliveBrokers(alive map[int32]BrokerInfo) {
	m.mu.Lock()
	m.mu.brokers = alive
	m.mu.Unlock()
	for _, p := range m.All() {
		p.setBrokers(alive)
	}
}

func (m *Manager) aliveBrokers() map[int32]BrokerInfo {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mu.brokers
}

// VerifyTransaction starts, or continues, the check that a producer's
// transaction knows this partition (KIP-890). nil without error: there is
// nothing to check, the transaction is already open here.
func (m *Manager) VerifyTransaction(topic string, partition int32, producerID int64, sequence int32, epoch int16) (*commitlog.VerificationGuard, error) {
	p, err := m.hosted(commitlog.TopicPartition{Topic: topic, Partition: partition})
	if err != nil {
		return nil, err
	}
	p.role.RLock()
	defer p.role.RUnlock()
	log, err := p.local(None, true)
	if err != nil {
		return nil, err
	}
	return log.VerifyTransaction(producerID, sequence, epoch), nil
}
