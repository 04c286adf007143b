package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

const patience = 3 * time.Minute

// mixed is a cluster in which broker 1 is Barnabas and the others are Apache Kafka.
type mixed struct {
	t     *testing.T
	c     *cluster.Cluster
	zk    *zkstate.Client
	admin *kadm.Client
	log   *kgo.Client
}

func startMixed(t *testing.T, ibp string, versions ...string) *mixed {
	for _, v := range versions {
		lane.KafkaJars(t, v)
	}
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1+len(versions), map[string]string{
		"inter.broker.protocol.version": ibp, "zookeeper.session.timeout.ms": "10000", "replica.lag.time.max.ms": "30000",
		"auto.leader.rebalance.enable": "false", "controlled.shutdown.retry.backoff.ms": "500", "file.delete.delay.ms": "500",
		"min.insync.replicas": "1", "log.message.format.version": ibp,
	})
	for i, v := range versions {
		b := c.Brokers[i+1]
		b.Stop(t)
		b.Become(cluster.Kafka(v))
		b.Start(t)
	}
	for _, b := range c.Brokers {
		b.WaitReady(t)
	}
	quiet := logrus.New()
	quiet.SetLevel(logrus.PanicLevel)
	client, err := zkstate.Connect(zkstate.Config{Servers: zk.Addr(), SessionTimeout: 10 * time.Second, Log: logrus.NewEntry(quiet)})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	kc, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(200*time.Millisecond), kgo.RecordDeliveryTimeout(patience))
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	return &mixed{t: t, c: c, zk: client, admin: kadm.NewClient(kc), log: kc}
}

// eventually waits until ok finds nothing wrong, and fails with what it found last.
func (m *mixed) eventually(what string, ok func() error) {
	m.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			require.Fail(m.t, what+" did not happen in time", "%v", err)
		}
	}
}

func (m *mixed) controller() int32 {
	var id int32
	m.eventually("a controller", func() (err error) {
		id, err = m.zk.ControllerID(lane.Patience(m.t))
		return err
	})
	return id
}

func (m *mixed) state(topic string, p int32) (zkstate.PartitionState, error) {
	r, err := m.zk.One(lane.Patience(m.t), zkstate.Get(zkstate.PartitionStatePath(topic, p)))
	if err != nil {
		return zkstate.PartitionState{}, err
	}
	return zkstate.DecodePartitionState(r.Data)
}

func (m *mixed) waitISR(topic string, p int32, want ...int32) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("ISR of %s-%d %v", topic, p, want), func() error {
		s, err := m.state(topic, p)
		if err != nil {
			return err
		}
		if got := slices.Sorted(slices.Values(s.ISR)); !slices.Equal(got, want) || !slices.Contains(want, s.Leader) {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

func (m *mixed) write(topic string, p int32, n int) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range n {
		r := m.log.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: p, Value: fmt.Appendf(nil, "%d", i)})
		require.NoError(m.t, r.FirstErr())
	}
}

// end is where a partition's log ends. A Kafka broker that has just started may not know the topic yet, and the client goes by its word for a while.
func (m *mixed) end(topic string, p int32) (end int64) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("the end of %s-%d", topic, p), func() error {
		offsets, err := m.admin.ListEndOffsets(lane.Patience(m.t), topic)
		if err != nil {
			return err
		}
		o, ok := offsets.Lookup(topic, p)
		if !ok {
			return errors.New("nobody tells of it")
		}
		end = o.Offset
		return o.Err
	})
	return end
}

func (m *mixed) hosts(broker int, topic string) []string {
	found, err := filepath.Glob(filepath.Join(m.c.Brokers[broker-1].Dir, topic+"-*"))
	require.NoError(m.t, err)
	return slices.DeleteFunc(found, func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || !info.IsDir() || strings.HasSuffix(dir, "-delete")
	})
}

func (m *mixed) create(topic string, replicas [][]int32) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	ct := kmsg.NewCreateTopicsRequestTopic()
	ct.Topic, ct.NumPartitions, ct.ReplicationFactor = topic, -1, -1
	for p, ids := range replicas {
		ct.ReplicaAssignment = append(ct.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(p), Replicas: ids})
	}
	req.Topics = append(req.Topics, ct)
	resp, err := req.RequestWith(lane.Patience(m.t), m.log)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
}

// scenario is one life of a topic, under whichever controller there is.
func (m *mixed) scenario(topic string) {
	t, ctx := m.t, lane.Patience(m.t)
	err := m.create(topic, [][]int32{{1, 2, 3}, {2, 3, 1}, {3, 1, 2}})
	require.NoError(t, err)
	for p := range int32(3) {
		m.waitISR(topic, p, 1, 2, 3)
		m.write(topic, p, 20)
	}
	// A follower and leader goes down in order, and comes back.
	m.c.Brokers[1].Stop(t)
	for p := range int32(3) {
		m.waitISR(topic, p, 1, 3)
		m.write(topic, p, 20)
	}
	m.c.Brokers[1].Start(t)
	m.c.Brokers[1].WaitReady(t)
	for p := range int32(3) {
		m.waitISR(topic, p, 1, 2, 3)
	}
	// One is killed.
	m.c.Brokers[2].Kill(t)
	for p := range int32(3) {
		m.waitISR(topic, p, 1, 2)
		m.write(topic, p, 20)
	}
	m.c.Brokers[2].Start(t)
	m.c.Brokers[2].WaitReady(t)
	for p := range int32(3) {
		m.waitISR(topic, p, 1, 2, 3)
		require.Equal(t, int64(60), m.end(topic, p))
	}
	// Preferred leaders return.
	_, err = m.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, nil)
	require.NoError(t, err)
	for p := range int32(3) {
		m.eventually("preferred leader", func() error {
			if s, err := m.state(topic, p); err != nil || s.Leader != p+1 {
				return fmt.Errorf("%+v %w", s, err)
			}
			return nil
		})
	}
	// A move, one way and back.
	for _, target := range [][]int32{{2, 3}, {3, 1}, {1, 2, 3}} {
		var req kadm.AlterPartitionAssignmentsReq
		req.Assign(topic, 0, target)
		answers, err := m.admin.AlterPartitionAssignments(ctx, req)
		require.NoError(t, err)
		require.NoError(t, answers.Error())
		m.waitISR(topic, 0, slices.Sorted(slices.Values(target))...)
		m.eventually("reassignment ends", func() error {
			list, err := m.admin.ListPartitionReassignments(ctx, nil)
			if err == nil && len(list) > 0 {
				err = errors.New("still running")
			}
			return err
		})
		for id := 1; id <= 3; id++ {
			m.eventually("replicas on disk", func() error {
				has := slices.ContainsFunc(m.hosts(id, topic), func(dir string) bool { return strings.HasSuffix(dir, topic+"-0") })
				if has != slices.Contains(target, int32(id)) {
					return fmt.Errorf("broker %d hosts %v", id, m.hosts(id, topic))
				}
				return nil
			})
		}
		m.write(topic, 0, 5)
	}
	// Deleted everywhere.
	deleted, err := m.admin.DeleteTopics(ctx, topic)
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
	m.eventually("nodes go", func() error {
		if _, err := m.zk.One(ctx, zkstate.Exists(zkstate.TopicPath(topic))); !errors.Is(err, zkstate.ErrNoNode) {
			return fmt.Errorf("still there: %w", err)
		}
		return nil
	})
	for id := 1; id <= 3; id++ {
		m.eventually("directories go", func() error {
			if left := m.hosts(id, topic); len(left) > 0 {
				return fmt.Errorf("broker %d: %v", id, left)
			}
			return nil
		})
	}
}

func TestKafkaObeysOurControllerAndWeObeyIts(t *testing.T) {
	if testing.Short() {
		t.Skip("not run: takes minutes")
	}
	for _, c := range []struct {
		ibp      string
		versions []string
	}{
		{"3.9", []string{"3.9.1", "3.9.1"}},
		{"2.8", []string{"3.9.1", "2.8.2"}},
		{"2.4", []string{"2.8.2", "2.4.1"}},
	} {
		t.Run(c.ibp, func(t *testing.T) {
			m := startMixed(t, c.ibp, c.versions...)
			require.Equal(t, int32(1), m.controller(), "the only broker that stayed up is the controller")
			m.scenario("under-ours")
			require.Equal(t, int32(1), m.controller())

			m.c.Brokers[0].Stop(t)
			require.NotEqual(t, int32(1), m.controller(), "a Kafka broker took over")
			m.c.Brokers[0].Start(t) // not before: it would be quicker than a JVM that is held up
			m.c.Brokers[0].WaitReady(t)
			m.scenario("under-theirs")
		})
	}
}
