package console

import (
	"context"
	"fmt"
	"slices"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func topicPage() page {
	return page{path: "/topic", title: "Topic", file: "topic.html", under: "/topics", pace: 2 * time.Second, live: []string{"state", "partitions"}, data: topic}
}

// topicHead is what all tabs of a topic begin with.
type topicHead struct {
	Name     string
	Internal bool
	Tab      string
}

func (h topicHead) title() string { return h.Name }

// topicData is the partitions of a topic.
type topicData struct {
	topicHead
	Row        topicRow
	ID         string
	MinISR     int
	Records    int64 // between first offsets and ends; -1: not known of all partitions
	Partitions pageOf[partitionRow]
	Fault      string // why offsets are not known
}

// partitionRow is a partition in a list.
type partitionRow struct {
	Topic          string
	ID             int32
	Leader, Epoch  int32
	NoLeader       bool
	PreferredLeads bool
	Replicas       []replicaBox
	Size           int64 // of the largest replica; -1: not known
	Start, End     int64 // -1: not known
	UnderMinISR    bool
}

// replicaBox is a replica with its state: leader, insync, lagging, offline, adding or removing.
type replicaBox struct {
	ID    int32
	State string
	Title string
}

// topicOf finds a topic by the name in the address.
func topicOf(ctx context.Context, c *Console, q question, oldest time.Duration) (*cluster.Snapshot, cluster.Topic, error) {
	name := q.get("name")
	s, err := c.snapshot(ctx, oldest)
	if err != nil {
		return nil, cluster.Topic{}, err
	}
	at := slices.IndexFunc(s.Topics, func(t cluster.Topic) bool { return t.Name == name })
	if at < 0 {
		return nil, cluster.Topic{}, &cluster.NotFoundError{Kind: "topic", Name: name}
	}
	return s, s.Topics[at], nil
}

func topic(ctx context.Context, c *Console, q question) (any, error) {
	s, t, err := topicOf(ctx, c, q, 2*time.Second)
	if err != nil {
		return nil, err
	}
	one := *s
	one.Topics = []cluster.Topic{t}
	d := &topicData{topicHead: topicHead{t.Name, t.Internal, "partitions"}, Row: topicRows(&one)[0], ID: t.ID, MinISR: t.MinISR}
	var rows []partitionRow
	var led []plan.Partition
	sizes := sizesOf(s)
	for _, p := range t.Partitions {
		rows = append(rows, partitionRowOf(t, p, sizes))
		if !p.Unavailable() {
			led = append(led, plan.Partition{Topic: t.Name, ID: p.ID})
		}
	}
	starts, ends, err := c.ends(ctx, led)
	if err != nil {
		d.Fault = err.Error()
	}
	for i := range rows {
		r := &rows[i]
		key := plan.Partition{Topic: t.Name, ID: r.ID}
		start, begun := starts[key]
		end, ended := ends[key]
		if !begun || !ended {
			d.Records = -1
			continue
		}
		if r.Start, r.End = start, end; d.Records >= 0 {
			d.Records += max(0, end-start)
		}
	}
	d.Partitions = paged(rows, q)
	return d, nil
}

// ends are the first offsets and the ends of partitions.
func (c *Console) ends(ctx context.Context, partitions []plan.Partition) (starts, ends map[plan.Partition]int64, err error) {
	if starts, _, err = c.Cluster.Offsets(ctx, partitions, cluster.Earliest); err != nil {
		return nil, nil, err
	}
	ends, _, err = c.Cluster.Offsets(ctx, partitions, cluster.Latest)
	return starts, ends, err
}

func partitionRowOf(t cluster.Topic, p cluster.Partition, sizes map[plan.Partition]*storedSize) partitionRow {
	row := partitionRow{Topic: t.Name, ID: p.ID, Leader: p.Leader, Epoch: p.LeaderEpoch, NoLeader: p.Unavailable(), PreferredLeads: p.Leader == p.Preferred(), Size: -1, Start: -1, End: -1, UnderMinISR: p.UnderMinISR(t.MinISR)}
	stored := sizes[plan.Partition{Topic: t.Name, ID: p.ID}]
	if stored != nil {
		row.Size = stored.largest
	}
	for _, id := range p.Replicas {
		row.Replicas = append(row.Replicas, boxOf(p, id, stored))
	}
	return row
}

func boxOf(p cluster.Partition, id int32, stored *storedSize) replicaBox {
	box := replicaBox{ID: id, State: "insync", Title: fmt.Sprintf("broker %d is in sync", id)}
	behind := ""
	if stored != nil {
		if lag, told := stored.lag[id]; told && lag > 0 {
			behind = fmt.Sprintf(", %s behind", plural(int(lag), "record"))
		}
	}
	switch {
	case slices.Contains(p.Adding, id):
		box.State, box.Title = "adding", fmt.Sprintf("broker %d is being added%s", id, behind)
	case slices.Contains(p.Offline, id):
		box.State, box.Title = "offline", fmt.Sprintf("broker %d or its directory is out of use", id)
	case !slices.Contains(p.ISR, id):
		box.State, box.Title = "lagging", fmt.Sprintf("broker %d is not in sync%s", id, behind)
	case slices.Contains(p.Removing, id):
		box.State, box.Title = "removing", fmt.Sprintf("broker %d is going to leave", id)
	case id == p.Leader:
		box.State, box.Title = "leader", fmt.Sprintf("broker %d leads", id)
	}
	return box
}
