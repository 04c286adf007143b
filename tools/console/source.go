package console

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// Cluster is what the console asks brokers and tells them; *cluster.Cluster is one.
type Cluster interface {
	Snapshot(ctx context.Context, now time.Time, thorough bool) (*cluster.Snapshot, error)
	TopicConfig(ctx context.Context, topic string) ([]cluster.DescribedSetting, error)
	BrokerConfig(ctx context.Context, id int32) ([]cluster.DescribedSetting, error)
	Groups(ctx context.Context) ([]cluster.ListedGroup, error)
	DescribeGroups(ctx context.Context, names []string) (kadm.DescribedGroups, error)
	GroupsPartitions(ctx context.Context, described kadm.DescribedGroups) (map[string][]cluster.GroupPartition, map[string]error, error)
	Offsets(ctx context.Context, partitions []plan.Partition, at int64) (map[plan.Partition]int64, map[plan.Partition]error, error)
}
