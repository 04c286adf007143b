package console

import (
	"context"
	"slices"
	"time"

	"barnabas/admin/cluster"
)

func topicGroupsPage() page {
	return page{path: "/topic/groups", title: "Topic", file: "topic_groups.html", under: "/topics", pace: 2 * time.Second, live: []string{"groups"}, data: topicGroups}
}

// topicGroupsData is the groups that read a topic, with their lag in it alone.
type topicGroupsData struct {
	topicHead
	Groups []groupRow
}

func topicGroups(ctx context.Context, c *Console, q question) (any, error) {
	_, t, err := topicOf(ctx, c, q, 5*time.Second)
	if err != nil {
		return nil, err
	}
	g, err := c.allGroups(ctx, 2*time.Second)
	if err != nil {
		return nil, err
	}
	here := *g
	here.partitions = map[string][]cluster.GroupPartition{}
	here.listed = nil
	for _, one := range g.listed {
		for _, p := range g.partitions[one.Name] {
			if p.Partition.Topic == t.Name {
				here.partitions[one.Name] = append(here.partitions[one.Name], p)
			}
		}
		if here.partitions[one.Name] != nil {
			here.listed = append(here.listed, one)
		}
	}
	rows := groupRows(&here, &c.keeper)
	return &topicGroupsData{topicHead{t.Name, t.Internal, "groups"}, slices.Clip(rows)}, nil
}
