package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// executors are the processes that wait for a broker's end.
func executors(t *testing.T, b *cluster.Broker) (ids []int) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range processes {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended since
		}
		// The fields after the name, which may hold anything, are the state and the parent.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(b.PID()) {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(t, err)
			ids = append(ids, id)
		}
	}
	return ids
}

func running(id int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", id))
	return err == nil
}

// A broker that is killed is missed at once: long before its session could have timed out its registration is gone and others lead, also when it was the controller and when Apache Kafka is. It need
// not come back for that. Nothing that was acknowledged is lost.
func TestOthersLeadAtOnceWhenABrokerIsKilled(t *testing.T) {
	for _, setup := range []struct {
		name, kafka, ibp string
		killed           []int
	}{
		{"Barnabas", "", "3.9", []int{1, 2, 3}},
		{"3.9.1", "3.9.1", "3.9", []int{2, 3}},
	} {
		t.Run(setup.name, func(t *testing.T) {
			programs := []cluster.Program{cluster.Barnabas, cluster.Barnabas, cluster.Barnabas}
			if setup.kafka != "" {
				lane.KafkaJars(t, setup.kafka)
				programs[0] = cluster.Kafka(setup.kafka)
			}
			zk := zktest.Embedded(t)
			c := cluster.StartMixed(t, zk.Addr(), programs, map[string]string{"zookeeper.session.timeout.ms": slowSessionMs, "min.insync.replicas": "2", "inter.broker.protocol.version": setup.ibp})
			createTopic(t, c.Seeds(), loaded, partitions, 3)
			registrations := cluster.OpenRegistry(t, zk.Addr())
			load := history.Start(t, history.Config{Seeds: c.Seeds(), Topic: loaded, Producers: 2, PerSecond: 2000, MaxValue: 200})
			for _, id := range setup.killed {
				load.Progress(t, 500, "before a kill")
				b := c.Brokers[id-1]
				before := registrations.Epoch(t, b)
				killed := time.Now()
				b.Kill(t)
				require.Eventually(t, func() bool { return registrations.Epoch(t, b) != before }, slowSession/2, 5*time.Millisecond, "the registration of broker %d", id)
				t.Logf("broker %d was missed after %v", id, time.Since(killed))
				load.Progress(t, 500, "while it is away")
				b.Start(t)
				b.WaitReady(t)
				c.WaitWhole(t, loaded, partitions, 3)
			}
			assert.Empty(t, load.Finish(t, history.Promise{Idempotent: true}))
			assert.Empty(t, load.Refused())
		})
	}
}

// The session of a broker that lives is left alone, whether it sleeps or is told to stop, and no process is left behind when it has stopped. Without an executor it works all the same.
func TestALastWillIsOnlyForTheDead(t *testing.T) {
	_, err := os.Stat("/proc/self/stat")
	lane.Need(t, err == nil, "/proc")
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"zookeeper.session.timeout.ms": slowSessionMs})
	b := c.Brokers[0]
	registrations := cluster.OpenRegistry(t, zk.Addr())
	epoch := registrations.Epoch(t, b)
	require.NotZero(t, epoch)
	with := executors(t, b)
	require.Len(t, with, 1)

	b.Pause(t)
	require.Never(t, func() bool { return registrations.Epoch(t, b) != epoch }, 2*time.Second, 50*time.Millisecond)
	b.Resume(t)
	b.WaitReady(t)
	require.Equal(t, epoch, registrations.Epoch(t, b))
	b.Stop(t)
	assert.False(t, running(with[0]), "the executor is left behind")
	assert.Zero(t, registrations.Epoch(t, b))

	b.Start(t)
	b.WaitReady(t)
	executor, err := os.FindProcess(executors(t, b)[0])
	require.NoError(t, err)
	require.NoError(t, executor.Kill())
	b.Stop(t)
	assert.Zero(t, b.ExitCode(t, soon))
	assert.Zero(t, registrations.Epoch(t, b))
}
