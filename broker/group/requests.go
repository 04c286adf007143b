package group

import "barnabas/broker/coordinator"

// Requests and results of the coordinator, in the terms of Kafka's protocol.
// An error in a result is, or wraps, a *kerr.Error; nil is success.

// NoGeneration is the generation in answers that have none, and in commits of
// those who are no members.
const NoGeneration = int32(-1)

// NoTime stands for a timestamp that is not given.
const NoTime = int64(-1)

// TopicPartition names what an offset is committed for.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Protocol is one protocol that a member can speak, an assignor of consumers for
// example, with what the member has to say in it.
type Protocol struct {
	Name     string
	Metadata []byte
}

// JoinRequest asks for membership in the next generation.
type JoinRequest struct {
	Group              string
	MemberID           string // empty: new
	InstanceID         *string
	RequireMemberID    bool // version 4 and later without an instance id: two steps (KIP-394)
	CanSkipAssignment  bool // version 9 and later: a static leader can be told not to assign (KIP-814)
	ClientID           string
	ClientHost         string
	RebalanceTimeoutMs int32
	SessionTimeoutMs   int32
	ProtocolType       string
	Protocols          []Protocol // in the order of preference
	Reason             string
}

// JoinResult answers a join.
type JoinResult struct {
	Err            error
	Generation     int32
	ProtocolType   *string
	Protocol       *string
	LeaderID       string
	SkipAssignment bool
	MemberID       string
	Members        []JoinedMember // for the leader alone
}

// JoinedMember is a member as the leader sees it.
type JoinedMember struct {
	MemberID   string
	InstanceID *string
	Metadata   []byte
}

// SyncRequest asks for the assignment, and brings it if it is the leader's.
type SyncRequest struct {
	Group        string
	Generation   int32
	MemberID     string
	InstanceID   *string
	ProtocolType *string // nil: not compared (before version 5)
	Protocol     *string
	Assignments  []Assignment
}

// Assignment is what one member has to do.
type Assignment struct {
	MemberID string
	Data     []byte
}

// SyncResult answers a sync.
type SyncResult struct {
	Err          error
	ProtocolType *string
	Protocol     *string
	Assignment   []byte
}

// HeartbeatRequest says that a member lives.
type HeartbeatRequest struct {
	Group      string
	Generation int32
	MemberID   string
	InstanceID *string
}

// LeaveRequest takes members out, by their ids or, with an empty member id, by
// their instance ids (KIP-345).
type LeaveRequest struct {
	Group   string
	Members []LeavingMember
}

// LeavingMember is one member to take out.
type LeavingMember struct {
	MemberID   string
	InstanceID *string
	Reason     string
}

// LeaveResult answers a leave; Members has an error or nil for each one asked.
type LeaveResult struct {
	Err     error
	Members []error
}

// CommitRequest stores offsets.
type CommitRequest struct {
	Group      string
	Generation int32 // NoGeneration: not a member
	MemberID   string
	InstanceID *string
	Offsets    []Commit
	Producer   *Producer // not nil: part of its transaction
}

// Producer is the transactional producer of a commit.
type Producer = coordinator.Producer

// Commit is an offset to store.
type Commit struct {
	TopicPartition
	Offset      int64
	LeaderEpoch int32 // -1: not known
	Metadata    string
	TimeMs      int64 // NoTime: now
	RetentionMs int64 // NoTime: as configured
}

// CommitResult has the outcome for each offset, in the order of the request.
type CommitResult struct{ Errs []error }

// FetchOffsetsRequest asks for committed offsets.
type FetchOffsetsRequest struct {
	Group         string
	All           bool // of every partition that has one
	Partitions    []TopicPartition
	RequireStable bool // not those that a transaction may still change (KIP-447)
}

// FetchOffsetsResult answers it.
type FetchOffsetsResult struct {
	Err     error
	Offsets []FetchedOffset // in the order of the request
}

// FetchedOffset is one committed offset; Offset -1 when there is none.
type FetchedOffset struct {
	TopicPartition
	Err         error
	Offset      int64
	LeaderEpoch int32
	Metadata    string
}

// Description is a group as DescribeGroups shows it.
type Description struct {
	Err          error
	Group        string
	State        string
	ProtocolType string
	Protocol     string
	Members      []DescribedMember
}

// DescribedMember is one member of a Description. What it has to say and to do
// is shown while the group is stable.
type DescribedMember struct {
	MemberID   string
	InstanceID *string
	ClientID   string
	ClientHost string
	Metadata   []byte
	Assignment []byte
}

// Listed is a group as ListGroups shows it.
type Listed struct {
	Group        string
	ProtocolType string
	State        State
}

// DeleteOffsetsResult answers a removal of offsets. Err is for all, and then
// Errs is empty; Errs are in the order of the request.
type DeleteOffsetsResult struct {
	Err  error
	Errs []error
}
