package wire

import (
	"encoding/binary"

	"barnabas/broker/vfs"
)

// FetchResponse is a fetch response (versions 0 to 17) whose records are pieces of files.
type FetchResponse struct {
	ThrottleMs int32 // since version 1
	ErrorCode  int16 // of the session; since version 7
	SessionID  int32 // since version 7
	Topics     []FetchTopic
	Brokers    []FetchBroker // endpoints of the leaders named in CurrentLeader; since version 16 (KIP-951)
}

// FetchTopic is a topic of a FetchResponse: named up to version 12, by id since 13.
type FetchTopic struct {
	Topic      string
	TopicID    [16]byte
	Partitions []FetchPartition
}

// FetchPartition is one partition's share of a FetchResponse. NewFetchPartition sets what is absent to its default.
type FetchPartition struct {
	Partition            int32
	ErrorCode            int16
	HighWatermark        int64
	LastStableOffset     int64        // since version 4
	LogStartOffset       int64        // since version 5
	Aborted              []AbortedTxn // nil is null, as for a reader of uncommitted records; since version 4
	PreferredReadReplica int32        // -1: none; since version 11
	DivergingEpoch       int32        // -1, as DivergingEndOffset: none; since version 12
	DivergingEndOffset   int64
	LeaderID             int32 // -1, as LeaderEpoch: not told; since version 12
	LeaderEpoch          int32
	Records              vfs.FileRange // Length 0: none
}

// AbortedTxn is an aborted transaction that overlaps the records sent.
type AbortedTxn struct {
	ProducerID, FirstOffset int64
}

// FetchBroker is where a new leader can be reached.
type FetchBroker struct {
	NodeID int32
	Host   string
	Port   int32
	Rack   *string
}

// NewFetchPartition gives a partition without records, in which everything optional is absent.
func NewFetchPartition(partition int32) FetchPartition {
	return FetchPartition{
		Partition: partition, HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1,
		PreferredReadReplica: -1, DivergingEpoch: -1, DivergingEndOffset: -1, LeaderID: -1, LeaderEpoch: -1,
	}
}

// EncodeFetch encodes a fetch response for h: bytes, and between them the partitions' records as they lie in
// their files. The ranges of resp belong to the result, whose OnSent releases them.
func EncodeFetch(h Header, resp *FetchResponse) Response {
	size, partitions := fetchSizeHint(resp)
	e := fetchEncoder{
		version: h.Version, flexible: h.Version >= fetchFlexible,
		dst: GetBuffer(size), ranges: make([]placedRange, 0, partitions),
	}
	e.dst = appendResponseHeader(e.dst, h, e.flexible)
	e.response(resp)
	return e.finish()
}

// Fetch versions at which its response changes.
const (
	fetchThrottle         = 1
	fetchTransactions     = 4
	fetchLogStart         = 5
	fetchSessions         = 7
	fetchPreferredReplica = 11
	fetchFlexible         = 12
	fetchTopicIDs         = 13
	fetchEndpoints        = 16
)

// fetchEncoder writes all bytes of a response into one buffer, dst, and remembers where ranges go in between.
type fetchEncoder struct {
	version  int16
	flexible bool
	dst      []byte
	ranges   []placedRange
}

// placedRange is a range that goes in front of dst[at].
type placedRange struct {
	at      int
	records vfs.FileRange
}

// fetchSizeHint guesses the bytes around the ranges, and counts the partitions.
func fetchSizeHint(resp *FetchResponse) (size, partitions int) {
	size = 64
	for i := range resp.Topics {
		size += 32 + len(resp.Topics[i].Topic) + 80*len(resp.Topics[i].Partitions)
		partitions += len(resp.Topics[i].Partitions)
	}
	return size, partitions
}

func (e *fetchEncoder) response(resp *FetchResponse) {
	if e.version >= fetchThrottle {
		e.int32(resp.ThrottleMs)
	}
	if e.version >= fetchSessions {
		e.int16(resp.ErrorCode)
		e.int32(resp.SessionID)
	}
	e.arrayLen(len(resp.Topics))
	for i := range resp.Topics {
		e.topic(&resp.Topics[i])
	}
	if !e.flexible {
		return
	}
	if e.version < fetchEndpoints || len(resp.Brokers) == 0 {
		e.noTags()
		return
	}
	e.byte(1) // one tagged field, number 0
	e.tagged(0, func(e *fetchEncoder) { e.brokers(resp.Brokers) })
}

func (e *fetchEncoder) topic(topic *FetchTopic) {
	if e.version >= fetchTopicIDs {
		e.dst = append(e.dst, topic.TopicID[:]...)
	} else {
		e.string(topic.Topic)
	}
	e.arrayLen(len(topic.Partitions))
	for i := range topic.Partitions {
		e.partition(&topic.Partitions[i])
	}
	e.noTags()
}

func (e *fetchEncoder) partition(p *FetchPartition) {
	e.int32(p.Partition)
	e.int16(p.ErrorCode)
	e.int64(p.HighWatermark)
	if e.version >= fetchTransactions {
		e.transactions(p)
	}
	if e.version >= fetchPreferredReplica {
		e.int32(p.PreferredReadReplica)
	}
	e.records(p.Records)
	e.partitionTags(p)
}

func (e *fetchEncoder) transactions(p *FetchPartition) {
	e.int64(p.LastStableOffset)
	if e.version >= fetchLogStart {
		e.int64(p.LogStartOffset)
	}
	if p.Aborted == nil {
		e.nullArray()
	} else {
		e.arrayLen(len(p.Aborted))
	}
	for _, aborted := range p.Aborted {
		e.int64(aborted.ProducerID)
		e.int64(aborted.FirstOffset)
		e.noTags()
	}
}

// records are never null: a partition without any has an empty set.
func (e *fetchEncoder) records(r vfs.FileRange) {
	n := max(r.Length, 0)
	if e.flexible {
		e.dst = binary.AppendUvarint(e.dst, uint64(n)+1)
	} else {
		e.int32(int32(n))
	}
	e.ranges = append(e.ranges, placedRange{at: len(e.dst), records: r})
}

func (e *fetchEncoder) partitionTags(p *FetchPartition) {
	if !e.flexible {
		return
	}
	diverging := p.DivergingEpoch != -1 || p.DivergingEndOffset != -1
	leader := p.LeaderID != -1 || p.LeaderEpoch != -1
	e.byte(count(diverging) + count(leader))
	if diverging {
		e.tagged(0, func(e *fetchEncoder) {
			e.int32(p.DivergingEpoch)
			e.int64(p.DivergingEndOffset)
			e.noTags()
		})
	}
	if leader {
		e.tagged(1, func(e *fetchEncoder) {
			e.int32(p.LeaderID)
			e.int32(p.LeaderEpoch)
			e.noTags()
		})
	}
}

func (e *fetchEncoder) brokers(brokers []FetchBroker) {
	e.arrayLen(len(brokers))
	for i := range brokers {
		b := &brokers[i]
		e.int32(b.NodeID)
		e.string(b.Host)
		e.int32(b.Port)
		if b.Rack == nil {
			e.byte(0)
		} else {
			e.string(*b.Rack)
		}
		e.noTags()
	}
}

// tagged appends a tagged field. Its size stands in front and has a variable length, so the content is written
// aside first; it holds no ranges.
func (e *fetchEncoder) tagged(number byte, content func(*fetchEncoder)) {
	aside := fetchEncoder{version: e.version, flexible: true}
	content(&aside)
	e.byte(number)
	e.dst = binary.AppendUvarint(e.dst, uint64(len(aside.dst)))
	e.dst = append(e.dst, aside.dst...)
}

// finish cuts the buffer at the ranges.
func (e *fetchEncoder) finish() Response {
	buf, ranges := e.dst, e.ranges
	parts := make([]Part, 0, 2*len(ranges)+1)
	size, from := int64(len(buf)), 0
	for _, placed := range ranges {
		if placed.records.Length <= 0 {
			continue
		}
		parts = append(parts, Part{Bytes: buf[from:placed.at]}, Part{Range: placed.records})
		from = placed.at
		size += placed.records.Length
	}
	parts = append(parts, Part{Bytes: buf[from:]})
	binary.BigEndian.PutUint32(buf, uint32(size-4))
	return Response{Parts: parts, OnSent: func() {
		PutBuffer(buf)
		for _, placed := range ranges {
			placed.records.Release()
		}
	}}
}

func (e *fetchEncoder) byte(v byte)   { e.dst = append(e.dst, v) }
func (e *fetchEncoder) int16(v int16) { e.dst = binary.BigEndian.AppendUint16(e.dst, uint16(v)) }
func (e *fetchEncoder) int32(v int32) { e.dst = binary.BigEndian.AppendUint32(e.dst, uint32(v)) }
func (e *fetchEncoder) int64(v int64) { e.dst = binary.BigEndian.AppendUint64(e.dst, uint64(v)) }

func (e *fetchEncoder) string(s string) {
	if e.flexible {
		e.dst = binary.AppendUvarint(e.dst, uint64(len(s))+1)
	} else {
		e.int16(int16(len(s)))
	}
	e.dst = append(e.dst, s...)
}

func (e *fetchEncoder) arrayLen(n int) {
	if e.flexible {
		e.dst = binary.AppendUvarint(e.dst, uint64(n)+1)
	} else {
		e.int32(int32(n))
	}
}

func (e *fetchEncoder) nullArray() {
	if e.flexible {
		e.byte(0)
	} else {
		e.int32(-1)
	}
}

func (e *fetchEncoder) noTags() {
	if e.flexible {
		e.byte(0)
	}
}

func count(present bool) byte {
	if present {
		return 1
	}
	return 0
}
