package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/record"
	"barnabas/broker/txn"
)

// transactionPlays by name, which is also the prefix of the transactional ids in
// it. They are performed and compared as those of groups are. Producer ids get
// names by the order in which they appear.
var transactionPlays = map[string]func(*txnPlay){
	"life":     txnLifePlay,
	"fencing":  txnFencingPlay,
	"refusals": txnRefusalsPlay,
	"verify":   txnVerifyPlay,
	"markers":  txnMarkersPlay,
	"listed":   txnListedPlay,
}

type txnPlay struct {
	*groupPlay
	producers map[string]string
}

var (
	producerID = regexp.MustCompile(`"ProducerID":([0-9]+)`)
	clock      = regexp.MustCompile(`"(StartTimestamp|LastTimestamp)":[0-9]{10,}`)
)

func (p *txnPlay) neutral(text string) string {
	text = producerID.ReplaceAllStringFunc(text, func(s string) string {
		id := s[len(`"ProducerID":`):]
		if p.producers[id] == "" {
			p.producers[id] = fmt.Sprintf(`"<producer %d>"`, len(p.producers)+1)
		}
		return `"ProducerID":` + p.producers[id]
	})
	return clock.ReplaceAllString(text, `"$1":1`)
}

// ask asks, and writes down what was asked and answered.
func (p *txnPlay) ask(version int16, req kmsg.Request) kmsg.Response {
	req.SetVersion(version)
	p.write("> ", version, req)
	resp := p.silently(version, req)
	if resp == nil {
		p.text.WriteString("< closed\n")
		return nil
	}
	p.write("< ", version, p.inOrder(resp))
	return resp
}

func (p *txnPlay) write(way string, version int16, message any) {
	b, err := json.Marshal(message)
	require.NoError(p.t, err)
	key := message.(interface{ Key() int16 }).Key()
	fmt.Fprintf(&p.text, "%s%s v%d %s\n", way, kmsg.NameForKey(key), version, p.neutral(port.ReplaceAllString(string(b), `"Port":1`)))
}

func (p *txnPlay) silently(version int16, req kmsg.Request) kmsg.Response {
	req.SetVersion(version)
	select {
	case resp := <-p.on.ask("a", req):
		return resp
	case <-time.After(time.Minute):
		p.t.Fatalf("no answer after\n%s", p.text.String())
		return nil
	}
}

// inOrder is an answer without the order in which a hash table gave it, and
// without the transactions of other plays.
func (p *txnPlay) inOrder(resp kmsg.Response) kmsg.Response {
	switch r := resp.(type) {
	case *kmsg.AddPartitionsToTxnResponse:
		sortBy(r.Topics, func(t kmsg.AddPartitionsToTxnResponseTopic) string { return t.Topic })
		for i := range r.Topics {
			sortBy(r.Topics[i].Partitions, func(p kmsg.AddPartitionsToTxnResponseTopicPartition) int32 { return p.Partition })
		}
		sortBy(r.Transactions, func(t kmsg.AddPartitionsToTxnResponseTransaction) string { return t.TransactionalID })
		for i := range r.Transactions {
			topics := r.Transactions[i].Topics
			sortBy(topics, func(t kmsg.AddPartitionsToTxnResponseTransactionTopic) string { return t.Topic })
			for j := range topics {
				sortBy(topics[j].Partitions, func(p kmsg.AddPartitionsToTxnResponseTransactionTopicPartition) int32 { return p.Partition })
			}
		}
	case *kmsg.WriteTxnMarkersResponse:
		for i := range r.Markers {
			topics := r.Markers[i].Topics
			sortBy(topics, func(t kmsg.WriteTxnMarkersResponseMarkerTopic) string { return t.Topic })
			for j := range topics {
				sortBy(topics[j].Partitions, func(p kmsg.WriteTxnMarkersResponseMarkerTopicPartition) int32 { return p.Partition })
			}
		}
	case *kmsg.TxnOffsetCommitResponse:
		sortBy(r.Topics, func(t kmsg.TxnOffsetCommitResponseTopic) string { return t.Topic })
	case *kmsg.DescribeTransactionsResponse:
		for i := range r.TransactionStates {
			topics := r.TransactionStates[i].Topics
			sortBy(topics, func(t kmsg.DescribeTransactionsResponseTransactionStateTopic) string { return t.Topic })
			for j := range topics {
				slices.Sort(topics[j].Partitions)
			}
		}
	case *kmsg.ListTransactionsResponse:
		r.TransactionStates = slices.DeleteFunc(r.TransactionStates, func(s kmsg.ListTransactionsResponseTransactionState) bool {
			return !strings.HasPrefix(s.TransactionalID, "listed")
		})
		sortBy(r.TransactionStates, func(s kmsg.ListTransactionsResponseTransactionState) string { return s.TransactionalID })
	case *kmsg.DescribeProducersResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				list := &r.Topics[i].Partitions[j].ActiveProducers
				*list = slices.DeleteFunc(*list, func(s kmsg.DescribeProducersResponseTopicPartitionActiveProducer) bool {
					return p.producers[strconv.FormatInt(s.ProducerID, 10)] == ""
				})
				sortBy(*list, func(s kmsg.DescribeProducersResponseTopicPartitionActiveProducer) int64 { return s.ProducerID })
			}
		}
	}
	return resp
}

func initOf(id string, timeoutMs int32, present *txn.Producer) *kmsg.InitProducerIDRequest {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &id, timeoutMs
	if present != nil {
		req.ProducerID, req.ProducerEpoch = present.ID, present.Epoch
	}
	return req
}

func addOf(id string, by txn.Producer, topic string, partitions ...int32) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = id, by.ID, by.Epoch
	t := kmsg.NewAddPartitionsToTxnRequestTopic()
	t.Topic, t.Partitions = topic, partitions
	req.Topics = append(req.Topics, t)
	return req
}

func verifyOf(id string, by txn.Producer, verifyOnly bool, topic string, partitions ...int32) kmsg.AddPartitionsToTxnRequestTransaction {
	t := kmsg.NewAddPartitionsToTxnRequestTransaction()
	t.TransactionalID, t.ProducerID, t.ProducerEpoch, t.VerifyOnly = id, by.ID, by.Epoch, verifyOnly
	t.Topics = append(t.Topics, kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: topic, Partitions: partitions})
	return t
}

func addOffsetsOf(id string, by txn.Producer, group string) *kmsg.AddOffsetsToTxnRequest {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = id, by.ID, by.Epoch, group
	return req
}

func txnCommitOf(id string, by txn.Producer, group, topic string, offset int64) *kmsg.TxnOffsetCommitRequest {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = id, by.ID, by.Epoch, group, -1
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic = topic
	o := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	o.Offset, o.LeaderEpoch, o.Metadata = offset, -1, kmsg.StringPtr("m")
	t.Partitions = append(t.Partitions, o)
	req.Topics = append(req.Topics, t)
	return req
}

func endOf(id string, by txn.Producer, commit bool) *kmsg.EndTxnRequest {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = id, by.ID, by.Epoch, commit
	return req
}

func producersOf(topic string, partitions ...int32) *kmsg.DescribeProducersRequest {
	req := kmsg.NewPtrDescribeProducersRequest()
	req.Topics = append(req.Topics, kmsg.DescribeProducersRequestTopic{Topic: topic, Partitions: partitions})
	return req
}

func transactionsOf(ids ...string) *kmsg.DescribeTransactionsRequest {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	return req
}

// initialised is a producer that nobody had before.
func (p *txnPlay) initialised(id string) txn.Producer {
	r := p.ask(5, initOf(id, 60_000, nil)).(*kmsg.InitProducerIDResponse)
	return txn.Producer{ID: r.ProducerID, Epoch: r.ProducerEpoch}
}

// send produces one batch; its bytes hold a producer id and are not written down.
func (p *txnPlay) send(version int16, id *string, o record.Producer, control bool, topic string, partition int32, values ...string) {
	b := record.NewBuilder(record.BuilderOptions{Producer: &o, Control: control})
	for _, v := range values {
		b.Append(goldenTime, []byte("k"), []byte(v))
	}
	batch, err := b.Build()
	require.NoError(p.t, err)
	req := produceOne(-1, topic, partition, batch)
	req.TransactionID = id
	req.Version = version
	fmt.Fprintf(&p.text, "> Produce v%d %s-%d %v epoch %d sequence %d transactional %v control %v\n", version, topic, partition, values, o.Epoch, o.BaseSequence, o.Transactional, control)
	p.write("< ", version, p.silently(version, req))
}

func (p *txnPlay) produce(id string, by txn.Producer, sequence int32, topic string, partition int32, values ...string) {
	p.send(11, &id, record.Producer{ID: by.ID, Epoch: by.Epoch, BaseSequence: sequence, Transactional: true}, false, topic, partition, values...)
}

// rest waits until the markers of an id are written.
func (p *txnPlay) rest(id string) {
	require.Eventually(p.t, func() bool {
		r := p.silently(0, transactionsOf(id)).(*kmsg.DescribeTransactionsResponse)
		return !strings.HasPrefix(r.TransactionStates[0].State, "Prepare")
	}, time.Minute, 20*time.Millisecond)
}

// reads tells what readers of a partition get, batch by batch.
func (p *txnPlay) reads(topic string, partition int32) {
	for isolation := range int8(2) {
		fmt.Fprintf(&p.text, "%s-%d isolation %d:\n", topic, partition, isolation)
		for from, more := int64(0), true; more; {
			from, more = p.readsOne(topic, partition, isolation, from)
		}
	}
}

func (p *txnPlay) readsOne(topic string, partition int32, isolation int8, from int64) (next int64, more bool) {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MaxBytes, req.IsolationLevel = -1, 0, 1<<20, isolation
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	fp := kmsg.NewFetchRequestTopicPartition()
	fp.Partition, fp.FetchOffset, fp.PartitionMaxBytes, fp.CurrentLeaderEpoch = partition, from, 1, -1
	t.Partitions = append(t.Partitions, fp)
	req.Topics = append(req.Topics, t)
	r := p.silently(11, req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	fmt.Fprintf(&p.text, "  high watermark %d last stable %d", r.HighWatermark, r.LastStableOffset)
	if len(r.RecordBatches) == 0 {
		p.text.WriteString("\n")
		return from, false
	}
	b, _, err := record.Next(r.RecordBatches)
	require.NoError(p.t, err)
	for x, err := range b.Records(record.Limits{}) {
		require.NoError(p.t, err)
		kind := string(x.Value)
		if b.IsControl() {
			m, _, err := record.ParseEndTxnMarker(x)
			require.NoError(p.t, err)
			kind = m.Type.String()
		}
		fmt.Fprintf(&p.text, " %d:%s", x.Offset, kind)
	}
	// Those behind the batch are of no use to who reads it; how many there are depends on where segments end.
	aborted, err := json.Marshal(slices.DeleteFunc(r.AbortedTransactions, func(a kmsg.FetchResponseTopicPartitionAbortedTransaction) bool { return a.FirstOffset > b.LastOffset() }))
	require.NoError(p.t, err)
	fmt.Fprintf(&p.text, " epoch %d aborted %s\n", b.ProducerEpoch(), p.neutral(string(aborted)))
	return b.NextOffset(), true
}

func txnLifePlay(p *txnPlay) {
	const id, group, topic = "life", "life group", "life"
	p.say("a transaction that is committed")
	by := p.initialised(id)
	p.ask(0, transactionsOf(id))
	p.ask(3, addOf(id, by, topic, 0, 1))
	p.ask(0, transactionsOf(id))
	p.produce(id, by, 0, topic, 0, "a", "b")
	p.produce(id, by, 2, topic, 0, "c")
	p.produce(id, by, 2, topic, 0, "c")
	p.produce(id, by, 0, topic, 1, "d")
	p.ask(4, addOffsetsOf(id, by, group))
	p.ask(4, txnCommitOf(id, by, group, topic, 7))
	p.ask(0, producersOf(topic, 0, 1))
	p.groupPlay.ask("x", 9, fetchOf(9, group, topic, 0))
	p.reads(topic, 0)
	p.ask(4, endOf(id, by, true))
	p.rest(id)
	p.ask(0, transactionsOf(id))
	p.ask(0, producersOf(topic, 0, 1))
	p.groupPlay.ask("x", 9, fetchOf(9, group, topic, 0))
	p.reads(topic, 0)
	p.ask(4, endOf(id, by, true))
	p.ask(3, endOf(id, by, false))

	p.say("one that is aborted")
	p.ask(3, addOf(id, by, topic, 0))
	p.produce(id, by, 3, topic, 0, "e")
	p.ask(3, addOffsetsOf(id, by, group))
	p.ask(3, txnCommitOf(id, by, group, topic, 9))
	p.reads(topic, 0)
	p.ask(3, endOf(id, by, false))
	p.rest(id)
	p.groupPlay.ask("x", 9, fetchOf(9, group, topic, 0))
	p.reads(topic, 0)
	p.ask(3, endOf(id, by, false))
	p.ask(3, endOf(id, by, true))
	p.ask(0, transactionsOf(id))

	p.say("a partition is added and nothing is written")
	p.ask(3, addOf(id, by, topic, 1))
	p.ask(3, endOf(id, by, true))
	p.rest(id)
	p.reads(topic, 1)
}

func txnFencingPlay(p *txnPlay) {
	const id, topic = "fencing", "fencing"
	old := p.initialised(id)
	p.ask(3, addOf(id, old, topic, 0))
	p.produce(id, old, 0, topic, 0, "lost")
	p.say("the next one aborts what is open")
	p.ask(5, initOf(id, 60_000, nil))
	p.rest(id)
	by := p.initialised(id)
	p.reads(topic, 0)

	p.say("the old one is told in every version")
	for version := range int16(4) {
		p.ask(version, addOf(id, old, topic, 0))
	}
	for version := range int16(5) {
		p.ask(version, addOffsetsOf(id, old, "g"))
		p.ask(version, endOf(id, old, true))
		p.ask(version, endOf(id, old, false))
	}
	for version := int16(3); version <= 5; version++ {
		p.ask(version, initOf(id, 60_000, &old))
		p.ask(version, initOf(id, 60_000, &txn.Producer{ID: 123456, Epoch: 0}))
	}
	for version := int16(3); version <= 11; version++ {
		name := id
		p.send(version, &name, record.Producer{ID: old.ID, Epoch: old.Epoch, BaseSequence: 1, Transactional: true}, false, topic, 0, "too late")
		p.send(version, &name, record.Producer{ID: old.ID, Epoch: old.Epoch, BaseSequence: 1, Transactional: true}, false, topic, 1, "too late")
	}
	for version := range int16(5) {
		p.ask(version, txnCommitOf(id, old, "g", topic, 1))
	}

	p.say("the present one goes on")
	p.ask(3, initOf(id, 60_000, &by))
	p.ask(4, initOf(id, 60_000, &by))
	r := p.ask(5, initOf(id, 60_000, &txn.Producer{ID: by.ID, Epoch: by.Epoch + 1})).(*kmsg.InitProducerIDResponse)
	by.Epoch = r.ProducerEpoch
	p.ask(3, addOf(id, by, topic, 0))
	p.produce(id, by, 0, topic, 0, "kept")
	p.ask(3, endOf(id, by, true))
	p.rest(id)
	p.reads(topic, 0)
	p.ask(0, producersOf(topic, 0))
}

func txnRefusalsPlay(p *txnPlay) {
	const id, topic = "refusals", "refusals"
	p.say("initialising")
	p.ask(5, initOf("", 60_000, nil))
	for _, ms := range []int32{0, -1, 900_001} {
		p.ask(5, initOf(id, ms, nil))
	}
	p.ask(5, initOf(id, 60_000, &txn.Producer{ID: -1, Epoch: 3}))
	p.ask(5, initOf(id, 60_000, &txn.Producer{ID: 3, Epoch: -1}))
	p.say("ids that are not known")
	nobody := txn.Producer{ID: 123456, Epoch: 0}
	for _, name := range []string{"", "refusals unknown"} {
		p.ask(3, addOf(name, nobody, topic, 0))
		p.ask(3, addOffsetsOf(name, nobody, "g"))
		p.ask(3, endOf(name, nobody, true))
		p.ask(0, transactionsOf(name))
	}
	by := p.initialised(id)
	p.ask(3, addOf(id, nobody, topic, 0))
	p.ask(3, endOf(id, nobody, true))
	p.say("without a transaction")
	p.ask(3, endOf(id, by, true))
	p.ask(3, endOf(id, by, false))
	for version := int16(8); version <= 11; version++ {
		name := id
		p.send(version, &name, record.Producer{ID: by.ID, Epoch: by.Epoch, BaseSequence: 0, Transactional: true}, false, topic, 0, "not added")
	}
	for version := range int16(5) {
		p.ask(version, txnCommitOf(id, by, "refusals group", topic, 1))
	}
	p.say("partitions that do not exist")
	p.ask(3, addOf(id, by, topic, 0, 77))
	p.ask(3, addOf(id, by, "nosuch", 0))
	p.ask(0, transactionsOf(id))
	p.say("records that are not as they should be")
	p.ask(3, addOf(id, by, topic, 0))
	name := id
	p.send(11, &name, record.Producer{ID: by.ID, Epoch: by.Epoch, BaseSequence: -1, Transactional: true}, true, topic, 0, "control")
	p.send(11, nil, record.Producer{ID: by.ID, Epoch: by.Epoch, BaseSequence: 0, Transactional: true}, false, topic, 0, "no id")
	p.produce(id, by, 0, topic, 0, "in order")
	p.produce(id, by, 2, topic, 0, "out of order")
	p.produce(id, by, 0, topic, 1, "not added")
	p.send(11, nil, record.Producer{ID: by.ID, Epoch: by.Epoch, BaseSequence: 1}, false, topic, 0, "outside")
	p.produce(id, txn.Producer{ID: by.ID, Epoch: by.Epoch + 1}, 0, topic, 1, "an epoch to come")
	p.say("offsets")
	p.ask(4, addOffsetsOf(id, by, "refusals group"))
	p.ask(4, txnCommitOf(id, by, "refusals group", "nosuch", 1))
	unknown := txnCommitOf(id, by, "refusals group", topic, 1)
	unknown.Generation, unknown.MemberID = 5, "nobody"
	p.ask(4, unknown)
	p.ask(4, txnCommitOf(id, by, "", topic, 1))
	p.ask(4, endOf(id, by, true))
	p.rest(id)
	p.say("after the end")
	p.produce(id, by, 1, topic, 0, "too late")
	p.reads(topic, 0)
}

func txnVerifyPlay(p *txnPlay) {
	const topic = "verify"
	a, b := p.initialised("verify a"), p.initialised("verify b")
	p.ask(3, addOf("verify a", a, topic, 0))
	for version := int16(4); version <= 5; version++ {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.Transactions = append(req.Transactions, verifyOf("verify a", a, true, topic, 0, 1), verifyOf("verify b", b, true, topic, 0),
			verifyOf("verify unknown", a, true, topic, 0), verifyOf("", a, true, topic, 0))
		p.ask(version, req)
		req = kmsg.NewPtrAddPartitionsToTxnRequest()
		req.Transactions = append(req.Transactions, verifyOf("verify a", txn.Producer{ID: a.ID, Epoch: a.Epoch + 1}, true, topic, 0), verifyOf("verify b", a, true, topic, 0, 99))
		p.ask(version, req)
		req = kmsg.NewPtrAddPartitionsToTxnRequest()
		req.Transactions = append(req.Transactions, verifyOf("verify b", b, false, topic, int32(version-4)))
		p.ask(version, req)
	}
	p.ask(0, transactionsOf("verify a", "verify b"))
}

func markersOf(topic string, partition int32, by txn.Producer, coordinator int32, commit bool) *kmsg.WriteTxnMarkersRequest {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch, m.Committed = by.ID, by.Epoch, coordinator, commit
	m.Topics = append(m.Topics, kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: topic, Partitions: []int32{partition}})
	req.Markers = append(req.Markers, m)
	return req
}

func txnMarkersPlay(p *txnPlay) {
	const id, topic = "markers", "markers"
	by := p.initialised(id)
	p.ask(3, addOf(id, by, topic, 0))
	p.produce(id, by, 0, topic, 0, "a")
	for version := range int16(2) {
		p.ask(version, kmsg.NewPtrWriteTxnMarkersRequest())
		p.ask(version, markersOf("nosuch", 0, by, 0, true))
		p.ask(version, markersOf(topic, 5, by, 0, true))
	}
	p.say("an operator ends it at a later coordinator epoch")
	p.ask(1, markersOf(topic, 0, by, 9, true))
	p.reads(topic, 0)
	p.ask(0, producersOf(topic, 0, 5))
	p.ask(0, producersOf("nosuch", 0))
	p.ask(0, producersOf("no/such", 0))
	p.ask(1, markersOf(topic, 0, by, 8, false))
	p.ask(1, markersOf(topic, 0, txn.Producer{ID: by.ID, Epoch: by.Epoch + 1}, 9, false))
	p.ask(1, markersOf(topic, 0, by, 9, false))
	two := markersOf(topic, 0, txn.Producer{ID: by.ID, Epoch: by.Epoch + 1}, 10, false)
	two.Markers = append(two.Markers, markersOf(topic, 1, txn.Producer{ID: by.ID, Epoch: by.Epoch}, 10, true).Markers...)
	p.ask(1, two)
	p.reads(topic, 1)
	p.ask(0, producersOf(topic, 0, 1))
}

func txnListedPlay(p *txnPlay) {
	const topic = "listed"
	a, b := p.initialised("listed a"), p.initialised("listed b")
	p.ask(3, addOf("listed a", a, topic, 0))
	p.ask(3, addOf("listed b", b, topic, 0))
	p.ask(3, endOf("listed b", b, true))
	p.rest("listed b")
	p.initialised("listed c")
	for version := range int16(2) {
		list := func(duration int64, states ...string) {
			req := kmsg.NewPtrListTransactionsRequest()
			req.StateFilters = states
			if version > 0 {
				req.DurationFilterMillis = duration
			}
			p.ask(version, req)
		}
		list(-1)
		list(-1, "Ongoing")
		list(-1, "Ongoing", "CompleteCommit")
		list(-1, "Dead")
		list(-1, "Nonsense", "Empty")
		list(-1, "Nonsense")
		list(3_600_000)
		list(0, "Empty")
	}
	p.ask(0, transactionsOf("listed a", "listed b", "listed nobody", ""))
	p.ask(0, transactionsOf())
	for version := int16(1); version <= 6; version++ {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKey, req.CoordinatorKeys, req.CoordinatorType = "listed a", []string{"listed a", "listed b"}, 1
		p.ask(version, req)
	}
}

const transactionPlayFolder = "testdata/transactions"

func transactionPlayFile(name string) string {
	return filepath.Join(transactionPlayFolder, name+".txt")
}

func newTxnPlay(t *testing.T, on theatre) *txnPlay {
	return &txnPlay{groupPlay: newGroupPlay(t, on, 0), producers: map[string]string{}}
}

// TestRecordTransactionPlays has the plays performed by Apache Kafka 3.9.1. By
// hand, as TestRecordGroupPlays.
func TestRecordTransactionPlays(t *testing.T) {
	if !*record391 {
		t.Skip("only with -record")
	}
	addr := oneKafka(t)
	n := &network{t: t, addr: addr, conns: map[string]net.Conn{}}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 7, 15000
	create.Topics = append(create.Topics, createTopic(transactionsTopic, -1, -1, slices.Repeat([][]int32{{1}}, 50)))
	for name := range transactionPlays {
		create.Topics = append(create.Topics, createTopic(name, -1, -1, [][]int32{{1}, {1}}))
	}
	for _, topic := range (<-n.ask("setup", create)).(*kmsg.CreateTopicsResponse).Topics {
		require.Zero(t, topic.ErrorCode, topic.Topic)
	}
	for i := range 200 { // until every partition is loaded
		require.Eventually(t, func() bool {
			probe := initOf(fmt.Sprint("probe ", i), 60_000, nil)
			probe.Version = 5
			return (<-n.ask("setup", probe)).(*kmsg.InitProducerIDResponse).ErrorCode == 0
		}, time.Minute, 100*time.Millisecond)
	}
	require.NoError(t, os.MkdirAll(transactionPlayFolder, 0o755))
	for _, name := range slices.Sorted(maps.Keys(transactionPlays)) {
		p := newTxnPlay(t, n)
		transactionPlays[name](p)
		text := "# Performed by Apache Kafka 3.9.1 (ZooKeeper mode). Written by TestRecordTransactionPlays.\n" + p.text.String()
		require.NoError(t, os.WriteFile(transactionPlayFile(name), []byte(text), 0o644))
	}
}

// TestTransactionsAnswerAsKafkaDoes performs the plays here.
func TestTransactionsAnswerAsKafkaDoes(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(transactionPlays)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1, readCluster(t))
			w.leads(name, 2)
			w.leads(offsetsTopic, 50)
			w.leads(transactionsTopic, 50)
			p := newTxnPlay(t, indoors{w})
			transactionPlays[name](p)
			compareTransactions(t, name, p)
		})
	}
}

// leads makes this broker the leader of a topic with real logs.
func (w *world) leads(name string, partitions int) {
	cluster := readCluster(w.t)
	id := [16]byte{byte(len(name)), name[0], name[2], 7}
	if name == offsetsTopic {
		id = cluster.topicIDs[name]
	}
	order := kmsg.NewPtrLeaderAndISRRequest()
	order.Version, order.ControllerID, order.ControllerEpoch, order.BrokerEpoch = 7, 1, 1, -1
	to := kmsg.NewLeaderAndISRRequestTopicState()
	to.Topic, to.TopicID = name, id
	for i := range partitions {
		p := kmsg.NewLeaderAndISRRequestTopicPartition()
		p.Partition, p.ControllerEpoch, p.Leader, p.ISR, p.Replicas, p.IsNew = int32(i), 1, 1, []int32{1}, []int32{1}, true
		to.PartitionStates = append(to.PartitionStates, p)
	}
	order.TopicStates = append(order.TopicStates, to)
	require.Zero(w.t, w.ask(order).(*kmsg.LeaderAndISRResponse).ErrorCode)
	w.tell(cluster, topicState(name, id, slices.Repeat([][]int32{{1}}, partitions)))
}

func compareTransactions(t *testing.T, name string, p *txnPlay) {
	b, err := os.ReadFile(transactionPlayFile(name))
	require.NoError(t, err)
	_, want, _ := strings.Cut(string(b), "\n")
	wants, gots := strings.Split(want, "\n"), strings.Split(p.text.String(), "\n")
	for i := range min(len(wants), len(gots)) {
		if wants[i] != gots[i] {
			t.Fatalf("after\n%s\nKafka: %s\nhere:  %s", strings.Join(wants[max(i-3, 0):i], "\n"), wants[i], gots[i])
		}
	}
	require.Len(t, gots, len(wants))
}
