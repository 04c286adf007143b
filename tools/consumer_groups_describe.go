package tools

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func (g groupTool) describe() error {
	groups, err := g.groups()
	if err != nil || len(groups) == 0 {
		return err
	}
	described, err := g.cluster.DescribeGroups(g.ctx, groups)
	if err != nil {
		return err
	}
	if g.json {
		return g.describeJSON(groups, described)
	}
	missing := false
	for _, name := range groups {
		d := described[name]
		switch {
		case cluster.Gone(d):
			missing = true
			g.f.groupError(fmt.Sprintf("Consumer group '%s' does not exist.", name))
			continue
		case d.Err != nil:
			return d.Err
		}
		switch {
		case g.set.Has("members"):
			g.describeMembers(name, d)
		case g.set.Has("state"):
			g.describeState(name, d)
		default:
			if err := g.describeOffsets(name, d); err != nil {
				return err
			}
		}
	}
	if missing {
		return errUnfinished
	}
	return nil
}

// sayState says on standard error what explains an empty table.
func (g groupTool) sayState(name, state string) {
	switch state {
	case "Empty":
		fmt.Fprintf(g.f.stderr, "\nConsumer group '%s' has no active members.\n", name)
	case "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling":
		fmt.Fprintf(g.f.stderr, "\nWarning: Consumer group '%s' is rebalancing.\n", name)
	}
}

func (g groupTool) describeMembers(name string, d kadm.DescribedGroup) {
	g.sayState(name, d.State)
	if len(d.Members) == 0 {
		return
	}
	members := slices.Clone(d.Members)
	sort.SliceStable(members, func(i, j int) bool { return len(cluster.Assigned(members[i])) > len(cluster.Assigned(members[j])) })
	static := slices.ContainsFunc(members, func(m kadm.DescribedGroupMember) bool { return m.InstanceID != nil })
	const column, instanceColumn = 15, 17
	rows := [][]string{{"GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID"}}
	widths := []int{column, column, column, column}
	if static {
		rows[0] = slices.Insert(rows[0], 2, "GROUP-INSTANCE-ID")
		widths = slices.Insert(widths, 2, instanceColumn)
	}
	for _, m := range members {
		row := []string{name, m.MemberID, m.ClientHost, m.ClientID}
		if static {
			instance := ""
			if m.InstanceID != nil {
				instance = *m.InstanceID
			}
			row = slices.Insert(row, 2, instance)
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for i, row := range rows {
		count, assignment := "#PARTITIONS", "ASSIGNMENT"
		if i > 0 {
			list := cluster.Assigned(members[i-1])
			count, assignment = strconv.Itoa(len(list)), assignmentText(list)
		} else {
			fmt.Fprintln(g.f.stdout)
		}
		for j, cell := range row {
			fmt.Fprintf(g.f.stdout, "%-*s ", widths[j], cell)
		}
		fmt.Fprintf(g.f.stdout, "%-15s ", count)
		if g.set.Has("verbose") {
			fmt.Fprint(g.f.stdout, assignment)
		}
		fmt.Fprintln(g.f.stdout)
	}
}

// assignmentText shows an assignment as topic(0,1), other(2).
func assignmentText(list []plan.Partition) string {
	if len(list) == 0 {
		return "-"
	}
	var parts []string
	for i := 0; i < len(list); {
		topic := list[i].Topic
		var ids []string
		for ; i < len(list) && list[i].Topic == topic; i++ {
			ids = append(ids, strconv.Itoa(int(list[i].ID)))
		}
		parts = append(parts, fmt.Sprintf("%s(%s)", topic, strings.Join(ids, ",")))
	}
	return strings.Join(parts, ", ")
}

func (g groupTool) describeState(name string, d kadm.DescribedGroup) {
	g.sayState(name, d.State)
	coordinator := fmt.Sprintf("%s:%d (%d)", d.Coordinator.Host, d.Coordinator.Port, d.Coordinator.NodeID)
	width := max(25, len(coordinator))
	const row = "%-*s %-25s %-20s %-15s %s\n"
	fmt.Fprintf(g.f.stdout, "\n"+row, width, "GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
	fmt.Fprintf(g.f.stdout, row, width, name, coordinator, d.Protocol, d.State, strconv.Itoa(len(d.Members)))
}

// offsetCells is one partition of a group. What is not known is a dash: never a number.
func offsetCells(group string, p cluster.GroupPartition) []string {
	number := func(n int64, known bool) string {
		if !known {
			return "-"
		}
		return strconv.FormatInt(n, 10)
	}
	consumer, host, client := "-", "-", "-"
	if p.Member != nil {
		consumer, host, client = p.Member.MemberID, p.Member.ClientHost, p.Member.ClientID
	}
	return []string{group, p.Partition.Topic, strconv.Itoa(int(p.Partition.ID)), number(p.Current, p.Current >= 0), number(p.End, p.End >= 0), number(p.Lag()), consumer, host, client}
}

func (g groupTool) describeOffsets(name string, d kadm.DescribedGroup) error {
	described, err := g.cluster.GroupPartitions(g.ctx, name, d)
	if err != nil {
		return err
	}
	rows := [][]string{{"GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"}}
	widths := []int{15, 15, 10, 15, 15, 15, 15, 15, 0}
	for _, row := range described {
		rows = append(rows, offsetCells(name, row))
	}
	g.sayState(name, d.State)
	if len(rows) == 1 {
		return nil
	}
	for _, row := range rows {
		for _, i := range []int{0, 1, 6, 7} {
			widths[i] = max(widths[i], len(row[i]))
		}
	}
	fmt.Fprintln(g.f.stdout)
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			fmt.Fprintf(g.f.stdout, "%-*s ", widths[i], cell)
		}
		fmt.Fprintln(g.f.stdout, row[len(row)-1])
	}
	return nil
}
