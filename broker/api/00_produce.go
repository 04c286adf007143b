package api

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/commitlog"
	"barnabas/broker/metadata"
	"barnabas/broker/partition"
	"barnabas/broker/txn"
	"barnabas/broker/wire"
)

// Produce, key 0, versions 0 to 11.
//
//	0  messages of format 0, any number of them or one that holds others
//	1  throttle time
//	2  time of the append; messages of format 1
//	3  transactional id; records are batches of format 2, one per partition
//	4  KAFKA_STORAGE_ERROR may be answered
//	5  log start offset in the answer
//	7  zstd
//	8  the records that were refused, and a message
//	9  flexible
//	10 current leader, and its address, beside NOT_LEADER_OR_FOLLOWER (KIP-951)
//	11 errors of the first write of a transaction are told as they are (KIP-890)
//
// With acks=0 nothing is answered, whatever happens; if something failed the
// connection is closed, which is the only sign such a client can see.
//
// The first records of a transaction are held until its coordinator has confirmed
// that it knows of the partition (produce_verify.go).
func (d *Dispatcher) produce(c *call, req *kmsg.ProduceRequest) {
	op := &produceCall{d: d, call: c, version: req.Version, acks: req.Acks, size: int64(len(c.Frame))}
	op.request.Acks = req.Acks
	op.request.Timeout = millis(req.TimeoutMillis)
	op.request.TransactionalID = req.TransactionID
	op.request.Version = req.Version
	op.request.Origin = commitlog.Client
	op.request.Partitions = producePartitions(req)
	if err := op.check(); err != nil {
		op.refuse(err)
		return
	}
	if op.accepted == 0 {
		op.done(op.refused())
		return
	}
	if !d.turns.queue(c.Conn, op.inTurn) {
		op.inTurn()
	}
}

// inTurn goes on when all earlier requests of the connection are in the log. It
// tells whether later ones have to wait for this one.
func (op *produceCall) inTurn() (holds bool) {
	first := op.firstWrites()
	if len(first) == 0 {
		op.append()
		return false
	}
	op.d.turns.hold(op.Conn)
	op.confirm(first, func() {
		op.append()
		op.d.turns.release(op.Conn)
	})
	return true
}

func (op *produceCall) append() {
	op.d.deps.Replicas.Produce(&op.request, op.done)
	op.FreeFrame() // the records are in the log; what may still wait is followers
}

// produceCall is a produce request on its way.
type produceCall struct {
	*call
	d        *Dispatcher
	version  int16
	acks     int16
	accepted int
	size     int64         // of the whole request, for quotas
	producer *txn.Producer // of the transaction that the records are part of; nil: none
	request  partition.ProduceRequest
}

// producePartitions lists the partitions in the request's order, those of one
// topic together. Of a partition that is named twice the last one counts: the
// request is a map in all but form.
func producePartitions(req *kmsg.ProduceRequest) []partition.ProducePartition {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	parts := make([]partition.ProducePartition, 0, n)
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			parts = append(parts, partition.ProducePartition{Topic: t.Topic, Partition: t.Partitions[j].Partition, Records: t.Partitions[j].Records})
		}
	}
	if n > 1 {
		return withoutDuplicates(parts)
	}
	return parts
}

func withoutDuplicates(parts []partition.ProducePartition) []partition.ProducePartition {
	if inOrder(parts) {
		return parts
	}
	at := make(map[commitlog.TopicPartition]int, len(parts))
	topicAt := make(map[string][]partition.ProducePartition)
	var topics []string
	for _, p := range parts {
		tp := commitlog.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		if i, twice := at[tp]; twice {
			topicAt[p.Topic][i] = p
			continue
		}
		if topicAt[p.Topic] == nil {
			topics = append(topics, p.Topic)
		}
		at[tp] = len(topicAt[p.Topic])
		topicAt[p.Topic] = append(topicAt[p.Topic], p)
	}
	parts = parts[:0]
	for _, topic := range topics {
		parts = append(parts, topicAt[topic]...)
	}
	return parts
}

// inOrder tells cheaply that nothing is named twice: topics and partitions both
// rise. Most requests have one topic, and few are out of order.
func inOrder(parts []partition.ProducePartition) bool {
	for i := 1; i < len(parts); i++ {
		a, b := &parts[i-1], &parts[i]
		if a.Topic > b.Topic || a.Topic == b.Topic && a.Partition >= b.Partition {
			return false
		}
	}
	return true
}

// check presets the errors of partitions whose records do not get as far as the
// log. Partitions that are in the metadata but not here are left to the
// replicas to refuse. Its own error is one of the whole request: damage that
// can be seen from outside, and records that claim to be of a transaction
// where the request names none, or one that the client may not write.
func (op *produceCall) check() error {
	snapshot := op.d.deps.Metadata.Load()
	internalAllowed := op.clientID() == adminClientID || !validAcks(op.acks)
	rights := op.d.topicRights(op.call, kmsg.ACLOperationWrite)
	ownsTransaction := false
	for i := range op.request.Partitions {
		p := &op.request.Partitions[i]
		seen, err := look(p.Records)
		if err != nil {
			return err
		}
		if seen.transactional && !ownsTransaction {
			if id := op.request.TransactionalID; id == nil || !op.d.mayTransaction(op.call, kmsg.ACLOperationWrite, *id) {
				return kerr.TransactionalIDAuthorizationFailed
			}
			ownsTransaction = true
		}
		switch {
		case !rights.allow(p.Topic):
			p.Err = kerr.TopicAuthorizationFailed
		case snapshot.Partition(p.Topic, p.Partition) == nil:
			p.Err = kerr.UnknownTopicOrPartition
		default:
			if p.Err = seen.allowed(op.version); p.Err == nil && isInternal(p.Topic) && !internalAllowed {
				p.Err = kerr.InvalidTopicException
			}
		}
		if p.Err == nil && seen.transactional {
			if err := op.ofTransaction(seen.producer); err != nil {
				return err
			}
		}
		if p.Err == nil {
			op.accepted++
		}
	}
	return nil
}

// ofTransaction takes note of whose transaction the records are part of. There can
// be one in a request.
func (op *produceCall) ofTransaction(p txn.Producer) error {
	if op.producer != nil && *op.producer != p {
		return kerr.InvalidProducerIDMapping
	}
	op.producer = &p
	return nil
}

// adminClientID is the client id under which Kafka's own tools may write to
// internal topics.
const adminClientID = "__admin_client"

func validAcks(acks int16) bool { return acks >= -1 && acks <= 1 }

func (op *produceCall) refused() []partition.ProduceResult {
	results := make([]partition.ProduceResult, len(op.request.Partitions))
	for i := range results {
		p := &op.request.Partitions[i]
		results[i] = failedProduce(p.Topic, p.Partition, p.Err)
	}
	return results
}

// refuse answers every partition with err and its message.
func (op *produceCall) refuse(err error) {
	for i := range op.request.Partitions {
		op.request.Partitions[i].Err = err
	}
	op.done(op.refused())
}

func failedProduce(topic string, id int32, err error) partition.ProduceResult {
	return partition.ProduceResult{
		Topic: topic, Partition: id, Err: err,
		BaseOffset: partition.None, LogAppendTime: partition.None, LogStartOffset: partition.None,
		LeaderID: partition.None, LeaderEpoch: partition.None,
	}
}

func (op *produceCall) done(results []partition.ProduceResult) {
	for i := range results {
		r := &results[i]
		if r.Err == nil {
			continue
		}
		op.d.faults("produce", r.Err)
		r.Err = placed(op.d.deps.Metadata.Load(), r.Topic, r.Partition, r.Err)
		if told := (*admin.Error)(nil); errors.As(r.Err, &told) {
			r.ErrorMessage = told.Message
		}
	}
	throttleMs := op.countProduced()
	if op.acks == 0 {
		op.finishUnanswered(results)
		return
	}
	e := produceEncoder{version: op.version, flexible: op.version >= 9, throttleMs: throttleMs, dst: wire.GetBuffer(128)}
	if op.version >= 10 {
		e.leaders = op.d.currentLeaders(results, op.Conn.Listener)
	}
	buf := e.encode(op.header.CorrelationID, results)
	op.Reply(wire.Response{Parts: []wire.Part{{Bytes: buf}}, OnSent: func() { wire.PutBuffer(buf) }})
}

func (op *produceCall) finishUnanswered(results []partition.ProduceResult) {
	for i := range results {
		if r := &results[i]; r.Err != nil {
			op.Close(fmt.Errorf("produce with acks=0 to %s-%d: %w", r.Topic, r.Partition, r.Err))
			return
		}
	}
	op.NoReply()
}

// leaders are the addresses that go beside NOT_LEADER_OR_FOLLOWER.
type leaders []kmsg.ProduceResponseBroker

// currentLeaders completes the results that say "not leader here" with the
// leader that the metadata knows, where the partition does not know a newer
// one itself, and collects the addresses.
func (d *Dispatcher) currentLeaders(results []partition.ProduceResult, listener string) leaders {
	var found leaders
	var snapshot *metadata.Snapshot
	for i := range results {
		r := &results[i]
		if r.Err == nil || !errors.Is(r.Err, kerr.NotLeaderForPartition) {
			continue
		}
		if snapshot == nil {
			snapshot = d.deps.Metadata.Load()
		}
		r.LeaderID, r.LeaderEpoch = currentLeader(snapshot, r.Topic, r.Partition, r.LeaderID, r.LeaderEpoch)
		if e, b := brokerEndpoint(snapshot, r.LeaderID, listener); b != nil && !found.has(b.ID) {
			to := kmsg.NewProduceResponseBroker()
			to.NodeID, to.Host, to.Port, to.Rack = b.ID, e.Host, e.Port, b.Rack
			found = append(found, to)
		}
	}
	return found
}

func (l leaders) has(id int32) bool {
	for i := range l {
		if l[i].NodeID == id {
			return true
		}
	}
	return false
}

// produceEncoder writes a produce response of versions 0 to 11 without the
// tree of structures in between: it is one answer per request of the hottest
// path. A test holds it against kmsg's encoding.
type produceEncoder struct {
	version  int16
	flexible bool
	leaders  leaders

	throttleMs int32
	dst        []byte
}

func (e *produceEncoder) encode(correlationID int32, results []partition.ProduceResult) []byte {
	e.dst = append(e.dst, 0, 0, 0, 0)
	e.int32(correlationID)
	if e.flexible {
		e.dst = append(e.dst, 0)
	}
	e.length(topicCount(results))
	for i := 0; i < len(results); {
		n := sameTopic(results[i:])
		e.topic(results[i : i+n])
		i += n
	}
	if e.version >= 1 {
		e.int32(e.throttleMs)
	}
	if e.flexible {
		e.tagLeaders()
	}
	binary.BigEndian.PutUint32(e.dst, uint32(len(e.dst)-4))
	return e.dst
}

func topicCount(results []partition.ProduceResult) (n int) {
	for i := 0; i < len(results); i += sameTopic(results[i:]) {
		n++
	}
	return n
}

// sameTopic is how many of the results, from the first on, are of one topic.
func sameTopic(results []partition.ProduceResult) int {
	n := 1
	for n < len(results) && results[n].Topic == results[0].Topic {
		n++
	}
	return n
}

func (e *produceEncoder) topic(results []partition.ProduceResult) {
	e.string(results[0].Topic)
	e.length(len(results))
	for i := range results {
		e.partition(&results[i])
	}
	e.noTags()
}

func (e *produceEncoder) partition(r *partition.ProduceResult) {
	errorCode, _ := code(r.Err)
	var message *string // only what the log has to say about records it refused
	if r.ErrorMessage != "" {
		message = &r.ErrorMessage
	}
	e.int32(r.Partition)
	e.dst = binary.BigEndian.AppendUint16(e.dst, uint16(errorCode))
	e.int64(r.BaseOffset)
	if e.version >= 2 {
		e.int64(r.LogAppendTime)
	}
	if e.version >= 5 {
		e.int64(r.LogStartOffset)
	}
	if e.version >= 8 {
		e.length(len(r.RecordErrors))
		for i := range r.RecordErrors {
			e.int32(r.RecordErrors[i].BatchIndex)
			e.nullable(&r.RecordErrors[i].Message)
			e.noTags()
		}
		e.nullable(message)
	}
	if !e.flexible {
		return
	}
	if e.version >= 10 && r.Err != nil && (r.LeaderID != partition.None || r.LeaderEpoch != partition.None) {
		e.dst = append(e.dst, 1, 0, 9) // one tag: number 0, 9 bytes
		e.int32(r.LeaderID)
		e.int32(r.LeaderEpoch)
		e.dst = append(e.dst, 0)
		return
	}
	e.noTags()
}

func (e *produceEncoder) tagLeaders() {
	if len(e.leaders) == 0 {
		e.noTags()
		return
	}
	inner := produceEncoder{version: e.version, flexible: true}
	inner.length(len(e.leaders))
	for i := range e.leaders {
		l := &e.leaders[i]
		inner.int32(l.NodeID)
		inner.string(l.Host)
		inner.int32(l.Port)
		inner.nullable(l.Rack)
		inner.noTags()
	}
	e.dst = append(e.dst, 1, 0)
	e.dst = binary.AppendUvarint(e.dst, uint64(len(inner.dst)))
	e.dst = append(e.dst, inner.dst...)
}

func (e *produceEncoder) int32(v int32) { e.dst = binary.BigEndian.AppendUint32(e.dst, uint32(v)) }

func (e *produceEncoder) int64(v int64) { e.dst = binary.BigEndian.AppendUint64(e.dst, uint64(v)) }

func (e *produceEncoder) noTags() {
	if e.flexible {
		e.dst = append(e.dst, 0)
	}
}

func (e *produceEncoder) length(n int) {
	if e.flexible {
		e.dst = binary.AppendUvarint(e.dst, uint64(n)+1)
		return
	}
	e.int32(int32(n))
}

func (e *produceEncoder) string(s string) {
	if e.flexible {
		e.dst = binary.AppendUvarint(e.dst, uint64(len(s))+1)
	} else {
		e.dst = binary.BigEndian.AppendUint16(e.dst, uint16(len(s)))
	}
	e.dst = append(e.dst, s...)
}

func (e *produceEncoder) nullable(s *string) {
	switch {
	case s != nil:
		e.string(*s)
	case e.flexible:
		e.dst = append(e.dst, 0)
	default:
		e.dst = append(e.dst, 0xff, 0xff)
	}
}
