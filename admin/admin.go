package admin

import (
	"context"

	"github.com/sirupsen/logrus"

	"barnabas/zkstate"
)

// Config is what an Admin needs to know.
type Config struct {
	BrokerID                 int32 // of the broker that serves the requests; -1 in a tool
	DefaultPartitions        int32 // num.partitions
	DefaultReplicationFactor int16 // default.replication.factor
	TopicIDs                 bool  // inter.broker.protocol.version 2.8 or later: new topics get an id
	DeleteTopics             bool  // delete.topic.enable
	Table                    ConfigTable
	Intn                     func(n int) int // random in [0, n): where assignments begin
	Log                      *logrus.Entry
}

// Admin administers the cluster behind a ZooKeeper client.
type Admin struct {
	cfg Config
	zk  *zkstate.Client
}

// New makes an Admin.
func New(cfg Config, zk *zkstate.Client) *Admin { return &Admin{cfg: cfg, zk: zk} }

// CreateTopics creates topics, or only says whether it would. Each is judged by itself; names that stand twice in one
// request are the caller's to refuse.
func (a *Admin) CreateTopics(ctx context.Context, specs []TopicSpec, validateOnly bool) []TopicResult {
	panic("not built")
}

// CreatePartitions enlarges topics.
func (a *Admin) CreatePartitions(ctx context.Context, specs []PartitionsSpec, validateOnly bool) []PartitionsResult {
	panic("not built")
}

// DeleteTopics marks topics for deletion; the controller deletes them.
func (a *Admin) DeleteTopics(ctx context.Context, names []string) []DeleteResult { panic("not built") }

// AlterConfigs replaces configurations of topics and brokers.
func (a *Admin) AlterConfigs(ctx context.Context, specs []AlterSpec, validateOnly bool) []AlterResult {
	panic("not built")
}

// IncrementalAlterConfigs changes single keys of configurations of topics and brokers.
func (a *Admin) IncrementalAlterConfigs(ctx context.Context, specs []IncrementalSpec, validateOnly bool) []AlterResult {
	panic("not built")
}

// DescribeConfigs tells effective values and where they come from.
func (a *Admin) DescribeConfigs(ctx context.Context, specs []DescribeSpec, o DescribeOptions) []DescribeResult {
	panic("not built")
}
