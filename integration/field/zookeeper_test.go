package field

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/integration/cluster"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// tree is a look at ZooKeeper, and a hand in it, beside the brokers.
type tree struct {
	t  testing.TB
	zk *zkstate.Client
}

func openTree(t testing.TB, zookeeper string) tree {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	zk, err := zkstate.Connect(zkstate.Config{Servers: zookeeper, SessionTimeout: 30 * time.Second, Log: logrus.NewEntry(quiet)})
	require.NoError(t, err)
	t.Cleanup(zk.Close)
	return tree{t, zk}
}

func (z tree) one(op zkstate.Op) (zkstate.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return z.zk.One(ctx, op)
}

// write sets a node, or makes it.
func (z tree) write(path, data string) {
	z.t.Helper()
	_, err := z.one(zkstate.Set(path, []byte(data), -1))
	if errors.Is(err, zkstate.ErrNoNode) {
		_, err = z.one(zkstate.Create(path, []byte(data)))
	}
	require.NoError(z.t, err)
}

func (z tree) read(path string) string {
	z.t.Helper()
	got, err := z.one(zkstate.Get(path))
	require.NoError(z.t, err)
	return string(got.Data)
}

func (z tree) exists(path string) bool {
	z.t.Helper()
	_, err := z.one(zkstate.Exists(path))
	if !errors.Is(err, zkstate.ErrNoNode) {
		require.NoError(z.t, err)
	}
	return err == nil
}

// registered returns when a broker was registered, as a transaction of ZooKeeper; 0: it is not.
func (z tree) registered(id int) int64 {
	z.t.Helper()
	got, err := z.one(zkstate.Exists(zkstate.BrokerIDPath(int32(id))))
	if errors.Is(err, zkstate.ErrNoNode) {
		return 0
	}
	require.NoError(z.t, err)
	return got.Stat.Czxid
}

// works holds that a new topic gets leaders on the brokers there are, and takes and gives records.
func works(t testing.TB, addr string, factor int16) {
	t.Helper()
	name := fmt.Sprintf("works-%d", topicNumber.Add(1))
	eventually(t, func() bool {
		code := create(dialController(t, addr), 5, false, creation(name, 3, factor))[name].ErrorCode
		return code == 0 || code == kerr.TopicAlreadyExists.Code
	}, "a topic can be created")
	c := dial(t, addr)
	awaitLeaders(t, c, name, 3)
	for p := range 3 {
		eventually(t, func() bool {
			if describe(c, name).Topics[0].Partitions[p].Leader != 1 { // which may still change, when sessions were lost
				return true
			}
			return produce(c, 9, name, int32(p), -1, batch{records: plainly(1, "x")}.encode(t)).ErrorCode == 0 && len(fetch(c, name, int32(p), 0).RecordBatches) > 0
		}, "records are taken and given")
	}
}

// BR-020: a process that slept through its session registers again, is controller again, and stops when it is told to.
func TestABrokerThatLostItsSessionComesBack(t *testing.T) {
	zk := zktest.Embedded(t)
	const session = 500 * time.Millisecond
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"zookeeper.session.timeout.ms": fmt.Sprint(session.Milliseconds())})
	b, z := c.Brokers[0], openTree(t, zk.Addr())
	before := z.registered(1)
	for range 8 {
		b.Pause(t)
		eventually(t, func() bool { return z.registered(1) == 0 }, "the session ends")
		b.Resume(t)
		eventually(t, func() bool { at := z.registered(1); return at != 0 && at != before }, "the broker is registered again")
		before = z.registered(1)
		eventually(t, func() bool { return z.exists("/controller") }, "there is a controller")
		works(t, b.Addr, 1)
	}
	began := time.Now()
	b.Stop(t)
	assert.Less(t, time.Since(began), 30*time.Second)
	assert.Zero(t, z.registered(1))
}

// BR-038, BR-020: whatever ZooKeeper is in the middle of when it restarts, the cluster has one controller afterwards, and its duties are done.
func TestRestartsOfZooKeeperLeaveAControllerThatWorks(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 3, map[string]string{"zookeeper.session.timeout.ms": "1000"})
	for round := range 6 {
		if round%2 == 1 { // the controller's session ends while ZooKeeper is away
			zk.Stop()
			<-time.After(1500 * time.Millisecond)
			zk.Start()
		} else {
			zk.Restart()
		}
		works(t, c.Brokers[0].Addr, 3)
	}
	for _, b := range c.Brokers[1:] {
		b.Stop(t)
		b.Start(t)
		b.WaitReady(t)
		awaitISR(t, c.Brokers[0].Addr, 3)
	}
}

// awaitISR waits until every partition of every topic has n replicas in sync.
func awaitISR(t testing.TB, addr string, n int) {
	t.Helper()
	c := dial(t, addr)
	eventually(t, func() bool {
		whole := true
		for _, topic := range allTopics(c).Topics {
			for _, p := range topic.Partitions {
				whole = whole && p.Leader >= 0 && len(p.ISR) == n
			}
		}
		return whole
	}, "%d replicas of every partition are in sync", n)
}

// BR-037: a broker that is back before anybody noticed leads again what it led.
func TestABrokerThatRestartsAtOnceLeadsAgain(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 2, nil)
	topic := creation("bounced", -1, -1)
	for p := range int32(8) {
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, assignment(p, 2))
	}
	require.Zero(t, create(dialController(t, c.Brokers[0].Addr), 5, false, topic)["bounced"].ErrorCode)
	z := openTree(t, zk.Addr())
	for range 6 {
		before := z.registered(2)
		b := c.Brokers[1]
		b.Stop(t) // which closes its session
		b.Start(t)
		eventually(t, func() bool { at := z.registered(2); return at != 0 && at != before }, "it is registered anew")
		eventually(t, func() bool {
			second := dial(t, b.Addr)
			for p := range int32(8) {
				if produce(second, 9, "bounced", p, -1, batch{records: plainly(1, "x")}.encode(t)).ErrorCode != 0 {
					return false
				}
			}
			return true
		}, "it leads all its partitions again")
	}
}

// BR-044: whatever somebody writes into ZooKeeper, the controller lives on, and what is valid beside it is done.
func TestJunkInZooKeeperHarmsNobody(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 2, map[string]string{"zookeeper.session.timeout.ms": "1000"})
	z := openTree(t, zk.Addr())
	addr := c.Brokers[0].Addr
	createTopic(t, addr, "valid", 1, 1)
	junk := []string{"", "{", "null", "[]", "42", `{"version":2,"partitions":[]}`, `{"version":1}`, `{"version":1,"partitions":{}}`, strings.Repeat("[", 100_000)}
	for _, text := range append(junk,
		`{"version":1,"partitions":[{"topic":"valid","partition":"0","replicas":[1]}]}`, `{"version":1,"partitions":[{"topic":"valid","partition":0,"replicas":["1"]}]}`,
		`{"version":1,"partitions":[{"topic":"valid","partition":0,"replicas":[]}]}`, `{"version":1,"partitions":[{"topic":"valid","partition":0,"replicas":[1,1]}]}`,
		`{"version":1,"partitions":[{"topic":"nowhere","partition":0,"replicas":[1]}]}`,
		`{"version":1,"partitions":[{"topic":"valid","partition":-1,"replicas":[1]},{"topic":"valid","partition":5,"replicas":[1]}]}`,
	) {
		for _, path := range []string{"/admin/reassign_partitions", "/admin/preferred_replica_election"} {
			z.write(path, text)
			eventually(t, func() bool { return !z.exists(path) }, "%s with %.60q is dealt with", path, text)
		}
	}
	for i, text := range junk {
		for _, path := range []string{"/config/changes/config_change_", "/isr_change_notification/isr_change_", "/log_dir_event_notification/log_dir_event_"} {
			_, err := z.one(zkstate.CreateSequential(path, []byte(text)))
			require.NoError(t, err)
		}
		z.write(fmt.Sprintf("/brokers/topics/junk-%d", i), text)
		z.write(fmt.Sprintf("/config/topics/junk-%d", i), text)
		z.write(fmt.Sprintf("/brokers/ids/%d", 50+i), text)
	}
	z.write("/brokers/ids/no-number", "x")
	z.write("/admin/delete_topics/never-was", "")
	z.write("/brokers/topics/valid-with-more", `{"version":3,"partitions":{"0":[1]},"topic_id":"AAAAAAAAAAAAAAAAAAABZg","adding_replicas":{},"removing_replicas":{},"future":{"a":1}}`)
	awaitLeaders(t, dial(t, addr), "valid-with-more", 1)
	for _, b := range c.Brokers {
		works(t, addr, 2)
		b.Stop(t) // so that each becomes controller over the junk
		b.Start(t)
		b.WaitReady(t)
	}
	works(t, addr, 2)
}

// BR-059: a state that was written again by hand has another version; the leader finds that out and goes on.
func TestAStateThatWasRewrittenByHandDoesNotStickTheLeader(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 2, map[string]string{"replica.lag.time.max.ms": "1000", "zookeeper.session.timeout.ms": "30000", "controlled.shutdown.enable": "false"})
	z := openTree(t, zk.Addr())
	leader, follower := c.Brokers[0], c.Brokers[1]
	if describe(dial(t, leader.Addr)).ControllerID == 2 { // the other one will be paused
		leader, follower = follower, leader
	}
	first := dial(t, leader.Addr)
	topic := creation("stuck", -1, -1)
	topic.ReplicaAssignment = append(topic.ReplicaAssignment, assignment(0, int32(leader.ID), int32(follower.ID)))
	require.Zero(t, create(first, 5, false, topic)["stuck"].ErrorCode)
	awaitLeaders(t, first, "stuck", 1)
	awaitISR(t, leader.Addr, 2)
	path := "/brokers/topics/stuck/partitions/0/state"
	for range 3 {
		z.write(path, z.read(path))
	}
	alone := fmt.Sprintf(`"isr":[%d]`, leader.ID)
	follower.Pause(t) // it stays registered, and falls behind
	assert.Zero(t, produce(first, 9, "stuck", 0, 1, batch{records: plainly(1, "x")}.encode(t)).ErrorCode)
	eventually(t, func() bool { return strings.Contains(z.read(path), alone) }, "the ISR shrinks all the same")
	assert.Zero(t, produce(first, 9, "stuck", 0, -1, batch{records: plainly(1, "y")}.encode(t)).ErrorCode)
	follower.Resume(t)
	eventually(t, func() bool { return !strings.Contains(z.read(path), alone) }, "and grows again")
}
