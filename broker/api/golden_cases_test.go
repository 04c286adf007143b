package api

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
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
	deleteRecordsCases(r)
	describeLogDirsCases(r)
	autoCreateCases(r)
	electLeadersCases(r)
	reassignmentCases(r)
	brokerToControllerCases(r)
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

func createTopic(name string, partitions int32, factor int16, assignment [][]int32, configs ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, factor
	for i, replicas := range assignment {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), replicas
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name = configs[i]
		if configs[i+1] != "" {
			c.Value = &configs[i+1]
		}
		t.Configs = append(t.Configs, c)
	}
	return t
}

func createTopicsCases(r *recorder) {
	const file = "19_create_topics"
	ask := func(name, door string, from, to int16, timeout int32, validate bool, topics ...kmsg.CreateTopicsRequestTopic) {
		r.at(file, name, door, from, to, func(int16) kmsg.Request {
			req := kmsg.NewPtrCreateTopicsRequest()
			req.TimeoutMillis, req.ValidateOnly, req.Topics = timeout, validate, topics
			return req
		})
	}
	ask("not controller", "B2", 0, 7, 1000, false, createTopic("new", 1, 1, nil), createTopic("new", 1, 1, nil))
	ask("nothing", "PLAINTEXT", 0, 7, 1000, false)
	ask("existing", "PLAINTEXT", 0, 7, 1000, false, createTopic("one", 1, 99, nil))
	ask("existing, validate", "PLAINTEXT", 1, 7, 1000, true, createTopic("one", 1, 1, nil))
	ask("named twice", "PLAINTEXT", 1, 7, 1000, true, createTopic("new", 1, 1, nil), createTopic("new", 2, 1, nil), createTopic("newer", 1, 1, nil))
	ask("cluster metadata", "PLAINTEXT", 1, 7, 1000, true, createTopic(metadataTopic, 1, 1, nil))
	ask("valid, validate", "PLAINTEXT", 1, 7, 1000, true, createTopic("new", 3, 2, nil, "retention.ms", "1000"))
	ask("defaults, validate", "PLAINTEXT", 4, 7, 1000, true, createTopic("new", -1, -1, nil))
	wrong := map[string]kmsg.CreateTopicsRequestTopic{
		"factor 0":               createTopic("new", 1, 0, nil),
		"factor -2":              createTopic("new", 1, -2, nil),
		"factor 5":               createTopic("new", 1, 5, nil),
		"partitions 0":           createTopic("new", 0, 1, nil),
		"partitions -5":          createTopic("new", -5, 1, nil),
		"count and assignment":   createTopic("new", 1, 1, [][]int32{{1}}),
		"duplicate replica":      createTopic("new", -1, -1, [][]int32{{1, 1}}),
		"unequal lengths":        createTopic("new", -1, -1, [][]int32{{1}, {1, 2}}),
		"empty replicas":         createTopic("new", -1, -1, [][]int32{{}}),
		"unknown broker":         createTopic("new", -1, -1, [][]int32{{77}}),
		"name empty":             createTopic("", 1, 1, nil),
		"name dot":               createTopic(".", 1, 1, nil),
		"name too long":          createTopic(strings.Repeat("x", 250), 1, 1, nil),
		"name blank":             createTopic("a b", 1, 1, nil),
		"unknown config":         createTopic("new", 1, 1, nil, "nonsense.key", "1"),
		"bad config value":       createTopic("new", 1, 1, nil, "retention.ms", "soon"),
		"null config value":      createTopic("new", 1, 1, nil, "retention.ms", ""),
		"config below its range": createTopic("new", 1, 1, nil, "segment.bytes", "1"),
	}
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		ask(name, "PLAINTEXT", 4, 7, 1000, true, wrong[name])
	}
	gap := createTopic("new", -1, -1, [][]int32{{1}, {1}})
	gap.ReplicaAssignment[1].Partition = 5
	ask("assignment with a gap", "PLAINTEXT", 4, 7, 1000, true, gap)
	for version := int16(0); version <= 7; version++ {
		name := fmt.Sprintf("made-%d", version)
		ask("created", "PLAINTEXT", version, version, 10000, false, createTopic(name, -1, -1, [][]int32{{1}, {2}}))
		ask("created, not waited for", "PLAINTEXT", version, version, 0, false, createTopic("un"+name, -1, -1, [][]int32{{1}, {2}}))
	}
}

func createPartitionsCases(r *recorder) {
	const file = "37_create_partitions"
	topic := func(name string, count int32, assignment ...[]int32) kmsg.CreatePartitionsRequestTopic {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = name, count
		for _, replicas := range assignment {
			a := kmsg.NewCreatePartitionsRequestTopicAssignment()
			a.Replicas = replicas
			t.Assignment = append(t.Assignment, a)
		}
		return t
	}
	ask := func(name, door string, from, to int16, timeout int32, validate bool, topics ...kmsg.CreatePartitionsRequestTopic) {
		r.at(file, name, door, from, to, func(int16) kmsg.Request {
			req := kmsg.NewPtrCreatePartitionsRequest()
			req.TimeoutMillis, req.ValidateOnly, req.Topics = timeout, validate, topics
			return req
		})
	}
	ask("not controller", "B2", 0, 3, 1000, false, topic("one", 2), topic("two", 5))
	ask("named twice", "PLAINTEXT", 0, 3, 1000, true, topic("one", 2), topic("one", 3))
	ask("unknown topic", "PLAINTEXT", 0, 3, 1000, true, topic("nobody", 2))
	ask("as many", "PLAINTEXT", 0, 3, 1000, true, topic("two", 2))
	ask("fewer", "PLAINTEXT", 0, 3, 1000, true, topic("two", 1))
	ask("assignment too short", "PLAINTEXT", 0, 3, 1000, true, topic("two", 4, []int32{1, 2}))
	ask("assignment of unknown broker", "PLAINTEXT", 0, 3, 1000, true, topic("two", 3, []int32{77, 78}))
	ask("assignment of another factor", "PLAINTEXT", 0, 3, 1000, true, topic("two", 3, []int32{1}))
	ask("valid, validate", "PLAINTEXT", 0, 3, 1000, true, topic("two", 4))
	for version := int16(0); version <= 3; version++ {
		ask("enlarged", "PLAINTEXT", version, version, 10000, false, topic(fmt.Sprintf("made-%d", version), 3, []int32{1}))
		ask("enlarged, not waited for", "PLAINTEXT", version, version, 0, false, topic(fmt.Sprintf("made-%d", version), 4, []int32{1}))
	}
}

func deleteTopicsCases(r *recorder) {
	const file = "20_delete_topics"
	ask := func(name, door string, from, to int16, timeout int32, fill func(*kmsg.DeleteTopicsRequest)) {
		r.at(file, name, door, from, to, func(version int16) kmsg.Request {
			req := kmsg.NewPtrDeleteTopicsRequest()
			req.TimeoutMillis = timeout
			fill(req)
			if version >= 6 {
				for i := range req.TopicNames {
					t := kmsg.NewDeleteTopicsRequestTopic()
					t.Topic = &req.TopicNames[i]
					req.Topics = append(req.Topics, t)
				}
			}
			return req
		})
	}
	named := func(names ...string) func(*kmsg.DeleteTopicsRequest) {
		return func(req *kmsg.DeleteTopicsRequest) { req.TopicNames = names }
	}
	byID := func(id [16]byte, name *string) func(*kmsg.DeleteTopicsRequest) {
		return func(req *kmsg.DeleteTopicsRequest) {
			t := kmsg.NewDeleteTopicsRequestTopic()
			t.Topic, t.TopicID = name, id
			req.Topics = append(req.Topics, t)
		}
	}
	ask("not controller", "B2", 0, 6, 1000, named("one", "nobody"))
	ask("nothing", "PLAINTEXT", 0, 6, 1000, named())
	ask("unknown topic", "PLAINTEXT", 0, 6, 1000, named("nobody"))
	ask("unknown topic twice", "PLAINTEXT", 0, 6, 1000, named("nobody", "nobody"))
	ask("unknown id", "PLAINTEXT", 6, 6, 1000, byID([16]byte{1, 2, 3}, nil))
	ask("id and name", "PLAINTEXT", 6, 6, 1000, byID(r.cluster.topicIDs["one"], kmsg.StringPtr("one")))
	for version := int16(0); version <= 6; version++ {
		ask("deleted", "PLAINTEXT", version, version, 10000, named(fmt.Sprintf("made-%d", version)))
		ask("deleted, not waited for", "PLAINTEXT", version, version, 0, named(fmt.Sprintf("unmade-%d", version)))
	}
}

func describeConfigsCases(r *recorder) {
	const file = "32_describe_configs"
	ask := func(name string, kind kmsg.ConfigResourceType, resource string, keys ...string) {
		r.at(file, name, "PLAINTEXT", 0, 4, func(version int16) kmsg.Request {
			req := kmsg.NewPtrDescribeConfigsRequest()
			req.IncludeSynonyms, req.IncludeDocumentation = true, true
			res := kmsg.NewDescribeConfigsRequestResource()
			res.ResourceType, res.ResourceName, res.ConfigNames = kind, resource, keys
			req.Resources = append(req.Resources, res)
			return req
		})
	}
	ask("topic, two keys", kmsg.ConfigResourceTypeTopic, "keyed", "cleanup.policy", "retention.ms")
	ask("topic, unknown key", kmsg.ConfigResourceTypeTopic, "keyed", "nonsense")
	ask("unknown topic", kmsg.ConfigResourceTypeTopic, "nobody", "cleanup.policy")
	ask("invalid topic", kmsg.ConfigResourceTypeTopic, "a b", "cleanup.policy")
	ask("broker, three keys", kmsg.ConfigResourceTypeBroker, "1", "log.retention.ms", "num.io.threads", "ssl.keystore.password")
	ask("another broker", kmsg.ConfigResourceTypeBroker, "2", "num.io.threads")
	ask("broker that is no number", kmsg.ConfigResourceTypeBroker, "x", "num.io.threads")
	ask("all brokers", kmsg.ConfigResourceTypeBroker, "", "num.io.threads")
	ask("logger of another broker", kmsg.ConfigResourceTypeBrokerLogger, "2", "root")
	ask("unknown type", kmsg.ConfigResourceType(3), "x", "y")
	for _, kind := range []struct {
		name     string
		kind     kmsg.ConfigResourceType
		resource string
	}{{"topic", kmsg.ConfigResourceTypeTopic, "keyed"}, {"broker", kmsg.ConfigResourceTypeBroker, "1"}} {
		for _, keys := range [][]string{nil, {}} {
			version := int16(4)
			if keys != nil {
				version = 1
			}
			r.at(file, kind.name+", all keys", "PLAINTEXT", version, version, func(int16) kmsg.Request {
				req := kmsg.NewPtrDescribeConfigsRequest()
				req.IncludeSynonyms = true
				res := kmsg.NewDescribeConfigsRequestResource()
				res.ResourceType, res.ResourceName, res.ConfigNames = kind.kind, kind.resource, keys
				req.Resources = append(req.Resources, res)
				return req
			})
		}
	}
}

func alterConfigsCases(r *recorder) {
	alter := func(name string, kind kmsg.ConfigResourceType, resource string, configs ...string) {
		res := kmsg.NewAlterConfigsRequestResource()
		res.ResourceType, res.ResourceName = kind, resource
		inc := kmsg.NewIncrementalAlterConfigsRequestResource()
		inc.ResourceType, inc.ResourceName = kind, resource
		for i := 0; i < len(configs); i += 2 {
			c := kmsg.NewAlterConfigsRequestResourceConfig()
			c.Name = configs[i]
			ic := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			ic.Name = configs[i]
			if configs[i+1] != "" {
				c.Value, ic.Value = &configs[i+1], &configs[i+1]
			}
			res.Configs, inc.Configs = append(res.Configs, c), append(inc.Configs, ic)
		}
		times := 1
		if strings.HasPrefix(name, "twice") {
			times = 2
		}
		last := int16(2)
		if times > 1 {
			last = 0 // Kafka does not answer
		}
		r.at("33_alter_configs", name, "PLAINTEXT", 0, last, func(int16) kmsg.Request {
			req := kmsg.NewPtrAlterConfigsRequest()
			req.ValidateOnly = true
			for range times {
				req.Resources = append(req.Resources, res)
			}
			return req
		})
		r.at("44_incremental_alter_configs", name, "PLAINTEXT", 0, 1, func(int16) kmsg.Request {
			req := kmsg.NewPtrIncrementalAlterConfigsRequest()
			req.ValidateOnly = true
			for range times {
				req.Resources = append(req.Resources, inc)
			}
			return req
		})
	}
	alter("topic", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "1000")
	alter("twice the same resource", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "1000")
	alter("a key twice", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "1000", "retention.ms", "2000")
	alter("null values", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "", "segment.ms", "")
	alter("unknown topic", kmsg.ConfigResourceTypeTopic, "nobody", "retention.ms", "1")
	alter("unknown key", kmsg.ConfigResourceTypeTopic, "keyed", "nonsense", "1")
	alter("bad value", kmsg.ConfigResourceTypeTopic, "keyed", "retention.ms", "soon")
	alter("another broker", kmsg.ConfigResourceTypeBroker, "2", "num.io.threads", "4")
	alter("read-only broker key", kmsg.ConfigResourceTypeBroker, "1", "num.partitions", "4")
	alter("unknown type", kmsg.ConfigResourceType(3), "x", "a", "b")
}

func deleteRecordsCases(r *recorder) {
	const file = "21_delete_records"
	ask := func(name, topic string, part int32, offset int64) {
		r.at(file, name, "PLAINTEXT", 0, 2, func(int16) kmsg.Request {
			req := kmsg.NewPtrDeleteRecordsRequest()
			req.TimeoutMillis = 3000
			t := kmsg.NewDeleteRecordsRequestTopic()
			t.Topic = topic
			p := kmsg.NewDeleteRecordsRequestTopicPartition()
			p.Partition, p.Offset = part, offset
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		})
	}
	ask("to an offset", "one", 0, 2)
	ask("beyond the high watermark", "one", 0, 100000)
	ask("negative", "one", 0, -2)
	ask("unknown topic", "nobody", 0, 1)
	ask("unknown partition", "one", 9, 1)
	ask("not leader", "far", 0, 1)
	ask("compacted topic", "keyed", 0, 1)
	ask("internal topic", offsetsTopic, 0, 1)
	ask("to the high watermark", "one", 0, -1)
	r.at(file, "nothing", "PLAINTEXT", 0, 2, func(int16) kmsg.Request {
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.TimeoutMillis = 1000
		return req
	})
}

func describeLogDirsCases(r *recorder) {
	const file = "35_describe_log_dirs"
	ask := func(name string, topics []kmsg.DescribeLogDirsRequestTopic) {
		r.at(file, name, "PLAINTEXT", 0, 4, func(int16) kmsg.Request {
			req := kmsg.NewPtrDescribeLogDirsRequest()
			req.Topics = topics
			return req
		})
	}
	topic := func(name string, parts ...int32) kmsg.DescribeLogDirsRequestTopic {
		t := kmsg.NewDescribeLogDirsRequestTopic()
		t.Topic, t.Partitions = name, parts
		return t
	}
	ask("two of them", []kmsg.DescribeLogDirsRequestTopic{topic("keyed", 0), topic("two", 0, 1, 5), topic("nobody", 0)})
	ask("none", []kmsg.DescribeLogDirsRequestTopic{})
}

func autoCreateCases(r *recorder) {
	for version := int16(0); version <= 12; version++ {
		r.at("03_metadata_creating", "created by asking", "PLAINTEXT", version, version, func(int16) kmsg.Request {
			req := kmsg.NewPtrMetadataRequest()
			req.AllowAutoTopicCreation = true
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = kmsg.StringPtr(fmt.Sprintf("asked-%d", version))
			req.Topics = append(req.Topics, t)
			return req
		})
	}
}

func electLeadersCases(r *recorder) {
	const file = "43_elect_leaders"
	ask := func(name, door string, from int16, kind int8, topics ...kmsg.ElectLeadersRequestTopic) {
		r.at(file, name, door, from, 2, func(int16) kmsg.Request {
			req := kmsg.NewPtrElectLeadersRequest()
			req.ElectionType, req.TimeoutMillis, req.Topics = kind, 5000, topics
			return req
		})
	}
	topic := func(name string, parts ...int32) kmsg.ElectLeadersRequestTopic {
		t := kmsg.NewElectLeadersRequestTopic()
		t.Topic, t.Partitions = name, parts
		return t
	}
	ask("not controller", "B2", 0, 0, topic("one", 0), topic("nobody", 0))
	ask("not needed", "PLAINTEXT", 0, 0, topic("one", 0))
	ask("unknown partitions", "PLAINTEXT", 0, 0, topic("one", 9), topic("nobody", 0))
	ask("unclean, not needed", "PLAINTEXT", 1, 1, topic("one", 0))
	ask("all", "PLAINTEXT", 0, 0)
	r.at(file, "none", "PLAINTEXT", 0, 2, func(int16) kmsg.Request {
		req := kmsg.NewPtrElectLeadersRequest()
		req.TimeoutMillis, req.Topics = 1000, []kmsg.ElectLeadersRequestTopic{}
		return req
	})
}

func reassignmentCases(r *recorder) {
	ask := func(name, door, topic string, part int32, replicas []int32) {
		r.at("45_alter_partition_reassignments", name, door, 0, 0, func(int16) kmsg.Request {
			req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
			req.TimeoutMillis = 5000
			t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			t.Topic = topic
			p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
			p.Partition, p.Replicas = part, replicas
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		})
	}
	ask("not controller", "B2", "one", 0, []int32{2})
	ask("unknown topic", "PLAINTEXT", "nobody", 0, []int32{2})
	ask("unknown partition", "PLAINTEXT", "one", 9, []int32{2})
	ask("unknown broker", "PLAINTEXT", "one", 0, []int32{77})
	ask("no replicas", "PLAINTEXT", "one", 0, []int32{})
	ask("a replica twice", "PLAINTEXT", "one", 0, []int32{1, 1})
	ask("negative replica", "PLAINTEXT", "one", 0, []int32{-1})
	ask("nothing to cancel", "PLAINTEXT", "one", 0, nil)
	list := func(name, door string, topics []kmsg.ListPartitionReassignmentsRequestTopic) {
		r.at("46_list_partition_reassignments", name, door, 0, 0, func(int16) kmsg.Request {
			req := kmsg.NewPtrListPartitionReassignmentsRequest()
			req.TimeoutMillis, req.Topics = 5000, topics
			return req
		})
	}
	one := kmsg.NewListPartitionReassignmentsRequestTopic()
	one.Topic, one.Partitions = "one", []int32{0, 9}
	list("not controller", "B2", nil)
	list("all", "PLAINTEXT", nil)
	list("none", "PLAINTEXT", []kmsg.ListPartitionReassignmentsRequestTopic{})
	list("of one", "PLAINTEXT", []kmsg.ListPartitionReassignmentsRequestTopic{one})
}

func brokerToControllerCases(r *recorder) {
	for _, door := range []string{"B2", "PLAINTEXT"} {
		r.at("07_controlled_shutdown", "unknown broker", door, 0, 3, func(int16) kmsg.Request {
			req := kmsg.NewPtrControlledShutdownRequest()
			req.BrokerID, req.BrokerEpoch = 9, -1
			return req
		})
		r.at("56_alter_partition", "stale broker epoch", door, 0, 3, func(int16) kmsg.Request {
			req := kmsg.NewPtrAlterPartitionRequest()
			req.BrokerID, req.BrokerEpoch = 1, 1
			t := kmsg.NewAlterPartitionRequestTopic()
			t.Topic, t.TopicID = "one", r.cluster.topicIDs["one"]
			p := kmsg.NewAlterPartitionRequestTopicPartition()
			p.NewISR = []int32{1}
			t.Partitions = append(t.Partitions, p)
			req.Topics = append(req.Topics, t)
			return req
		})
	}
	r.at("07_controlled_shutdown", "stale broker epoch", "PLAINTEXT", 2, 3, func(int16) kmsg.Request {
		req := kmsg.NewPtrControlledShutdownRequest()
		req.BrokerID, req.BrokerEpoch = 2, 1
		return req
	})
}
