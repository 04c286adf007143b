package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"barnabas/admin/cluster"
)

func groupsPage() page {
	return page{path: "/groups", title: "Groups", file: "groups.html", under: "/groups", entry: true, pace: 2 * time.Second, live: []string{"groups"}, data: groups}
}

// groupsData is one page of the groups that were asked for.
type groupsData struct {
	Search   string
	Chips    []chip[groupRow]
	Groups   pageOf[groupRow]
	All, Bad int // of those, before the page was cut
}

var groupChips = []chip[groupRow]{
	{Name: "attention", Title: "need attention", is: func(g groupRow) bool { return g.Bad }},
	{Name: "behind", Title: "behind", is: func(g groupRow) bool { return g.Lag > 0 }},
	{Name: "empty", Title: "without members", is: func(g groupRow) bool { return g.Members == 0 }},
	{Name: "unknown", Title: "lag not known", is: func(g groupRow) bool { return !g.Known }},
}

func groups(ctx context.Context, c *Console, q question) (any, error) {
	g, err := c.allGroups(ctx, 2*time.Second)
	if err != nil {
		return nil, err
	}
	d := &groupsData{Search: q.get("q"), All: len(g.listed)}
	rows := groupRows(g, &c.keeper)
	for _, row := range rows {
		if row.Bad {
			d.Bad++
		}
	}
	var keep func(groupRow) bool
	d.Chips, keep = chosen(groupChips, q)
	named := matching(d.Search)
	d.Groups = paged(slices.DeleteFunc(rows, func(row groupRow) bool { return !keep(row) || !named(row.Name) }), q)
	return d, nil
}

// groupRow is a group in a list.
type groupRow struct {
	Name, State, Type string
	Members, Topics   int
	Lag               int64
	Known             bool // whether the lag of any partition is
	Trend             int  // of the lag over the last minutes: 1 grows, -1 shrinks
	Verdict           string
	Bad               bool
	Fault             string
}

// groupRows are all groups, those that need attention first, then by lag.
func groupRows(g *groupsPicture, k *keeper) []groupRow {
	var rows []groupRow
	for _, one := range g.listed {
		partitions := g.partitions[one.Name]
		row := groupRow{Name: one.Name, State: g.stateOf(one), Type: one.Type, Members: len(g.described[one.Name].Members)}
		topics := map[string]bool{}
		for _, p := range partitions {
			topics[p.Partition.Topic] = true
		}
		row.Topics = len(topics)
		row.Lag, row.Known = cluster.TotalLag(partitions)
		row.Trend = trend(k.lagOf(one.Name, ""))
		if err := g.failures[one.Name]; err != nil {
			row.Fault = err.Error()
		}
		row.Verdict, row.Bad = judge(row)
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b groupRow) int {
		if a.Bad != b.Bad {
			return map[bool]int{true: -1, false: 1}[a.Bad]
		}
		return cmp.Compare(b.Lag, a.Lag)
	})
	return rows
}

// trend compares the end of a series with where it was some minutes before: a change of a tenth counts.
func trend(list []sample) int {
	const minutes = 3
	if len(list) < 2 {
		return 0
	}
	last := list[len(list)-1]
	first := list[0]
	for _, s := range list {
		if last.at-s.at >= minutes*60 {
			first = s
		}
	}
	switch change := last.lag - first.lag; {
	case change > first.lag/10:
		return 1
	case -change > first.lag/10:
		return -1
	}
	return 0
}

// judge says how a group does, and why.
func judge(g groupRow) (verdict string, bad bool) {
	switch {
	case g.Fault != "":
		return "not known: " + g.Fault, true
	case g.State == "PreparingRebalance" || g.State == "CompletingRebalance":
		return "rebalancing", false
	case !g.Known:
		return "no lag is known", false
	case g.Lag == 0:
		return "caught up", false
	case g.Members == 0:
		return "nobody reads, and there is lag", true
	case g.Trend > 0:
		return "falls behind", true
	case g.Trend < 0:
		return "catches up", false
	}
	return "behind, and steady", false
}
