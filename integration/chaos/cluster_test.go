package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

// Any broker of three is killed, the controller among them, while idempotent producers wait for all in-sync replicas: what was acknowledged is there, at its offset, once.
func TestAcksAllSurvivesKillsOfAnyBroker(t *testing.T) {
	const rounds = 10
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 3, map[string]string{"min.insync.replicas": "2", "log.segment.bytes": "4194304", "zookeeper.session.timeout.ms": "2000", "replica.lag.time.max.ms": "2000"})
	admin, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...))
	require.NoError(t, err)
	_, err = kadm.NewClient(admin).CreateTopics(context.Background(), partitions, 3, nil, "load")
	require.NoError(t, err)
	defer admin.Close()

	seen := &acked{at: map[int32]map[int64]uint64{}}
	ctx, stop := context.WithCancel(context.Background())
	var producing sync.WaitGroup
	var number atomic.Uint64
	for range 2 {
		producing.Go(func() { produce(ctx, t, c.Seeds(), &number, seen, kgo.ProducerLinger(time.Millisecond)) })
	}
	before := 0
	for round := range rounds {
		require.Eventually(t, func() bool { return seen.count() > before+1000 }, time.Minute, 5*time.Millisecond, "records are acknowledged again after kill %d", round)
		b := c.Brokers[rand.IntN(3)]
		b.Kill(t)
		before = seen.count()
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Millisecond) // sometimes shorter, sometimes longer than the session
		b.Start(t)
		b.WaitReady(t)
		awaitFullISR(t, admin)
	}
	stop()
	producing.Wait()
	awaitFullISR(t, admin)
	check(t, c.Seeds(), seen)
	for _, b := range c.Brokers {
		b.Stop(t)
		verify(t, b.Dir)
	}
	t.Logf("%d kills, %d acknowledged records, all there", rounds, seen.count())
	assert.Greater(t, seen.count(), rounds*1000)
}

// awaitFullISR waits until every partition has all its replicas in sync, so that the next fault meets a whole cluster.
func awaitFullISR(t *testing.T, client *kgo.Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		topics, err := kadm.NewClient(client).ListTopics(context.Background(), "load")
		if err != nil {
			return false
		}
		whole := 0
		topics.EachPartition(func(p kadm.PartitionDetail) {
			if p.Leader >= 0 && len(p.ISR) == 3 {
				whole++
			}
		})
		return whole == partitions
	}, time.Minute, 50*time.Millisecond, "every partition has its three replicas in sync again")
}
