package commitlog

// Origin says who wrote the records of an append.
type Origin int8

// The origins. Only a client's records are held to the rules for clients.
const (
	Client Origin = iota
	Coordinator
	Replication
)

// AppendOptions says how AppendAsLeader has to treat the records.
type AppendOptions struct {
	Origin        Origin
	RequireV2     bool // a request of version 3 or later may carry nothing older than batches of magic 2
	InterBrokerV2 bool
	Acks          int16
	Verification  *VerificationGuard // from VerifyTransaction; nil: not verified
}

// VerificationGuard proves that the coordinator was asked whether a producer's transaction holds this partition (KIP-890).
type VerificationGuard struct{ producerID int64 }

// RecordError names a record that made its batch be refused (KIP-467).
type RecordError struct {
	BatchIndex int32
	Message    string
}

// AppendInfo is what became of an append.
type AppendInfo struct {
	FirstOffset          int64 // -1 when nothing was appended
	LastOffset           int64
	LogAppendTime        int64 // -1 unless the topic stamps records
	LogStartOffset       int64
	MaxTimestamp         int64
	OffsetOfMaxTimestamp int64
	Duplicate            bool // the batch was already in the log; FirstOffset and LastOffset are those of then
	RecordErrors         []RecordError
	ErrorMessage         string
	Bytes                int
	Count                int
	End                  Position // the log's end after the append
}

// AppendAsLeader validates the records, stamps offsets, leader epoch and (where the topic says so) time into them in
// place, and writes them. Errors wrap the error code for the client; RecordErrors and ErrorMessage of AppendInfo are
// set beside an error where Kafka sends them.
func (l *Log) AppendAsLeader(records []byte, leaderEpoch int32, o AppendOptions) (AppendInfo, error) {
	panic("commitlog: AppendAsLeader")
}

// AppendAsFollower writes batches that already have their offsets, as fetched from the leader.
func (l *Log) AppendAsFollower(records []byte) (AppendInfo, error) {
	panic("commitlog: AppendAsFollower")
}

// VerifyTransaction returns the guard that the first write of a producer's transaction has to carry, nil when the
// producer's transaction is already open here.
func (l *Log) VerifyTransaction(producerID int64, sequence int32, epoch int16) *VerificationGuard {
	panic("commitlog: VerifyTransaction")
}
