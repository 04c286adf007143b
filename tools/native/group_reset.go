package native

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

type resetDocument struct {
	Version int         `json:"version"`
	Group   string      `json:"group"`
	DryRun  bool        `json:"dry_run"`
	Offsets []resetLine `json:"offsets"`
}

type resetLine struct {
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	Old        *int64 `json:"old_offset"`
	New        int64  `json:"new_offset"`
	Difference *int64 `json:"difference"`
	Asked      *int64 `json:"asked_offset"` // where it was outside of what the partition has
}

func (d *resetDocument) show(w io.Writer) {
	rows := [][]string{{"TOPIC", "PARTITION", "OLD", "NEW", "DIFFERENCE", "NOTE"}}
	for _, o := range d.Offsets {
		difference, note := "-", "-"
		if o.Difference != nil {
			difference = fmt.Sprintf("%+d", *o.Difference)
		}
		if o.Asked != nil {
			note = fmt.Sprintf("%d is outside of the partition", *o.Asked)
		}
		rows = append(rows, []string{o.Topic, strconv.Itoa(int(o.Partition)), maybe(o.Old), strconv.FormatInt(o.New, 10), difference, note})
	}
	columns(w, rows)
	if d.DryRun {
		fmt.Fprintln(w, "\nNothing was changed (--dry-run).")
	}
}

var resetWays = []string{"to-earliest", "to-latest", "to-offset", "shift-by", "to-datetime", "by-duration", "from-file"}

func groupReset() *cli.Command {
	return command{
		name: "reset", usage: "set the offsets of a group without members", arguments: "GROUP", least: 1, most: 1, alters: true,
		help: `Sets what a group has committed, and shows the old offsets, the new ones and the differences. What is reset is said by --topic or --all-topics (the topics that it has offsets of), where to by one of the other options. Offsets outside of a partition become its first or its end. A group with members is refused, and its members are named. A group that does not exist yet is made, if --topic or --from-file says what of.

Unlike Kafka's command this one acts unless --dry-run is given.

Fields: group, dry_run, offsets (topic, partition, old_offset, new_offset, difference, asked_offset).

    barnabas group reset billing --topic orders --to-earliest --dry-run
    barnabas group reset billing --topic orders:0,3 --shift-by -100
    barnabas group reset billing --all-topics --by-duration PT1H`,
		flags: []cli.Flag{
			many("topic", "`TOPIC` or TOPIC:0,1 with some partitions; any number of times"),
			&cli.BoolFlag{Name: "all-topics", Usage: "all partitions that the group has offsets of"},
			&cli.BoolFlag{Name: "to-earliest", Usage: "to the first records"},
			&cli.BoolFlag{Name: "to-latest", Usage: "to the ends"},
			&cli.Int64Flag{Name: "to-offset", Usage: "to `OFFSET`"},
			&cli.Int64Flag{Name: "shift-by", Usage: "to `N` after what is committed, before it when negative"},
			&cli.StringFlag{Name: "to-datetime", Usage: "to the first records of `TIME`, as 2006-01-02T15:04:05.000 with Z or +01:00 after it, in UTC without"},
			&cli.StringFlag{Name: "by-duration", Usage: "to the first records of `DURATION` ago, as P1DT2H or PT30M"},
			&cli.StringFlag{Name: "from-file", Usage: "to what a CSV `FILE` says: topic,partition,offset lines"},
		},
		run: resetGroup,
	}.build()
}

func resetGroup(c *call) (document, error) {
	name := c.Args().First()
	reset, err := readReset(c, name, time.Now())
	if err != nil {
		return nil, err
	}
	told, err := c.describeGroups([]string{name})
	if err != nil {
		return nil, err
	}
	switch {
	case cluster.Gone(told[name]) && c.Bool("all-topics"):
		return nil, &cluster.NotFoundError{Kind: "group", Name: name}
	case !cluster.Inactive(told[name]):
		return nil, active(told[name])
	}
	committed, err := c.cluster.Committed(c.ctx, name)
	if err != nil {
		return nil, err
	}
	partitions := cluster.PartitionsOf(committed)
	if !c.Bool("all-topics") {
		if partitions, err = c.cluster.Scope(c.ctx, c.values("topic")); err != nil {
			return nil, err
		}
	}
	to, clamped, err := c.cluster.NewOffsets(c.ctx, reset, partitions, committed)
	if err != nil {
		return nil, err
	}
	if !c.Bool("dry-run") && len(to) > 0 {
		if err := c.cluster.Commit(c.ctx, name, to); err != nil {
			return nil, err
		}
	}
	return resetOf(name, c.Bool("dry-run"), to, committed, clamped), nil
}

func resetOf(name string, dry bool, to, committed map[plan.Partition]int64, clamped []cluster.Clamped) *resetDocument {
	d := &resetDocument{documentVersion, name, dry, []resetLine{}}
	for _, p := range cluster.PartitionsOf(to) {
		line := resetLine{Topic: p.Topic, Partition: p.ID, New: to[p]}
		if old, there := committed[p]; there {
			difference := to[p] - old
			line.Old, line.Difference = &old, &difference
		}
		if i := slices.IndexFunc(clamped, func(c cluster.Clamped) bool { return c.Partition == p }); i >= 0 {
			line.Asked = &clamped[i].Asked
		}
		d.Offsets = append(d.Offsets, line)
	}
	return d
}

// readReset reads which way was asked for, and that what is to be reset was said once.
func readReset(c *call, group string, now time.Time) (cluster.Reset, error) {
	var ways []string
	for _, way := range resetWays {
		if c.IsSet(way) {
			ways = append(ways, way)
		}
	}
	scopes := 0
	for _, scope := range []bool{c.Bool("all-topics"), len(c.values("topic")) > 0, c.IsSet("from-file")} {
		if scope {
			scopes++
		}
	}
	switch {
	case len(ways) != 1:
		return cluster.Reset{}, wrongUsage("one of --%s has to be given", strings.Join(resetWays, ", --"))
	case scopes != 1:
		return cluster.Reset{}, wrongUsage("one of --topic, --all-topics and --from-file has to be given")
	}
	switch ways[0] {
	case "to-earliest":
		return cluster.Reset{Mode: cluster.ToEarliest}, nil
	case "to-latest":
		return cluster.Reset{Mode: cluster.ToLatest}, nil
	case "to-offset":
		return cluster.Reset{Mode: cluster.ToOffset, Number: c.Int64("to-offset")}, nil
	case "shift-by":
		return cluster.Reset{Mode: cluster.ShiftBy, Number: c.Int64("shift-by")}, nil
	case "to-datetime":
		at, err := cluster.ParseDateTime(c.String("to-datetime"))
		if err != nil {
			return cluster.Reset{}, wrongUsage("--to-datetime: %v", err)
		}
		return cluster.Reset{Mode: cluster.ToTime, Number: at.UnixMilli()}, nil
	case "by-duration":
		back, err := cluster.ParseDuration(c.String("by-duration"))
		if err != nil {
			return cluster.Reset{}, wrongUsage("--by-duration: %v", err)
		}
		return cluster.Reset{Mode: cluster.ToTime, Number: now.Add(-back).UnixMilli()}, nil
	}
	given, err := resetFile(c.String("from-file"), group)
	return cluster.Reset{Mode: cluster.ToGiven, Given: given}, err
}

func resetFile(path, group string) (map[plan.Partition]int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	plans, err := cluster.ReadResetFile(csv.NewReader(file), group)
	if err == nil && plans[group] == nil {
		err = fmt.Errorf("%s says nothing of group %s", path, group)
	}
	return plans[group], err
}
