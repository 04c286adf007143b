package console

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/admin"
	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/broker/acl"
)

// Cluster is what the console asks brokers and tells them; *cluster.Cluster is one.
type Cluster interface {
	Snapshot(ctx context.Context, now time.Time, thorough bool) (*cluster.Snapshot, error)
	TopicConfig(ctx context.Context, topic string) ([]cluster.DescribedSetting, error)
	BrokerConfig(ctx context.Context, id int32) ([]cluster.DescribedSetting, error)
	Groups(ctx context.Context) ([]cluster.ListedGroup, error)
	DescribeGroups(ctx context.Context, names []string) (kadm.DescribedGroups, error)
	GroupsPartitions(ctx context.Context, described kadm.DescribedGroups) (map[string][]cluster.GroupPartition, map[string]error, error)
	Read(ctx context.Context, leader int32, p plan.Partition, from int64, maxBytes int32) (cluster.Piece, error)
	ACLs(ctx context.Context, f acl.Filter) ([]acl.Binding, error)
	Quotas(ctx context.Context, strict bool, filters ...admin.QuotaFilter) ([]admin.QuotaDescription, error)
	Users(ctx context.Context, names ...string) ([]admin.ScramDescription, error)
	Offsets(ctx context.Context, partitions []plan.Partition, at int64) (map[plan.Partition]int64, map[plan.Partition]error, error)

	// What actions do; validateOnly asks whether it would be done.
	Elect(ctx context.Context, kind cluster.ElectionType, partitions []plan.Partition) (map[plan.Partition]error, error)
	CreateTopic(ctx context.Context, spec cluster.TopicSpec, validateOnly bool) error
	AlterTopicConfig(ctx context.Context, topic string, set []cluster.Setting, remove []string, validateOnly bool) error
	Enlarge(ctx context.Context, list []cluster.Enlargement, validateOnly bool) error
	DeleteTopics(ctx context.Context, names []string) error
	Committed(ctx context.Context, group string) (map[plan.Partition]int64, error)
	Scope(ctx context.Context, args []string) ([]plan.Partition, error)
	NewOffsets(ctx context.Context, r cluster.Reset, partitions []plan.Partition, committed map[plan.Partition]int64) (map[plan.Partition]int64, []cluster.Clamped, error)
	Commit(ctx context.Context, group string, offsets map[plan.Partition]int64) error
	DeleteGroup(ctx context.Context, name string) error
}
