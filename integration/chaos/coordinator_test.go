package chaos

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/zkstate/zktest"
)

const (
	coordinatorKills = 10
	groupMembers     = 4
	groupPartitions  = 6
)

// groupHistory is what the members of a group saw and were told.
type groupHistory struct {
	mu        sync.Mutex
	consumed  map[uint64]bool
	committed map[int32]int64 // the highest offset whose commit was acknowledged
	faults    []string
	commits   atomic.Int64
}

func (h *groupHistory) fault(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, fmt.Sprintf(format, args...))
}

func (h *groupHistory) saw(r *kgo.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.consumed[binary.BigEndian.Uint64(r.Value)] = true
}

func (h *groupHistory) ack(partition int32, offset int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.committed[partition] = max(h.committed[partition], offset)
	h.commits.Add(1)
}

func (h *groupHistory) acked() map[int32]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	copied := make(map[int32]int64, len(h.committed))
	for p, o := range h.committed {
		copied[p] = o
	}
	return copied
}

// consumeInGroup is one member: it commits what it has seen of each poll, and goes on whatever happens.
func (h *groupHistory) consumeInGroup(ctx context.Context, t *testing.T, seeds []string, topic, group string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.HeartbeatInterval(500*time.Millisecond), kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(15*time.Second),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		h.fault("%v", err)
		return
	}
	defer cl.Close()
	for ctx.Err() == nil {
		polled, cancel := context.WithTimeout(ctx, time.Second)
		fetches := cl.PollRecords(polled, 500)
		cancel()
		latest := map[int32]int64{}
		fetches.EachRecord(func(r *kgo.Record) {
			h.saw(r)
			latest[r.Partition] = r.Offset + 1
		})
		if len(latest) > 0 {
			h.commit(ctx, cl, topic, latest)
		}
		cl.AllowRebalance()
	}
}

// commit commits offsets; what is acknowledged must never be lost from then on. Not acknowledged may mean either.
func (h *groupHistory) commit(ctx context.Context, cl *kgo.Client, topic string, latest map[int32]int64) {
	offsets := map[string]map[int32]kgo.EpochOffset{topic: {}}
	for p, o := range latest {
		offsets[topic][p] = kgo.EpochOffset{Epoch: -1, Offset: o}
	}
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cl.CommitOffsetsSync(limited, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			return
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 {
					h.ack(p.Partition, latest[p.Partition])
				}
			}
		}
	})
}

// Members of one group consume and commit while the broker that coordinates it is killed, again and again. Every record is consumed, no acknowledged commit is lost or goes back, and
// the group becomes whole again.
func TestTheCoordinatorIsKilledTenTimes(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 3, map[string]string{"min.insync.replicas": "2", "zookeeper.session.timeout.ms": "2000", "group.initial.rebalance.delay.ms": "0",
		"unclean.leader.election.enable": "false", "offsets.topic.num.partitions": "5"})
	const topic, group = "shared", "the-group"
	producer, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.DefaultProduceTopic(topic), kgo.MetadataMinAge(100*time.Millisecond), kgo.UnknownTopicRetries(-1))
	require.NoError(t, err)
	defer producer.Close()
	adm := kadm.NewClient(producer)
	_, err = adm.CreateTopic(context.Background(), groupPartitions, 3, nil, topic)
	require.NoError(t, err)

	h := &groupHistory{consumed: map[uint64]bool{}, committed: map[int32]int64{}}
	ctx, cancel := context.WithCancel(context.Background())
	var members, producing sync.WaitGroup
	for range groupMembers {
		members.Go(func() { h.consumeInGroup(ctx, t, c.Seeds(), topic, group) })
	}
	var sent atomic.Uint64
	stop := make(chan struct{})
	acked := sync.Map{}
	producing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			n := sent.Add(1)
			producer.Produce(context.Background(), &kgo.Record{Value: binary.BigEndian.AppendUint64(nil, n)}, func(_ *kgo.Record, err error) {
				if err == nil {
					acked.Store(n, true)
				}
			})
		}
	})

	for kill := range coordinatorKills {
		before := h.commits.Load()
		require.Eventually(t, func() bool { return h.commits.Load() > before+20 }, time.Minute, 10*time.Millisecond, "commits go on before kill %d", kill)
		found := adm.FindGroupCoordinators(context.Background(), group)
		require.NoError(t, found[group].Err)
		b := c.Brokers[found[group].NodeID-1]
		b.Kill(t)
		floor := h.acked()
		checkCommitted(t, adm, group, topic, floor)
		b.Start(t)
		b.WaitReady(t)
		c.WaitWhole(t, topic, groupPartitions, 3)
		c.WaitWhole(t, "__consumer_offsets", 5, 3)
		checkCommitted(t, adm, group, topic, h.acked())
	}
	close(stop)
	producing.Wait()
	require.NoError(t, producer.Flush(context.Background()))

	missing := func() (n int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		acked.Range(func(k, _ any) bool {
			if !h.consumed[k.(uint64)] {
				n++
			}
			return true
		})
		return n
	}
	require.Eventually(t, func() bool { return missing() == 0 }, time.Minute, 50*time.Millisecond, "every acknowledged record is consumed")
	require.Eventually(t, func() bool {
		described, err := adm.DescribeGroups(context.Background(), group)
		return err == nil && described[group].State == "Stable" && len(described[group].Members) == groupMembers
	}, time.Minute, 100*time.Millisecond, "the group is whole")
	checkCommitted(t, adm, group, topic, h.acked())
	cancel()
	members.Wait()
	assert.Empty(t, h.faults)
	t.Logf("%d records, %d commits acknowledged, %d kills", sent.Load(), h.commits.Load(), coordinatorKills)
}

// checkCommitted fetches the group's offsets from whoever coordinates it now; none may be below what was acknowledged before.
func checkCommitted(t *testing.T, adm *kadm.Client, group, topic string, floor map[int32]int64) {
	t.Helper()
	var committed kadm.OffsetResponses
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var err error
		committed, err = adm.FetchOffsets(ctx, group)
		return err == nil
	}, time.Minute, 20*time.Millisecond, "offsets can be fetched")
	for p, offset := range floor {
		o, _ := committed.Lookup(topic, p)
		require.GreaterOrEqual(t, o.At, offset, "the commit of partition %d went back", p)
	}
}
