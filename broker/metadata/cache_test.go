package metadata

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// part is a partition as an update names it.
func part(id, leader, epoch int32) kmsg.UpdateMetadataRequestTopicPartition {
	p := kmsg.NewUpdateMetadataRequestTopicPartition()
	p.Partition, p.Leader, p.LeaderEpoch = id, leader, epoch
	p.Replicas, p.ISR = []int32{1, 2}, []int32{1}
	return p
}

func topic(name string, id byte, parts ...kmsg.UpdateMetadataRequestTopicPartition) kmsg.UpdateMetadataRequestTopicState {
	t := kmsg.NewUpdateMetadataRequestTopicState()
	t.Topic, t.PartitionStates = name, parts
	t.TopicID[0] = id
	return t
}

func request(epoch int32, topics ...kmsg.UpdateMetadataRequestTopicState) *kmsg.UpdateMetadataRequest {
	req := kmsg.NewPtrUpdateMetadataRequest()
	req.Version, req.ControllerID, req.ControllerEpoch, req.TopicStates = 8, 1, epoch, topics
	for id := int32(1); id <= 2; id++ {
		b := kmsg.NewUpdateMetadataRequestLiveBroker()
		b.ID = id
		e := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
		e.ListenerName, e.Host, e.Port = "PLAINTEXT", "h", 9090+id
		b.Endpoints = append(b.Endpoints, e)
		req.LiveBrokers = append(req.LiveBrokers, b)
	}
	return req
}

func apply(t *testing.T, c *Cache, req *kmsg.UpdateMetadataRequest) []TopicPartition {
	t.Helper()
	deleted, err := c.Apply(req)
	require.NoError(t, err)
	return deleted
}

func TestEmptyCacheKnowsNothing(t *testing.T) {
	s := NewCache().Load()
	require.Nil(t, s.Topic("a"))
	require.Nil(t, s.TopicByID(TopicID{1}))
	require.Nil(t, s.Partition("a", 0))
	require.Equal(t, NoController, s.ControllerID)
	require.Empty(t, s.BrokerIDs())
	require.Empty(t, slices.Collect(s.Topics()))
}

func TestUpdatesAddToWhatIsKnownAndReplaceTheBrokers(t *testing.T) {
	c := NewCache()
	apply(t, c, request(1, topic("a", 1, part(1, 2, 5), part(0, 1, 5)), topic("b", 2, part(0, 1, 0))))
	req := request(1, topic("a", 1, part(1, NoLeader, 6)))
	req.LiveBrokers = req.LiveBrokers[:1]
	apply(t, c, req)
	s := c.Load()
	require.Equal(t, []int32{1}, s.BrokerIDs())
	require.Equal(t, NoLeader, s.Partition("a", 1).Leader)
	require.Equal(t, int32(6), s.Partition("a", 1).LeaderEpoch)
	require.Equal(t, int32(1), s.Partition("a", 0).Leader)
	require.Same(t, s.Topic("b"), s.TopicByID(TopicID{2}))
	require.Equal(t, 2, s.TopicCount())
}

func TestTopicsAndBrokersAreListedInOrder(t *testing.T) {
	c := NewCache()
	apply(t, c, request(1, topic("m", 1, part(0, 1, 0)), topic("z", 2, part(0, 1, 0)), topic("a", 3, part(0, 1, 0))))
	var names []string
	for topic := range c.Load().Topics() {
		names = append(names, topic.Name)
	}
	require.Equal(t, []string{"a", "m", "z"}, names)
	require.Equal(t, []int32{1, 2}, c.Load().BrokerIDs())
}

func TestASnapshotInHandDoesNotChange(t *testing.T) {
	c := NewCache()
	apply(t, c, request(1, topic("a", 1, part(0, 1, 5), part(1, 1, 5))))
	before := c.Load()
	apply(t, c, request(1, topic("a", 9, part(0, LeaderDuringDelete, 0), part(1, 2, 6)), topic("b", 2, part(0, 1, 0))))
	require.Equal(t, int32(1), before.Partition("a", 0).Leader)
	require.Equal(t, int32(5), before.Partition("a", 1).LeaderEpoch)
	require.Nil(t, before.Topic("b"))
	require.NotNil(t, before.TopicByID(TopicID{1}))
	require.Nil(t, before.TopicByID(TopicID{9}))
}

func TestAnUpdateCopiesOnlyWhatItTouches(t *testing.T) {
	c := NewCache()
	var topics []kmsg.UpdateMetadataRequestTopicState
	for i := range 2000 {
		topics = append(topics, topic(fmt.Sprintf("t%d", i), 0, part(0, 1, 0)))
	}
	apply(t, c, request(1, topics...))
	before := c.Load()
	apply(t, c, request(1, topic("t7", 0, part(0, 2, 1))))
	after := c.Load()
	copied := 0
	for i := range after.byName {
		for name := range after.byName[i] {
			if before.byName[i][name] != after.byName[i][name] {
				copied++
			}
		}
	}
	require.Equal(t, 1, copied)
	allocated := testing.AllocsPerRun(20, func() { apply(t, c, request(1, topic("t7", 0, part(0, 2, 1)))) })
	require.Less(t, allocated, 100.0, "an update of one partition among 2,000")
}

func TestLastPartitionDeletedTakesTheTopicAndItsIDWithIt(t *testing.T) {
	c := NewCache()
	apply(t, c, request(1, topic("a", 1, part(0, 1, 0), part(1, 1, 0))))
	require.Equal(t, []TopicPartition{{"a", 0}}, apply(t, c, request(1, topic("a", 1, part(0, LeaderDuringDelete, 0)))))
	require.NotNil(t, c.Load().Topic("a"))
	require.Nil(t, c.Load().Partition("a", 0))
	require.NotNil(t, c.Load().Partition("a", 1), "found although there is a gap below")
	require.Equal(t, []TopicPartition{{"a", 1}}, apply(t, c, request(1, topic("a", 1, part(1, LeaderDuringDelete, 0)))))
	require.Nil(t, c.Load().Topic("a"))
	require.Nil(t, c.Load().TopicByID(TopicID{1}))
	require.Zero(t, c.Load().TopicCount())
}

func TestDeletionOfWhatIsNotKnownIsToldAllTheSame(t *testing.T) {
	c := NewCache()
	require.Equal(t, []TopicPartition{{"a", 3}}, apply(t, c, request(1, topic("a", 1, part(3, LeaderDuringDelete, 0)))))
	require.Nil(t, c.Load().Topic("a"))
}

func TestDeletedAndMadeAgainInOneUpdateIsNotDeleted(t *testing.T) {
	c := NewCache()
	apply(t, c, request(1, topic("a", 1, part(0, 1, 0))))
	deleted := apply(t, c, request(1, topic("a", 1, part(0, LeaderDuringDelete, 0)), topic("a", 2, part(0, 2, 0))))
	require.Empty(t, deleted)
	require.Equal(t, TopicID{2}, c.Load().Topic("a").ID)
	require.Nil(t, c.Load().TopicByID(TopicID{1}))
	require.Same(t, c.Load().Topic("a"), c.Load().TopicByID(TopicID{2}))
}

func TestATopicMadeAnewTakesItsNewIDAndLosesTheOld(t *testing.T) {
	c := NewCache()
	apply(t, c, request(1, topic("a", 1, part(0, 1, 0), part(1, 1, 0))))
	apply(t, c, request(1, topic("a", 2, part(0, 1, 0))))
	require.Nil(t, c.Load().TopicByID(TopicID{1}))
	require.Nil(t, c.Load().Partition("a", 1), "what is left of another topic")
	require.Len(t, c.Load().Topic("a").Partitions, 1)
	require.Same(t, c.Load().Topic("a"), c.Load().TopicByID(TopicID{2}))
	apply(t, c, request(1, topic("a", 0, part(0, 1, 0))))
	require.Nil(t, c.Load().TopicByID(TopicID{2}))
	require.Nil(t, c.Load().TopicByID(TopicID{}), "the zero id is no id")
}

func TestAnOlderControllerIsRefusedWhole(t *testing.T) {
	c := NewCache()
	apply(t, c, request(5, topic("a", 1, part(0, 1, 0))))
	before := c.Load()
	_, err := c.Apply(request(4, topic("a", 1, part(0, 2, 1))))
	require.ErrorIs(t, err, kerr.StaleControllerEpoch)
	require.Same(t, before, c.Load())
	apply(t, c, request(5, topic("b", 2, part(0, 2, 1))))
	apply(t, c, request(6))
	require.NotNil(t, c.Load().Topic("a"), "a new controller adds to what is known")
	require.Equal(t, int32(6), c.Load().ControllerEpoch)
}

func TestTheSameControllerDoesNotTakeALeaderEpochBack(t *testing.T) {
	c := NewCache()
	apply(t, c, request(1, topic("a", 1, part(0, 1, 5)), topic("old", 0, part(0, 1, 5))))
	apply(t, c, request(1, topic("a", 1, part(0, 2, 4)), topic("old", 0, part(0, 2, 4))))
	require.Equal(t, int32(5), c.Load().Partition("a", 0).LeaderEpoch)
	require.Equal(t, int32(4), c.Load().Partition("old", 0).LeaderEpoch, "without an id it may be another topic")
	apply(t, c, request(1, topic("a", 2, part(0, 2, 0))))
	require.Equal(t, int32(0), c.Load().Partition("a", 0).LeaderEpoch, "another topic of the same name")
	apply(t, c, request(1, topic("a", 2, part(0, 2, 7))))
	apply(t, c, request(2, topic("a", 2, part(0, 1, 3))))
	require.Equal(t, int32(3), c.Load().Partition("a", 0).LeaderEpoch, "a new controller is believed")
}

// A topic that was deleted while this broker had no session is named by no later update.
func TestANewRegistrationOfThisBrokerIsToldAllAnew(t *testing.T) {
	c := NewCache()
	tell := func(brokerEpoch int64, topics ...kmsg.UpdateMetadataRequestTopicState) []TopicPartition {
		req := request(1, topics...)
		req.BrokerEpoch = brokerEpoch
		return apply(t, c, req)
	}
	tell(10, topic("a", 1, part(0, 1, 0)), topic("b", 2, part(0, 1, 0)))
	require.Empty(t, tell(20), "brokers alone are not all there is")
	require.NotNil(t, c.Load().Topic("a"))
	require.Equal(t, []TopicPartition{{"a", 0}}, tell(20, topic("b", 2, part(0, 2, 1))))
	require.Nil(t, c.Load().Topic("a"))
	require.NotNil(t, c.Load().Topic("b"))
	tell(20, topic("c", 3, part(0, 1, 0)))
	require.NotNil(t, c.Load().Topic("b"), "later updates of the same registration add to it")
}

func TestEndpointsAsEachVersionCarriesThem(t *testing.T) {
	for version := int16(0); version <= 8; version++ {
		req := request(1)
		req.Version = version
		b := &req.LiveBrokers[0]
		b.Host, b.Port = "old", 1
		b.Endpoints[0].SecurityProtocol = 3
		got := NewCache()
		// What a request carries at a version is what its encoding does.
		decoded := kmsg.NewPtrUpdateMetadataRequest()
		decoded.Version = version
		require.NoError(t, decoded.ReadFrom(req.AppendTo(nil)))
		apply(t, got, decoded)
		broker := got.Load().Brokers[1]
		want := Endpoint{Listener: "PLAINTEXT", Host: "h", Port: 9091, SecurityProtocol: 3}
		switch {
		case version == 0:
			want = Endpoint{Listener: "PLAINTEXT", Host: "old", Port: 1}
		case version < 3:
			want.Listener = "SASL_SSL"
		}
		require.Equal(t, []Endpoint{want}, broker.Endpoints, "version %d", version)
		_, found := broker.Endpoint(want.Listener)
		require.True(t, found)
		_, found = broker.Endpoint("OTHER")
		require.False(t, found)
	}
}

func TestUngroupedPartitionsOfOldVersions(t *testing.T) {
	c := NewCache()
	req := request(1)
	p := part(0, 1, 3)
	p.Topic = "a"
	req.Version, req.PartitionStates = 4, append(req.PartitionStates, p)
	apply(t, c, req)
	require.Equal(t, int32(3), c.Load().Partition("a", 0).LeaderEpoch)
}

// model is the plain way to keep the same state.
type model map[string]map[int32]int32

// TestManyUpdatesGiveWhatAPlainMapWouldHave draws updates and compares.
func TestManyUpdatesGiveWhatAPlainMapWouldHave(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	c, m, ids, known := NewCache(), model{}, map[string]byte{}, map[string]byte{}
	for range 1000 {
		var topics []kmsg.UpdateMetadataRequestTopicState
		for range 1 + rnd.IntN(3) {
			name := fmt.Sprintf("t%d", rnd.IntN(40))
			if rnd.IntN(8) == 0 || ids[name] == 0 {
				ids[name] = byte(1 + rnd.IntN(250))
			}
			for other, id := range ids { // ids are not shared
				if other != name && id == ids[name] {
					delete(ids, other)
				}
			}
			state := topic(name, ids[name])
			if known[name] != ids[name] {
				delete(m, name)
				known[name] = ids[name]
			}
			for range 1 + rnd.IntN(3) {
				p := part(rnd.Int32N(5), rnd.Int32N(3), 0)
				if rnd.IntN(2) == 0 {
					p.Leader = LeaderDuringDelete
				}
				state.PartitionStates = append(state.PartitionStates, p)
				m.set(name, p.Partition, p.Leader)
			}
			topics = append(topics, state)
		}
		apply(t, c, request(1, topics...))
		m.check(t, c.Load())
	}
}

func (m model) set(name string, id, leader int32) {
	if m[name] == nil {
		m[name] = map[int32]int32{}
	}
	if leader == LeaderDuringDelete {
		delete(m[name], id)
	} else {
		m[name][id] = leader
	}
	if len(m[name]) == 0 {
		delete(m, name)
	}
}

func (m model) check(t *testing.T, s *Snapshot) {
	t.Helper()
	require.Equal(t, len(m), s.TopicCount())
	for name, leaders := range m {
		topic := s.Topic(name)
		require.NotNil(t, topic, name)
		require.Len(t, topic.Partitions, len(leaders))
		for id, leader := range leaders {
			require.Equal(t, leader, topic.Partition(id).Leader)
		}
	}
	for i := range s.byID {
		for id, topic := range s.byID[i] {
			require.Equal(t, id, topic.ID)
			require.Same(t, topic, s.Topic(topic.Name), "an id leads to a topic that is there")
		}
	}
}

func TestReadersAndUpdatesAtOnce(t *testing.T) {
	c := NewCache()
	apply(t, c, request(1, topic("a", 1, part(0, 1, 0))))
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			last := int32(-1)
			for {
				s := c.Load()
				epoch := s.Partition("a", 0).LeaderEpoch
				if epoch < last || s.Topic("b") != nil && s.Partition("b", 0).LeaderEpoch > epoch {
					t.Error("a reader saw the cluster go back in time")
					return
				}
				last = epoch
				s.BrokerIDs()
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for epoch := range int32(500) {
		apply(t, c, request(1, topic("a", 1, part(0, 1, epoch)), topic("b", 2, part(0, 1, epoch))))
	}
	close(stop)
	readers.Wait()
}

func BenchmarkApplyOneOfTenThousand(b *testing.B) {
	c := NewCache()
	var topics []kmsg.UpdateMetadataRequestTopicState
	for i := range 10000 {
		topics = append(topics, topic(fmt.Sprintf("topic-%d", i), 0, part(0, 1, 0)))
	}
	if _, err := c.Apply(request(1, topics...)); err != nil {
		b.Fatal(err)
	}
	one := request(1, topic("topic-77", 0, part(0, 2, 1)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Apply(one); err != nil {
			b.Fatal(err)
		}
	}
}
