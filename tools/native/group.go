package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
)

type groupsDocument struct {
	Version int         `json:"version"`
	Groups  []groupLine `json:"groups"`
}

type groupLine struct {
	Group   string  `json:"group"`
	State   string  `json:"state"`
	Type    string  `json:"type"`
	Members int     `json:"members"`
	Topics  int     `json:"topics"`
	Lag     *int64  `json:"lag"` // of the partitions whose lag is known
	Error   *string `json:"error"`
}

func (d *groupsDocument) show(w io.Writer) {
	rows := [][]string{{"GROUP", "STATE", "TYPE", "MEMBERS", "TOPICS", "LAG"}}
	for _, g := range d.Groups {
		lag := maybe(g.Lag)
		if g.Error != nil {
			lag = "not known: " + *g.Error
		}
		rows = append(rows, []string{g.Group, orDash(g.State), orDash(g.Type), strconv.Itoa(g.Members), strconv.Itoa(g.Topics), lag})
	}
	columns(w, rows)
}

func groupList() *cli.Command {
	return command{
		name: "list", usage: "list groups with their state and lag", watched: true,
		help: `Lists all consumer groups, also those without members. The lag is the sum over the partitions whose lag is known; it is null (-) when none is. When some broker does not answer the command fails, since its groups would be missing.

Fields: group, state, type, members, topics, lag, error.

    barnabas group list --sort lag --top 10`,
		flags: []cli.Flag{
			&cli.StringFlag{Name: "state", Usage: "only groups in one of these `STATES`, separated by commas"},
			&cli.StringFlag{Name: "sort", Value: "name", Usage: "name, or lag with the largest first"},
			topFlag(),
		},
		run: listGroups,
	}.build()
}

func listGroups(c *call) (document, error) {
	order := c.String("sort")
	if order != "name" && order != "lag" {
		return nil, wrongUsage("--sort %s is neither name nor lag", order)
	}
	groups, err := c.cluster.Groups(c.ctx)
	if err != nil {
		return nil, err
	}
	if c.IsSet("state") {
		states := strings.Split(strings.ToLower(c.String("state")), ",")
		groups = slices.DeleteFunc(groups, func(g cluster.ListedGroup) bool { return !slices.Contains(states, strings.ToLower(g.State)) })
	}
	d := &groupsDocument{documentVersion, []groupLine{}}
	if len(groups) == 0 {
		return d, nil
	}
	var names []string
	for _, g := range groups {
		names = append(names, g.Name)
	}
	told, err := c.describeGroups(names)
	if err != nil {
		return nil, err
	}
	partitions, failures, err := c.cluster.GroupsPartitions(c.ctx, told)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		d.Groups = append(d.Groups, lineOf(g, told[g.Name], partitions[g.Name], failures[g.Name]))
	}
	if order == "lag" {
		slices.SortStableFunc(d.Groups, func(a, b groupLine) int { return cmp.Compare(orNone(b.Lag), orNone(a.Lag)) })
	}
	d.Groups = topRows(c, d.Groups)
	return d, nil
}

func lineOf(g cluster.ListedGroup, told kadm.DescribedGroup, partitions []cluster.GroupPartition, failure error) groupLine {
	line := groupLine{Group: g.Name, State: cmp.Or(told.State, g.State), Type: g.Type, Members: len(told.Members)}
	if failure != nil {
		line.Error = words("%v", failure)
	}
	topics := map[string]bool{}
	for _, p := range partitions {
		topics[p.Partition.Topic] = true
	}
	line.Topics = len(topics)
	if lag, ok := cluster.TotalLag(partitions); ok {
		line.Lag = &lag
	}
	return line
}

type describedGroups struct {
	Version int              `json:"version"`
	Groups  []describedGroup `json:"groups"`
}

type describedGroup struct {
	Group       string           `json:"group"`
	State       string           `json:"state"`
	Strategy    string           `json:"assignment_strategy"`
	Coordinator *coordinator     `json:"coordinator"`
	Lag         *int64           `json:"lag"`
	Members     []member         `json:"members"`
	Partitions  []groupPartition `json:"partitions"`
	Error       *string          `json:"error"`
}

type coordinator struct {
	ID   int32  `json:"id"`
	Host string `json:"host"`
	Port int32  `json:"port"`
}

type member struct {
	ID         string  `json:"member_id"`
	Instance   *string `json:"group_instance_id"`
	Client     string  `json:"client_id"`
	Host       string  `json:"host"`
	Partitions int     `json:"partitions"`
}

type groupPartition struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Current   *int64  `json:"current_offset"`
	End       *int64  `json:"log_end_offset"`
	Lag       *int64  `json:"lag"`
	Unknown   *string `json:"lag_unknown"`
	Member    *string `json:"member_id"`
	Client    *string `json:"client_id"`
	Host      *string `json:"host"`
}

func (d *describedGroups) show(w io.Writer) {
	for i, g := range d.Groups {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if g.Error != nil {
			fmt.Fprintf(w, "Group %s: %s\n", g.Group, *g.Error)
			continue
		}
		fmt.Fprintf(w, "Group %s  %s  members %d  lag %s  strategy %s  coordinator %s (%d)\n", g.Group, g.State, len(g.Members), maybe(g.Lag), orDash(g.Strategy), net.JoinHostPort(g.Coordinator.Host, strconv.Itoa(int(g.Coordinator.Port))), g.Coordinator.ID)
		if len(g.Members) > 0 {
			rows := [][]string{{"MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"}}
			for _, m := range g.Members {
				rows = append(rows, []string{m.ID, text(m.Instance), m.Client, m.Host, strconv.Itoa(m.Partitions)})
			}
			fmt.Fprintln(w)
			columns(w, rows)
		}
		if len(g.Partitions) > 0 {
			rows := [][]string{{"TOPIC", "PARTITION", "CURRENT", "END", "LAG", "MEMBER"}}
			for _, p := range g.Partitions {
				lag := maybe(p.Lag)
				if p.Unknown != nil {
					lag = "- (" + *p.Unknown + ")"
				}
				rows = append(rows, []string{p.Topic, strconv.Itoa(int(p.Partition)), maybe(p.Current), maybe(p.End), lag, text(p.Member)})
			}
			fmt.Fprintln(w)
			columns(w, rows)
		}
	}
}

func groupDescribe() *cli.Command {
	return command{
		name: "describe", usage: "show members, offsets and lag of groups", arguments: "GROUP...", least: 1, most: -1, watched: true,
		help: `Shows groups, also those without members. The commit is read first and the end of the partition second, so that no lag is negative. A lag that is not known is null, and lag_unknown says why: no_commit, no_such_partition, no_leader, leader_unreachable or not_authorized.

Fields of a group: group, state, assignment_strategy, coordinator (id, host, port), lag, members, partitions, error.
Fields of a member: member_id, group_instance_id, client_id, host, partitions.
Fields of a partition: topic, partition, current_offset, log_end_offset, lag, lag_unknown, member_id, client_id, host.

    barnabas group describe billing --watch 5s`,
		run: func(c *call) (document, error) {
			names := slices.Compact(slices.Sorted(slices.Values(c.Args().Slice())))
			told, err := c.describeGroups(names)
			if err != nil {
				return nil, err
			}
			partitions, failures, err := c.cluster.GroupsPartitions(c.ctx, told)
			if err != nil {
				return nil, err
			}
			d := &describedGroups{documentVersion, []describedGroup{}}
			var failed []error
			for _, name := range names {
				d.Groups, failed = append(d.Groups, describedOf(name, told[name], partitions[name], failures[name])), append(failed, failures[name])
			}
			return d, exitOfFirst(failed)
		},
	}.build()
}

func describedOf(name string, told kadm.DescribedGroup, partitions []cluster.GroupPartition, failure error) describedGroup {
	d := describedGroup{Group: name, Members: []member{}, Partitions: []groupPartition{}}
	if failure != nil {
		d.Error = words("%v", failure)
		return d
	}
	d.State, d.Strategy, d.Coordinator = told.State, told.Protocol, &coordinator{told.Coordinator.NodeID, told.Coordinator.Host, told.Coordinator.Port}
	for _, m := range told.Members {
		d.Members = append(d.Members, member{m.MemberID, m.InstanceID, m.ClientID, m.ClientHost, len(cluster.Assigned(m))})
	}
	slices.SortFunc(d.Members, func(a, b member) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range partitions {
		line := groupPartition{Topic: p.Partition.Topic, Partition: p.Partition.ID, Current: known(p.Current), End: known(p.End)}
		if lag, ok := p.Lag(); ok {
			line.Lag = &lag
		} else {
			line.Unknown = words("%s", p.Unknown())
		}
		if p.Member != nil {
			line.Member, line.Client, line.Host = &p.Member.MemberID, &p.Member.ClientID, &p.Member.ClientHost
		}
		d.Partitions = append(d.Partitions, line)
	}
	if lag, ok := cluster.TotalLag(partitions); ok {
		d.Lag = &lag
	}
	return d
}

func groupDelete() *cli.Command {
	return command{
		name: "delete", usage: "delete groups without members, with their offsets", arguments: "GROUP...", least: 1, most: -1, alters: true, risky: true,
		help: `Deletes the groups that are named. A group that has members is refused, and its members are named. At a terminal the first name has to be typed; elsewhere --yes has to be given.

Fields: dry_run, changes (kind, name, action, what, from, to, done, error).

    barnabas group delete billing --dry-run`,
		run: func(c *call) (document, error) {
			d := &changes{documentVersion, c.Bool("dry-run"), []change{}}
			names := slices.Compact(slices.Sorted(slices.Values(c.Args().Slice())))
			if err := c.sure("deleting "+strings.Join(names, ", "), c.Args().First()); err != nil {
				return nil, err
			}
			told, err := c.describeGroups(names)
			if err != nil {
				return nil, err
			}
			var failures []error
			for _, name := range names {
				one := change{Kind: "group", Name: name, Action: "delete"}
				committed, err := c.cluster.Committed(c.ctx, name)
				if err != nil {
					return nil, err
				}
				one.What = "offsets of " + count(len(committed), "partition")
				switch {
				case cluster.Gone(told[name]):
					err = &cluster.NotFoundError{Kind: "group", Name: name}
				case !cluster.Inactive(told[name]):
					err = active(told[name])
				case !d.DryRun:
					err = c.cluster.DeleteGroup(c.ctx, name)
				}
				failures = append(failures, d.result(one, err))
			}
			return d, exitOfFirst(failures)
		},
	}.build()
}

// active says why a group cannot be touched: who is in it.
func active(d kadm.DescribedGroup) error {
	if d.Err != nil {
		return d.Err
	}
	var who []string
	for _, m := range d.Members {
		who = append(who, fmt.Sprintf("%s (%s, %s)", m.MemberID, m.ClientID, m.ClientHost))
	}
	slices.Sort(who)
	return errors.New("the group is " + d.State + "; stop its members first: " + strings.Join(who, ", "))
}

const (
	coordinatorTime  = 15 * time.Second // for a group to get a coordinator
	coordinatorPause = 200 * time.Millisecond
)

// describeGroups asks again while a group has no coordinator: one is elected, or the first group that anybody asks for has their topic made.
func (c *call) describeGroups(names []string) (kadm.DescribedGroups, error) {
	return awaitCoordinator(c.ctx, coordinatorTime, coordinatorPause, func() (kadm.DescribedGroups, error) { return c.cluster.DescribeGroups(c.ctx, names) })
}

func awaitCoordinator(ctx context.Context, limit, pause time.Duration, ask func() (kadm.DescribedGroups, error)) (kadm.DescribedGroups, error) {
	until := time.Now().Add(limit)
	for {
		told, err := ask()
		if !errors.Is(err, kerr.CoordinatorNotAvailable) || !time.Now().Before(until) {
			return told, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return told, err
		}
	}
}
