package field

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

// BR-004, BR-043: what a producer sent before a crash is known after it, from the snapshot or from the log.
func TestAProducerIsKnownAfterAKill(t *testing.T) {
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, map[string]string{"zookeeper.session.timeout.ms": "3000"})
	b := c.Brokers[0]
	createTopic(t, b.Addr, "known", 1, 1)
	p := newProducer(dial(t, b.Addr))
	send := func(sequence int32, values ...string) kmsg.ProduceResponseTopicPartition {
		return produce(dial(t, b.Addr), 9, "known", 0, -1, batch{producer: p, sequence: sequence, records: plainly(time.Now().UnixMilli(), values...)}.encode(t))
	}
	const last = 2147483647
	for i, sequence := range []int32{last - 4, last - 3, last - 2, last - 1, last} {
		require.EqualValues(t, i, send(sequence, "x").BaseOffset)
	}
	for round, restart := range []func(){func() { b.Kill(t) }, func() { b.Stop(t) }} {
		restart()
		b.Start(t)
		b.WaitReady(t)
		awaitLeaders(t, dial(t, b.Addr), "known", 1)
		for i := round; i < 5; i++ {
			again := send(last-4+int32(i), "x")
			assert.Equal(t, []int64{0, int64(i)}, []int64{int64(again.ErrorCode), again.BaseOffset}, "batch %d, after restart %d", i, round)
		}
		assert.Equal(t, kerr.OutOfOrderSequenceNumber.Code, send(int32(round)+3, "gap").ErrorCode)
		assert.EqualValues(t, 5+round, send(int32(round), "next").BaseOffset, "after 2147483647 comes 0")
	}
}

// BR-010: a producer that was forgotten goes on where it stopped.
func TestAForgottenProducerGoesOn(t *testing.T) {
	const expiration = time.Second
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, map[string]string{"producer.id.expiration.ms": fmt.Sprint(expiration.Milliseconds()), "producer.id.expiration.check.interval.ms": "200"})
	b := c.Brokers[0]
	createTopic(t, b.Addr, "quiet", 1, 1)
	k := dial(t, b.Addr)
	p := newProducer(k)
	send := func(sequence int32) int16 {
		return produce(k, 9, "quiet", 0, -1, batch{producer: p, sequence: sequence, records: plainly(time.Now().UnixMilli(), "x")}.encode(t)).ErrorCode
	}
	require.Zero(t, send(0))
	began := time.Now()
	require.Zero(t, send(1))
	if refused := send(7); time.Since(began) < expiration {
		assert.Equal(t, kerr.OutOfOrderSequenceNumber.Code, refused, "as long as it is known")
	}
	eventually(t, func() bool { return send(7) == 0 }, "any sequence is taken")
	assert.Zero(t, send(8), "and the next")
}

// BR-017: whatever became of the files beside the logs, and of the logs' ends, the broker starts and serves what was whole.
func TestDamagedIndexesAreRebuilt(t *testing.T) {
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, map[string]string{"zookeeper.session.timeout.ms": "3000", "log.segment.bytes": "16384", "log.index.interval.bytes": "512", "log.retention.ms": "-1"})
	b := c.Brokers[0]
	createTopic(t, b.Addr, "whole", 2, 1)
	const n = 400
	for i := range n {
		stored(dial(t, b.Addr), "whole", 0, batch{records: plainly(int64(1000+i), fmt.Sprintf("value %d %s", i, strings.Repeat("x", 100)))})
	}
	dir := filepath.Join(b.Dir, "whole-0")
	each := func(pattern string, do func(file string) error) func() {
		return func() {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			require.NoError(t, err)
			require.NotEmpty(t, files, pattern)
			slices.Sort(files)
			for _, file := range files {
				require.NoError(t, do(file))
			}
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	require.NoError(t, err)
	require.Greater(t, len(logs), 2)
	tail := logs[len(logs)-1]
	damages := []struct {
		name string
		kill bool
		do   func()
		lost int // whole batches at the end
	}{
		{"zeros of 10 MiB", false, each("*index", func(f string) error { return os.WriteFile(f, make([]byte, 10<<20), 0o600) }), 0},
		{"three bytes", true, each("*index", func(f string) error { return os.Truncate(f, 3) }), 0},
		{"none", false, each("*index", os.Remove), 0},
		{"noise", true, each("*index", func(f string) error { return os.WriteFile(f, []byte(strings.Repeat("noise!!!", 99)), 0o600) }), 0},
		{"no snapshots and no epochs", true, each("leader-epoch-checkpoint", os.Remove), 0},
		{"leftovers", false, func() {
			for _, name := range []string{"00000000000000000003.log.cleaned", "00000000000000000003.index.deleted", "00000000000000000007.timeindex.swap", "x.tmp"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("leftover"), 0o600))
			}
		}, 0},
		{"zeros behind the log's end", true, func() {
			f, err := os.OpenFile(tail, os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.Write(make([]byte, 100))
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}, 0},
		{"a log cut inside its last batch", true, func() {
			info, err := os.Stat(tail)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(tail, info.Size()-7))
		}, 1},
	}
	end := n
	for _, damage := range damages {
		if damage.kill {
			b.Kill(t)
		} else {
			b.Stop(t)
		}
		damage.do()
		b.Start(t)
		b.WaitReady(t)
		k := dial(t, b.Addr)
		awaitLeaders(t, k, "whole", 2)
		end -= damage.lost
		require.EqualValues(t, end, listOffset(k, 5, "whole", 0, latest).Offset, damage.name)
		for _, i := range []int{0, 1, n / 3, n / 2, end - 1} {
			got := listOffset(k, 5, "whole", 0, int64(1000+i))
			require.EqualValues(t, i, got.Offset, "%s: record %d by its time", damage.name, i)
			require.True(t, strings.HasPrefix(values(t, k, "whole", 0, int64(i))[0], fmt.Sprintf("value %d ", i)), damage.name)
		}
		assert.Zero(t, listOffset(k, 5, "whole", 1, latest).Offset)
	}
}

// BR-067: what others put into a log directory does not stop the broker, or stops it with the name.
func TestForeignNamesInALogDirectory(t *testing.T) {
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, map[string]string{"zookeeper.session.timeout.ms": "3000", "log.segment.delete.delay.ms": "500", "log.retention.ms": "-1"})
	b := c.Brokers[0]
	createTopic(t, b.Addr, "mine", 1, 1)
	stored(dial(t, b.Addr), "mine", 0, batch{records: plainly(1, "x")})
	b.Stop(t)
	for _, name := range []string{".DS_Store", "x.log", "notes.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(b.Dir, name), []byte("?"), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(b.Dir, "lost+found"), 0))
	gone := filepath.Join(b.Dir, "gone-0."+strings.Repeat("a", 32)+"-delete")
	require.NoError(t, os.Mkdir(gone, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(gone, "00000000000000000000.log"), nil, 0o600))
	stray := filepath.Join(b.Dir, "unheard-of-0")
	require.NoError(t, os.Mkdir(stray, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(stray, "00000000000000000000.log"), batch{records: plainly(1, "kept")}.encode(t), 0o600))
	b.Start(t)
	b.WaitReady(t)
	awaitLeaders(t, dial(t, b.Addr), "mine", 1)
	assert.Equal(t, []string{"x"}, values(t, dial(t, b.Addr), "mine", 0, 0))
	eventually(t, func() bool { _, err := os.Stat(gone); return os.IsNotExist(err) }, "what was marked for deletion is deleted")
	kept, err := filepath.Glob(filepath.Join(b.Dir, "unheard-of-0*"))
	require.NoError(t, err)
	assert.Len(t, kept, 1, "a log of a topic that nobody knows is kept")
}

// BR-034: a start inside a batch survives restarts, and followers live with it.
func TestAStartInsideABatchOnEveryReplica(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 2, map[string]string{"zookeeper.session.timeout.ms": "3000", "replica.lag.time.max.ms": "2000", "log.flush.start.offset.checkpoint.interval.ms": "200", "auto.leader.rebalance.enable": "false"})
	topic := creation("inside", -1, -1)
	topic.ReplicaAssignment = append(topic.ReplicaAssignment, assignment(0, 1, 2))
	require.Zero(t, create(dialController(t, c.Brokers[0].Addr), 5, false, topic)["inside"].ErrorCode)
	awaitLeaders(t, dial(t, c.Brokers[0].Addr), "inside", 1)
	awaitISR(t, c.Brokers[0].Addr, 2)
	var hundred []string
	for i := range 100 {
		hundred = append(hundred, fmt.Sprint(i))
	}
	leader, follower := c.Brokers[0], c.Brokers[1]
	for range 3 {
		stored(dial(t, leader.Addr), "inside", 0, batch{records: plainly(time.Now().UnixMilli(), hundred...)})
	}
	assert.Equal(t, kerr.NotLeaderForPartition.Code, deleteRecords(dial(t, follower.Addr), "inside", 0, 150).ErrorCode)
	got := deleteRecords(dial(t, leader.Addr), "inside", 0, 150)
	require.Equal(t, []int64{0, 150}, []int64{int64(got.ErrorCode), got.LowWatermark})

	follower.Stop(t)
	require.NoError(t, os.RemoveAll(filepath.Join(follower.Dir, "inside-0"))) // it begins anew, inside the batch
	follower.Start(t)
	follower.WaitReady(t)
	awaitISR(t, leader.Addr, 2)
	for _, b := range c.Brokers { // as Kafka, a broker may forget it in a crash until it stands in the checkpoint
		eventually(t, func() bool {
			text, _ := os.ReadFile(filepath.Join(b.Dir, "log-start-offset-checkpoint"))
			return strings.Contains(string(text), "inside 0 150")
		}, "broker %d has noted the start", b.ID)
	}
	for _, b := range c.Brokers {
		b.Kill(t)
	}
	for _, b := range c.Brokers {
		b.Start(t)
	}
	for _, b := range c.Brokers {
		b.WaitReady(t)
	}
	awaitISR(t, leader.Addr, 2)
	for range 2 { // each of the two leads once
		now := leaderOf(t, c, "inside")
		k := dial(t, now.Addr)
		eventually(t, func() bool { return listOffset(k, 5, "inside", 0, earliest).Offset == 150 }, "broker %d begins at 150", now.ID)
		eventually(t, func() bool { return listOffset(k, 5, "inside", 0, latest).Offset == 300 }, "broker %d knows again what is committed", now.ID)
		first := values(t, k, "inside", 0, 150)
		require.Len(t, first, 150)
		assert.Equal(t, "50", first[0])
		now.Stop(t)
		require.NotEqual(t, now.ID, leaderOf(t, c, "inside").ID, "the other leads")
		now.Start(t)
		now.WaitReady(t)
		awaitISR(t, now.Addr, 2)
	}
}
