package wire

import "barnabas/broker/vfs"

// FetchResponse is a fetch response (versions 4 to 17) whose records are pieces of files.
type FetchResponse struct {
	ThrottleMs int32
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
	LastStableOffset     int64
	LogStartOffset       int64        // since version 5
	Aborted              []AbortedTxn // nil is null, as for a reader of uncommitted records
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
// their files. OnSent of the result releases every range of resp.
func EncodeFetch(h Header, resp *FetchResponse) Response {
	panic("not yet")
}
