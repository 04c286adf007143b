package interop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/lane"
	"barnabas/zkstate"
)

// patience is longer than anything takes that will still come, also a Java process on a busy machine.
const patience = 3 * time.Minute

// What administrators do to topics, under each kind's controller, with replicas on both kinds: moves through both doors, elections through both, configuration, deletion and a second life.
func TestTopicsAreAdministeredInMixedClusters(t *testing.T) {
	for _, mix := range mixes {
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			m := startMix(t, mix.ibp, mix.programs, mix.versions, longSession)
			m.create(t, "first", 3)
			m.write(t, "first", 0, 100)
			t.Run("moves by request", m.movesByRequest)
			t.Run("moves by znode", m.movesByZnode)
			t.Run("throttled moves", m.movesThrottled)
			t.Run("preferred election", m.electsPreferred)
			t.Run("configuration", m.obeysConfiguration)
			t.Run("second life", m.livesTwice)
			t.Run("producer ids", m.givesProducerIDs)
		})
	}
}

func (m *mixed) write(t *testing.T, topic string, p int32, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var records []*kgo.Record
	for range n {
		records = append(records, &kgo.Record{Topic: topic, Partition: p, Value: []byte("x")})
	}
	if err := m.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		r, zkErr := m.zk.One(lane.Patience(t), zkstate.Get(zkstate.PartitionStatePath(topic, p)))
		require.NoError(t, err, "%s-%d, of which ZooKeeper has %s (%v)", topic, p, r.Data, zkErr)
	}
}

// end is the end offset that the partition's leader gives.
func (m *mixed) end(t *testing.T, topic string, p int32) int64 {
	t.Helper()
	var end int64
	m.eventually(t, "end offset", func() error {
		offsets, err := m.admin.ListEndOffsets(lane.Patience(t), topic)
		if err != nil {
			return err
		}
		o, ok := offsets.Lookup(topic, p)
		if !ok {
			return errors.New("no such partition yet")
		}
		end = o.Offset
		return o.Err
	})
	return end
}

func (m *mixed) eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := done()
		if err == nil {
			return
		}
		require.False(t, time.Now().After(deadline), "%s: %v", what, err)
		time.Sleep(50 * time.Millisecond) // the pace of looking
	}
}

// waitReplicas waits until ZooKeeper has the replicas assigned and all in sync, led by one of them.
func (m *mixed) waitReplicas(t *testing.T, topic string, p int32, want ...int32) {
	t.Helper()
	m.eventually(t, fmt.Sprintf("replicas %v of %s-%d", want, topic, p), func() error {
		results, err := m.zk.Do(lane.Patience(t), []zkstate.Op{zkstate.Get(zkstate.TopicPath(topic)), zkstate.Get(zkstate.PartitionStatePath(topic, p))})
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
		assigned, err := zkstate.DecodeTopicAssignment(results[0].Data)
		if err != nil {
			return err
		}
		state, err := zkstate.DecodePartitionState(results[1].Data)
		if err != nil {
			return err
		}
		now := assigned.Partitions[p]
		if !slices.Equal(now.Replicas, want) || now.Reassigning() || !slices.Equal(slices.Sorted(slices.Values(state.ISR)), slices.Sorted(slices.Values(want))) || !slices.Contains(want, state.Leader) {
			return fmt.Errorf("assigned %+v, state %+v", now, state)
		}
		return nil
	})
}

// waitISR waits until ZooKeeper has the ISR, in any order.
func (m *mixed) waitISR(t *testing.T, topic string, want ...int32) {
	t.Helper()
	m.eventually(t, fmt.Sprintf("ISR %v of %s-0", want, topic), func() error {
		r, err := m.zk.One(lane.Patience(t), zkstate.Get(zkstate.PartitionStatePath(topic, 0)))
		if err != nil {
			return err
		}
		state, err := zkstate.DecodePartitionState(r.Data)
		if err == nil && !slices.Equal(slices.Sorted(slices.Values(state.ISR)), slices.Sorted(slices.Values(want))) {
			err = fmt.Errorf("%+v", state)
		}
		return err
	})
}

func (m *mixed) movesByRequest(t *testing.T) {
	for _, target := range [][]int32{{1, 2}, {2, 3}, {3, 1}, {1, 2, 3}} {
		var req kadm.AlterPartitionAssignmentsReq
		req.Assign("first", 0, target)
		answers, err := m.admin.AlterPartitionAssignments(lane.Patience(t), req)
		require.NoError(t, err)
		require.NoError(t, answers.Error())
		m.waitReplicas(t, "first", 0, target...)
		m.write(t, "first", 0, 10)
	}
	require.EqualValues(t, 140, m.end(t, "first", 0))
}

func (m *mixed) movesByZnode(t *testing.T) {
	for _, target := range [][]int32{{2, 1}, {3, 2}, {3, 1, 2}} {
		data := zkstate.EncodeReassignments([]zkstate.Reassignment{{TopicPartition: zkstate.TopicPartition{Topic: "first", Partition: 1}, Replicas: target}})
		_, err := m.zk.One(lane.Patience(t), zkstate.Create(zkstate.ReassignPartitionsPath, data))
		require.NoError(t, err)
		m.waitReplicas(t, "first", 1, target...)
		m.waitGone(t, zkstate.ReassignPartitionsPath)
		m.write(t, "first", 1, 10)
	}
	require.EqualValues(t, 30, m.end(t, "first", 1))
}

// movesThrottled moves a partition from one kind to the other and back with a limit on what leaders send and followers fetch. Kafka measures its rate over eleven seconds, so a move of a
// few seconds shows no more than that it was held back and came to its end.
func (m *mixed) movesThrottled(t *testing.T) {
	const rate, volume = 2 << 20, 6 << 20
	ctx := lane.Patience(t)
	setBrokers := func(op kadm.IncrementalOp, value *string) {
		_, err := m.admin.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: "leader.replication.throttled.rate", Value: value}, {Op: op, Name: "follower.replication.throttled.rate", Value: value}}, 1, 2, 3)
		require.NoError(t, err)
	}
	require.NoError(t, m.createOn(t, "heavy", []int32{1}, map[string]*string{"min.insync.replicas": text("1"),
		"leader.replication.throttled.replicas": text("*"), "follower.replication.throttled.replicas": text("*")}))
	m.WaitWhole(t, "heavy", 1, 1)
	var records []*kgo.Record
	for range volume / (64 << 10) {
		random := make([]byte, 64<<10)
		_, _ = rand.Read(random)
		records = append(records, &kgo.Record{Topic: "heavy", Value: random})
	}
	require.NoError(t, m.client.ProduceSync(ctx, records...).FirstErr())
	setBrokers(kadm.SetConfig, text(fmt.Sprint(rate)))
	// They hear of it by ZooKeeper, and without it the move takes a moment. Kafka 2.4 does not tell of it, but in every mix one of the first two is no such, and either alone holds the move back.
	m.eventually(t, "one of the first two knows its rates", func() error {
		found, err := m.admin.DescribeBrokerConfigs(ctx, 1, 2)
		if err != nil {
			return err
		}
		for _, broker := range found {
			known := 0
			for _, c := range broker.Configs {
				if strings.HasSuffix(c.Key, ".replication.throttled.rate") && c.MaybeValue() == fmt.Sprint(rate) {
					known++
				}
			}
			if known == 2 {
				return nil
			}
		}
		return errors.New("neither does")
	})
	for _, target := range []int32{2, 1} {
		var req kadm.AlterPartitionAssignmentsReq
		req.Assign("heavy", 0, []int32{target})
		began := time.Now()
		answers, err := m.admin.AlterPartitionAssignments(ctx, req)
		require.NoError(t, err)
		require.NoError(t, answers.Error())
		m.waitReplicas(t, "heavy", 0, target)
		require.Greater(t, time.Since(began), volume/rate*time.Second/2, "to broker %d", target)
	}
	setBrokers(kadm.DeleteConfig, nil)
	require.EqualValues(t, volume/(64<<10), m.end(t, "heavy", 0))
}

func (m *mixed) waitGone(t *testing.T, path string) {
	t.Helper()
	m.eventually(t, path+" goes", func() error {
		_, err := m.zk.One(lane.Patience(t), zkstate.Exists(path))
		if errors.Is(err, zkstate.ErrNoNode) {
			return nil
		}
		return fmt.Errorf("still there (%w)", err)
	})
}

func (m *mixed) waitLeader(t *testing.T, topic string, p, want int32) {
	t.Helper()
	m.eventually(t, fmt.Sprintf("%d leads %s-%d", want, topic, p), func() error {
		r, err := m.zk.One(lane.Patience(t), zkstate.Get(zkstate.PartitionStatePath(topic, p)))
		if err != nil {
			return err
		}
		state, err := zkstate.DecodePartitionState(r.Data)
		if err == nil && state.Leader != want {
			err = fmt.Errorf("%+v", state)
		}
		return err
	})
}

// electsPreferred makes each broker in turn the preferred leader of a partition, which does not make it the leader, and then asks for it, once through each door.
func (m *mixed) electsPreferred(t *testing.T) {
	ctx := lane.Patience(t)
	for i, leader := range []int32{1, 2, 3} {
		var req kadm.AlterPartitionAssignmentsReq
		replicas := []int32{leader, leader%3 + 1, (leader+1)%3 + 1}
		req.Assign("first", 2, replicas)
		answers, err := m.admin.AlterPartitionAssignments(ctx, req)
		require.NoError(t, err)
		require.NoError(t, answers.Error())
		m.waitReplicas(t, "first", 2, replicas...)
		if i%2 == 0 {
			data := zkstate.EncodePreferredReplicaElection([]zkstate.TopicPartition{{Topic: "first", Partition: 2}})
			_, err := m.zk.One(ctx, zkstate.Create(zkstate.PreferredReplicaElectionPath, data))
			require.NoError(t, err)
			m.waitGone(t, zkstate.PreferredReplicaElectionPath)
		} else {
			var which kadm.TopicsSet
			which.Add("first", 2)
			_, err := m.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, which)
			require.NoError(t, err)
		}
		m.waitLeader(t, "first", 2, leader)
		m.write(t, "first", 2, 10)
	}
	require.EqualValues(t, 30, m.end(t, "first", 2))
}

// obeysConfiguration limits the size of a topic's batches and lifts the limit again: leaders of both kinds refuse and take, and every broker describes it alike. The topic of each broker is on
// no other: a follower of Kafka 2.4 that hears of the lifted limit after its leader refuses what it fetches, for good.
func (m *mixed) obeysConfiguration(t *testing.T) {
	ctx := lane.Patience(t)
	var topics []string
	for _, b := range m.Brokers {
		topic := fmt.Sprintf("limited-%d", b.ID)
		require.NoError(t, m.createOn(t, topic, []int32{int32(b.ID)}, map[string]*string{"min.insync.replicas": text("1")}))
		m.WaitWhole(t, topic, 1, 1)
		topics = append(topics, topic)
	}
	set := func(op kadm.IncrementalOp, value *string) {
		_, err := m.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: "max.message.bytes", Value: value}}, topics...)
		require.NoError(t, err)
	}
	incompressible := make([]byte, 5000)
	_, _ = rand.Read(incompressible)
	big := func(topic string) error {
		return m.client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: incompressible}).FirstErr()
	}
	set(kadm.SetConfig, kmsg.StringPtr("2000"))
	for _, topic := range topics {
		m.eventually(t, "the leader of "+topic+" refuses", func() error {
			if err := big(topic); !errors.Is(err, kerr.MessageTooLarge) {
				return fmt.Errorf("answered %w", err)
			}
			return nil
		})
	}
	for _, b := range m.Brokers {
		req := kmsg.NewPtrDescribeConfigsRequest()
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName, resource.ConfigNames = kmsg.ConfigResourceTypeTopic, topics[0], []string{"max.message.bytes"}
		req.Resources = append(req.Resources, resource)
		answer, err := m.client.Broker(b.ID).RetriableRequest(ctx, req)
		require.NoError(t, err)
		described := answer.(*kmsg.DescribeConfigsResponse).Resources[0].Configs
		require.Len(t, described, 1, "broker %d", b.ID)
		require.Equal(t, "2000", *described[0].Value, "broker %d", b.ID)
	}
	set(kadm.DeleteConfig, nil)
	for _, topic := range topics {
		m.eventually(t, "the leader of "+topic+" takes it", func() error { return big(topic) })
	}
}

// livesTwice deletes a topic and creates it again under its name: nothing of the first life is left, and the second works on every broker.
func (m *mixed) livesTwice(t *testing.T) {
	ctx := lane.Patience(t)
	for life := range 3 {
		partitions := 2 + life
		m.create(t, "lives", partitions)
		for p := range int32(partitions) {
			m.write(t, "lives", p, 10)
			require.EqualValues(t, 10, m.end(t, "lives", p), "life %d", life)
		}
		deleted, err := m.admin.DeleteTopics(ctx, "lives")
		require.NoError(t, err)
		require.NoError(t, deleted.Error())
		m.waitGone(t, zkstate.TopicPath("lives"))
		m.client.PurgeTopicsFromClient("lives")
	}
}

// givesProducerIDs asks every broker for ids. Whether a broker takes blocks of them from ZooKeeper or from the controller, none is given twice.
func (m *mixed) givesProducerIDs(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	owner := map[int64]int{}
	for range 20 {
		for _, b := range m.Brokers {
			m.eventually(t, fmt.Sprintf("broker %d gives an id", b.ID), func() error {
				answer, err := m.client.Broker(b.ID).RetriableRequest(ctx, kmsg.NewPtrInitProducerIDRequest())
				if err != nil {
					return err
				}
				resp := answer.(*kmsg.InitProducerIDResponse)
				if resp.ErrorCode != 0 {
					return kerr.ErrorForCode(resp.ErrorCode) // such as COORDINATOR_LOAD_IN_PROGRESS while it waits for a block
				}
				require.NotContains(t, owner, resp.ProducerID, "broker %d", b.ID)
				owner[resp.ProducerID] = b.ID
				return nil
			})
		}
	}
}
