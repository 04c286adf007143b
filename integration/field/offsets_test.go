package field

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// BR-005: the record is found, not the batch that holds it.
func TestATimeIsFoundInsideABatchOfAnyCodec(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		for codec, name := range codecNames {
			t.Run(name, func(t *testing.T) {
				topic := newTopic(t, addr, 1)
				var records []record
				for ts := int64(1); ts <= 50; ts++ {
					records = append(records, record{timestamp: ts, value: []byte("a value that is long enough to be worth compressing")})
				}
				require.Zero(t, stored(c, topic, 0, batch{codec: int16(codec), records: records}))
				for version := int16(1); version <= 8; version++ {
					for _, want := range []struct{ asked, offset, timestamp int64 }{{0, 0, 1}, {1, 0, 1}, {25, 24, 25}, {50, 49, 50}, {51, -1, -1}} {
						got := listOffset(c, version, topic, 0, want.asked)
						assert.Zero(t, got.ErrorCode)
						assert.Equal(t, want.offset, got.Offset, "version %d, time %d", version, want.asked)
						assert.Equal(t, want.timestamp, got.Timestamp, "version %d, time %d", version, want.asked)
					}
				}
			})
		}
	})
}

// BR-053: the offset of the largest timestamp is that of its own record.
func TestTheLargestTimestampHasItsRecordsOffset(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 2)
		got := listOffset(c, 7, topic, 1, largest)
		assert.Equal(t, []int64{-1, -1}, []int64{got.Offset, got.Timestamp}, "of an empty partition")
		for i := range codecNames {
			base := int64(i * 3)
			at := int64(i * 100)
			require.Equal(t, base, stored(c, topic, 0, batch{codec: int16(i), records: []record{{timestamp: at + 5}, {timestamp: at + 9}, {timestamp: at + 7}}}))
			got = listOffset(c, 7, topic, 0, largest)
			assert.Equal(t, []int64{base + 1, at + 9}, []int64{got.Offset, got.Timestamp}, codecNames[i])
		}
		stored(c, topic, 0, batch{records: []record{{timestamp: 409}, {timestamp: 409}}})
		got = listOffset(c, 7, topic, 0, largest)
		assert.Equal(t, []int64{13, 409}, []int64{got.Offset, got.Timestamp}, "the first of several")
		assert.EqualValues(t, 35, listOffset(c, 6, topic, 0, largest).ErrorCode, "UNSUPPORTED_VERSION before version 7")

		stamped := newTopic(t, addr, 1, "message.timestamp.type", "LogAppendTime")
		stored(c, stamped, 0, batch{records: plainly(1, "a", "b")})
		got = listOffset(c, 7, stamped, 0, largest)
		assert.Zero(t, got.Offset, "one time for a whole batch: its first record's")
	})
}

// Earliest, latest and version 0, which gives a list.
func TestTheEndsOfAPartitionAtEveryVersion(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		topic := newTopic(t, addr, 1)
		stored(c, topic, 0, batch{records: plainly(1000, "a", "b", "c")})
		for version := int16(1); version <= 9; version++ {
			assert.EqualValues(t, 0, listOffset(c, version, topic, 0, earliest).Offset, "version %d", version)
			last := listOffset(c, version, topic, 0, latest)
			assert.EqualValues(t, 3, last.Offset, "version %d", version)
			assert.EqualValues(t, -1, last.Timestamp, "version %d", version)
		}
		assert.Equal(t, []int64{3}, listOffset(c, 0, topic, 0, latest).OldStyleOffsets)
		assert.Equal(t, []int64{0}, listOffset(c, 0, topic, 0, earliest).OldStyleOffsets)
		assert.EqualValues(t, 3, listOffset(c, 1, topic, 5, latest).ErrorCode, "UNKNOWN_TOPIC_OR_PARTITION")
		req := at(5, kmsg.NewPtrListOffsetsRequest())
		req.ReplicaID = -1
		assert.Empty(t, ask[*kmsg.ListOffsetsResponse](c, req).Topics)
	})
}
