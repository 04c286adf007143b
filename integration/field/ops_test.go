package field

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

// startsNot starts a broker that must end by itself, and returns what it said.
func startsNot(t *testing.T, b *cluster.Broker) string {
	t.Helper()
	before := len(b.LogTail(1 << 20))
	b.Start(t)
	assert.NotZero(t, b.ExitCode(t, patience))
	return b.LogTail(1 << 20)[before:]
}

// BR-049: a log directory of another cluster, or of another broker, is refused in words that name both; nothing is deleted.
func TestADirectoryOfAnotherClusterOrBrokerIsRefused(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"zookeeper.session.timeout.ms": "3000", "log.retention.ms": "-1"})
	b := c.Brokers[0]
	createTopic(t, b.Addr, "kept", 1, 1)
	stored(dial(t, b.Addr), "kept", 0, batch{records: plainly(1, "x")})
	b.Stop(t)
	meta := filepath.Join(b.Dir, "meta.properties")
	good, err := os.ReadFile(meta)
	require.NoError(t, err)
	log := filepath.Join(b.Dir, "kept-0", "00000000000000000000.log")
	for _, wrong := range []struct{ old, now string }{
		{"cluster.id=", "cluster.id=AnotherClusterAltoge"}, {"broker.id=1", "broker.id=7"}, {"version=0", "version=1"},
	} {
		require.NoError(t, os.WriteFile(meta, []byte(strings.Replace(string(good), wrong.old, wrong.now, 1)), 0o600))
		said := startsNot(t, b)
		assert.Contains(t, said, "meta.properties", wrong.now)
		assert.NotContains(t, said, "goroutine ", wrong.now)
		assert.FileExists(t, log)
	}
	require.NoError(t, os.WriteFile(meta, good, 0o600))
	b.Start(t)
	b.WaitReady(t)
	awaitLeaders(t, dial(t, b.Addr), "kept", 1)
	assert.Equal(t, []string{"x"}, values(t, dial(t, b.Addr), "kept", 0, 0))

	b.Stop(t) // the directory alone is lost: it starts, empty
	require.NoError(t, os.RemoveAll(b.Dir))
	b.Start(t)
	b.WaitReady(t)
	awaitLeaders(t, dial(t, b.Addr), "kept", 1)
	assert.Zero(t, listOffset(dial(t, b.Addr), 5, "kept", 0, latest).Offset)
}

// BR-065: a broker that is told to stop stops, also when ZooKeeper went first, and leaves its logs closed.
func TestABrokerStopsWithoutZooKeeper(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 2, nil)
	createTopic(t, c.Brokers[0].Addr, "closed", 2, 2)
	zk.Stop()
	for _, b := range c.Brokers {
		began := time.Now()
		b.Stop(t)
		assert.Less(t, time.Since(began), 30*time.Second)
		assert.FileExists(t, filepath.Join(b.Dir, ".kafka_cleanshutdown"))
	}
	zk.Start()
}

// BR-065: a port that is taken is named, and nothing is registered.
func TestATakenPortIsNamed(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, nil)
	b := c.Brokers[0]
	b.Stop(t)
	other := ours().Brokers[0].Addr
	_, port, _ := strings.Cut(other, ":")
	b.Set("listeners", "PLAINTEXT://"+other)
	said := startsNot(t, b)
	assert.Contains(t, said, port)
	assert.Zero(t, openTree(t, zk.Addr()).registered(1))
}

// BR-031: where deletion is disabled a request for it is removed, and nothing comes of it later either.
func TestDisabledDeletionLeavesTheTopicUsable(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"delete.topic.enable": "false", "zookeeper.session.timeout.ms": "3000", "log.retention.ms": "-1"})
	b, z := c.Brokers[0], openTree(t, zk.Addr())
	createTopic(t, b.Addr, "stays", 1, 1)
	assert.Equal(t, kerr.TopicDeletionDisabled.Code, deleteTopic(t, dial(t, b.Addr), "stays"))
	z.write("/admin/delete_topics/stays", "")
	eventually(t, func() bool { return !z.exists("/admin/delete_topics/stays") }, "the request is removed")
	assert.Zero(t, stored(dial(t, b.Addr), "stays", 0, batch{records: plainly(1, "x")}))
	b.Stop(t)
	b.Set("delete.topic.enable", "true")
	b.Start(t)
	b.WaitReady(t)
	awaitLeaders(t, dial(t, b.Addr), "stays", 1)
	assert.Equal(t, []string{"x"}, values(t, dial(t, b.Addr), "stays", 0, 0))
	assert.Zero(t, deleteTopic(t, dial(t, b.Addr), "stays"))
}

// BR-055: each listener names its own addresses, and a broker without it is left out.
func TestEachListenerAdvertisesItself(t *testing.T) {
	outside := cluster.Port(t)
	c := cluster.StartEach(t, zktest.Embedded(t).Addr(), 2, map[string]string{
		"listener.security.protocol.map": "INSIDE:PLAINTEXT,OUT:PLAINTEXT", "inter.broker.listener.name": "INSIDE", "listeners": "INSIDE://${addr}", "advertised.listeners": "INSIDE://${addr}",
	}, func(id int) map[string]string {
		if id == 2 {
			return nil
		}
		at := "127.0.0.1:" + strconv.Itoa(outside)
		return map[string]string{"listeners": "INSIDE://${addr},OUT://" + at, "advertised.listeners": "INSIDE://${addr},OUT://[2001:db8::1]:9093"}
	})
	inside := describe(dial(t, c.Brokers[0].Addr))
	assert.Len(t, inside.Brokers, 2)
	out := describe(dial(t, "127.0.0.1:"+strconv.Itoa(outside)))
	require.Len(t, out.Brokers, 1, "the other has no such listener")
	assert.Equal(t, "2001:db8::1", out.Brokers[0].Host)
	assert.EqualValues(t, 9093, out.Brokers[0].Port)
}
