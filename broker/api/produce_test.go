package api

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/wire"
)

func oneBatch(t *testing.T, values ...string) []byte {
	b := record.NewBuilder(record.BuilderOptions{})
	for i, v := range values {
		b.Append(goldenTime+int64(i), nil, []byte(v))
	}
	batch, err := b.Build()
	require.NoError(t, err)
	return batch
}

func produceOne(acks int16, topic string, id int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 11, acks, 1000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = id, records
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func TestNoAnswerIsEverGivenToAcksZero(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	good := oneBatch(t, "a")
	require.True(t, w.handle("PLAINTEXT", frame(produceOne(0, "one", 0, good))).silent)
	for name, req := range map[string]*kmsg.ProduceRequest{
		"unknown topic":     produceOne(0, "nobody", 0, good),
		"unknown partition": produceOne(0, "one", 9, good),
		"not leader":        produceOne(0, "far", 0, good),
		"damaged":           produceOne(0, "one", 0, good[:len(good)-1]),
		"no records":        produceOne(0, "one", 0, nil),
		"internal topic":    produceOne(0, offsetsTopic, 0, good),
	} {
		o := w.handle("PLAINTEXT", frame(req))
		require.Error(t, o.closed, name)
		require.Empty(t, o.response, name)
	}
	fetched := w.ask(fetchAsk{epoch: -1, replica: -1, topics: []fetchAskTopic{{name: "one", leader: -1, fetched: -1}}}.request(12)).(*kmsg.FetchResponse)
	require.Equal(t, int64(1), fetched.Topics[0].Partitions[0].HighWatermark)
}

func TestAdminClientsMayWriteToInternalTopics(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	b := record.NewBuilder(record.BuilderOptions{})
	b.Append(goldenTime, []byte("k"), []byte("v"))
	batch, err := b.Build()
	require.NoError(t, err)
	request := kmsg.NewRequestFormatter(kmsg.FormatterClientID(adminClientID)).AppendRequest(nil, produceOne(1, offsetsTopic, 0, batch), goldenCorrelation)[4:]
	resp := decodeAnswer(t, 0, 11, w.handle("PLAINTEXT", request).response).(*kmsg.ProduceResponse)
	require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
}

func TestMessagesOfOldFormatsComeBackInTheFormatOfTheFetchsVersion(t *testing.T) {
	w := newWorld(t, 1, readCluster(t))
	for magic := int8(0); magic <= 1; magic++ {
		set := record.AppendMessage(nil, magic, record.None, false, 0, goldenTime, []byte("k"), []byte("v"))
		req := produceOne(1, "one", 0, record.AppendMessage(set, magic, record.None, false, 0, goldenTime, nil, nil))
		req.Version = 2 * int16(magic)
		resp := w.ask(req).(*kmsg.ProduceResponse)
		require.Zero(t, resp.Topics[0].Partitions[0].ErrorCode)
		require.Equal(t, 2*int64(magic), resp.Topics[0].Partitions[0].BaseOffset)
	}
	// What came without a time has none later.
	for version, want := range map[int16][]byte{
		1: record.AppendMessage(record.AppendMessage(nil, 0, record.None, false, 2, 0, []byte("k"), []byte("v")), 0, record.None, false, 3, 0, nil, nil),
		3: record.AppendMessage(record.AppendMessage(nil, 1, record.None, false, 2, goldenTime, []byte("k"), []byte("v")), 1, record.None, false, 3, goldenTime, nil, nil),
	} {
		ask := fetchAsk{epoch: -1, replica: -1, topics: []fetchAskTopic{{name: "one", offset: 2, leader: -1, fetched: -1}}}
		fetched := w.ask(ask.request(version)).(*kmsg.FetchResponse).Topics[0].Partitions[0]
		require.Equal(t, want, fetched.RecordBatches[:len(want)])
		require.Equal(t, int64(4), fetched.HighWatermark)
	}
}

func TestProduceAnswersAreEncodedAsKmsgEncodesThem(t *testing.T) {
	rack := "r"
	results := []partition.ProduceResult{
		{Topic: "a", Partition: 3, BaseOffset: 7, LogAppendTime: -1, LogStartOffset: 2, LeaderID: -1, LeaderEpoch: -1},
		{Topic: "a", Partition: 4, Err: kerr.NotLeaderForPartition, BaseOffset: -1, LogAppendTime: -1, LogStartOffset: -1, LeaderID: 5, LeaderEpoch: 6},
		{Topic: "b", Partition: 0, Err: kerr.InvalidRecord, ErrorMessage: "why", BaseOffset: -1, LogAppendTime: 99, LogStartOffset: -1, LeaderID: -1, LeaderEpoch: -1,
			RecordErrors: []commitlog.RecordError{{BatchIndex: 1, Message: "no"}, {BatchIndex: 2, Message: ""}}},
		{Topic: "a", Partition: 9, BaseOffset: 1, LogAppendTime: -1, LogStartOffset: 0, LeaderID: -1, LeaderEpoch: -1},
	}
	for _, addresses := range []leaders{nil, {{NodeID: 5, Host: "h", Port: 9092, Rack: &rack}, {NodeID: 6, Host: "i", Port: 1}}} {
		for version := int16(0); version <= 11; version++ {
			e := produceEncoder{version: version, flexible: version >= 9, leaders: addresses}
			if version < 10 {
				e.leaders = nil
			}
			want := wire.AppendResponse(nil, wire.Header{Version: version, CorrelationID: 42}, asKmsg(version, results, e.leaders))
			require.Equal(t, want, e.encode(42, results), "version %d", version)
		}
	}
}

func asKmsg(version int16, results []partition.ProduceResult, addresses leaders) *kmsg.ProduceResponse {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version, resp.Brokers = version, addresses
	for i := range results {
		r := &results[i]
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != r.Topic {
			t := kmsg.NewProduceResponseTopic()
			t.Topic = r.Topic
			resp.Topics = append(resp.Topics, t)
		}
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.BaseOffset, p.LogAppendTime, p.LogStartOffset = r.Partition, r.BaseOffset, r.LogAppendTime, r.LogStartOffset
		p.ErrorCode, _ = code(r.Err)
		if r.ErrorMessage != "" {
			p.ErrorMessage = &r.ErrorMessage
		}
		for _, e := range r.RecordErrors {
			re := kmsg.NewProduceResponseTopicPartitionErrorRecord()
			re.RelativeOffset, re.ErrorMessage = e.BatchIndex, &e.Message
			p.ErrorRecords = append(p.ErrorRecords, re)
		}
		if version >= 10 {
			p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = r.LeaderID, r.LeaderEpoch
		}
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return resp
}

func TestLookSeesWhatKafkaSeesFromOutside(t *testing.T) {
	plain := oneBatch(t, "a")
	two := append(append([]byte(nil), plain...), plain...)
	e, err := look(two)
	require.NoError(t, err)
	require.Equal(t, 2, e.count)
	e, err = look(append(two, plain[:30]...))
	require.NoError(t, err)
	require.Equal(t, 2, e.count, "what is cut off is not there")
	e, err = look(nil)
	require.NoError(t, err)
	require.Zero(t, e.count)
	small := append([]byte(nil), plain...)
	small[11] = 13
	small[8], small[9], small[10] = 0, 0, 0
	_, err = look(small)
	require.ErrorIs(t, err, kerr.CorruptMessage)
	require.EqualError(t, err, "Record size 13 is less than the minimum record overhead (14)")
	magic := append([]byte(nil), plain...)
	magic[16] = 9
	_, err = look(magic)
	require.EqualError(t, err, "Invalid magic found in record: 9")
}

func FuzzLook(f *testing.F) {
	f.Add([]byte{})
	f.Add(oldMessage())
	f.Add([]byte("this is no batch of records at all, but it is longer than a header of one"))
	f.Fuzz(func(t *testing.T, records []byte) {
		e, err := look(records)
		if err == nil {
			_ = e.allowed(2)
			_ = e.allowed(11)
		}
	})
}
