package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func topicsPage() page {
	return page{path: "/topics", title: "Topics", file: "topics.html", under: "/topics", entry: true, pace: 5 * time.Second, live: []string{"topics"}, data: topics}
}

// topicsData is one page of the topics that were asked for.
type topicsData struct {
	Search string
	Chips  []chip[topicRow]
	Topics pageOf[topicRow]
	Sort   string
	Sorts  []order
}

// topicRow is a topic in a list.
type topicRow struct {
	Name                                  string
	Internal                              bool
	Partitions, Factor                    int
	UnderReplicated, Offline, UnderMinISR int
	Size                                  int64 // of all replicas; -1: not known
	Overrides                             int
	Cleanup, Retention                    string
}

var topicChips = []chip[topicRow]{
	{Name: "under-replicated", Title: "under-replicated", is: func(t topicRow) bool { return t.UnderReplicated > 0 }},
	{Name: "unavailable", Title: "unavailable", is: func(t topicRow) bool { return t.Offline > 0 }},
	{Name: "under-min-isr", Title: "under min ISR", is: func(t topicRow) bool { return t.UnderMinISR > 0 }},
	{Name: "overrides", Title: "own settings", is: func(t topicRow) bool { return t.Overrides > 0 }},
	{Name: "internal", Title: "internal", is: func(t topicRow) bool { return t.Internal }},
	{Name: "empty", Title: "nothing stored", is: func(t topicRow) bool { return t.Size == 0 }},
}

// order is a way to sort.
type order struct {
	Name, Title, Address string
	On                   bool
	compare              func(a, b topicRow) int
}

var topicOrders = []order{
	{Name: "name", Title: "name", compare: func(a, b topicRow) int { return cmp.Compare(a.Name, b.Name) }},
	{Name: "size", Title: "size", compare: func(a, b topicRow) int { return cmp.Compare(b.Size, a.Size) }},
	{Name: "partitions", Title: "partitions", compare: func(a, b topicRow) int { return cmp.Compare(b.Partitions, a.Partitions) }},
}

func topics(ctx context.Context, c *Console, q question) (any, error) {
	s, err := c.snapshot(ctx, 5*time.Second)
	if err != nil {
		return nil, err
	}
	d := &topicsData{Search: q.get("q"), Sort: cmp.Or(q.get("sort"), topicOrders[0].Name)}
	var keep func(topicRow) bool
	d.Chips, keep = chosen(topicChips, q)
	named := matching(d.Search)
	rows := slices.DeleteFunc(topicRows(s), func(t topicRow) bool { return !keep(t) || !named(t.Name) })
	for _, one := range topicOrders {
		if one.On = d.Sort == one.Name; one.On {
			slices.SortStableFunc(rows, one.compare)
		}
		one.Address = q.address("sort", one.Name)
		d.Sorts = append(d.Sorts, one)
	}
	d.Topics = paged(rows, q)
	return d, nil
}

func topicRows(s *cluster.Snapshot) []topicRow {
	sizes := map[string]int64{}
	for p, size := range sizesOf(s) {
		sizes[p.Topic] += size.all
	}
	rows := make([]topicRow, 0, len(s.Topics))
	for _, t := range s.Topics {
		row := topicRow{Name: t.Name, Internal: t.Internal, Partitions: len(t.Partitions), Factor: t.ReplicationFactor, Size: -1, Overrides: len(t.Overrides),
			Cleanup: t.Settings["cleanup.policy"], Retention: retention(t.Settings["retention.ms"])}
		if size, known := sizes[t.Name]; known {
			row.Size = size
		}
		for _, p := range t.Partitions {
			if p.UnderReplicated() {
				row.UnderReplicated++
			}
			if p.Unavailable() {
				row.Offline++
			}
			if p.UnderMinISR(t.MinISR) {
				row.UnderMinISR++
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// storedSize is what a partition takes.
type storedSize struct {
	largest, all int64            // of one replica, and of all
	lag          map[int32]int64  // of the replicas, in records behind the high watermark
	at           map[int32]string // the replicas' directories
}

// sizesOf are the sizes of all partitions of which any directory tells.
func sizesOf(s *cluster.Snapshot) map[plan.Partition]*storedSize {
	sizes := map[plan.Partition]*storedSize{}
	for id, dirs := range s.Dirs {
		for _, d := range dirs {
			for _, r := range d.Replicas {
				of := sizes[r.Partition]
				if of == nil {
					of = &storedSize{lag: map[int32]int64{}, at: map[int32]string{}}
					sizes[r.Partition] = of
				}
				of.all += r.Size
				of.largest = max(of.largest, r.Size)
				if !r.Future {
					of.lag[id], of.at[id] = r.OffsetLag, d.Path
				}
			}
		}
	}
	return sizes
}

// retention is retention.ms for people.
func retention(ms string) string {
	if ms == "" {
		return "–"
	}
	d, err := time.ParseDuration(ms + "ms")
	switch {
	case ms == "-1":
		return "for ever"
	case err != nil:
		return ms + " ms"
	case d%(24*time.Hour) == 0 && d > 0:
		return plural(int(d/(24*time.Hour)), "day")
	}
	return d.String()
}
