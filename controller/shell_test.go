package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
	"barnabas/zkstate/embedded"
)

// patience is how long a test waits for what must happen soon.
const patience = time.Minute

func quietLog() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

// fakeBrokers is the other side of the control plane: it answers every request as a healthy broker would and remembers
// what it was told.
type fakeBrokers struct {
	mu     sync.Mutex
	told   map[int32][]kmsg.Request
	silent map[int32]bool
	news   chan struct{}
}

func newFakeBrokers() *fakeBrokers {
	return &fakeBrokers{told: map[int32][]kmsg.Request{}, silent: map[int32]bool{}, news: make(chan struct{}, 1)}
}

func (f *fakeBrokers) Forget(Endpoint) {}

func (f *fakeBrokers) Send(to Endpoint, req kmsg.Request, done func(kmsg.Response, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.silent[to.BrokerID] {
		done(nil, errors.New("unreachable"))
		return
	}
	f.told[to.BrokerID] = append(f.told[to.BrokerID], req)
	done(healthyAnswer(req), nil)
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// healthyAnswer is the response of a broker that carried everything out.
func healthyAnswer(req kmsg.Request) kmsg.Response {
	resp := req.ResponseKind()
	switch r := resp.(type) {
	case *kmsg.LeaderAndISRResponse:
		for _, t := range req.(*kmsg.LeaderAndISRRequest).TopicStates {
			out := kmsg.LeaderAndISRResponseTopic{TopicID: t.TopicID}
			for _, p := range t.PartitionStates {
				out.Partitions = append(out.Partitions, kmsg.LeaderAndISRResponseTopicPartition{Partition: p.Partition})
			}
			r.Topics = append(r.Topics, out)
		}
	case *kmsg.StopReplicaResponse:
		for _, t := range req.(*kmsg.StopReplicaRequest).Topics {
			for _, p := range t.PartitionStates {
				r.Partitions = append(r.Partitions, kmsg.StopReplicaResponsePartition{Topic: t.Topic, Partition: p.Partition})
			}
		}
	}
	return resp
}

// leaderOf is the leader that the broker was last told for a partition, in which epoch.
func (f *fakeBrokers) leaderOf(broker int32, tp TopicPartition) (leader, epoch int32, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, req := range f.told[broker] {
		if u, ok := req.(*kmsg.UpdateMetadataRequest); ok {
			for _, t := range u.TopicStates {
				for _, p := range t.PartitionStates {
					if t.Topic == tp.Topic && p.Partition == tp.Partition {
						leader, epoch, known = p.Leader, p.LeaderEpoch, true
					}
				}
			}
		}
	}
	return leader, epoch, known
}

func (f *fakeBrokers) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-f.news:
		case <-tick.C:
		case <-deadline.C:
			require.Fail(t, "did not happen in time: "+what)
		}
	}
}

// node is one broker as far as a controller test needs one: a session, a registration and a controller.
type node struct {
	id int32
	zk *zkstate.Client
	*Controller
}

type testCluster struct {
	t       *testing.T
	server  *embedded.Server
	brokers *fakeBrokers
	nodes   []*node
}

func startCluster(t *testing.T, brokers int) *testCluster {
	server, err := embedded.Start(embedded.Config{Addr: "127.0.0.1:0", DataDir: t.TempDir(), TickTime: 100 * time.Millisecond, Log: quietLog()})
	require.NoError(t, err)
	tc := &testCluster{t: t, server: server, brokers: newFakeBrokers()}
	t.Cleanup(func() { _ = server.Close() })
	for id := range int32(brokers) {
		tc.startNode(id + 1)
	}
	return tc
}

func (tc *testCluster) startNode(id int32) *node {
	zk, err := zkstate.Connect(zkstate.Config{Servers: tc.server.Addr(), SessionTimeout: 10 * time.Second, Log: quietLog()})
	require.NoError(tc.t, err)
	require.NoError(tc.t, zk.MakePersistentPaths(context.Background()))
	c, err := New(Config{BrokerID: id, IBP: "3.9", Listener: "PLAINTEXT", DeleteTopics: true, AutoRebalance: true, RebalancePercent: 10,
		Log: quietLog()}, zk, tc.brokers)
	require.NoError(tc.t, err)
	n := &node{id: id, zk: zk, Controller: c}
	tc.register(n)
	c.Start()
	c.SessionReady()
	tc.nodes = append(tc.nodes, n)
	tc.t.Cleanup(func() { n.stop() })
	return n
}

func (tc *testCluster) register(n *node) {
	_, err := n.zk.RegisterEphemeral(context.Background(), zkstate.BrokerIDPath(n.id), zkstate.Broker{ID: n.id, Version: 5, JMXPort: -1,
		Endpoints: []zkstate.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: 9090 + n.id}}}.Encode())
	require.NoError(tc.t, err)
}

func (n *node) stop() {
	n.Stop()
	n.zk.Close()
}

// controller waits until exactly one node is the controller.
func (tc *testCluster) controller() *node {
	var active *node
	tc.brokers.eventually(tc.t, "one controller", func() bool {
		active = nil
		for _, n := range tc.nodes {
			if n.IsActive() {
				if active != nil {
					return false
				}
				active = n
			}
		}
		return active != nil
	})
	return active
}

func (tc *testCluster) createTopic(name string, assignment ...[]int32) {
	node := zkstate.TopicAssignment{Version: 3, Partitions: map[int32]zkstate.ReplicaAssignment{}}
	for p, replicas := range assignment {
		node.Partitions[int32(p)] = zkstate.ReplicaAssignment{Replicas: replicas}
	}
	_, err := tc.nodes[len(tc.nodes)-1].zk.One(context.Background(), zkstate.Create(zkstate.TopicPath(name), node.Encode()))
	require.NoError(tc.t, err)
}

func (tc *testCluster) ask(n *node, req kmsg.Request) kmsg.Response {
	answers := make(chan kmsg.Response, 1)
	n.Do(req, func(r kmsg.Response) { answers <- r })
	select {
	case r := <-answers:
		return r
	case <-time.After(patience):
		require.Fail(tc.t, fmt.Sprintf("no answer to %T", req))
		return nil
	}
}

func TestATopicGetsLeadersAndEveryBrokerLearnsOfThem(t *testing.T) {
	tc := startCluster(t, 3)
	tc.controller()
	tc.createTopic("orders", []int32{2, 3}, []int32{3, 1})
	for broker := range int32(3) {
		for p, want := range []int32{2, 3} {
			tc.brokers.eventually(t, "metadata on every broker", func() bool {
				leader, _, _ := tc.brokers.leaderOf(broker+1, TopicPartition{"orders", int32(p)})
				return leader == want
			})
		}
	}
	got, err := tc.nodes[0].zk.One(context.Background(), zkstate.Get(zkstate.TopicPath("orders")))
	require.NoError(t, err)
	node, err := zkstate.DecodeTopicAssignment(got.Data)
	require.NoError(t, err)
	assert.NotZero(t, node.ID, "the controller gives a topic id")
}

func TestALostBrokerLosesItsLeadershipToTheISR(t *testing.T) {
	tc := startCluster(t, 3)
	first := tc.controller()
	var victim *node
	for _, n := range tc.nodes {
		if n != first {
			victim = n
		}
	}
	tc.createTopic("orders", []int32{victim.id, first.id})
	tp := TopicPartition{"orders", 0}
	tc.brokers.eventually(t, "first leader", func() bool {
		leader, _, _ := tc.brokers.leaderOf(first.id, tp)
		return leader == victim.id
	})
	victim.stop()
	tc.brokers.eventually(t, "next leader", func() bool {
		leader, epoch, _ := tc.brokers.leaderOf(first.id, tp)
		return leader == first.id && epoch > 0
	})
}

func TestAnotherBrokerTakesOverWhenTheControllerGoes(t *testing.T) {
	tc := startCluster(t, 3)
	first := tc.controller()
	epoch := first.status.Load().Epoch
	first.stop()
	second := tc.controller()
	assert.NotEqual(t, first.id, second.id)
	assert.Greater(t, second.status.Load().Epoch, epoch)
	tc.createTopic("after", []int32{second.id})
	tc.brokers.eventually(t, "a leader", func() bool {
		leader, _, _ := tc.brokers.leaderOf(second.id, TopicPartition{"after", 0})
		return leader == second.id
	})
}

func TestLosingTheSessionAnswersWhatIsOpen(t *testing.T) {
	tc := startCluster(t, 1)
	n := tc.controller()
	n.SessionExpired()
	resp := tc.ask(n, &kmsg.ListPartitionReassignmentsRequest{}).(*kmsg.ListPartitionReassignmentsResponse)
	assert.Equal(t, kerr.NotController.Code, resp.ErrorCode)
	assert.False(t, n.IsActive())
	n.SessionReady()
	tc.controller()
	resp = tc.ask(n, &kmsg.ListPartitionReassignmentsRequest{}).(*kmsg.ListPartitionReassignmentsResponse)
	assert.Zero(t, resp.ErrorCode)
}

func TestADeletedTopicIsGoneEverywhere(t *testing.T) {
	tc := startCluster(t, 2)
	n := tc.controller()
	tc.createTopic("old", []int32{1, 2})
	tc.brokers.eventually(t, "a leader", func() bool {
		_, _, known := tc.brokers.leaderOf(1, TopicPartition{"old", 0})
		return known
	})
	ctx := context.Background()
	_, err := n.zk.One(ctx, zkstate.Create(zkstate.DeleteTopicPath("old"), nil))
	require.NoError(t, err)
	tc.brokers.eventually(t, "the nodes are gone", func() bool {
		_, topic := n.zk.One(ctx, zkstate.Exists(zkstate.TopicPath("old")))
		_, request := n.zk.One(ctx, zkstate.Exists(zkstate.DeleteTopicPath("old")))
		return errors.Is(topic, zkstate.ErrNoNode) && errors.Is(request, zkstate.ErrNoNode)
	})
	leader, _, _ := tc.brokers.leaderOf(2, TopicPartition{"old", 0})
	assert.Equal(t, leaderInDeletion, leader)
}

func TestAStormOfLostSessionsEndsWithOneController(t *testing.T) {
	tc := startCluster(t, 3)
	first := tc.controller()
	for range 30 {
		first.SessionExpired()
		asked := make(chan kmsg.Response, 1)
		first.Do(&kmsg.ListPartitionReassignmentsRequest{}, func(r kmsg.Response) { asked <- r })
		first.SessionReady()
		select {
		case <-asked:
		case <-time.After(patience):
			require.Fail(t, "a request was never answered")
		}
	}
	c := tc.controller()
	tc.createTopic("after", []int32{c.id})
	tc.brokers.eventually(t, "a leader", func() bool {
		leader, _, _ := tc.brokers.leaderOf(c.id, TopicPartition{"after", 0})
		return leader == c.id
	})
}

func TestAnUnreachableBrokerKeepsOnlyItsOwnRequestsWaiting(t *testing.T) {
	tc := startCluster(t, 3)
	c := tc.controller()
	away := int32(1)
	if c.id == away {
		away = 2
	}
	tc.brokers.mu.Lock()
	tc.brokers.silent[away] = true
	tc.brokers.mu.Unlock()
	tc.createTopic("orders", []int32{c.id, away})
	tp := TopicPartition{"orders", 0}
	tc.brokers.eventually(t, "the others know", func() bool {
		_, _, known := tc.brokers.leaderOf(c.id, tp)
		return known
	})
	_, _, known := tc.brokers.leaderOf(away, tp)
	assert.False(t, known)
	tc.brokers.mu.Lock()
	tc.brokers.silent[away] = false
	tc.brokers.mu.Unlock()
	tc.brokers.eventually(t, "it is told when it can be reached", func() bool {
		_, _, known := tc.brokers.leaderOf(away, tp)
		return known
	})
}
