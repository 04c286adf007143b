package api

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/record"
)

// goldenTopic is a topic of the recorded cluster; the first replica leads.
type goldenTopic struct {
	name      string
	replicas  [][]int32
	compacted bool
}

var goldenTopics = []goldenTopic{
	{name: "one", replicas: [][]int32{{1}}},
	{name: "two", replicas: [][]int32{{1, 2}, {2, 1}}},
	{name: "far", replicas: [][]int32{{2}}},
	{name: "keyed", replicas: [][]int32{{1}}, compacted: true},
	{name: "fresh", replicas: [][]int32{{1}}},
	{name: offsetsTopic, replicas: [][]int32{{1}}, compacted: true},
}

const goldenTime = int64(1_700_000_000_000)

// goldenCases is everything that is asked. The order matters: produce comes
// before fetch.
func goldenCases(r *recorder) {
	apiVersionsCases(r)
	metadataCases(r)
	describeClusterCases(r)
	produceCases(r)
	fetchCases(r)
	listOffsetsCases(r)
	offsetForLeaderEpochCases(r)
	initProducerIDCases(r)
	controllerOrderCases(r)
	createTopicsCases(r)
	createPartitionsCases(r)
	deleteTopicsCases(r)
	describeConfigsCases(r)
	alterConfigsCases(r)
	clientQuotasCases(r)
	scramCases(r)
	deleteRecordsCases(r)
	describeLogDirsCases(r)
	autoCreateCases(r)
	electLeadersCases(r)
	reassignmentCases(r)
	brokerToControllerCases(r)
	updateFeaturesCases(r)
	clientMetricsCases(r)
}

func apiVersionsCases(r *recorder) {
	const file = "18_api_versions"
	ask := func(name, software, version string) {
		r.at(file, name, "PLAINTEXT", 0, 4, func(int16) kmsg.Request {
			req := kmsg.NewPtrApiVersionsRequest()
			req.ClientSoftwareName, req.ClientSoftwareVersion = software, version
			return req
		})
	}
	ask("plain", "a-client", "1.2.3")
	ask("software name with a blank", "a client", "1")
	ask("no software name", "", "")
	ask("software version ends in a dash", "c", "1-")
	future := binary.BigEndian.AppendUint16(nil, 18)
	future = binary.BigEndian.AppendUint16(future, 99)
	future = binary.BigEndian.AppendUint32(future, goldenCorrelation)
	future = append(future, 0, 1, 'x', 0, 0, 0, 0)
	r.note(file, "future v99", "PLAINTEXT", future)
}

func metadataCases(r *recorder) {
	const file = "03_metadata"
	ask := func(name, door string, from, to int16, fill func(req *kmsg.MetadataRequest)) {
		r.at(file, name, door, from, to, func(int16) kmsg.Request {
			req := kmsg.NewPtrMetadataRequest()
			fill(req)
			return req
		})
	}
	named := func(names ...string) []kmsg.MetadataRequestTopic {
		topics := make([]kmsg.MetadataRequestTopic, len(names))
		for i := range names {
			topics[i].Topic = &names[i]
		}
		return topics
	}
	byID := func(ids ...[16]byte) []kmsg.MetadataRequestTopic {
		topics := make([]kmsg.MetadataRequestTopic, len(ids))
		for i := range ids {
			topics[i].TopicID = ids[i]
		}
		return topics
	}
	ask("empty list", "PLAINTEXT", 0, 12, func(req *kmsg.MetadataRequest) { req.Topics = named() })
	ask("null list", "PLAINTEXT", 1, 12, func(req *kmsg.MetadataRequest) { req.Topics = nil })
	ask("one topic", "PLAINTEXT", 0, 12, func(req *kmsg.MetadataRequest) { req.Topics = named("one") })
	ask("one topic named twice", "PLAINTEXT", 0, 12, func(req *kmsg.MetadataRequest) { req.Topics = named("one", "one") })
	ask("unknown topic, no creation", "PLAINTEXT", 4, 12, func(req *kmsg.MetadataRequest) { req.Topics = named("one", "nobody") })
	ask("invalid names", "PLAINTEXT", 4, 12, func(req *kmsg.MetadataRequest) {
		req.Topics = named("", ".", "..", "a b", "a/b", strings.Repeat("x", 250))
	})
	ask("invalid names, creation allowed", "PLAINTEXT", 0, 12, func(req *kmsg.MetadataRequest) {
		req.Topics, req.AllowAutoTopicCreation = named("", "a b"), true
	})
	ask("internal topic", "PLAINTEXT", 0, 12, func(req *kmsg.MetadataRequest) { req.Topics = named(offsetsTopic) })
	ask("listener that broker 2 lacks", "OUT", 0, 12, func(req *kmsg.MetadataRequest) { req.Topics = named("two", "far") })
	ask("authorized operations", "PLAINTEXT", 8, 12, func(req *kmsg.MetadataRequest) {
		req.Topics = named("one", "nobody")
		req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations = true, true
	})
	unknown := [16]byte{1, 2, 3}
	ask("by id", "PLAINTEXT", 10, 12, func(req *kmsg.MetadataRequest) { req.Topics = byID(r.cluster.topicIDs["one"]) })
	ask("by unknown id", "PLAINTEXT", 10, 12, func(req *kmsg.MetadataRequest) { req.Topics = byID(unknown, r.cluster.topicIDs["one"]) })
	ask("by id and name", "PLAINTEXT", 12, 12, func(req *kmsg.MetadataRequest) {
		req.Topics = append(byID(r.cluster.topicIDs["one"]), named("two")...)
	})
	ask("neither id nor name", "PLAINTEXT", 10, 12, func(req *kmsg.MetadataRequest) { req.Topics = byID([16]byte{}) })
	ask("known by id and unknown by name", "PLAINTEXT", 12, 12, func(req *kmsg.MetadataRequest) {
		req.Topics = append(byID(r.cluster.topicIDs["one"]), named("nobody")...)
	})
	ask("id and name of one topic", "PLAINTEXT", 12, 12, func(req *kmsg.MetadataRequest) {
		req.Topics = byID(r.cluster.topicIDs["one"])
		req.Topics[0].Topic = kmsg.StringPtr("two")
	})
}

func describeClusterCases(r *recorder) {
	const file = "60_describe_cluster"
	for _, door := range []string{"PLAINTEXT", "OUT"} {
		for _, operations := range []bool{false, true} {
			r.at(file, fmt.Sprintf("operations %v", operations), door, 0, 1, func(int16) kmsg.Request {
				req := kmsg.NewPtrDescribeClusterRequest()
				req.IncludeClusterAuthorizedOperations, req.EndpointType = operations, 1
				return req
			})
		}
	}
	for _, kind := range []int8{0, 2, 3} {
		r.at(file, fmt.Sprintf("endpoint type %d", kind), "PLAINTEXT", 1, 1, func(int16) kmsg.Request {
			req := kmsg.NewPtrDescribeClusterRequest()
			req.EndpointType = kind
			return req
		})
	}
}

// batch builds a batch of n records.
func (r *recorder) batch(codec record.Codec, keyed bool, n int) []byte {
	b := record.NewBuilder(record.BuilderOptions{Codec: codec})
	for i := range n {
		var key []byte
		if keyed {
			key = []byte{byte('a' + i)}
		}
		b.Append(goldenTime+int64(i), key, []byte(fmt.Sprintf("value %d", i)))
	}
	batch, err := b.Build()
	require.NoError(r.t, err)
	return batch
}

// transactional builds a batch that claims to be part of a transaction.
func (r *recorder) transactional() []byte {
	b := record.NewBuilder(record.BuilderOptions{Producer: &record.Producer{ID: 5, Epoch: 0, BaseSequence: 0, Transactional: true}})
	b.Append(goldenTime, nil, []byte("v"))
	batch, err := b.Build()
	require.NoError(r.t, err)
	return batch
}

// oldMessage is a message of format 1 without key and value.
func oldMessage() []byte {
	m := make([]byte, 34)
	binary.BigEndian.PutUint32(m[8:], 22)
	m[16] = 1
	return m
}

func produceCases(r *recorder) {
	const file = "00_produce"
	type target struct {
		topic   string
		part    int32
		records []byte
	}
	ask := func(name string, from, to int16, acks int16, txn *string, targets ...target) {
		r.at(file, name, "PLAINTEXT", from, to, func(int16) kmsg.Request {
			req := kmsg.NewPtrProduceRequest()
			req.Acks, req.TimeoutMillis, req.TransactionID = acks, 5000, txn
			for _, to := range targets {
				n := len(req.Topics)
				if n == 0 || req.Topics[n-1].Topic != to.topic {
					t := kmsg.NewProduceRequestTopic()
					t.Topic = to.topic
					req.Topics = append(req.Topics, t)
					n++
				}
				p := kmsg.NewProduceRequestTopicPartition()
				p.Partition, p.Records = to.part, to.records
				req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, p)
			}
			return req
		})
	}
	plain := r.batch(record.None, false, 3)
	broken := append([]byte(nil), plain...)
	broken[len(broken)-1] ^= 1
	ask("leader, acks 1", 0, 11, 1, nil, target{"one", 0, plain})
	ask("leader, acks all", 3, 11, -1, nil, target{"one", 0, plain})
	ask("acks 2", 3, 11, 2, nil, target{"one", 0, plain})
	ask("unknown topic", 0, 11, 1, nil, target{"nobody", 0, plain})
	ask("unknown partition", 3, 11, 1, nil, target{"one", 9, plain})
	ask("not leader", 3, 11, 1, nil, target{"far", 0, plain})
	ask("follower", 3, 11, 1, nil, target{"two", 1, plain})
	ask("no topics", 3, 11, 1, nil)
	ask("empty records", 3, 11, 1, nil, target{"one", 0, []byte{}})
	ask("null records", 3, 3, 1, nil, target{"one", 0, nil})
	ask("a partition twice", 3, 11, 1, nil, target{"one", 0, plain}, target{"one", 0, r.batch(record.None, false, 1)})
	ask("a topic twice", 3, 11, 1, nil, target{"one", 0, plain}, target{"far", 0, plain}, target{"one", 9, plain})
	ask("old format", 3, 11, 1, nil, target{"one", 0, oldMessage()})
	ask("two batches", 3, 11, 1, nil, target{"one", 0, append(append([]byte(nil), plain...), plain...)})
	ask("broken checksum", 3, 11, 1, nil, target{"one", 0, broken})
	ask("cut short", 3, 11, 1, nil, target{"one", 0, plain[:len(plain)-3]})
	ask("too short for a header", 3, 11, 1, nil, target{"one", 0, plain[:20]})
	ask("garbage", 3, 11, 1, nil, target{"one", 0, []byte("this is no batch of records at all, but it is longer than a header of one")})
	ask("zstd", 3, 11, 1, nil, target{"one", 0, r.batch(record.Zstd, false, 3)})
	ask("no keys in a compacted topic", 3, 11, 1, nil, target{"keyed", 0, plain})
	ask("internal topic", 3, 11, 1, nil, target{offsetsTopic, 0, r.batch(record.None, true, 1)})
	ask("transactional without an id", 3, 11, 1, nil, target{"one", 0, r.transactional()}, target{"two", 0, plain})
	ask("transactional without a coordinator", 3, 11, 1, kmsg.StringPtr("t"), target{"one", 0, r.transactional()}, target{"keyed", 0, r.batch(record.None, true, 1)})
	ask("several partitions", 3, 11, 1, nil, target{"one", 0, plain}, target{"two", 0, plain}, target{"nobody", 3, plain}, target{"two", 1, plain}, target{"keyed", 0, r.batch(record.Gzip, true, 2)})
}

// fetchAsk builds fetch requests.
type fetchAsk struct {
	session, epoch int32
	topics         []fetchAskTopic
	forget         []fetchAskTopic
	minBytes       int32
	maxBytes       int32
	isolation      int8
	replica        int32
}

type fetchAskTopic struct {
	name     string
	id       [16]byte
	part     int32
	offset   int64
	maxBytes int32
	leader   int32 // current leader epoch, -1: not compared
	fetched  int32 // last fetched epoch
}

func (a fetchAsk) request(version int16) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = version
	req.ReplicaID = a.replica
	if version >= 15 {
		req.ReplicaState.ID, req.ReplicaState.Epoch = a.replica, -1
	}
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = 100, a.minBytes, a.maxBytes, a.isolation
	if a.maxBytes == 0 {
		req.MaxBytes = 1 << 20
	}
	req.SessionID, req.SessionEpoch = a.session, a.epoch
	for _, t := range a.topics {
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.TopicID = t.name, t.id
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = t.part, t.offset, t.maxBytes
		p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset = t.leader, t.fetched, -1
		if t.maxBytes == 0 {
			p.PartitionMaxBytes = 1 << 20
		}
		topic.Partitions = append(topic.Partitions, p)
		req.Topics = append(req.Topics, topic)
	}
	for _, t := range a.forget {
		topic := kmsg.NewFetchRequestForgottenTopic()
		topic.Topic, topic.TopicID, topic.Partitions = t.name, t.id, []int32{t.part}
		req.ForgottenTopics = append(req.ForgottenTopics, topic)
	}
	return req
}

func fetchCases(r *recorder) {
	const file = "01_fetch"
	at := func(name string, part int32, offset int64) fetchAskTopic {
		return fetchAskTopic{name: name, id: r.cluster.topicIDs[name], part: part, offset: offset, leader: -1, fetched: -1}
	}
	once := func(name string, from int16, topics ...fetchAskTopic) {
		r.at(file, name, "PLAINTEXT", from, 17, func(version int16) kmsg.Request {
			return fetchAsk{epoch: -1, topics: topics, replica: -1}.request(version)
		})
	}
	once("from the start", 4, at("keyed", 0, 0))
	once("at the end", 4, at("fresh", 0, 0))
	once("beyond the end", 4, at("fresh", 0, 5))
	once("below the start", 4, at("fresh", 0, -7))
	once("unknown topic", 4, fetchAskTopic{name: "nobody", id: [16]byte{9}, leader: -1, fetched: -1})
	once("unknown partition", 4, at("one", 9, 0))
	once("not leader", 4, at("far", 0, 0))
	once("nothing", 4)
	once("a partition twice", 4, at("keyed", 0, 0), at("fresh", 0, 0), at("keyed", 0, 2))
	r.at(file, "unknown isolation level", "PLAINTEXT", 4, 17, func(version int16) kmsg.Request {
		return fetchAsk{epoch: -1, topics: []fetchAskTopic{at("keyed", 0, 0)}, isolation: 5, replica: -1}.request(version)
	})
	r.at(file, "a follower that is none", "PLAINTEXT", 4, 17, func(version int16) kmsg.Request {
		return fetchAsk{epoch: -1, topics: []fetchAskTopic{at("keyed", 0, 0)}, replica: 7}.request(version)
	})
	r.at(file, "not leader, by a listener that the leader lacks", "OUT", 15, 17, func(version int16) kmsg.Request {
		return fetchAsk{epoch: -1, topics: []fetchAskTopic{at("far", 0, 0)}, replica: -1}.request(version)
	})
	once("unknown beside an idle one", 4, at("fresh", 0, 0), fetchAskTopic{name: "nobody", id: [16]byte{9}, leader: -1, fetched: -1}, at("keyed", 0, 0))
	older, newer := at("keyed", 0, 0), at("keyed", 0, 0)
	older.leader, newer.leader = -2, 99
	once("newer leader epoch", 9, newer)
	diverged := at("keyed", 0, 1)
	diverged.fetched = 7
	once("last fetched epoch that never was", 12, diverged)
	r.at(file, "read committed", "PLAINTEXT", 4, 17, func(version int16) kmsg.Request {
		return fetchAsk{epoch: -1, topics: []fetchAskTopic{at("keyed", 0, 0)}, isolation: 1, replica: -1}.request(version)
	})
	r.at(file, "one byte at most", "PLAINTEXT", 4, 17, func(version int16) kmsg.Request {
		return fetchAsk{epoch: -1, maxBytes: 1, topics: []fetchAskTopic{at("keyed", 0, 0), at("one", 0, 0)}, replica: -1}.request(version)
	})
	for version := int16(7); version <= 17; version++ {
		fetchSessionCases(r, file, version, at)
	}
}

func fetchSessionCases(r *recorder, file string, version int16, at func(string, int32, int64) fetchAskTopic) {
	step := func(name string, ask fetchAsk) *kmsg.FetchResponse {
		ask.replica = -1
		answer := r.note(file, fmt.Sprintf("session: %s v%d", name, version), "PLAINTEXT", frame(ask.request(version)))
		return decodeAnswer(r.t, 1, version, answer).(*kmsg.FetchResponse)
	}
	opened := step("opened", fetchAsk{topics: []fetchAskTopic{at("fresh", 0, 0), at("keyed", 0, 2)}})
	id := opened.SessionID
	step("nothing new", fetchAsk{session: id, epoch: 1})
	step("one more", fetchAsk{session: id, epoch: 2, topics: []fetchAskTopic{at("one", 9, 0)}})
	step("still failing", fetchAsk{session: id, epoch: 3})
	step("one less", fetchAsk{session: id, epoch: 4, forget: []fetchAskTopic{at("one", 9, 0)}})
	step("epoch repeated", fetchAsk{session: id, epoch: 4})
	step("epoch skipped", fetchAsk{session: id, epoch: 9})
	step("records", fetchAsk{session: id, epoch: 5, topics: []fetchAskTopic{at("keyed", 0, 0)}})
	step("unknown session", fetchAsk{session: 12345, epoch: 1})
	step("emptied", fetchAsk{session: id, epoch: 6, forget: []fetchAskTopic{at("fresh", 0, 0), at("keyed", 0, 0)}})
	step("gone", fetchAsk{session: id, epoch: 7})
	opened = step("opened again", fetchAsk{topics: []fetchAskTopic{at("fresh", 0, 0)}})
	step("closed", fetchAsk{session: opened.SessionID, epoch: -1, topics: []fetchAskTopic{at("fresh", 0, 0)}})
	step("closed, asked again", fetchAsk{session: opened.SessionID, epoch: 1})
}

func listOffsetsCases(r *recorder) {
	const file = "02_list_offsets"
	ask := func(name string, from int16, topic string, part int32, ts int64, fill func(*kmsg.ListOffsetsRequest)) {
		r.at(file, name, "PLAINTEXT", from, 9, func(int16) kmsg.Request {
			req := kmsg.NewPtrListOffsetsRequest()
			req.ReplicaID = -1
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = topic
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp, p.CurrentLeaderEpoch, p.MaxNumOffsets = part, ts, -1, 1
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			if fill != nil {
				fill(req)
			}
			return req
		})
	}
	for ts := int64(-1); ts >= -6; ts-- {
		ask(fmt.Sprintf("special %d", ts), 0, "keyed", 0, ts, nil)
	}
	for ts := int64(-1); ts >= -6; ts-- {
		ask(fmt.Sprintf("special %d of an empty partition", ts), 1, "fresh", 0, ts, nil)
	}
	ask("by time", 1, "keyed", 0, goldenTime+1, nil)
	ask("by time after the end", 1, "keyed", 0, goldenTime+1_000_000, nil)
	for _, most := range []int32{0, 5} {
		ask(fmt.Sprintf("at most %d", most), 0, "keyed", 0, -1, func(req *kmsg.ListOffsetsRequest) { req.Topics[0].Partitions[0].MaxNumOffsets = most })
	}
	ask("unknown topic", 0, "nobody", 0, -1, nil)
	ask("unknown partition", 0, "one", 9, -1, nil)
	ask("not leader", 0, "far", 0, -1, nil)
	ask("follower", 0, "two", 1, -1, nil)
	ask("newer epoch", 4, "keyed", 0, -1, func(req *kmsg.ListOffsetsRequest) { req.Topics[0].Partitions[0].CurrentLeaderEpoch = 9 })
	ask("named twice", 0, "keyed", 0, -1, func(req *kmsg.ListOffsetsRequest) {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, req.Topics[0].Partitions[0])
	})
	ask("nothing", 0, "keyed", 0, -1, func(req *kmsg.ListOffsetsRequest) { req.Topics = nil })
}

func offsetForLeaderEpochCases(r *recorder) {
	const file = "23_offset_for_leader_epoch"
	ask := func(name, topic string, part, current, epoch int32) {
		r.at(file, name, "PLAINTEXT", 0, 4, func(int16) kmsg.Request {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			req.ReplicaID = -1
			t := kmsg.NewOffsetForLeaderEpochRequestTopic()
			t.Topic = topic
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.Partition, p.CurrentLeaderEpoch, p.LeaderEpoch = part, current, epoch
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		})
	}
	ask("present epoch", "keyed", 0, -1, 0)
	ask("future epoch", "keyed", 0, -1, 5)
	ask("unknown current epoch", "keyed", 0, 9, 0)
	ask("unknown topic", "nobody", 0, -1, 0)
	ask("unknown partition", "one", 9, -1, 0)
	ask("not leader", "far", 0, -1, 0)
	ask("follower", "two", 1, -1, 0)
}

func initProducerIDCases(r *recorder) {
	const file = "22_init_producer_id"
	ask := func(name string, from int16, txn *string, id int64, epoch int16) {
		r.at(file, name, "PLAINTEXT", from, 5, func(int16) kmsg.Request {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = txn, 1000, id, epoch
			return req
		})
	}
	ask("idempotent", 0, nil, -1, -1)
	ask("idempotent with an id", 3, nil, 7, 3)
	ask("id without epoch", 3, nil, 7, -1)
	ask("epoch without id", 3, nil, -1, 3)
	ask("empty transactional id", 0, kmsg.StringPtr(""), -1, -1)
}

// controllerOrderCases sends orders that are refused: of a controller or for a
// life of the broker long past.
func controllerOrderCases(r *recorder) {
	for _, stale := range []struct {
		name       string
		controller int32
		broker     int64
	}{{"stale controller", 0, -1}, {"stale broker", 1000, 1}} {
		from := int16(0)
		leaderAndISR := func(version int16) kmsg.Request {
			req := kmsg.NewPtrLeaderAndISRRequest()
			req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = 1, stale.controller, stale.broker
			p := kmsg.NewLeaderAndISRRequestTopicPartition()
			p.Topic, p.Partition, p.ControllerEpoch, p.Leader, p.ISR, p.Replicas = "one", 0, stale.controller, 1, []int32{1}, []int32{1}
			if version < 2 {
				req.PartitionStates = append(req.PartitionStates, p)
				return req
			}
			t := kmsg.NewLeaderAndISRRequestTopicState()
			t.Topic, t.TopicID = "one", r.cluster.topicIDs["one"]
			t.PartitionStates = append(t.PartitionStates, p)
			req.TopicStates = append(req.TopicStates, t)
			return req
		}
		if stale.broker >= 0 {
			from = 2
		}
		r.at("04_leader_and_isr", stale.name, "PLAINTEXT", from, 7, leaderAndISR)
		stopFrom := from / 2
		r.at("05_stop_replica", stale.name, "PLAINTEXT", stopFrom, 4, func(version int16) kmsg.Request {
			req := kmsg.NewPtrStopReplicaRequest()
			req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = 1, stale.controller, stale.broker
			t := kmsg.NewStopReplicaRequestTopic()
			t.Topic, t.Partitions = "one", []int32{0}
			p := kmsg.NewStopReplicaRequestTopicPartitionState()
			t.PartitionStates = append(t.PartitionStates, p)
			req.Topics = append(req.Topics, t)
			return req
		})
		updateFrom := int16(0)
		if stale.broker >= 0 {
			updateFrom = 5
		}
		r.at("06_update_metadata", stale.name, "PLAINTEXT", updateFrom, 8, func(version int16) kmsg.Request {
			req := kmsg.NewPtrUpdateMetadataRequest()
			req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = 1, stale.controller, stale.broker
			return req
		})
	}
}
