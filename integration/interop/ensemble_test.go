package interop

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/integration/lane"
)

// ensemble is three processes of `barnabas zookeeper`.
type ensemble struct {
	clients [3]string
	files   [3]string
	running [3]*exec.Cmd
}

func startEnsemble(t *testing.T) *ensemble {
	e := &ensemble{}
	first := lane.Ports(t, 9)
	servers := ""
	for i := range 3 {
		servers += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", i+1, first+3*i+1, first+3*i+2)
	}
	for i := range 3 {
		dir := t.TempDir()
		e.clients[i], e.files[i] = fmt.Sprintf("127.0.0.1:%d", first+3*i), filepath.Join(dir, "zoo.cfg")
		text := fmt.Sprintf("tickTime=500\ndataDir=%s\nclientPortAddress=127.0.0.1\nclientPort=%d\nmaxClientCnxns=0\n%s", dir, first+3*i, servers)
		require.NoError(t, os.WriteFile(e.files[i], []byte(text), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), fmt.Appendf(nil, "%d\n", i+1), 0o600))
		e.start(t, i)
	}
	t.Cleanup(func() {
		for i := range e.running {
			e.kill(i)
		}
	})
	return e
}

func (e *ensemble) start(t *testing.T, i int) {
	e.running[i] = exec.Command(cluster.Binary(t), "zookeeper", "--config", e.files[i])
	lane.Bind(e.running[i])
	require.NoError(t, e.running[i].Start())
}

func (e *ensemble) kill(i int) {
	_ = e.running[i].Process.Kill()
	_ = e.running[i].Wait()
}

// leader is who says that it leads.
func (e *ensemble) leader(t *testing.T) (leader int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for i, addr := range e.clients {
			if strings.Contains(srvr(addr), "Mode: leader") {
				leader = i
				return true
			}
		}
		return false
	}, time.Minute, 50*time.Millisecond)
	return leader
}

func srvr(addr string) string {
	nc, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(nc, "srvr")
	answer, _ := io.ReadAll(nc)
	return string(answer)
}

// Brokers of both kinds on an ensemble of embedded ZooKeepers: its leader is killed, then a broker, then a follower of the ensemble; whatever was acknowledged is there, once and in order.
func TestBrokersOfBothKindsOutliveTheLeadersOfAnEnsemble(t *testing.T) {
	lane.KafkaJars(t, "3.9.1")
	e := startEnsemble(t)
	e.leader(t)
	c := cluster.StartMixed(t, strings.Join(e.clients[:], ","), []cluster.Program{cluster.Kafka("3.9.1"), cluster.Barnabas, cluster.Barnabas}, map[string]string{
		"min.insync.replicas": "2", "zookeeper.session.timeout.ms": longSession, "replica.lag.time.max.ms": "30000",
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...))
	require.NoError(t, err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(lane.Patience(t), 4, 3, nil, "loaded")
	require.NoError(t, err)
	load := history.Start(t, history.Config{Seeds: c.Seeds(), Topic: "loaded", Producers: 2, PerSecond: 500, MaxValue: 100})
	load.Progress(t, 500, "at first")
	old := e.leader(t)
	e.kill(old)
	e.leader(t)
	load.Progress(t, 500, "after the ensemble's leader was killed")
	c.Brokers[1].Kill(t)
	load.Progress(t, 500, "after a broker was killed")
	c.Brokers[1].Start(t)
	e.start(t, old)
	c.WaitWhole(t, "loaded", 4, 3)
	follower := (e.leader(t) + 1) % 3
	e.kill(follower)
	load.Progress(t, 500, "after a follower of the ensemble was killed")
	e.start(t, follower)
	c.WaitWhole(t, "loaded", 4, 3)
	assert.Empty(t, load.Finish(t, history.Promise{Idempotent: true}))
	assert.Empty(t, load.Refused())
}
