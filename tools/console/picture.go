package console

import (
	"cmp"
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/admin/cluster"
)

// picture is what is known of the cluster, shared by all that look.
type picture struct {
	snapshot shared[*cluster.Snapshot]
	thorough shared[*cluster.Snapshot]
	groups   shared[*groupsPicture]
}

// groupsPicture is all groups at one time.
type groupsPicture struct {
	taken      time.Time
	listed     []cluster.ListedGroup
	described  kadm.DescribedGroups
	partitions map[string][]cluster.GroupPartition
	failures   map[string]error
}

// snapshot is the cluster as it was at most so long ago.
func (c *Console) snapshot(ctx context.Context, oldest time.Duration) (*cluster.Snapshot, error) {
	return c.picture.snapshot.get(ctx, c, oldest, func(ctx context.Context) (*cluster.Snapshot, error) {
		s, err := c.Cluster.Snapshot(ctx, time.Now(), false)
		if err == nil {
			c.keeper.saw(s)
		}
		return s, err
	})
}

// thoroughSnapshot is one with groups and transactions, which cost more to ask for.
func (c *Console) thoroughSnapshot(ctx context.Context, oldest time.Duration) (*cluster.Snapshot, error) {
	return c.picture.thorough.get(ctx, c, oldest, func(ctx context.Context) (*cluster.Snapshot, error) {
		return c.Cluster.Snapshot(ctx, time.Now(), true)
	})
}

// allGroups are the groups as they were at most so long ago.
func (c *Console) allGroups(ctx context.Context, oldest time.Duration) (*groupsPicture, error) {
	return c.picture.groups.get(ctx, c, oldest, func(ctx context.Context) (*groupsPicture, error) {
		g := &groupsPicture{taken: time.Now()}
		var err error
		if g.listed, err = c.Cluster.Groups(ctx); err != nil || len(g.listed) == 0 {
			return g, err
		}
		var names []string
		for _, one := range g.listed {
			names = append(names, one.Name)
		}
		if g.described, err = c.Cluster.DescribeGroups(ctx, names); err != nil {
			return g, err
		}
		g.partitions, g.failures, err = c.Cluster.GroupsPartitions(ctx, g.described)
		if err == nil {
			c.keeper.measured(g)
		}
		return g, err
	})
}

// changed makes everybody look anew after an action.
func (c *Console) changed() {
	c.picture.snapshot.forget()
	c.picture.thorough.forget()
	c.picture.groups.forget()
}

// stateOf is the state of a group by its coordinator's word.
func (g *groupsPicture) stateOf(one cluster.ListedGroup) string {
	return cmp.Or(g.described[one.Name].State, one.State)
}
