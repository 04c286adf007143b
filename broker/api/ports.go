package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/broker/commitlog"
	"barnabas/broker/group"
	"barnabas/broker/partition"
	"barnabas/broker/token"
	"barnabas/broker/txn"
)

// Replicas is what this package asks of the partitions that live here;
// *partition.Manager is one.
type Replicas interface {
	// Produce does not touch the records any more when it has returned, even if
	// done is called later.
	Produce(req *partition.ProduceRequest, done func([]partition.ProduceResult))
	Fetch(req *partition.FetchRequest, done func([]partition.FetchResult))
	ListOffset(topic string, partition int32, timestamp int64, readCommitted bool, replicaID, currentLeaderEpoch int32, version int16) (ts, offset int64, leaderEpoch int32, err error)
	OffsetsBefore(topic string, partition int32, timestamp int64, limit int, replicaID int32) ([]int64, error)
	OffsetForLeaderEpoch(topic string, partition, currentLeaderEpoch, leaderEpoch int32) (epoch int32, endOffset int64, err error)
	DeleteRecords(offsets map[commitlog.TopicPartition]int64, timeout time.Duration, done func(map[commitlog.TopicPartition]partition.DeleteRecordsResult))
	LogDirs() []partition.LogDirDescription
	AlterLogDirs(changes []partition.LogDirChange) []partition.PartitionError
	ApplyLeaderAndISR(req partition.LeaderAndISR) (all error, each []partition.PartitionError)
	StopReplicas(req partition.StopReplicas) (all error, each []partition.PartitionError)
	ControllerSeen(controllerEpoch int32) error
	TakenAway(told []partition.Assigned)
	Partition(topic string, partition int32) *partition.Partition // nil: not here
	VerifyTransaction(topic string, partition int32, producerID int64, sequence int32, epoch int16) (*commitlog.VerificationGuard, error)
	SetAliveBrokers(alive map[int32]partition.BrokerInfo)
}

// Admin reads and changes the cluster's configuration in ZooKeeper; *admin.Admin
// is one. Its methods block for the round trips that they need.
type Admin interface {
	CreateTopics(ctx context.Context, specs []admin.TopicSpec, validateOnly bool) []admin.TopicResult
	CreatePartitions(ctx context.Context, specs []admin.PartitionsSpec, validateOnly bool) []admin.PartitionsResult
	DeleteTopics(ctx context.Context, names []string) []admin.DeleteResult
	AlterConfigs(ctx context.Context, specs []admin.AlterSpec, validateOnly bool) []admin.AlterResult
	IncrementalAlterConfigs(ctx context.Context, specs []admin.IncrementalSpec, validateOnly bool) []admin.AlterResult
	DescribeConfigs(ctx context.Context, specs []admin.DescribeSpec, o admin.DescribeOptions) []admin.DescribeResult
	DescribeClientQuotas(ctx context.Context, filters []admin.QuotaFilter, strict bool) ([]admin.QuotaDescription, error)
	AlterClientQuotas(ctx context.Context, specs []admin.QuotaSpec, validateOnly bool) []admin.QuotaResult
	DescribeUserScramCredentials(ctx context.Context, users []string) ([]admin.ScramDescription, error)
	AlterUserScramCredentials(ctx context.Context, upsertions []admin.ScramUpsertion, deletions []admin.ScramDeletion) []admin.ScramResult
}

// Controller is the cluster's controller as far as it is this process.
type Controller interface {
	// IsActive tells whether this broker is the controller now.
	IsActive() bool
	// Do answers ControlledShutdown, AlterPartition, ElectLeaders,
	// AlterPartitionReassignments and ListPartitionReassignments, with
	// NOT_CONTROLLER where this broker is not the controller. done is called
	// exactly once, from any goroutine.
	Do(req kmsg.Request, done func(kmsg.Response))
}

// ProducerIDs hands out ids for idempotent producers, each of them once in the
// life of the cluster. Next may ask ZooKeeper or the controller for a new
// block, and fails with a retriable error while it cannot.
type ProducerIDs interface {
	Next(ctx context.Context) (int64, error)
}

// BrokerEpoch tells the czxid of this broker's registration, by which orders
// meant for an earlier life of it are recognised (KIP-380); -1 while it is not
// registered.
type BrokerEpoch interface {
	BrokerEpoch() int64
}

// Registrations tells the epoch under which a broker is registered now, by which
// a follower that restarted is told from the one before (KIP-903); -1 while it
// is not known.
type Registrations interface {
	EpochOf(broker int32) int64
}

// Groups is the coordinator of groups; *group.Coordinator is one.
type Groups interface {
	PartitionFor(name string) int32
	Join(req *group.JoinRequest, reply func(group.JoinResult))
	Sync(req *group.SyncRequest, reply func(group.SyncResult))
	Heartbeat(req *group.HeartbeatRequest, reply func(error))
	Leave(req *group.LeaveRequest, reply func(group.LeaveResult))
	Commit(req *group.CommitRequest, reply func(group.CommitResult))
	FetchOffsets(req *group.FetchOffsetsRequest, reply func(group.FetchOffsetsResult))
	Describe(name string, reply func(group.Description))
	List(reply func([]group.Listed, error))
	DeleteGroup(name string, reply func(error))
	DeleteOffsets(name string, partitions []group.TopicPartition, reply func(group.DeleteOffsetsResult))
	TopicsDeleted(partitions []group.TopicPartition)
	EndTransaction(partition int32, producerID int64, commit bool)
}

// Authorizer decides who may do what, and keeps the access lists that it decides
// by. Its decisions are asked for by every request and never wait; Create and
// Delete block for the round trips that they need. A nil Authorizer, which is the
// default, allows everything and keeps nothing.
type Authorizer interface {
	Allows(who acl.Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType, name string) bool
	// AllowsAny tells whether there can be a resource of the type on which it
	// allows the operation (KIP-679).
	AllowsAny(who acl.Subject, op kmsg.ACLOperation, resource kmsg.ACLResourceType) bool
	Find(acl.Filter) []acl.Binding
	Create(context.Context, []acl.Binding) []error
	Delete(context.Context, []acl.Filter) [][]admin.DeletedACL
}

// Tokens keeps the delegation tokens of the cluster (KIP-48).
type Tokens interface {
	// Issue makes a token of who asked for it, its owner and its renewers; lifetime is as
	// the client asked for it.
	Issue(ctx context.Context, asked token.Token, lifetime int64) (token.Token, error)
	// Renew and Expire give the time at which the token of that HMAC ends now. Errors:
	// DELEGATION_TOKEN_NOT_FOUND, and those of token.Rules.
	Renew(ctx context.Context, who acl.Principal, hmac []byte, period int64) (expires int64, err error)
	Expire(ctx context.Context, who acl.Principal, hmac []byte, period int64) (expires int64, err error)
	// All lists every token, by id.
	All() []token.Token
	HMAC(id string) []byte
}

// Transactions is the coordinator of transactions; *txn.Coordinator is one.
type Transactions interface {
	PartitionFor(id string) int32
	Init(req *txn.InitRequest, reply func(txn.InitResult))
	AddPartitions(req *txn.PartitionsRequest, reply func(error))
	End(req *txn.EndRequest, reply func(error))
	Describe(id string, reply func(txn.Description))
	List(req *txn.ListRequest, reply func([]txn.Listed, error))
	// Verify answers for transactions that are coordinated here, Confirm asks the
	// coordinator wherever it is.
	Verify(req *txn.PartitionsRequest, reply func([]error))
	Confirm(req *txn.PartitionsRequest, reply func([]error))
}

// LegacyOffsets keeps the offsets of clients from before Kafka 0.9 in ZooKeeper.
type LegacyOffsets interface {
	Commit(ctx context.Context, name, topic string, partition int32, offset int64) error
	Fetch(ctx context.Context, name, topic string, partition int32) (offset int64, found bool, err error)
}

var (
	_ Replicas     = (*partition.Manager)(nil)
	_ Groups       = (*group.Coordinator)(nil)
	_ Transactions = (*txn.Coordinator)(nil)
	_ Admin        = (*admin.Admin)(nil)
)
