package chaos

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// What nobody waits for in these tests: the session of a killed broker ends when its next life says so, or the test takes a multiple of what it may.
const (
	slowSession   = time.Minute
	slowSessionMs = "60000"
)

// killAndRestart tells how long a broker is without a registration of its own.
func killAndRestart(t *testing.T, r *cluster.Registry, b *cluster.Broker) time.Duration {
	t.Helper()
	before := r.Epoch(t, b)
	require.NotZero(t, before)
	killed := time.Now()
	b.Kill(t)
	b.Start(t)
	for {
		if now := r.Epoch(t, b); now > before {
			return time.Since(killed)
		}
		require.Less(t, time.Since(killed), 2*slowSession, "broker %d:\n%s", b.ID, b.LogTail(4000))
		time.Sleep(10 * time.Millisecond) // the pace of looking
	}
}

// A broker that was killed is registered again long before its session's timeout, whoever is the controller: the broker itself, another, or Apache Kafka, which may see the registration go and
// come in one look. Nothing that was acknowledged is lost.
func TestAKilledBrokerIsBackAtOnce(t *testing.T) {
	for _, setup := range []struct {
		name     string
		kafka    string // version of broker 1, which is the controller; "" is Barnabas
		ibp      string
		restarts []int
	}{
		{"Barnabas", "", "3.9", []int{1, 2, 3, 1}},
		{"3.9.1", "3.9.1", "3.9", []int{2, 3}},
		{"2.8.2", "2.8.2", "2.8", []int{2, 3}},
	} {
		t.Run(setup.name, func(t *testing.T) {
			programs := []cluster.Program{cluster.Barnabas, cluster.Barnabas, cluster.Barnabas}
			if setup.kafka != "" {
				lane.KafkaJars(t, setup.kafka)
				programs[0] = cluster.Kafka(setup.kafka)
			}
			zk := zktest.Embedded(t)
			c := cluster.StartMixed(t, zk.Addr(), programs, map[string]string{
				"barnabas.last.will.enable":    "false", // as where it dies with the broker
				"zookeeper.session.timeout.ms": slowSessionMs, "min.insync.replicas": "2", "inter.broker.protocol.version": setup.ibp,
			})
			createTopic(t, c.Seeds(), loaded, partitions, 3)
			registrations := cluster.OpenRegistry(t, zk.Addr())
			load := history.Start(t, history.Config{Seeds: c.Seeds(), Topic: loaded, Producers: 2, PerSecond: 2000, MaxValue: 200})
			for _, id := range setup.restarts {
				load.Progress(t, 500, "before a kill")
				took := killAndRestart(t, registrations, c.Brokers[id-1])
				t.Logf("broker %d was registered again after %v", id, took)
				assert.Less(t, took, slowSession/2)
				c.Brokers[id-1].WaitReady(t)
				c.WaitWhole(t, loaded, partitions, 3)
			}
			load.Progress(t, 500, "after the last kill")
			assert.Empty(t, load.Finish(t, history.Promise{Idempotent: true}))
			assert.Empty(t, load.Refused())
		})
	}
}

// Whoever is started on a copy of a living broker's directory, or on the directory itself, does not get in its way.
func TestALivingBrokerIsNotDisturbedByWhoHasItsDirectory(t *testing.T) {
	zk := zktest.Embedded(t)
	settings := map[string]string{"zookeeper.session.timeout.ms": "6000"} // which the one of the copy waits for
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"zookeeper.session.timeout.ms": slowSessionMs})
	living := c.Brokers[0]
	registrations := cluster.OpenRegistry(t, zk.Addr())
	epoch := registrations.Epoch(t, living)
	require.FileExists(t, filepath.Join(living.Dir, ".zookeeper-session"))
	ends := func(who *cluster.Broker, says string) {
		t.Helper()
		who.Start(t)
		assert.NotZero(t, who.ExitCode(t, soon))
		assert.Contains(t, who.LogTail(4000), says)
	}

	same := cluster.Prepare(t, zk.Addr(), 1, settings, func(int) map[string]string { return map[string]string{"log.dirs": living.Dir} }).Brokers[0]
	living.Pause(t) // it is alive, and its lock says so
	ends(same, "in use by another broker")
	living.Resume(t)

	copied := cluster.Prepare(t, zk.Addr(), 1, settings, func(int) map[string]string { return nil }).Brokers[0]
	require.NoError(t, os.CopyFS(copied.Dir, os.DirFS(living.Dir)))
	require.FileExists(t, filepath.Join(copied.Dir, ".zookeeper-session"))
	ends(copied, "another process uses the same id")
	assert.NotContains(t, copied.LogTail(1<<20), "was killed", "the living one's client would fight for its session, and often win")

	living.WaitReady(t)
	assert.Equal(t, epoch, registrations.Epoch(t, living))
	living.Stop(t)
	assert.NoFileExists(t, filepath.Join(living.Dir, ".zookeeper-session"))
}
