package field

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

// mover moves partitions of one topic with the command, between brokers that are processes.
type mover struct {
	t     *testing.T
	c     *cluster.Cluster
	z     tree
	topic string
}

const (
	movedPartitions = 4
	movedBytes      = 3 << 20 // of each partition
)

// newMover starts three brokers and lays a topic of some size on the first of them, which is the controller.
func newMover(t *testing.T) *mover {
	zk := zktest.Embedded(t)
	m := &mover{t: t, c: cluster.Start(t, zk.Addr(), 3, map[string]string{"zookeeper.session.timeout.ms": "3000"}), z: openTree(t, zk.Addr()), topic: "moved"}
	topic := creation(m.topic, -1, -1)
	for p := range int32(movedPartitions) {
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, assignment(p, 1))
	}
	require.Zero(t, create(dialController(t, m.c.Brokers[0].Addr), 5, false, topic)[m.topic].ErrorCode)
	c := dial(t, m.c.Brokers[0].Addr)
	awaitLeaders(t, c, m.topic, movedPartitions)
	value := strings.Repeat("x", 512<<10)
	for p := range int32(movedPartitions) {
		for written := 0; written < movedBytes; written += len(value) {
			stored(c, m.topic, p, batch{records: plainly(time.Now().UnixMilli(), value)})
		}
	}
	return m
}

// reassign runs the command with a plan that lays every partition on the given brokers, and returns what it printed.
func (m *mover) reassign(replicas []int, action ...string) (said string, code int) {
	m.t.Helper()
	type partition struct {
		Topic     string `json:"topic"`
		Partition int    `json:"partition"`
		Replicas  []int  `json:"replicas"`
	}
	var plan struct {
		Version    int         `json:"version"`
		Partitions []partition `json:"partitions"`
	}
	plan.Version = 1
	for p := range movedPartitions {
		plan.Partitions = append(plan.Partitions, partition{m.topic, p, replicas})
	}
	text, err := json.Marshal(plan)
	require.NoError(m.t, err)
	file := filepath.Join(m.t.TempDir(), "plan.json")
	require.NoError(m.t, os.WriteFile(file, text, 0o600))
	cmd := exec.Command(cluster.Binary(m.t), append([]string{"kafka-reassign-partitions", "--bootstrap-server", m.c.Bootstrap(), "--reassignment-json-file", file}, action...)...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

func (m *mover) mustReassign(replicas []int, action ...string) string {
	m.t.Helper()
	said, code := m.reassign(replicas, action...)
	require.Zero(m.t, code, said)
	return said
}

// on tells how many partitions' folders a broker has, those that wait for their deletion left out.
func (m *mover) on(id int) int {
	found, err := filepath.Glob(filepath.Join(m.c.Brokers[id-1].Dir, m.topic+"-?"))
	require.NoError(m.t, err)
	return len(found)
}

// laidOn tells whether the cluster's state names exactly these replicas, and no move.
func (m *mover) laidOn(replicas ...int) bool {
	var state struct {
		Partitions map[string][]int `json:"partitions"`
		Adding     map[string][]int `json:"adding_replicas"`
		Removing   map[string][]int `json:"removing_replicas"`
	}
	require.NoError(m.t, json.Unmarshal([]byte(m.z.read("/brokers/topics/"+m.topic)), &state))
	for _, now := range state.Partitions {
		if fmt.Sprint(now) != fmt.Sprint(replicas) {
			return false
		}
	}
	return len(state.Adding) == 0 && len(state.Removing) == 0
}

// throttles are the settings of throttles that there are, of the topic and of the brokers.
func (m *mover) throttles() map[string]string {
	all := map[string]string{}
	for _, path := range []string{"topics/" + m.topic, "brokers/1", "brokers/2", "brokers/3"} {
		if !m.z.exists("/config/" + path) {
			continue
		}
		var node struct {
			Config map[string]string `json:"config"`
		}
		require.NoError(m.t, json.Unmarshal([]byte(m.z.read("/config/"+path)), &node))
		for name, value := range node.Config {
			if strings.Contains(name, "replication.throttled") {
				all[path+" "+name] = value
			}
		}
	}
	return all
}

// BR-019: a throttle names what moves and nothing else, stays while the move goes on, and is gone with it.
// BR-056: a move that is cancelled, or that another takes the place of, leaves nothing where it was going.
func TestMovesThatAreCancelledOrOverriddenLeaveNothingBehind(t *testing.T) {
	m := newMover(t)
	m.mustReassign([]int{2}, "--execute", "--throttle", "1000000")
	eventually(t, func() bool { return m.on(2) == movedPartitions }, "the new replicas are there")
	want := map[string]string{
		"topics/moved leader.replication.throttled.replicas":   "0:1,1:1,2:1,3:1",
		"topics/moved follower.replication.throttled.replicas": "0:2,1:2,2:2,3:2",
	}
	for id := 1; id <= 2; id++ { // those that take part
		want[fmt.Sprintf("brokers/%d leader.replication.throttled.rate", id)] = "1000000"
		want[fmt.Sprintf("brokers/%d follower.replication.throttled.rate", id)] = "1000000"
	}
	assert.Equal(t, want, m.throttles())
	assert.Contains(t, m.mustReassign([]int{2}, "--verify"), "is still in progress")
	assert.Equal(t, want, m.throttles(), "verifying an unfinished move takes nothing away")

	said, code := m.reassign([]int{3}, "--execute")
	assert.NotZero(t, code, "a second plan needs --additional: %s", said)
	m.mustReassign([]int{3}, "--execute", "--additional", "--throttle", "500000")
	eventually(t, func() bool { return m.on(3) == movedPartitions && m.on(2) == 0 }, "the replicas of the plan before are gone")

	m.mustReassign([]int{3}, "--cancel")
	eventually(t, func() bool { return m.laidOn(1) && m.on(1) == movedPartitions && m.on(2) == 0 && m.on(3) == 0 }, "all is as it was")
	assert.Empty(t, m.throttles())
	for p := range int32(movedPartitions) {
		assert.Len(t, values(t, dial(t, m.c.Brokers[0].Addr), m.topic, p, 0), 6)
	}
}

// BR-056: the controller and a target that go down together in the middle of a move delay it; nobody has to ask again.
func TestAMoveOutlivesItsControllerAndItsTarget(t *testing.T) {
	m := newMover(t)
	m.mustReassign([]int{2, 3}, "--execute", "--throttle", "6000000")
	eventually(t, func() bool { return m.on(2) == movedPartitions && m.on(3) == movedPartitions }, "the new replicas are there")
	for _, b := range m.c.Brokers[:2] {
		b.Kill(t)
	}
	for _, b := range m.c.Brokers[:2] {
		b.Start(t)
		b.WaitReady(t)
	}
	eventually(t, func() bool { return m.laidOn(2, 3) && m.on(1) == 0 }, "the move ends")
	assert.Contains(t, m.mustReassign([]int{2, 3}, "--verify"), "is complete.")
	assert.Empty(t, m.throttles())
	awaitLeaders(t, dial(t, m.c.Brokers[2].Addr), m.topic, movedPartitions)

	require.Zero(t, deleteTopic(t, dialController(t, m.c.Brokers[2].Addr), m.topic))
	eventually(t, func() bool { return m.on(2) == 0 && m.on(3) == 0 && !m.z.exists("/brokers/topics/"+m.topic) }, "the topic goes")
	createTopic(t, m.c.Brokers[0].Addr, m.topic, movedPartitions, 3)
	assert.Zero(t, seenEnd(dial(t, leaderOf(t, m.c, m.topic).Addr), m.topic, uncommitted, latest), "the new topic is empty")
}
