package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/group"
	"barnabas/broker/record"
	"barnabas/broker/txn"
)

// What requests may name twice or give out of range, and what Apache Kafka 3.9.1 makes of it.

func at(topic string, partition int32) group.TopicPartition {
	return group.TopicPartition{Topic: topic, Partition: partition}
}

func TestAPartitionWhoseOffsetIsAskedTwiceIsToldOnce(t *testing.T) {
	asked := withPartitions(withPartitions(withPartitions(nil, "a", []int32{0, 2, 0}), "b", []int32{0}), "a", []int32{2, 1})
	assert.Equal(t, []group.TopicPartition{at("a", 0), at("a", 2), at("b", 0), at("a", 1)}, once(asked))
}

func TestOfSeveralCommitsOfAPartitionTheLastCounts(t *testing.T) {
	commits := []group.Commit{{TopicPartition: at("a", 0), Offset: 1}, {TopicPartition: at("a", 1), Offset: 2}, {TopicPartition: at("a", 0), Offset: 3}}
	assert.Equal(t, []group.Commit{{TopicPartition: at("a", 0), Offset: 3}, {TopicPartition: at("a", 1), Offset: 2}}, lastOfEach(commits))
}

func TestDeletedOffsetsOfATopicNamedTwiceAreInOneRow(t *testing.T) {
	asked := func(topic string, partitions ...int32) kmsg.OffsetDeleteRequestTopic {
		of := kmsg.NewOffsetDeleteRequestTopic()
		of.Topic = topic
		for _, p := range partitions {
			of.Partitions = append(of.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
		}
		return of
	}
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Topics = []kmsg.OffsetDeleteRequestTopic{asked("a", 9, 0, 9), asked("a", 0)}
	got := deletedOffsets(req, nil, []group.TopicPartition{at("a", 0), at("a", 0)}, []error{kerr.GroupSubscribedToTopic, kerr.GroupSubscribedToTopic})
	unknown, subscribed := kerr.UnknownTopicOrPartition.Code, kerr.GroupSubscribedToTopic.Code
	want := []kmsg.OffsetDeleteResponseTopicPartition{{Partition: 9, ErrorCode: unknown}, {Partition: 0, ErrorCode: subscribed}, {Partition: 9, ErrorCode: unknown}}
	assert.Len(t, got, 1)
	assert.Equal(t, want, got[0].Partitions, "the coordinator, which knows of partition 0, tells of it once")
}

func TestAnEntityWhoseQuotasAreChangedTwiceIsToldOnce(t *testing.T) {
	alice, bob := "alice", "bob"
	parts := []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &alice}, {Type: "client-id"}, {Type: "user", Name: &bob}}
	entity := quotaEntity(parts)
	assert.Equal(t, []admin.EntityPart{{Type: "user", Name: &bob}, {Type: "client-id"}}, entity, "the last part of a type counts")
	turned := []admin.EntityPart{{Type: "client-id"}, {Type: "user", Name: &bob}}
	resp := alteredQuotas([]admin.QuotaResult{{Entity: entity, Err: kerr.InvalidRequest}, {Entity: []admin.EntityPart{{Type: "user"}}}, {Entity: turned}})
	assert.Len(t, resp.Entries, 2)
	assert.Equal(t, []int16{0, 0}, []int16{resp.Entries[0].ErrorCode, resp.Entries[1].ErrorCode}, "what became of the last is told")
	assert.NotEqual(t, entityKey([]admin.EntityPart{{Type: "user"}}), entityKey([]admin.EntityPart{{Type: "user", Name: new(string)}}), "the default is nobody whose name is empty")
}

func TestAFilterOfNoKindOrOfExactlyNothingMeansNothing(t *testing.T) {
	name := "alice"
	for _, c := range []struct {
		kind  kmsg.QuotasMatchType
		match *string
		want  bool
	}{
		{kmsg.QuotasMatchTypeExact, &name, false}, {kmsg.QuotasMatchTypeExact, nil, true}, {kmsg.QuotasMatchTypeDefault, nil, false}, {kmsg.QuotasMatchTypeAny, &name, false}, {3, &name, true}, {-1, nil, true},
	} {
		assert.Equal(t, c.want, meaningless(kmsg.DescribeClientQuotasRequestComponent{EntityType: "user", MatchType: c.kind, Match: c.match}), "%v", c)
	}
}

func TestAnyEpochBelowZeroIsNoneToAFetch(t *testing.T) {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 12
	p := kmsg.NewFetchRequestTopicPartition()
	p.CurrentLeaderEpoch, p.LastFetchedEpoch = -2, -7
	req.Topics = []kmsg.FetchRequestTopic{{Topic: "a", Partitions: []kmsg.FetchRequestTopicPartition{p}}}
	asks := fetchPartitions(req, nil)
	assert.Equal(t, []int32{-1, -1}, []int32{asks[0].CurrentLeaderEpoch, asks[0].LastFetchedEpoch})
}

func TestWhatBefallsATransactionIsToldOfAllThatWasAsked(t *testing.T) {
	asked := []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "a", Partitions: []int32{1, 1}}, {Topic: "b"}, {Topic: "a", Partitions: []int32{1}}}
	type topic struct {
		name       string
		partitions []int32
	}
	told := func(row kmsg.AddPartitionsToTxnResponseTransaction) (all []topic) {
		for _, t := range row.Topics {
			one := topic{name: t.Topic}
			for _, p := range t.Partitions {
				one.partitions = append(one.partitions, p.Partition)
			}
			all = append(all, one)
		}
		return all
	}
	row := rowAsAsked("t", asked, kerr.InvalidProducerIDMapping)
	assert.Equal(t, []topic{{"a", []int32{1, 1}}, {"b", nil}, {"a", []int32{1}}}, told(row))
	assert.Equal(t, kerr.InvalidProducerIDMapping.Code, row.Topics[2].Partitions[0].ErrorCode)
	partitions := allPartitions(asked)
	judged := transactionRow(&txn.PartitionsRequest{ID: "t", Partitions: partitions}, make([]error, len(partitions)))
	assert.Equal(t, []topic{{"a", []int32{1}}}, told(judged), "judgements of single partitions come once")
}

func TestADeletionOfNoOffsetsTellsOnlyOfTopicsThatAreRefused(t *testing.T) {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "known"}, {Topic: "missing"}}
	got := deletedOffsets(req, map[string]error{"missing": kerr.UnknownTopicOrPartition}, nil, nil)
	assert.Equal(t, []kmsg.OffsetDeleteResponseTopic{{Topic: "missing"}}, got)
}

func TestAnIllegalIsolationMattersWhereSomethingCanBeRead(t *testing.T) {
	cluster := readCluster(t)
	w := newWorld(t, 1, cluster)
	for _, c := range []struct {
		topic     string
		isolation int8
		want      int16
	}{
		{"fresh", 1, 0}, {"fresh", 2, kerr.UnknownServerError.Code}, {"fresh", -1, kerr.UnknownServerError.Code},
		{"nowhere", 2, kerr.UnknownTopicOrPartition.Code},
	} {
		fetch := fetchAsk{replica: -1, epoch: -1, topics: []fetchAskTopic{part0(cluster, c.topic, 0)}}.request(12)
		fetch.IsolationLevel, fetch.MaxWaitMillis = c.isolation, 0
		assert.Equal(t, c.want, w.ask(fetch).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode, "fetch of %v", c)
	}
	for _, c := range []struct {
		replica   int32
		isolation int8
		want      int16
	}{{-1, 0, 0}, {-1, 1, 0}, {-1, 2, kerr.UnknownServerError.Code}, {-1, -1, kerr.UnknownServerError.Code}, {-2, 2, 0}} {
		list := kmsg.NewPtrListOffsetsRequest()
		list.Version, list.ReplicaID, list.IsolationLevel = 4, c.replica, c.isolation
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Timestamp = -1
		list.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "fresh", Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
		assert.Equal(t, c.want, w.ask(list).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode, "offsets, %v", c)
	}
}

func TestAnElectionOfNoKindIsRefusedForEverything(t *testing.T) {
	w := electionWorld(t)
	for _, kind := range []int8{-1, 2} {
		require.Equal(t, kerr.UnknownServerError.Code, electionCode(t, w.handle("PLAINTEXT", elect(kind, 0))))
	}
}

func TestMarkersOfAnEpochBelowZeroAreAllRefused(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	for id, epoch := range map[int64]int16{1: 0, 2: -1} {
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID, m.ProducerEpoch = id, epoch
		m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: "fresh", Partitions: []int32{0}}}
		req.Markers = append(req.Markers, m)
	}
	resp := w.ask(req).(*kmsg.WriteTxnMarkersResponse)
	require.Len(t, resp.Markers, 2)
	for _, m := range resp.Markers {
		assert.Equal(t, kerr.UnknownServerError.Code, m.Topics[0].Partitions[0].ErrorCode)
	}
}

func TestRecordsAreHeldToTheFirstRuleThatTheyBreak(t *testing.T) {
	zstd := entries{count: 2, magic: batchMagic, codec: record.Zstd}
	for _, c := range []struct {
		version int16
		of      entries
		want    error
	}{
		{2, zstd, nil}, {2, entries{}, nil}, // versions without batches are held to nothing
		{6, zstd, kerr.UnsupportedCompressionType}, {7, zstd, kerr.InvalidRecord},
		{6, entries{count: 1, magic: 1, codec: record.Zstd}, kerr.InvalidRecord}, {7, entries{}, kerr.InvalidRecord},
		{7, entries{count: 1, magic: batchMagic, codec: record.Zstd}, nil},
	} {
		assert.Equal(t, c.want, c.of.allowed(c.version), "%v", c)
	}
}
