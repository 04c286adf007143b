package api

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/commitlog"
	"barnabas/broker/group"
	"barnabas/broker/metadata"
	"barnabas/broker/record"
)

// playedTopic is a topic of a coordinator, which takes everything and begins empty.
type playedTopic struct{ next atomic.Int64 }

func (p *playedTopic) Append(_ int32, batch []byte, _ *commitlog.VerificationGuard, done func(int64, error)) {
	n := int64(record.Batch(batch).Count())
	done(p.next.Add(n)-n, nil)
}

func (p *playedTopic) Read(context.Context, int32, func(record.Entry)) error { return nil }

// playedLegacy is ZooKeeper's /consumers.
type playedLegacy struct{ offsets sync.Map }

func (p *playedLegacy) key(name, topic string, partition int32) string {
	return fmt.Sprintf("%s/%s/%d", name, topic, partition)
}

func (p *playedLegacy) Commit(_ context.Context, name, topic string, partition int32, offset int64) error {
	p.offsets.Store(p.key(name, topic, partition), offset)
	return nil
}

func (p *playedLegacy) Fetch(_ context.Context, name, topic string, partition int32) (int64, bool, error) {
	offset, found := p.offsets.Load(p.key(name, topic, partition))
	if !found {
		return 0, false, nil
	}
	return offset.(int64), true, nil
}

// newGroups is the coordinator of every group that belongs to one of 50
// partitions, all led here.
func newGroups(t testing.TB, cache *metadata.Cache) *group.Coordinator {
	groups := group.New(group.Config{
		Core:                group.CoreConfig{InitialRebalanceDelayMs: 100, MaxSize: 1000, OffsetMetadataMaxBytes: 4096, OffsetsRetentionMs: 1e9, Format: group.FormatSince23},
		MinSessionTimeoutMs: 6000, MaxSessionTimeoutMs: 1_800_000, ExpiryCheck: time.Hour,
		Partitions: func() (int32, bool) {
			if topic := cache.Load().Topic(offsetsTopic); topic != nil {
				return int32(len(topic.Partitions)), true
			}
			return 50, false
		},
		Now: time.Now, Log: quiet(),
	}, &playedTopic{})
	for p := range int32(50) {
		groups.Lead(p, 0)
	}
	t.Cleanup(groups.Close)
	require.Eventually(t, func() bool {
		loaded := make(chan error, 1)
		groups.List(func(_ []group.Listed, err error) { loaded <- err })
		return <-loaded == nil
	}, time.Minute, time.Millisecond)
	return groups
}
