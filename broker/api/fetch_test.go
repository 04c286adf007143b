package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
)

func (w *world) produce(t *testing.T, topic string, values ...string) {
	resp := w.ask(produceOne(1, topic, 0, oneBatch(t, values...))).(*kmsg.ProduceResponse)
	require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
}

func part0(cluster recordedCluster, name string, offset int64) fetchAskTopic {
	return fetchAskTopic{name: name, id: cluster.topicIDs[name], offset: offset, leader: -1, fetched: -1}
}

func TestASessionWithNothingNewWaitsInsteadOfSpinning(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	opened := w.ask(fetchAsk{replica: -1, topics: []fetchAskTopic{part0(cluster, "fresh", 0)}}.request(17)).(*kmsg.FetchResponse)
	require.NotZero(t, opened.SessionID)
	next := fetchAsk{replica: -1, session: opened.SessionID, epoch: 1, minBytes: 1}.request(17)
	next.MaxWaitMillis = 60_000
	waiting := w.start("PLAINTEXT", frame(next))
	select {
	case <-waiting:
		t.Fatal("answered although there is nothing to tell")
	case <-time.After(50 * time.Millisecond):
	}
	w.produce(t, "fresh", "news")
	resp := decodeAnswer(t, 1, 17, await(t, waiting).response).(*kmsg.FetchResponse)
	require.Equal(t, opened.SessionID, resp.SessionID)
	require.Len(t, resp.Topics, 1)
	require.NotEmpty(t, resp.Topics[0].Partitions[0].RecordBatches)
}

func TestAnUnknownTopicBesideAnIdleOneDoesNotEndTheWait(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	req := fetchAsk{replica: -1, epoch: -1, minBytes: 1, topics: []fetchAskTopic{{name: "nobody", id: [16]byte{5}, leader: -1}, part0(cluster, "fresh", 0)}}.request(17)
	req.MaxWaitMillis = 60_000
	waiting := w.start("PLAINTEXT", frame(req))
	select {
	case <-waiting:
		t.Fatal("answered although there is nothing to tell")
	case <-time.After(50 * time.Millisecond):
	}
	w.produce(t, "fresh", "news")
	resp := decodeAnswer(t, 1, 17, await(t, waiting).response).(*kmsg.FetchResponse)
	require.Len(t, resp.Topics, 2)
	require.Equal(t, kerr.UnknownTopicID.Code, resp.Topics[1].Partitions[0].ErrorCode)
}

func TestTheFirstPartitionAlwaysGivesABatchAndTheSumStaysWithinTheLimit(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	size := len(oneBatch(t, "0123456789"))
	for _, topic := range []string{"one", "fresh", "two"} {
		for range 3 {
			w.produce(t, topic, "0123456789")
		}
	}
	for name, c := range map[string]struct {
		max, partitionMax int
		want              []int // batches by partition
	}{
		"one byte":            {1, 1 << 20, []int{1, 0}},
		"one batch exactly":   {size, 1 << 20, []int{1, 0}},
		"a byte short of two": {2*size - 1, 1 << 20, []int{1, 0}},
		"two batches":         {2 * size, 1 << 20, []int{2, 0}},
		"four batches":        {4 * size, 1 << 20, []int{3, 1}},
		"small partitions":    {10 * size, size, []int{1, 1}},
		"tiny partitions":     {10 * size, 1, []int{1, 0}},
	} {
		ask := fetchAsk{epoch: -1, replica: -1, maxBytes: int32(c.max), topics: []fetchAskTopic{part0(cluster, "one", 0), part0(cluster, "fresh", 0)}}
		for i := range ask.topics {
			ask.topics[i].maxBytes = int32(c.partitionMax)
		}
		for _, version := range []int16{4, 11, 13, 17} {
			resp := w.ask(ask.request(version)).(*kmsg.FetchResponse)
			var got []int
			for i := range resp.Topics {
				got = append(got, len(resp.Topics[i].Partitions[0].RecordBatches)/size)
			}
			require.Equal(t, c.want, got, "%s v%d", name, version)
		}
	}
}

func TestASessionStarvesNoPartition(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	topics := []string{"one", "fresh", "keyed"}
	offsets := map[string]int64{}
	for range 4 {
		w.produce(t, "one", "v")
		w.produce(t, "fresh", "v")
	}
	asks := []fetchAskTopic{part0(cluster, "one", 0), part0(cluster, "fresh", 0), part0(cluster, "keyed", 0)}
	ask := fetchAsk{replica: -1, maxBytes: 1, topics: asks}
	for range 20 {
		resp := w.ask(ask.request(12)).(*kmsg.FetchResponse)
		require.Zero(t, resp.ErrorCode)
		ask = fetchAsk{replica: -1, maxBytes: 1, session: resp.SessionID, epoch: ask.epoch + 1}
		for i := range resp.Topics {
			if len(resp.Topics[i].Partitions[0].RecordBatches) > 0 {
				name := resp.Topics[i].Topic
				offsets[name]++
				ask.topics = append(ask.topics, part0(cluster, name, offsets[name]))
			}
		}
	}
	require.Equal(t, map[string]int64{"one": 4, "fresh": 4}, offsets, "of %v", topics)
}

func TestATopicStoredInZstdIsHiddenFromVersionsThatDoNotKnowIt(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	w.produce(t, "one", "v")
	log := w.replicas.Partition("one", 0).Log()
	c := log.Config()
	c.Compression = commitlog.Compression{Codec: record.Zstd}
	log.SetConfig(c)
	for version := int16(4); version <= 17; version++ {
		resp := w.ask(fetchAsk{epoch: -1, replica: -1, topics: []fetchAskTopic{part0(cluster, "one", 0)}}.request(version)).(*kmsg.FetchResponse)
		p := resp.Topics[0].Partitions[0]
		if version < 10 {
			require.Equal(t, kerr.UnsupportedCompressionType.Code, p.ErrorCode)
			require.Empty(t, p.RecordBatches)
		} else {
			require.Zero(t, p.ErrorCode)
			require.NotEmpty(t, p.RecordBatches)
		}
	}
}

func TestClientsAreSentToTheNewerOfTwoLeaders(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	s := w.cache.Load()
	for _, c := range []struct{ leader, epoch, wantLeader, wantEpoch int32 }{
		{-1, -1, 2, 0}, // the partition says nothing
		{1, 5, 1, 5},   // it knows more than the metadata
		{1, 0, 1, 0},
	} {
		leader, epoch := currentLeader(s, "far", 0, c.leader, c.epoch)
		require.Equal(t, []int32{c.wantLeader, c.wantEpoch}, []int32{leader, epoch})
	}
	state := topicState("far", cluster.topicIDs["far"], [][]int32{{2}})
	state.PartitionStates[0].LeaderEpoch = 9
	w.tell(cluster, state)
	leader, epoch := currentLeader(w.cache.Load(), "far", 0, 1, 5)
	require.Equal(t, []int32{2, 9}, []int32{leader, epoch})
}

func TestAFollowerIsServedBeforeTheMetadataKnowsTheTopic(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	id := [16]byte{4, 2}
	order := kmsg.NewPtrLeaderAndISRRequest()
	order.Version, order.ControllerID, order.ControllerEpoch = 7, 1, 1
	to := kmsg.NewLeaderAndISRRequestTopicState()
	to.Topic, to.TopicID = "new", id
	p := kmsg.NewLeaderAndISRRequestTopicPartition()
	p.ControllerEpoch, p.Leader, p.ISR, p.Replicas, p.IsNew = 1, 1, []int32{1, 2}, []int32{1, 2}, true
	to.PartitionStates = append(to.PartitionStates, p)
	order.TopicStates = append(order.TopicStates, to)
	require.Zero(t, w.ask(order).(*kmsg.LeaderAndISRResponse).ErrorCode)
	fetch := func(replica int32) int16 {
		ask := fetchAsk{epoch: -1, replica: replica, topics: []fetchAskTopic{{id: id, leader: 0, fetched: -1}}}
		return w.ask(ask.request(17)).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode
	}
	require.Zero(t, fetch(2))
	require.Equal(t, kerr.UnknownTopicID.Code, fetch(-1), "a consumer asks the metadata first")
	w.tell(cluster, topicState("new", id, [][]int32{{1, 2}}))
	require.Zero(t, fetch(-1))
	require.Empty(t, w.d.ordered.mu.names)
}

func TestLeaderEpochsFenceAFetch(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	ask := part0(cluster, "one", 0)
	ask.leader = 3
	resp := w.ask(fetchAsk{epoch: -1, replica: -1, topics: []fetchAskTopic{ask}}.request(17)).(*kmsg.FetchResponse)
	require.Equal(t, kerr.UnknownLeaderEpoch.Code, resp.Topics[0].Partitions[0].ErrorCode)
}

func TestStorageErrorsAreHiddenFromOldVersions(t *testing.T) {
	require.Equal(t, kerr.NotLeaderForPartition.Code, fetchErrorCode(5, kerr.KafkaStorageError))
	require.Equal(t, kerr.KafkaStorageError.Code, fetchErrorCode(6, kerr.KafkaStorageError))
}
