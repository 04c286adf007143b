package partition

import (
	"time"

	"github.com/sirupsen/logrus"

	"barnabas/broker/commitlog"
	"barnabas/broker/vfs"
)

// None stands for "no broker", "no epoch" and "no offset" wherever Kafka's
// protocol writes -1.
const None = -1

// Replica ids of a reader that is no follower (FetchRequest.ReplicaID).
const (
	ConsumerReplica   = int32(-1) // an ordinary consumer
	DebuggingConsumer = int32(-2) // ListOffsets: answered by followers too, unbounded; Fetch: a consumer
)

// FlushPolicy is barnabas.flush.policy.
type FlushPolicy int8

const (
	// FlushAsKafka trusts replication alone; the system writes out what it likes when it
	// likes.
	FlushAsKafka FlushPolicy = iota
	// FlushThinISR flushes what a leader commits while it is the only member of an ISR
	// that could be larger.
	FlushThinISR
	// FlushAlways flushes before anything is committed: a leader counts itself, and a
	// follower asks for more, only by what is on the disk.
	FlushAlways
)

// Config is what a Manager needs to know of its broker.
type Config struct {
	BrokerID int32

	// ReplicaLagTimeMax is replica.lag.time.max.ms: a follower that has not
	// reached the leader's log end for that long leaves the ISR.
	ReplicaLagTimeMax time.Duration

	// Flush says when a log has to be on the disk before its records count as
	// committed: see thin.go.
	Flush FlushPolicy

	// Selector chooses the replica a consumer should read from (KIP-392);
	// nil means the leader always.
	Selector Selector

	// MaxWaiting bounds the parked requests of each kind; one more is answered
	// at once with what there is. Zero means 1,000,000.
	MaxWaiting int

	// InMetadata tells that a partition exists in the cluster although this
	// broker holds no replica of it: clients are then sent elsewhere
	// (NOT_LEADER_OR_FOLLOWER) instead of told that it does not exist. nil: never.
	InMetadata func(commitlog.TopicPartition) bool

	// OnRoles, if set, is told after each applied order which partitions this
	// broker now leads or follows. Coordinators load and unload by it. It must
	// not block, nor give an order itself: the next order waits for it.
	OnRoles func([]Role)

	// OnReturn, if set, is told when replicas that were offline can be put into
	// service again: the controller has to be asked for orders. It must not block.
	OnReturn func()

	// Movers fill the logs of replicas that move between log directories. nil:
	// nobody does.
	Movers Movers

	FS  vfs.FS // for the sizes of volumes in LogDirs
	Log *logrus.Entry
	Now func() time.Time
}

// Role is one change of what this broker is to a partition.
type Role struct {
	TP          commitlog.TopicPartition
	Leader      bool // false: follower, or replica stopped
	LeaderEpoch int32
	Stopped     bool
	Deleted     bool
}

// ISRChange asks for a new in-sync set of one partition that this broker leads.
type ISRChange struct {
	TP              commitlog.TopicPartition
	TopicID         commitlog.TopicID
	LeaderID        int32
	LeaderEpoch     int32
	ControllerEpoch int32
	PartitionEpoch  int32 // expected: partition epoch, or version of the state znode
	ISR             []ISRMember
	Recovering      bool // leader recovery state (KIP-704)

	serial int64 // which flight of its core this is
	alone  bool  // nobody but the leader is left: flush before asking
}

// ISRMember is a replica with the broker epoch under which it fetched; -1 if
// the leader does not know it (KIP-903).
type ISRMember struct {
	ID          int32
	BrokerEpoch int64
}

// ISRChanged is the state that now stands in ZooKeeper (or at the controller).
// After a lost answer the changer reads the state back; when it equals what was
// asked, that is success. The zero value, without members, is no state.
type ISRChanged struct {
	LeaderID       int32
	LeaderEpoch    int32
	ISR            []int32
	PartitionEpoch int32
	Recovering     bool
}

// ISRChanger carries an ISR change out, through AlterPartition or by writing
// the state znode. done is called exactly once, from any goroutine, maybe
// before ChangeISR returns. An error that wraps a kerr error is the
// controller's verdict (INVALID_UPDATE_VERSION: the expected partition epoch is
// not the current one; FENCED_LEADER_EPOCH; INELIGIBLE_REPLICA; ...). When the
// verdict comes with the current state (INVALID_UPDATE_VERSION after a read
// back), ISRChanged holds it; else it is the zero value.
type ISRChanger interface {
	ChangeISR(req ISRChange, done func(ISRChanged, error))
}

// Endpoint is where a broker is reached on the inter-broker listener.
type Endpoint struct {
	ID   int32
	Host string
	Port int32
}

// BrokerInfo is a live broker as the cluster's metadata shows it.
type BrokerInfo struct {
	Endpoint Endpoint // inter-broker listener
	Epoch    int64    // -1 if not known
	Rack     string   // empty if none
}

// FetchFrom tells the fetchers to follow a leader with one partition.
type FetchFrom struct {
	Partition   *Partition
	TopicID     commitlog.TopicID
	Leader      Endpoint
	LeaderEpoch int32
}

// Fetchers pulls records of followed partitions from their leaders.
type Fetchers interface {
	// Add starts fetching, or goes on at another leader or in another epoch.
	Add(from []FetchFrom)
	// Remove stops fetching. When it returns, no append or truncation by a
	// fetcher for these partitions is running or will start.
	Remove(tps []commitlog.TopicPartition)
}

// ProduceRequest is one client's records for some partitions.
type ProduceRequest struct {
	Acks            int16 // 0, 1, -1
	Timeout         time.Duration
	TransactionalID *string
	Version         int16
	Origin          commitlog.Origin
	// RequireVerification refuses the first write of a transaction to a partition
	// without the guard of VerifyTransaction (KIP-890).
	RequireVerification bool
	Partitions          []ProducePartition
}

// ProducePartition holds the records for one partition. Offsets and leader
// epochs are stamped into Records in place.
type ProducePartition struct {
	Topic     string
	Partition int32
	Records   []byte
	Err       error // preset by the caller (authorisation, unknown topic): reported as it is

	// Verification is the guard that Manager.VerifyTransaction gave for the first
	// write of a transaction here; nil otherwise (KIP-890).
	Verification *commitlog.VerificationGuard
}

// ProduceResult answers one ProducePartition; results are in request order.
type ProduceResult struct {
	Topic          string
	Partition      int32
	Err            error
	ErrorMessage   string
	BaseOffset     int64
	LogAppendTime  int64 // -1 unless the topic stamps append time
	LogStartOffset int64
	RecordErrors   []commitlog.RecordError
	LeaderID       int32 // -1 unless Err is NOT_LEADER_OR_FOLLOWER (KIP-951)
	LeaderEpoch    int32
}

// FetchRequest is one read over some partitions, by a consumer or a follower.
type FetchRequest struct {
	ReplicaID     int32
	ReplicaEpoch  int64 // -1 below Fetch v15
	Version       int16
	MaxWait       time.Duration
	MinBytes      int32
	MaxBytes      int32
	ReadCommitted bool
	RackID        string
	ClientID      string
	ClientAddr    string
	Partitions    []FetchPartition
}

// FetchPartition is where to read one partition.
type FetchPartition struct {
	Topic              string
	TopicID            commitlog.TopicID
	Partition          int32
	FetchOffset        int64
	LogStartOffset     int64 // the follower's log start; -1 from consumers
	MaxBytes           int32
	CurrentLeaderEpoch int32 // -1: not fenced
	LastFetchedEpoch   int32 // -1: no divergence check
	Err                error // preset by the caller (unknown topic id, authorisation): reported as it is
}

// FetchResult answers one FetchPartition; results are in request order. The
// caller releases Records.
type FetchResult struct {
	Topic                string
	TopicID              commitlog.TopicID
	Partition            int32
	Err                  error
	HighWatermark        int64
	LastStableOffset     int64
	LogStartOffset       int64
	Aborted              []commitlog.AbortedTxn // nil: null on the wire
	PreferredReadReplica int32
	DivergingEpoch       int32
	DivergingEndOffset   int64
	LeaderID             int32 // -1 unless the error says where to go (KIP-951)
	LeaderEpoch          int32
	Records              vfs.FileRange // Length 0: none

	replica *Partition // that was read, or that refused; nil: there is none here
}

// DeleteRecordsResult is the low watermark all live replicas reached, or why not.
type DeleteRecordsResult struct {
	LowWatermark int64
	Err          error
}

// LogDirDescription is one log directory with its partitions.
type LogDirDescription struct {
	Path       string
	Err        error
	Total      int64 // bytes of the volume; -1 if not known
	Usable     int64
	Partitions []LogDirPartition
}

// LogDirPartition is one log of a directory.
type LogDirPartition struct {
	TP        commitlog.TopicPartition
	Size      int64
	OffsetLag int64
	IsFuture  bool
}

// Types of LeaderAndIsr request (KIP-516; field of version 5).
const (
	RequestUnknown     = int8(0)
	RequestIncremental = int8(1)
	RequestFull        = int8(2)
)

// LeaderAndISR is the controller's order about leaders and in-sync sets.
type LeaderAndISR struct {
	ControllerID    int32
	ControllerEpoch int32
	BrokerEpoch     int64 // -1: not checked
	Type            int8
	Version         int16
	Partitions      []LeaderAndISRPartition
	LiveLeaders     map[int32]Endpoint
}

// LeaderAndISRPartition is the state of one partition in such an order.
type LeaderAndISRPartition struct {
	Topic           string
	TopicID         commitlog.TopicID
	Partition       int32
	ControllerEpoch int32
	Leader          int32
	LeaderEpoch     int32
	ISR             []int32
	PartitionEpoch  int32
	Replicas        []int32
	Adding          []int32
	Removing        []int32
	IsNew           bool
	LeaderRecovery  int8
}

// PartitionError is the outcome for one partition of a controller's order; Err
// nil is success.
type PartitionError struct {
	TP      commitlog.TopicPartition
	TopicID commitlog.TopicID
	Err     error
}

// StopReplicas is the controller's order to stop following or to delete.
type StopReplicas struct {
	ControllerID    int32
	ControllerEpoch int32
	BrokerEpoch     int64
	Version         int16
	Partitions      []StopReplica
}

// Leader epochs with a meaning of their own in StopReplica (KIP-570).
const (
	EpochDuringDelete = int32(-2) // the topic is being deleted: any epoch matches
	EpochNotGiven     = int32(-1) // an order of version 0 to 2: not compared
)

// StopReplica names one replica to stop.
type StopReplica struct {
	Topic       string
	Partition   int32
	LeaderEpoch int32
	Delete      bool
}
