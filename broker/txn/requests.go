package txn

// Requests and results of the coordinator. An error in a result is, or wraps, a
// *kerr.Error; nil is success.

// What stands for nothing in the protocol.
const (
	NoProducerID    = int64(-1)
	NoProducerEpoch = int16(-1)
	NoTime          = int64(-1)
)

// TopicPartition names a partition of a transaction.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Producer is a producer id and its epoch.
type Producer struct {
	ID    int64
	Epoch int16
}

// InitRequest asks for a producer id and an epoch that fence all earlier ones.
type InitRequest struct {
	ID        string
	TimeoutMs int32     // of its transactions
	Present   *Producer // what the producer has already (KIP-360); nil: nothing
}

// InitResult answers it; the producer is {-1, -1} beside an error.
type InitResult struct {
	Err      error
	Producer Producer
}

// PartitionsRequest adds partitions to a transaction, or asks whether they are
// part of it.
type PartitionsRequest struct {
	ID         string
	Producer   Producer
	Partitions []TopicPartition
}

// EndRequest ends a transaction.
type EndRequest struct {
	ID       string
	Producer Producer
	Commit   bool
}

// Description is an id as DescribeTransactions shows it.
type Description struct {
	Err        error
	ID         string
	Producer   Producer
	State      State
	TimeoutMs  int32
	StartMs    int64
	Partitions []TopicPartition // sorted
}

// Listed is an id as ListTransactions shows it.
type Listed struct {
	ID         string
	ProducerID int64
	State      State
}

// ListRequest says which to list; empty filters let all through.
type ListRequest struct {
	ProducerIDs []int64
	States      []State
	NoState     bool  // a filter was given that no state passes
	LongerMs    int64 // running for more than this; negative: not asked (KIP-994)
}

// Marker is the end of one transaction, for some of its partitions that have one
// leader.
type Marker struct {
	ID               string // empty where the marker was read from a request
	Producer         Producer
	CoordinatorEpoch int32
	Commit           bool
	Partitions       []TopicPartition
}
