package console

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"barnabas/admin/cluster"
)

func brokerPage() page {
	return page{path: "/broker", title: "Broker", file: "broker.html", under: "/brokers", pace: 2 * time.Second, live: []string{"facts", "dirs", "partitions"}, data: broker}
}

// brokerData is one broker: what it holds, what would become of its partitions if it stopped, and its settings.
type brokerData struct {
	Row        brokerRow
	Dirs       []dirRow
	StopFault  string // why it should not be stopped now; "" when it can be
	Partitions pageOf[partitionRow]
	Settings   []cluster.DescribedSetting // that are not defaults
	Fault      string                     // why the settings are not known
}

func (d *brokerData) title() string { return fmt.Sprintf("Broker %d", d.Row.ID) }

// dirRow is a log directory.
type dirRow struct {
	Path          string
	Fault         string
	Replicas      int
	Bytes         int64
	Total, Usable int64
}

// Used is what is taken of the volume.
func (d dirRow) Used() int64 { return d.Total - d.Usable }

func broker(ctx context.Context, c *Console, q question) (any, error) {
	id, err := strconv.ParseInt(q.get("id"), 10, 32)
	if err != nil {
		return nil, bad("id says which broker: a number")
	}
	s, err := c.snapshot(ctx, 2*time.Second)
	if err != nil {
		return nil, err
	}
	rows := brokerRows(s)
	at := slices.IndexFunc(rows, func(b brokerRow) bool { return b.ID == int32(id) })
	if at < 0 {
		return nil, &cluster.NotFoundError{Kind: "broker", Name: q.get("id")}
	}
	d := &brokerData{Row: rows[at], Dirs: dirRows(s.Dirs[int32(id)]), StopFault: stopFault(s, int32(id))}
	var here []partitionRow
	sizes := sizesOf(s)
	for _, t := range s.Topics {
		for _, p := range t.Partitions {
			if slices.Contains(p.Replicas, int32(id)) {
				here = append(here, partitionRowOf(t, p, sizes))
			}
		}
	}
	d.Partitions = paged(here, q)
	if d.Row.Fault != "" {
		d.Fault = "it does not answer"
		return d, nil
	}
	if q.again {
		return d, nil // they are no live region
	}
	settings, err := c.Cluster.BrokerConfig(ctx, int32(id))
	if err != nil {
		d.Fault = err.Error()
	}
	d.Settings = slices.DeleteFunc(settings, cluster.DescribedSetting.IsDefault)
	return d, nil
}

func dirRows(dirs []cluster.Dir) []dirRow {
	var rows []dirRow
	for _, d := range dirs {
		row := dirRow{Path: d.Path, Replicas: len(d.Replicas), Total: d.Total, Usable: d.Usable}
		if d.Err != nil {
			row.Fault = d.Err.Error()
		}
		for _, r := range d.Replicas {
			row.Bytes += r.Size
		}
		rows = append(rows, row)
	}
	return rows
}

// stopFault tells what would be lost to clients if a broker stopped now: partitions that nobody else could lead, and those that would refuse acks=all.
func stopFault(s *cluster.Snapshot, id int32) string {
	alone, below := 0, 0
	for _, t := range s.Topics {
		for _, p := range t.Partitions {
			if !slices.Contains(p.ISR, id) {
				continue
			}
			switch left := len(p.ISR) - 1; {
			case left == 0:
				alone++
			case left < t.MinISR:
				below++
			}
		}
	}
	var parts []string
	if alone > 0 {
		parts = append(parts, plural(alone, "partition")+" would have no leader")
	}
	if below > 0 {
		parts = append(parts, plural(below, "partition")+" would refuse acks=all")
	}
	return strings.Join(parts, ", ")
}
