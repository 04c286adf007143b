package field

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// BR-016: a fetch in a session that names no partition asks for all of the session's; when they have nothing new it waits, and wakes for a single record or gives up in time.
func TestAnIncrementalFetchWaits(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c, other := dial(t, addr), dial(t, addr)
		topic := newTopic(t, addr, 20)
		open := at(11, kmsg.NewPtrFetchRequest())
		open.MaxWaitMillis, open.MinBytes, open.MaxBytes, open.SessionEpoch = 0, 1, 50<<20, 0
		for p := range int32(20) {
			addToFetch(open, topic, p, 0, 1<<20)
		}
		opened := ask[*kmsg.FetchResponse](c, open)
		require.NotZero(t, opened.SessionID)
		require.Len(t, opened.Topics[0].Partitions, 20)

		next := at(11, kmsg.NewPtrFetchRequest())
		next.MaxWaitMillis, next.MinBytes, next.MaxBytes, next.SessionID, next.SessionEpoch = 500, 1, 50<<20, opened.SessionID, 1
		began := time.Now()
		idle := ask[*kmsg.FetchResponse](c, next)
		assert.GreaterOrEqual(t, time.Since(began), 450*time.Millisecond, "with nothing new it waits")
		assert.Empty(t, idle.Topics)
		assert.Equal(t, opened.SessionID, idle.SessionID)

		next.SessionEpoch, next.MaxWaitMillis = 2, 50_000
		began = time.Now()
		correlation := c.send(next)
		stored(other, topic, 7, batch{records: plainly(1, "news")})
		resp, err := c.answer(next, correlation)
		require.NoError(t, err)
		news := resp.(*kmsg.FetchResponse)
		assert.Less(t, time.Since(began), 40*time.Second, "a record ends the wait")
		require.Len(t, news.Topics, 1)
		require.Len(t, news.Topics[0].Partitions, 1, "only what has news is told")
		assert.EqualValues(t, 7, news.Topics[0].Partitions[0].Partition)

		next.SessionEpoch, next.MaxWaitMillis, next.MinBytes = 3, 300, 100_000
		addToFetch(next, topic, 7, 1, 1<<20)
		assert.Empty(t, ask[*kmsg.FetchResponse](c, next).Topics, "too few bytes: nothing")

		deleteRecords(other, topic, 7, 1)
		next.SessionEpoch, next.Topics = 4, nil
		told := ask[*kmsg.FetchResponse](c, next)
		require.Len(t, told.Topics, 1, "a log start that moved is news")
		assert.EqualValues(t, 1, told.Topics[0].Partitions[0].LogStartOffset)

		next.SessionEpoch = 9
		assert.EqualValues(t, 71, ask[*kmsg.FetchResponse](c, next).ErrorCode, "INVALID_FETCH_SESSION_EPOCH")
		next.SessionID, next.SessionEpoch = opened.SessionID^1, 1
		assert.EqualValues(t, 70, ask[*kmsg.FetchResponse](c, next).ErrorCode, "FETCH_SESSION_ID_NOT_FOUND")
	})
}

func deleteRecords(c *conn, topic string, partition int32, before int64) kmsg.DeleteRecordsResponseTopicPartition {
	c.t.Helper()
	req := at(1, kmsg.NewPtrDeleteRecordsRequest())
	req.TimeoutMillis = int32(patience.Milliseconds())
	part := kmsg.NewDeleteRecordsRequestTopicPartition()
	part.Partition, part.Offset = partition, before
	req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{part}}}
	return ask[*kmsg.DeleteRecordsResponse](c, req).Topics[0].Partitions[0]
}

// BR-032: the first partition with data gives at least a whole batch, nothing else goes beyond the limits, and limits at the very edge of a batch count as they should.
func TestLimitsOfAFetch(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 3)
		small, large := batch{records: plainly(1, strings.Repeat("s", 100))}, batch{records: plainly(1, strings.Repeat("l", 10_000))}
		one, two := len(small.encode(t)), len(large.encode(t))
		for p := range int32(3) {
			for range 3 {
				stored(c, topic, p, small)
			}
			stored(c, topic, p, large)
		}
		sizes := func(version int16, total, each int32, order ...int32) map[int32]int {
			req := at(version, kmsg.NewPtrFetchRequest())
			req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 0, 1, total, -1
			for _, p := range order {
				addToFetch(req, topic, p, 0, each)
			}
			got := map[int32]int{}
			for _, in := range ask[*kmsg.FetchResponse](c, req).Topics {
				for _, p := range in.Partitions {
					require.Zero(t, p.ErrorCode)
					got[p.Partition] = len(p.RecordBatches)
				}
			}
			return got
		}
		for _, version := range []int16{4, 7, 11, 12} {
			assert.Equal(t, map[int32]int{0: one, 1: 0, 2: 0}, sizes(version, 1, 1, 0, 1, 2), "limits of a byte: one batch, of the first")
			assert.Equal(t, map[int32]int{2: one, 0: 0, 1: 0}, sizes(version, 1, 1, 2, 0, 1), "whichever is the first")
			assert.Equal(t, map[int32]int{0: 2 * one}, sizes(version, 50<<20, int32(2*one), 0), "exactly two batches")
			assert.Equal(t, map[int32]int{0: 2*one - 1}, sizes(version, 50<<20, int32(2*one-1), 0), "one byte less: the second is cut off")
			assert.Equal(t, map[int32]int{0: one, 1: one, 2: one}, sizes(version, 50<<20, int32(one), 0, 1, 2), "each partition has its own limit")
			sum := 0
			for _, n := range sizes(version, int32(2*one+10), int32(one), 0, 1, 2) {
				sum += n
			}
			assert.LessOrEqual(t, sum, 2*one+10, "the sum keeps to the total")
			assert.Equal(t, map[int32]int{0: 3*one + two}, sizes(version, 50<<20, 1<<20, 0), "no limit in the way: everything")
		}
		// An endless reader with a limit smaller than the largest batch comes to the end all the same.
		offset, reads := int64(0), 0
		for offset < 4 {
			got := ask[*kmsg.FetchResponse](c, fetchRequest(11, topic, 0, offset, 64)).Topics[0].Partitions[0]
			whole, _ := batchSizes(got.RecordBatches)
			require.NotEmpty(t, whole, "at offset %d", offset)
			offset += int64(len(whole))
			reads++
		}
		assert.Equal(t, 4, reads)
	})
}

// Both ends of a partition, and places beyond them.
func TestAFetchOutOfRangeSaysSo(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1)
		stored(c, topic, 0, batch{records: plainly(1, "a", "b", "c", "d")})
		for offset, code := range map[int64]int16{-1: 1, 0: 0, 3: 0, 4: 0, 5: 1} {
			got := fetch(c, topic, 0, offset)
			assert.Equal(t, code, got.ErrorCode, "offset %d", offset)
		}
		assert.Zero(t, deleteRecords(c, topic, 0, 2).ErrorCode)
		assert.EqualValues(t, 1, fetch(c, topic, 0, 1).ErrorCode, "what was deleted is out of range")
		got := fetch(c, topic, 0, 2)
		assert.Zero(t, got.ErrorCode)
		assert.EqualValues(t, 2, got.LogStartOffset)
		assert.NotEmpty(t, got.RecordBatches, "the batch that holds the offset, whole")
	})
}

// BR-034, on one broker: where DeleteRecords may cut and where not.
func TestWhereRecordsMayBeDeleted(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1)
		stored(c, topic, 0, batch{records: plainly(1, "a", "b", "c", "d")})
		got := deleteRecords(c, topic, 0, 2)
		assert.Equal(t, []int64{0, 2}, []int64{int64(got.ErrorCode), got.LowWatermark})
		got = deleteRecords(c, topic, 0, 1)
		assert.Equal(t, []int64{0, 2}, []int64{int64(got.ErrorCode), got.LowWatermark}, "what is gone already")
		assert.EqualValues(t, 1, deleteRecords(c, topic, 0, 5).ErrorCode, "OFFSET_OUT_OF_RANGE beyond the end")
		assert.EqualValues(t, 1, deleteRecords(c, topic, 0, -2).ErrorCode)
		got = deleteRecords(c, topic, 0, -1)
		assert.Equal(t, []int64{0, 4}, []int64{int64(got.ErrorCode), got.LowWatermark}, "-1: everything")
		assert.EqualValues(t, 3, deleteRecords(c, topic, 9, 0).ErrorCode, "UNKNOWN_TOPIC_OR_PARTITION")
		compacted := newTopic(t, addr, 1, "cleanup.policy", "compact")
		assert.EqualValues(t, 44, deleteRecords(c, compacted, 0, 0).ErrorCode, "POLICY_VIOLATION")
	})
}
