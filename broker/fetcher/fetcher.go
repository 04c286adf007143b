package fetcher

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
)

// Transport is one connection to a leader; peer.Peer is one.
type Transport interface {
	Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	Close()
}

// Config is what the fetchers need to know. Zero sizes and times take Kafka's
// defaults.
type Config struct {
	BrokerID     int32
	BrokerEpoch  func() int64
	IBP          string        // such as "3.9" or "2.7-IV2"
	NumFetchers  int           // num.replica.fetchers
	MaxBytes     int32         // replica.fetch.response.max.bytes
	PartitionMax int32         // replica.fetch.max.bytes
	MinBytes     int32         // replica.fetch.min.bytes
	MaxWait      time.Duration // replica.fetch.wait.max.ms
	Backoff      time.Duration // replica.fetch.backoff.ms
	Dial         func(leader partition.Endpoint, fetcher int) Transport
	Log          *logrus.Entry
	Now          func() time.Time
}

// Manager owns the fetcher goroutines. It implements partition.Fetchers.
type Manager struct{ cfg Config }

// New returns a Manager without goroutines; each starts with the first
// partition that is to be fetched from its leader.
func New(cfg Config) *Manager { return &Manager{cfg: cfg} }

// Add implements partition.Fetchers.
func (m *Manager) Add(from []partition.FetchFrom) { panic("unwritten") }

// Remove implements partition.Fetchers.
func (m *Manager) Remove(tps []commitlog.TopicPartition) { panic("unwritten") }

// Close stops every goroutine and waits for it.
func (m *Manager) Close() {}

var _ partition.Fetchers = (*Manager)(nil)
