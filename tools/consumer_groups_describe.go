package tools

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/plan"
)

func (g groupTool) describe() error {
	groups, err := g.groups()
	if err != nil || len(groups) == 0 {
		return err
	}
	described, err := g.admin.DescribeGroups(g.ctx, groups...)
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
		case gone(d):
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

// gone tells whether a group does not exist, which is told in one of two ways.
func gone(d kadm.DescribedGroup) bool {
	return errors.Is(d.Err, kerr.GroupIDNotFound) || d.Err == nil && d.State == "Dead"
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

// assigned is what a member has, by topic and partition; nothing where its assignment is not that of a consumer.
func assigned(m kadm.DescribedGroupMember) []plan.Partition {
	a, ok := m.Assigned.AsConsumer()
	if !ok {
		return nil
	}
	var list []plan.Partition
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			list = append(list, plan.Partition{Topic: t.Topic, ID: p})
		}
	}
	slices.SortFunc(list, plan.Partition.Compare)
	return list
}

func (g groupTool) describeMembers(name string, d kadm.DescribedGroup) {
	g.sayState(name, d.State)
	if len(d.Members) == 0 {
		return
	}
	members := slices.Clone(d.Members)
	sort.SliceStable(members, func(i, j int) bool { return len(assigned(members[i])) > len(assigned(members[j])) })
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
			list := assigned(members[i-1])
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

// offsetRow is one partition of a group. What is not known is a dash: never a number.
type offsetRow struct {
	partition                plan.Partition
	current, end             int64 // -1: not known
	consumer, host, clientID string
}

func (r offsetRow) cells(group string) []string {
	number := func(n int64) string {
		if n < 0 {
			return "-"
		}
		return strconv.FormatInt(n, 10)
	}
	lag := "-"
	if n, known := r.lag(); known {
		lag = number(n)
	}
	return []string{group, r.partition.Topic, strconv.Itoa(int(r.partition.ID)), number(r.current), number(r.end), lag, r.consumer, r.host, r.clientID}
}

// lag is how far a group is behind, where that is known. The end was read before the commit came where it is the smaller one.
func (r offsetRow) lag() (n int64, known bool) {
	return max(r.end-r.current, 0), r.current >= 0 && r.end >= 0
}

// offsetRows are the partitions that a group has committed offsets of, or that its members have.
func (g groupTool) offsetRows(name string, d kadm.DescribedGroup) ([]offsetRow, error) {
	committed, err := g.committed(name)
	if err != nil {
		return nil, err
	}
	owners := map[plan.Partition]offsetRow{}
	for _, m := range d.Members {
		for _, p := range assigned(m) {
			owners[p] = offsetRow{p, -1, -1, m.MemberID, m.ClientHost, m.ClientID}
		}
	}
	all := plan.Assignment{}
	for p := range committed {
		all[p] = nil
	}
	for p := range owners {
		all[p] = nil
	}
	ends, err := g.offsets(all.Partitions(), latestOffset)
	if err != nil {
		return nil, err
	}
	var rows []offsetRow
	for _, p := range all.Partitions() {
		row, owned := owners[p]
		if !owned {
			row = offsetRow{p, -1, -1, "-", "-", "-"}
		}
		row.current = -1
		if offset, there := committed[p]; there {
			row.current = offset
		}
		if end, there := ends[p]; there {
			row.end = end
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (g groupTool) describeOffsets(name string, d kadm.DescribedGroup) error {
	described, err := g.offsetRows(name, d)
	if err != nil {
		return err
	}
	rows := [][]string{{"GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"}}
	widths := []int{15, 15, 10, 15, 15, 15, 15, 15, 0}
	for _, row := range described {
		rows = append(rows, row.cells(name))
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

// committed are the offsets that a group has committed.
func (g groupTool) committed(group string) (map[plan.Partition]int64, error) {
	fetched, err := g.admin.FetchOffsets(g.ctx, group)
	if err != nil {
		return nil, err
	}
	offsets := map[plan.Partition]int64{}
	for topic, of := range fetched {
		for id, o := range of {
			if o.Err == nil && o.At >= 0 {
				offsets[plan.Partition{Topic: topic, ID: id}] = o.At
			}
		}
	}
	return offsets, nil
}
