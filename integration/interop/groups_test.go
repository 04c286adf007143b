package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// sightings are the records that the members of a group have seen.
type sightings struct {
	mu sync.Mutex
	at map[int32]map[int64]int
}

func (s *sightings) saw(partition int32, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[partition] == nil {
		s.at[partition] = map[int64]int{}
	}
	s.at[partition][offset]++
}

// missing is how many of the records 0 to n-1 of each partition nobody has seen.
func (s *sightings) missing(partitions int32, n int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := 0
	for p := range partitions {
		for o := range n {
			if s.at[p][o] == 0 {
				missing++
			}
		}
	}
	return missing
}

func (s *sightings) twice() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, offsets := range s.at {
		for _, times := range offsets {
			n += times - 1
		}
	}
	return n
}

// groupStage is a topic whose records a group of foreign consumers shares.
type groupStage struct {
	t          *testing.T
	bootstrap  string
	topic      string
	group      string
	partitions int32
	produced   int64 // in each partition
	seen       *sightings
}

func newGroupStage(t *testing.T, c *cluster.Cluster, name string, partitions int32, replicas int16) *groupStage {
	s := &groupStage{t: t, bootstrap: c.Bootstrap(), topic: name, group: "group-" + name, partitions: partitions, seen: &sightings{at: map[int32]map[int64]int{}}}
	s.ask(func(ctx context.Context, adm *kadm.Client) {
		_, err := adm.CreateTopic(ctx, partitions, replicas, nil, name)
		require.NoError(t, err)
	})
	return s
}

// ask lets a client that knows of no coordinator yet ask something.
func (s *groupStage) ask(question func(ctx context.Context, adm *kadm.Client)) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(s.bootstrap, ",")...), kgo.MetadataMinAge(20*time.Millisecond), kgo.AlwaysRetryEOF())
	require.NoError(s.t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	question(ctx, kadm.NewClient(cl))
}

func (s *groupStage) describe() (g kadm.DescribedGroup) {
	s.ask(func(ctx context.Context, adm *kadm.Client) {
		described, err := adm.DescribeGroups(ctx, s.group)
		if g = described[s.group]; g.Err == nil {
			g.Err = err
		}
	})
	return g
}

// more produces n records into each partition and waits until they are seen.
func (s *groupStage) more(n int64) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(s.bootstrap, ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(s.topic), kgo.MetadataMinAge(20*time.Millisecond), kgo.AlwaysRetryEOF())
	require.NoError(s.t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var records []*kgo.Record
	for p := range s.partitions {
		for range n {
			records = append(records, &kgo.Record{Partition: p, Value: []byte("v")})
		}
	}
	require.NoError(s.t, cl.ProduceSync(ctx, records...).FirstErr())
	s.produced += n
	s.eventually(func() string {
		if m := s.seen.missing(s.partitions, s.produced); m > 0 {
			return fmt.Sprintf("%d records are not seen", m)
		}
		return ""
	})
}

// eventually waits until nothing is wrong any more.
func (s *groupStage) eventually(wrong func() string) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		w := wrong()
		if w == "" {
			return
		}
		require.True(s.t, time.Now().Before(deadline), w)
		time.Sleep(50 * time.Millisecond) // the pace of looking
	}
}

// members waits until the group is stable with n members who share all partitions, each with at least one.
func (s *groupStage) members(n int) {
	s.t.Helper()
	s.eventually(func() string {
		g := s.describe()
		owners := map[int32]string{}
		var idle []string
		for _, m := range g.Members {
			assigned, _ := m.Assigned.AsConsumer()
			before := len(owners)
			if assigned != nil {
				for _, t := range assigned.Topics {
					for _, p := range t.Partitions {
						assert.Empty(s.t, owners[p], "partition %d has two owners", p)
						owners[p] = m.MemberID
					}
				}
			}
			if len(owners) == before {
				idle = append(idle, m.ClientID)
			}
		}
		if g.State == "Stable" && len(g.Members) == n && len(owners) == int(s.partitions) && len(idle) == 0 {
			return ""
		}
		return fmt.Sprintf("group %s is %s with %d members (%d wanted) that have %d partitions: %v, %v has none; %v", s.group, g.State, len(g.Members), n, len(owners), owners, idle, g.Err)
	})
}

// empty waits until all members have left, and then expects everything to be committed.
func (s *groupStage) empty() {
	s.t.Helper()
	s.eventually(func() string {
		if g := s.describe(); g.Err != nil || g.State != "Empty" {
			return fmt.Sprintf("group %s is %s: %v", s.group, g.State, g.Err)
		}
		return ""
	})
	var committed kadm.OffsetResponses
	s.ask(func(ctx context.Context, adm *kadm.Client) {
		var err error
		committed, err = adm.FetchOffsets(ctx, s.group)
		require.NoError(s.t, err)
	})
	for p := range s.partitions {
		o, _ := committed.Lookup(s.topic, p)
		assert.Equal(s.t, s.produced, o.At, "committed offset of partition %d", p)
	}
}

// Two members of each kind of consumer share a topic; one comes later and one goes first.
func TestGroupMembersOfEveryKindShareATopic(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"group.initial.rebalance.delay.ms": "0"})
	for _, name := range slices.Sorted(maps.Keys(memberKinds)) {
		t.Run(name, func(t *testing.T) {
			kind := memberKinds[name]
			if kind.needs != nil {
				kind.needs(t)
			}
			s := newGroupStage(t, c, "share-"+name, 4, 1)
			one := kind.start(t, s)
			s.more(100)
			two := kind.start(t, s)
			s.members(2)
			s.more(100)
			one()
			s.members(1)
			s.more(100)
			two()
			s.empty()
			t.Logf("%d records were seen twice", s.seen.twice())
		})
	}
}

// Members of several kinds in one group: they have one protocol in common, range. Only those are here that can read, as leaders, what every other says of itself; sarama, kafka-go and
// franz-go choke on one another's subscriptions or on those of Java.
func TestMembersOfSeveralKindsShareOneGroup(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 3, map[string]string{"group.initial.rebalance.delay.ms": "100"})
	s := newGroupStage(t, c, "mixed", 16, 3)
	var stops []func()
	for _, name := range slices.Sorted(maps.Keys(memberKinds)) {
		if kind := memberKinds[name]; kind.alone {
			continue
		} else if kind.needs == nil || lane.Required() || t.Run("has "+name, kind.needs) {
			stops = append(stops, kind.start(t, s))
		}
	}
	require.Greater(t, len(stops), 1)
	s.members(len(stops))
	s.more(50)
	for len(stops) > 1 {
		stops[0]()
		stops = stops[1:]
		s.members(len(stops))
		s.more(20)
	}
	stops[0]()
	s.empty()
}
