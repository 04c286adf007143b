package api

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/partition"
	"barnabas/broker/wire"
)

// silentUpdate adds topics to the metadata of a played world.
func (w *world) silentUpdate(t *testing.T, topics ...kmsg.UpdateMetadataRequestTopicState) {
	req := kmsg.NewPtrUpdateMetadataRequest()
	req.Version, req.ControllerID, req.TopicStates = 8, 1, topics
	b := kmsg.NewUpdateMetadataRequestLiveBroker()
	e := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
	e.ListenerName, e.Host, e.Port = "PLAINTEXT", "h", 1
	b.ID, b.Endpoints = 1, append(b.Endpoints, e)
	req.LiveBrokers = append(req.LiveBrokers, b)
	require.NoError(t, w.d.applyMetadata(req))
}

func playedWorld(t *testing.T) *world {
	w := newPlayedWorld(t)
	w.t = t
	return w
}

func creating(timeout int32, topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis, req.Topics = 7, timeout, topics
	return req
}

func isPending(t *testing.T, done <-chan outcome) {
	t.Helper()
	select {
	case <-done:
		t.Fatal("answered already")
	case <-time.After(20 * time.Millisecond):
	}
}

func TestCreationIsAnsweredWhenEveryPartitionHasALeader(t *testing.T) {
	w := playedWorld(t)
	done := w.start("PLAINTEXT", frame(creating(60_000, createTopic("a", 2, 1, nil), createTopic("b", 1, 1, nil), createTopic("one", 1, 1, nil))))
	w.silentUpdate(t, topicState("b", [16]byte{2}, [][]int32{{1}}))
	leaderless := topicState("a", [16]byte{3}, [][]int32{{1}, {1}})
	leaderless.PartitionStates[1].Leader = -1
	w.silentUpdate(t, leaderless)
	isPending(t, done)
	w.silentUpdate(t, topicState("a", [16]byte{3}, [][]int32{{1}, {1}}))
	resp := decodeAnswer(t, 19, 7, await(t, done).response).(*kmsg.CreateTopicsResponse)
	require.Equal(t, []int16{0, 0, kerr.TopicAlreadyExists.Code}, []int16{resp.Topics[0].ErrorCode, resp.Topics[1].ErrorCode, resp.Topics[2].ErrorCode})
}

func TestCreationThatIsNotReadyInTimeIsATimeout(t *testing.T) {
	w := playedWorld(t)
	resp := w.ask(creating(1, createTopic("a", 1, 1, nil))).(*kmsg.CreateTopicsResponse)
	require.Equal(t, kerr.RequestTimedOut.Code, resp.Topics[0].ErrorCode)
	require.Equal(t, int32(-1), resp.Topics[0].NumPartitions)
}

func TestDeletionIsAnsweredWhenTheTopicIsGone(t *testing.T) {
	w := playedWorld(t)
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version, req.TimeoutMillis, req.TopicNames = 5, 60_000, []string{"one"}
	done := w.start("PLAINTEXT", frame(req))
	isPending(t, done)
	w.silentUpdate(t, topicState("one", [16]byte{1}, [][]int32{nil}))
	require.Zero(t, decodeAnswer(t, 20, 5, await(t, done).response).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode)
}

func TestDeletionSwitchedOff(t *testing.T) {
	w := playedWorld(t)
	w.d.cfg.DeleteTopics = false
	for version := int16(0); version <= 6; version++ {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Version, req.TimeoutMillis, req.TopicNames = version, 1000, []string{"one"}
		topic := kmsg.NewDeleteTopicsRequestTopic()
		topic.TopicID = [16]byte{1}
		req.Topics = append(req.Topics, topic)
		want := kerr.TopicDeletionDisabled.Code
		if version < 3 {
			want = kerr.InvalidRequest.Code
		}
		require.Equal(t, want, w.ask(req).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode, "version %d", version)
	}
}

func TestNothingWaitsBeyondTheLimit(t *testing.T) {
	w := playedWorld(t)
	w.d.waits.limit = 0
	resp := w.ask(creating(60_000, createTopic("a", 1, 1, nil))).(*kmsg.CreateTopicsResponse)
	require.Equal(t, kerr.RequestTimedOut.Code, resp.Topics[0].ErrorCode)
}

func asking(version int16, allow bool, names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = version, allow
	for i := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &names[i]
		req.Topics = append(req.Topics, topic)
	}
	return req
}

func TestTopicsAreCreatedOnlyWhenBrokerAndClientAllowIt(t *testing.T) {
	for _, c := range []struct {
		version       int16
		broker, asked bool
		want          bool
	}{
		{0, true, false, true}, // before version 4 nobody could forbid it
		{3, true, false, true},
		{4, true, false, false},
		{4, true, true, true},
		{12, true, true, true},
		{12, false, true, false},
		{0, false, false, false},
	} {
		w := playedWorld(t)
		w.d.cfg.AutoCreateTopics = c.broker
		created := false
		w.admin.createTopics = func(specs []admin.TopicSpec, _ bool) []admin.TopicResult {
			created = true
			return []admin.TopicResult{{Name: specs[0].Name}}
		}
		resp := w.ask(asking(c.version, c.asked, "new")).(*kmsg.MetadataResponse)
		require.Equal(t, c.want, created, "%+v", c)
		want := kerr.UnknownTopicOrPartition.Code
		if c.want {
			want = kerr.LeaderNotAvailable.Code
		}
		require.Equal(t, want, resp.Topics[0].ErrorCode)
	}
}

func TestATopicBeingCreatedIsNotCreatedTwice(t *testing.T) {
	w := playedWorld(t)
	entered, release := make(chan struct{}), make(chan struct{})
	w.admin.createTopics = func(specs []admin.TopicSpec, _ bool) []admin.TopicResult {
		close(entered)
		<-release
		return []admin.TopicResult{{Name: specs[0].Name}}
	}
	first := w.start("PLAINTEXT", frame(asking(4, true, "new")))
	<-entered
	resp := w.ask(asking(4, true, "new")).(*kmsg.MetadataResponse)
	require.Equal(t, kerr.UnknownTopicOrPartition.Code, resp.Topics[0].ErrorCode)
	close(release)
	await(t, first)
	require.Empty(t, w.d.creating.mu.names)
}

func TestTopicsCreatedByAskingHaveTheBrokersLayout(t *testing.T) {
	w := playedWorld(t)
	w.d.cfg.AutoTopic = func(name string) AutoTopic {
		return AutoTopic{Partitions: 50, ReplicationFactor: 3, Configs: map[string]string{"segment.bytes": "1", "cleanup.policy": "compact"}}
	}
	var asked admin.TopicSpec
	w.admin.createTopics = func(specs []admin.TopicSpec, _ bool) []admin.TopicResult {
		asked = specs[0]
		return []admin.TopicResult{{Name: specs[0].Name, Err: kerr.InvalidReplicationFactor}}
	}
	resp := w.ask(asking(4, true, offsetsTopic)).(*kmsg.MetadataResponse)
	require.Equal(t, kerr.InvalidReplicationFactor.Code, resp.Topics[0].ErrorCode)
	require.True(t, resp.Topics[0].IsInternal)
	require.Equal(t, int32(50), asked.Partitions)
	require.Equal(t, int16(3), asked.ReplicationFactor)
	require.Equal(t, "cleanup.policy", asked.Configs[0].Name)
}

func TestNamesOfTopics(t *testing.T) {
	for _, good := range []string{"a", "A.b_c-9", strings.Repeat("x", 249), "..."} {
		require.True(t, validTopicName(good), good)
	}
	for _, bad := range []string{"", ".", "..", "a b", "a/b", "ä", "a\x00", strings.Repeat("x", 250)} {
		require.False(t, validTopicName(bad), bad)
	}
}

// orders notes what the controller ordered.
type orders struct {
	playedReplicas
	lead partition.LeaderAndISR
	stop partition.StopReplicas
}

//lint:ignore ST1008 the order is that of the interface
func (o *orders) ApplyLeaderAndISR(req partition.LeaderAndISR) (error, []partition.PartitionError) {
	o.lead = req
	return o.playedReplicas.ApplyLeaderAndISR(req)
}

//lint:ignore ST1008 the order is that of the interface
func (o *orders) StopReplicas(req partition.StopReplicas) (error, []partition.PartitionError) {
	o.stop = req
	return o.playedReplicas.StopReplicas(req)
}

func TestOrdersAreReadAsEachVersionCarriesThem(t *testing.T) {
	w := playedWorld(t)
	o := &orders{}
	w.d.deps.Replicas = o
	for version := int16(0); version <= 7; version++ {
		req := kmsg.NewPtrLeaderAndISRRequest()
		req.Version, req.ControllerID, req.ControllerEpoch, req.BrokerEpoch, req.Type = version, 3, 4, 5, 1
		live := kmsg.NewLeaderAndISRRequestLiveLeader()
		live.BrokerID, live.Host, live.Port = 1, "h", 2
		req.LiveLeaders = append(req.LiveLeaders, live)
		p := kmsg.NewLeaderAndISRRequestTopicPartition()
		p.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.Replicas, p.ZKVersion, p.IsNew = "t", 6, 1, 7, []int32{1}, []int32{1, 2}, 8, true
		p.AddingReplicas, p.RemovingReplicas, p.LeaderRecoveryState = []int32{2}, []int32{9}, 1
		topic := kmsg.NewLeaderAndISRRequestTopicState()
		topic.Topic, topic.TopicID, topic.PartitionStates = "t", [16]byte{1}, append(topic.PartitionStates, p)
		req.PartitionStates, req.TopicStates = append(req.PartitionStates, p), append(req.TopicStates, topic)
		resp := w.ask(req).(*kmsg.LeaderAndISRResponse)
		require.Len(t, o.lead.Partitions, 1, "version %d", version)
		got := o.lead.Partitions[0]
		require.Equal(t, "t", got.Topic)
		require.Equal(t, []int32{6, 1, 7, 8}, []int32{got.Partition, got.Leader, got.LeaderEpoch, got.PartitionEpoch})
		require.Equal(t, version >= 1, got.IsNew)
		require.Equal(t, version >= 3, len(got.Adding) == 1 && len(got.Removing) == 1)
		require.Equal(t, version >= 5, got.TopicID != [16]byte{})
		require.Equal(t, version >= 6, got.LeaderRecovery == 1)
		wantEpoch := int64(-1)
		if version >= 2 {
			wantEpoch = 5
		}
		require.Equal(t, wantEpoch, o.lead.BrokerEpoch)
		require.Equal(t, partition.Endpoint{ID: 1, Host: "h", Port: 2}, o.lead.LiveLeaders[1])
		if version < 5 {
			require.Equal(t, "t", resp.Partitions[0].Topic)
		} else {
			require.Equal(t, [16]byte{1}, resp.Topics[0].TopicID)
		}
	}
	for version := int16(0); version <= 4; version++ {
		req := kmsg.NewPtrStopReplicaRequest()
		req.Version, req.DeletePartitions = version, true
		topic := kmsg.NewStopReplicaRequestTopic()
		topic.Topic, topic.Partition, topic.Partitions = "t", 6, []int32{6, 7}
		p := kmsg.NewStopReplicaRequestTopicPartitionState()
		p.Partition, p.LeaderEpoch, p.Delete = 6, 11, true
		topic.PartitionStates = append(topic.PartitionStates, p)
		req.Topics = append(req.Topics, topic)
		w.ask(req)
		want := []partition.StopReplica{{Topic: "t", Partition: 6, LeaderEpoch: partition.EpochNotGiven, Delete: true}}
		switch {
		case version >= 3:
			want[0].LeaderEpoch = 11
		case version >= 1:
			want = append(want, partition.StopReplica{Topic: "t", Partition: 7, LeaderEpoch: partition.EpochNotGiven, Delete: true})
		}
		require.Equal(t, want, o.stop.Partitions, "version %d", version)
	}
}

func TestOtherBrokersAreReachedByTheInterBrokerListener(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	alive := w.d.aliveBrokers(w.cache.Load())
	require.Len(t, alive, 2)
	require.Equal(t, "rack2", alive[2].Rack)
	require.Equal(t, int32(2), alive[2].Endpoint.ID)
	w.d.cfg.InterBrokerListener = "OUT"
	require.Equal(t, partition.Endpoint{ID: 1, Host: "out.example", Port: 19201}, w.d.aliveBrokers(w.cache.Load())[1].Endpoint)
}

// Below inter.broker.protocol.version 3.5 a fetch does not say under which
// registration its follower lives, and the controller tells no broker epochs but
// a broker's own. So a leader has to be told by ZooKeeper (KIP-903, H17).
func TestLeadersAreToldOfFollowersThatRegisteredAnew(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	told := &aliveTold{}
	w.d.deps.Replicas = told
	w.tell(readCluster(t))
	require.Equal(t, int64(partition.None), told.alive[2].Epoch)
	w.registered[2] = 200
	w.d.RegistrationsChanged()
	require.Equal(t, int64(200), told.alive[2].Epoch)
	require.Equal(t, "rack2", told.alive[2].Rack)
	require.Equal(t, int64(partition.None), told.alive[1].Epoch)
	w.registered[2] = 300
	w.tell(readCluster(t))
	require.Equal(t, int64(300), told.alive[2].Epoch)
}

// aliveTold notes what is told of brokers.
type aliveTold struct {
	playedReplicas
	alive map[int32]partition.BrokerInfo
}

func (a *aliveTold) SetAliveBrokers(alive map[int32]partition.BrokerInfo) { a.alive = alive }

func TestARequestTwiceAnsweredReleasesWhatItCarries(t *testing.T) {
	sink := &caught{t: t, done: make(chan outcome, 2)}
	r := wire.NewRequest(nil, nil, time.Time{}, sink)
	c := &call{Request: r, header: wire.Header{Key: 18}}
	c.answer(kmsg.NewPtrApiVersionsResponse())
	c.answer(kmsg.NewPtrApiVersionsResponse())
	require.Len(t, sink.done, 1)
}
