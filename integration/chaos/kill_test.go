// Package chaos does harm to running brokers and then asks what became of the records that they had acknowledged.
package chaos

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/broker/commitlog"
	"barnabas/broker/vfs"
	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

const (
	kills      = 20
	partitions = 6
)

// acked remembers, for each partition, the offset at which each acknowledged record must be.
type acked struct {
	sync.Mutex
	at map[int32]map[int64]uint64
	n  int
}

func (a *acked) add(r *kgo.Record) {
	a.Lock()
	defer a.Unlock()
	if a.at[r.Partition] == nil {
		a.at[r.Partition] = map[int64]uint64{}
	}
	a.at[r.Partition][r.Offset] = binary.BigEndian.Uint64(r.Value)
	a.n++
}

func (a *acked) count() int {
	a.Lock()
	defer a.Unlock()
	return a.n
}

// A process that is killed loses nothing that it had written: the page cache outlives it. So with acks=1, too, every acknowledged record must be there after each restart, at the
// offset that the answer gave.
func TestAcknowledgedRecordsSurviveTwentyKills(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"log.segment.bytes": "4194304", "zookeeper.session.timeout.ms": "2000"})
	b := c.Brokers[0]
	admin, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...))
	require.NoError(t, err)
	_, err = kadm.NewClient(admin).CreateTopics(context.Background(), partitions, 1, nil, "load")
	require.NoError(t, err)
	admin.Close()

	seen := &acked{at: map[int32]map[int64]uint64{}}
	ctx, stop := context.WithCancel(context.Background())
	var producing sync.WaitGroup
	var number atomic.Uint64
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		producing.Go(func() {
			produce(ctx, t, c.Seeds(), &number, seen, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.ProducerBatchCompression(codec))
		})
	}
	before := 0
	for round := range kills {
		require.Eventually(t, func() bool { return seen.count() > before+2000 }, time.Minute, 5*time.Millisecond, "records are acknowledged again after kill %d", round)
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // at no particular moment
		b.Kill(t)
		before = seen.count()
		b.Start(t)
		b.WaitReady(t)
		if round%5 == 0 {
			check(t, c.Seeds(), seen)
		}
	}
	stop()
	producing.Wait()
	check(t, c.Seeds(), seen)
	b.Kill(t)
	b.Start(t)
	b.WaitReady(t)
	b.Stop(t)
	verify(t, b.Dir)
	t.Logf("%d kills, %d acknowledged records, all there", kills, seen.count())
	assert.Greater(t, seen.count(), kills*2000)
}

func produce(ctx context.Context, t *testing.T, seeds []string, number *atomic.Uint64, seen *acked, opts ...kgo.Opt) {
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(seeds...), kgo.DefaultProduceTopic("load"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.MaxBufferedRecords(500))...)
	if !assert.NoError(t, err) {
		return
	}
	defer client.Close()
	for ctx.Err() == nil {
		value := make([]byte, 8+rand.IntN(200))
		binary.BigEndian.PutUint64(value, number.Add(1))
		client.Produce(ctx, &kgo.Record{Value: value}, func(r *kgo.Record, err error) {
			if err == nil {
				seen.add(r)
			}
		})
	}
	flush, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = client.Flush(flush)
}

// check reads every partition from its start and looks for each acknowledged record at its offset.
func check(t *testing.T, seeds []string, seen *acked) {
	t.Helper()
	seen.Lock()
	missing := map[int32]map[int64]uint64{}
	want := 0
	for p, offsets := range seen.at {
		missing[p] = map[int64]uint64{}
		for offset, value := range offsets {
			missing[p][offset] = value
			want++
		}
	}
	seen.Unlock()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumeTopics("load"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(50*time.Millisecond))
	require.NoError(t, err)
	defer client.Close()
	next := map[int32]int64{}
	for found := 0; found < want; {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		fetches := client.PollFetches(ctx)
		cancel()
		require.NoError(t, fetches.Err(), "%d of %d acknowledged records were found", found, want)
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			require.Equal(t, next[r.Partition], r.Offset, "offsets of partition %d have no gap", r.Partition)
			next[r.Partition]++
			if value, ok := missing[r.Partition][r.Offset]; ok {
				require.Equal(t, value, binary.BigEndian.Uint64(r.Value), "partition %d offset %d", r.Partition, r.Offset)
				delete(missing[r.Partition], r.Offset)
				found++
			}
		}
	}
}

// verify lets the storage's own judge look at every partition directory.
func verify(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	logs := 0
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "load-") {
			continue
		}
		problems, err := commitlog.Verify(vfs.OS, filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		assert.Empty(t, problems, e.Name())
		logs++
	}
	assert.Equal(t, partitions, logs)
}
