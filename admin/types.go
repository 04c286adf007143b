package admin

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// TopicSpec asks for one topic (CreateTopics).
type TopicSpec struct {
	Name              string
	Partitions        int32 // -1: the cluster's default, or Assignment is given
	ReplicationFactor int16 // -1: the cluster's default, or Assignment is given
	Assignment        map[int32][]int32
	Configs           []ConfigEntry
	Permit            Permit
}

// Permit is asked when all has been checked and partitions are about to be written; its error refuses them. nil permits all.
type Permit func(partitions int) error

func (p Permit) ask(partitions int) error {
	if p == nil {
		return nil
	}
	return p(partitions)
}

// ConfigEntry is one setting; a nil value is the protocol's null.
type ConfigEntry struct {
	Name  string
	Value *string
}

// TopicResult answers one TopicSpec. All but Name and Err are set only when Err is nil.
type TopicResult struct {
	Name              string
	ID                [16]byte // zero when only validated, or before inter.broker.protocol.version 2.8
	Err               error
	NumPartitions     int32
	ReplicationFactor int16
	Configs           []ConfigDescription // effective configuration, without synonyms and documentation
}

// PartitionsSpec asks to enlarge one topic to Count partitions (CreatePartitions).
type PartitionsSpec struct {
	Name       string
	Count      int32
	Assignment [][]int32 // of the added partitions; nil: to be chosen
	Permit     Permit    // of the added partitions
}

// PartitionsResult answers one PartitionsSpec.
type PartitionsResult struct {
	Name  string
	Err   error
	Count int32 // partitions that the topic has now, or would have
}

// DeleteResult answers the marking of one topic for deletion. Marking twice is no error; Already tells of it.
type DeleteResult struct {
	Name    string
	Err     error
	Already bool
}

// ResourceType is the protocol's type of a configured thing.
type ResourceType int8

// The types that have configurations.
const (
	ResourceTopic         ResourceType = 2
	ResourceBroker        ResourceType = 4
	ResourceBrokerLogger  ResourceType = 8
	ResourceClientMetrics ResourceType = 16 // what clients push metrics for (KIP-714): only clusters without ZooKeeper have such
)

// Resource is a topic, a broker (its id as text), or all brokers (ResourceBroker with the empty name).
type Resource struct {
	Type ResourceType
	Name string
}

// AlterSpec replaces the whole configuration of a resource (AlterConfigs).
type AlterSpec struct {
	Resource Resource
	Configs  []ConfigEntry
}

// OpType is what IncrementalAlterConfigs does to one key, as the protocol numbers it.
type OpType int8

// The operations of KIP-339; append and subtract are for lists.
const (
	OpSet OpType = iota
	OpDelete
	OpAppend
	OpSubtract
)

// ConfigOp is one change of one key.
type ConfigOp struct {
	Name  string
	Op    OpType
	Value *string
}

// IncrementalSpec changes some keys of a resource (IncrementalAlterConfigs).
type IncrementalSpec struct {
	Resource Resource
	Ops      []ConfigOp
}

// AlterResult answers an AlterSpec or an IncrementalSpec.
type AlterResult struct {
	Resource Resource
	Err      error
}

// DescribeSpec asks for a resource's configuration: the keys named, or all when Keys is nil.
type DescribeSpec struct {
	Resource Resource
	Keys     []string
}

// DescribeOptions says what the answer of DescribeConfigs has beside the values.
type DescribeOptions struct{ Synonyms, Documentation bool }

// DescribeResult answers a DescribeSpec.
type DescribeResult struct {
	Resource Resource
	Err      error
	Configs  []ConfigDescription
}

// ConfigSource says where a value comes from, as the protocol numbers it.
type ConfigSource int8

// The sources of KIP-226, in the order of precedence except for the first two, which concern topics and loggers.
const (
	SourceUnknown              ConfigSource = 0
	SourceTopic                ConfigSource = 1
	SourceDynamicBroker        ConfigSource = 2
	SourceDynamicDefaultBroker ConfigSource = 3
	SourceStaticBroker         ConfigSource = 4
	SourceDefault              ConfigSource = 5
	SourceBrokerLogger         ConfigSource = 6
)

// ConfigDescription is one key of DescribeConfigs, versions 0 to 4.
type ConfigDescription struct {
	Name          string
	Value         *string // nil for a sensitive value, and for one that has no value
	ReadOnly      bool
	Source        ConfigSource
	Sensitive     bool
	Synonyms      []Synonym // in the order of precedence
	Type          ConfigType
	Documentation *string
}

// Synonym is a place that has, or could have had, the value of a key.
type Synonym struct {
	Name   string
	Value  *string
	Source ConfigSource
}

// Error is a Kafka error code with the message that goes to the client beside it.
type Error struct {
	Code    *kerr.Error
	Message string
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Code }

func failed(code *kerr.Error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
