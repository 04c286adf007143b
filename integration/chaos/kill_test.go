// Package chaos does harm to running brokers and then asks what became of the records that they had acknowledged.
package chaos

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/zkstate/zktest"
)

const partitions = 6

// A process that is killed loses nothing that it had written: the page cache outlives it. So with acks=1, too, every acknowledged record must be there after each restart, at the
// offset that the answer gave.
func TestAcknowledgedRecordsSurviveTwentyKills(t *testing.T) {
	const kills = 20
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"log.segment.bytes": "4194304", "zookeeper.session.timeout.ms": "2000"})
	createTopic(t, c.Seeds(), loaded, partitions, 1)
	load := history.Start(t, history.Config{Seeds: c.Seeds(), Topic: loaded, Producers: 3, PerSecond: 10_000, MaxValue: 200,
		Options: []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck())},
		Codecs:  []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}})
	b := c.Brokers[0]
	for round := range kills {
		load.Progress(t, 2000, "after kill "+strconv.Itoa(round))
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // at no particular moment
		b.Kill(t)
		b.Start(t)
		b.WaitReady(t)
	}
	assert.Empty(t, load.Finish(t, history.Promise{}))
	b.Kill(t)
	b.Start(t)
	b.WaitReady(t)
	b.Stop(t)
	for p := range partitions {
		assert.Empty(t, history.Verify(b.Dir, loaded+"-"+strconv.Itoa(p)))
	}
	t.Logf("%d kills, %d acknowledged records", kills, load.Acked())
}

// Any broker of three is killed, the controller among them, while idempotent producers wait for all in-sync replicas: what was acknowledged is there, at its offset, once, in order.
func TestAcksAllSurvivesKillsOfAnyBroker(t *testing.T) {
	const kills = 10
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 3, map[string]string{"min.insync.replicas": "2", "log.segment.bytes": "4194304", "zookeeper.session.timeout.ms": "2000", "replica.lag.time.max.ms": "2000",
		"controlled.shutdown.retry.backoff.ms": "100"})
	createTopic(t, c.Seeds(), loaded, partitions, 3)
	load := history.Start(t, history.Config{Seeds: c.Seeds(), Topic: loaded, Producers: 2, PerSecond: 5000, MaxValue: 200})
	for round := range kills {
		load.Progress(t, 1000, "after kill "+strconv.Itoa(round))
		b := c.Brokers[rand.IntN(3)]
		b.Kill(t)
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Millisecond) // sometimes shorter, sometimes longer than the session
		b.Start(t)
		b.WaitReady(t)
		c.WaitWhole(t, loaded, partitions, 3)
	}
	assert.Empty(t, load.Finish(t, history.Promise{Idempotent: true}))
	assert.Empty(t, load.Refused())
	var dirs []string
	for _, b := range c.Brokers {
		b.Stop(t)
		dirs = append(dirs, b.Dir)
	}
	for p := range partitions {
		name := loaded + "-" + strconv.Itoa(p)
		assert.Empty(t, history.CompareReplicas(dirs, name))
		for _, dir := range dirs {
			assert.Empty(t, history.Verify(dir, name))
		}
	}
	t.Logf("%d kills, %d acknowledged records", kills, load.Acked())
}
