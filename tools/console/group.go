package console

import (
	"cmp"
	"context"
	"html/template"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/admin/cluster"
)

func groupPage() page {
	return page{path: "/group", title: "Group", file: "group.html", under: "/groups", pace: 2 * time.Second, live: []string{"state", "chart", "partitions", "members"}, data: group}
}

// groupData is one group with all that it reads.
type groupData struct {
	Row         groupRow
	Coordinator int32
	Strategy    string
	Partitions  pageOf[groupPartitionRow]
	Members     []memberRow
	Chart       template.HTML // of chart.go
	Topics      []string
	Topic       string // whose lag the chart shows; "" is all
}

func (d *groupData) title() string { return d.Row.Name }

type groupPartitionRow struct {
	Topic        string
	ID           int32
	Current, End int64
	Lag          int64
	Known        bool
	Unknown      string
	Member       string
	Client, Host string
}

type memberRow struct {
	ID, Instance, Client, Host string
	Partitions                 int
}

const membersShown = 200

func group(ctx context.Context, c *Console, q question) (any, error) {
	name := q.get("name")
	g, err := c.allGroups(ctx, 2*time.Second)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(g.listed, func(one cluster.ListedGroup) bool { return one.Name == name })
	if at < 0 {
		return nil, &cluster.NotFoundError{Kind: "group", Name: name}
	}
	only := *g
	only.listed = g.listed[at : at+1]
	told := g.described[name]
	d := &groupData{Row: groupRows(&only, &c.keeper)[0], Coordinator: told.Coordinator.NodeID, Strategy: told.Protocol, Topic: q.get("topic")}
	var rows []groupPartitionRow
	for _, p := range g.partitions[name] {
		rows = append(rows, groupPartitionRowOf(p))
		if n := len(d.Topics); n == 0 || d.Topics[n-1] != p.Partition.Topic {
			d.Topics = append(d.Topics, p.Partition.Topic)
		}
	}
	d.Partitions = paged(rows, q)
	d.Members = memberRows(told.Members)
	topic := d.Topic
	if len(d.Topics) < 2 {
		topic = "" // its lag is the group's
	}
	d.Chart = lagChart(c.keeper.lagOf(name, topic), time.Now())
	return d, nil
}

func groupPartitionRowOf(p cluster.GroupPartition) groupPartitionRow {
	row := groupPartitionRow{Topic: p.Partition.Topic, ID: p.Partition.ID, Current: p.Current, End: p.End}
	if row.Lag, row.Known = p.Lag(); !row.Known {
		row.Unknown = p.Unknown()
	}
	if p.Member != nil {
		row.Member, row.Client, row.Host = p.Member.MemberID, p.Member.ClientID, p.Member.ClientHost
	}
	return row
}

func memberRows(members []kadm.DescribedGroupMember) []memberRow {
	var rows []memberRow
	for _, m := range members {
		row := memberRow{ID: m.MemberID, Client: m.ClientID, Host: m.ClientHost, Partitions: len(cluster.Assigned(m))}
		if m.InstanceID != nil {
			row.Instance = *m.InstanceID
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b memberRow) int { return cmp.Compare(a.ID, b.ID) })
	return rows[:min(len(rows), membersShown)]
}
