package field

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newProducer asks for an id as an idempotent producer does.
func newProducer(c *conn) *producer {
	c.t.Helper()
	var p producer
	eventually(c.t, func() bool { // Apache Kafka has none ready at first
		req := at(3, kmsg.NewPtrInitProducerIDRequest())
		req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = -1, -1, -1
		resp := ask[*kmsg.InitProducerIDResponse](c, req)
		p = producer{resp.ProducerID, resp.ProducerEpoch}
		return resp.ErrorCode == 0
	}, "a producer id")
	return &p
}

// BR-004: a producer may repeat any of its last five batches, and hears where each of them was stored the first time.
func TestTheLastFiveBatchesOfAProducerMayBeRepeated(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1)
		p := newProducer(c)
		send := func(sequence int32, values ...string) kmsg.ProduceResponseTopicPartition {
			return produce(c, 9, topic, 0, -1, batch{producer: p, sequence: sequence, records: plainly(1000, values...)}.encode(t))
		}
		for seq := range int32(6) {
			require.EqualValues(t, seq, send(seq, "x").BaseOffset)
		}
		for seq := int32(1); seq < 6; seq++ {
			again := send(seq, "x")
			assert.Zero(t, again.ErrorCode)
			assert.EqualValues(t, seq, again.BaseOffset, "the offset that it had at first")
		}
		assert.Equal(t, kerr.OutOfOrderSequenceNumber.Code, send(0, "x").ErrorCode, "older than what is remembered")
		assert.Equal(t, kerr.OutOfOrderSequenceNumber.Code, send(3, "x", "y").ErrorCode, "the same sequence, other records")
		assert.Equal(t, kerr.OutOfOrderSequenceNumber.Code, send(8, "x").ErrorCode, "a gap")
		assert.EqualValues(t, 6, send(6, "z").BaseOffset)
		assert.EqualValues(t, 7, listOffset(c, 5, topic, 0, latest).Offset, "nothing was stored twice")
	})
}

// BR-043: after 2147483647 comes 0.
func TestSequencesGoRound(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1, "max.message.bytes", "2000")
		p := newProducer(c)
		send := func(sequence int32, values ...string) kmsg.ProduceResponseTopicPartition {
			return produce(c, 9, topic, 0, -1, batch{producer: p, sequence: sequence, records: plainly(1000, values...)}.encode(t))
		}
		require.Zero(t, send(2147483645, "a", "b", "c", "d", "e").ErrorCode)
		assert.Equal(t, kerr.MessageTooLarge.Code, send(2, string(make([]byte, 3000))).ErrorCode, "which changes nothing")
		assert.EqualValues(t, 5, send(2, "f").BaseOffset)
		again := send(2147483645, "a", "b", "c", "d", "e")
		assert.Equal(t, []int64{0, 0}, []int64{int64(again.ErrorCode), again.BaseOffset})
		assert.Equal(t, kerr.OutOfOrderSequenceNumber.Code, send(4, "gap").ErrorCode)
		assert.EqualValues(t, 6, send(3, "g").BaseOffset)
	})
}

// BR-047: what only a broker writes, a client may not; and an older or newer life of a producer is told apart.
func TestBatchesThatAClientMayNotSendAreRefused(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1)
		refused := func(b batch) int16 { return produce(c, 9, topic, 0, -1, b.encode(t)).ErrorCode }
		assert.Equal(t, kerr.InvalidRecord.Code, refused(batch{attributes: control, records: []record{{timestamp: 1, key: []byte{0, 0, 0, 1}, value: []byte{0, 0, 0, 0, 0, 0}}}}), "a control batch")
		assert.Equal(t, kerr.InvalidRecord.Code, refused(batch{}), "a batch without records")

		p := newProducer(c)
		require.Zero(t, refused(batch{producer: &producer{p.id, p.epoch + 1}, records: plainly(1, "a")}), "a newer life begins at 0")
		assert.Equal(t, kerr.InvalidProducerEpoch.Code, refused(batch{producer: p, sequence: 1, records: plainly(1, "b")}), "an older life")
		assert.Equal(t, kerr.OutOfOrderSequenceNumber.Code, refused(batch{producer: &producer{p.id, p.epoch + 2}, sequence: 5, records: plainly(1, "c")}), "a newer life that does not begin at 0")

		broken := batch{records: plainly(1, "d")}.encode(t)
		broken[len(broken)-2] ^= 1
		assert.Equal(t, kerr.CorruptMessage.Code, produce(c, 9, topic, 0, -1, broken).ErrorCode)
		two := append(batch{records: plainly(1, "e")}.encode(t), batch{records: plainly(1, "f")}.encode(t)...)
		assert.Equal(t, kerr.InvalidRecord.Code, produce(c, 9, topic, 0, -1, two).ErrorCode, "two batches")
		assert.EqualValues(t, 1, listOffset(c, 5, topic, 0, latest).Offset, "one record in all was stored")
		assert.EqualValues(t, 1, fetch(c, topic, 0, 1).LastStableOffset)
	})
}

// BR-070: what acks may be, and min.insync.replicas above the number of replicas.
func TestAcksAndTheLeastInSync(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1, "min.insync.replicas", "2")
		b := batch{records: plainly(1000, "x")}.encode(t)
		assert.Zero(t, produce(c, 9, topic, 0, 1, b).ErrorCode)
		assert.Zero(t, produce(c, 9, topic, 0, -1, b).ErrorCode, "no more is asked than there are replicas")
		for _, acks := range []int16{2, -2} {
			p := produce(c, 9, topic, 0, acks, b)
			assert.Equal(t, kerr.InvalidRequiredAcks.Code, p.ErrorCode, "acks %d", acks)
			assert.EqualValues(t, -1, p.BaseOffset)
		}
		assert.EqualValues(t, 2, listOffset(c, 5, topic, 0, latest).Offset)
	})
}

// BR-070: acks=0 is never answered, not even with an error; the answers to other requests keep their order.
func TestNothingAnswersAcksZero(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1)
		b := batch{records: plainly(1000, "x")}.encode(t)
		const n = 1000
		asked := kmsg.NewPtrApiVersionsRequest()
		sent := make(chan []int32, 1)
		go func() {
			var ids []int32
			for i := range n {
				c.send(produceRequest(9, topic, 0, 0, b))
				if i%100 == 99 {
					ids = append(ids, c.send(asked))
				}
			}
			sent <- ids
		}()
		for _, id := range <-sent {
			_, err := c.answer(asked, id)
			require.NoError(t, err)
		}
		assert.EqualValues(t, n, listOffset(c, 5, topic, 0, latest).Offset)

		c.send(produceRequest(9, topic, 7, 0, b)) // no such partition
		c.requireClosed()
	})
}

// BR-050: timestamps out of bounds are named record by record.
func TestTimestampsOutOfBoundsAreNamedRecordByRecord(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1, "message.timestamp.before.max.ms", "3600000", "message.timestamp.after.max.ms", "3600000")
		now := time.Now().UnixMilli()
		for _, bad := range []int64{now / 1000, now * 1000, 0, now - 3700_000, now + 3700_000} {
			p := produce(c, 9, topic, 0, -1, batch{records: []record{{timestamp: now}, {timestamp: bad}, {timestamp: now}}}.encode(t))
			assert.Equal(t, kerr.InvalidTimestamp.Code, p.ErrorCode, "%d", bad)
			require.Len(t, p.ErrorRecords, 1, "%d", bad)
			assert.EqualValues(t, 1, p.ErrorRecords[0].RelativeOffset)
			require.NotNil(t, p.ErrorMessage)
		}
		assert.Zero(t, listOffset(c, 5, topic, 0, latest).Offset)
	})
}

// Records without a key cannot be compacted.
func TestRecordsWithoutAKeyAreRefusedWhereTheLogIsCompacted(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1, "cleanup.policy", "compact")
		for codec := range codecNames {
			p := produce(c, 9, topic, 0, -1, batch{codec: int16(codec), records: []record{{timestamp: 1, key: []byte("k")}, {timestamp: 1, value: []byte("no key")}}}.encode(t))
			assert.Equal(t, kerr.InvalidRecord.Code, p.ErrorCode, codecNames[codec])
			require.Len(t, p.ErrorRecords, 1)
			assert.EqualValues(t, 1, p.ErrorRecords[0].RelativeOffset)
		}
	})
}
