package tools

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
)

// resetModes are the ways to say where to, of which one has to be given.
var resetModes = []string{"to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "shift-by", "from-file"}

func (g groupTool) reset() error {
	groups, err := g.groups()
	if err != nil || len(groups) == 0 {
		return err
	}
	described, err := g.cluster.DescribeGroups(g.ctx, groups)
	if err != nil {
		return err
	}
	resets := map[string]map[plan.Partition]int64{}
	refused := false
	for _, group := range groups {
		d := described[group]
		if d.Err != nil && !errors.Is(d.Err, kerr.GroupIDNotFound) {
			return d.Err
		}
		if !cluster.Inactive(d) {
			g.f.groupError(fmt.Sprintf("Assignments can only be reset if the group '%s' is inactive, but the current state is %s.", group, d.State))
			resets[group], refused = nil, true
			continue
		}
		if resets[group], err = g.newOffsets(group); err != nil {
			return err
		}
		if g.set.Has("execute") && len(resets[group]) > 0 {
			if err := g.cluster.Commit(g.ctx, group, resets[group]); err != nil {
				return err
			}
		}
	}
	if g.set.Has("export") {
		fmt.Fprintln(g.f.stdout, exportedOffsets(resets, len(g.set.Values("group")) == 1 && !g.set.Has("all-groups")))
	} else {
		g.printReset(resets)
	}
	if refused {
		return errUnfinished
	}
	return nil
}

func (g groupTool) printReset(resets map[string]map[plan.Partition]int64) {
	fmt.Fprintf(g.f.stdout, "\n%-30s %-30s %-10s %-15s\n", "GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
	for _, group := range sortedKeys(resets) {
		for _, p := range cluster.PartitionsOf(resets[group]) {
			fmt.Fprintf(g.f.stdout, "%-30s %-30s %-10d %-15d\n", group, p.Topic, p.ID, resets[group][p])
		}
	}
}

// exportedOffsets are the new offsets as CSV, which --from-file reads. The group is left out when there is only one.
func exportedOffsets(resets map[string]map[plan.Partition]int64, one bool) string {
	var out strings.Builder
	w := csv.NewWriter(&out)
	for _, group := range sortedKeys(resets) {
		for _, p := range cluster.PartitionsOf(resets[group]) {
			row := []string{group, p.Topic, strconv.Itoa(int(p.ID)), strconv.FormatInt(resets[group][p], 10)}
			if one {
				row = row[1:]
			}
			_ = w.Write(row) // into memory
		}
	}
	w.Flush()
	return out.String()
}

// scope lists the partitions whose offsets are to be reset.
func (g groupTool) scope(committed map[plan.Partition]int64) ([]plan.Partition, error) {
	switch {
	case g.set.Has("all-topics"):
		return cluster.PartitionsOf(committed), nil
	case g.set.Has("topic"):
		return g.partitionsOf(g.set.Values("topic"))
	}
	return nil, &badArgument{"One of the reset scopes should be defined: --all-topics, --topic."}
}

// newOffsets works out where a group goes.
func (g groupTool) newOffsets(group string) (map[plan.Partition]int64, error) {
	committed, err := g.cluster.Committed(g.ctx, group)
	if err != nil {
		return nil, err
	}
	var partitions []plan.Partition
	if !g.set.Has("from-file") {
		if partitions, err = g.scope(committed); err != nil {
			return nil, err
		}
	}
	reset, given, err := resetAsked(g.set, group)
	if err != nil {
		return nil, err
	}
	if !given {
		return nil, &badArgument{"Option '[reset-offsets]' requires one of the following scenarios: [" + strings.Join(resetModes, "], [") + "]"}
	}
	if reset.Mode == cluster.ToGiven && reset.Given == nil {
		g.f.groupError(fmt.Sprintf("No reset plan for group %s found", group))
		return nil, nil
	}
	to, clamped, err := g.cluster.NewOffsets(g.ctx, reset, partitions, committed)
	for _, c := range clamped {
		g.warn(c.String())
	}
	return to, badReset(err)
}

// badReset makes what cannot be worked out a wrong call, as the original has it.
func badReset(err error) error {
	var impossible *cluster.ImpossibleResetError
	if errors.As(err, &impossible) {
		return &badArgument{impossible.Reason}
	}
	return err
}

// resetAsked reads which way was asked for, if any was; a file is read for the group.
func resetAsked(set *options.Set, group string) (r cluster.Reset, given bool, err error) {
	number := func(option string) (int64, error) {
		n, err := set.Int(option, 0)
		if err != nil {
			return 0, &badArgument{err.Error()}
		}
		return n, nil
	}
	text := ""
	switch {
	case set.Has("from-file"):
		r.Mode = cluster.ToGiven
		r.Given, err = resetFile(set, group)
	case set.Has("to-earliest"):
		r.Mode = cluster.ToEarliest
	case set.Has("to-latest"):
		r.Mode = cluster.ToLatest
	case set.Has("to-current"):
		r.Mode = cluster.ToCurrent
	case set.Has("to-offset"):
		r.Mode = cluster.ToOffset
		r.Number, err = number("to-offset")
	case set.Has("shift-by"):
		r.Mode = cluster.ShiftBy
		r.Number, err = number("shift-by")
	case set.Has("to-datetime"):
		r.Mode = cluster.ToTime
		if text, err = set.Value("to-datetime"); err == nil {
			var at time.Time
			if at, err = cluster.ParseDateTime(text); err != nil {
				err = &thrown{"java.text.ParseException", err.Error()}
			}
			r.Number = at.UnixMilli()
		}
	case set.Has("by-duration"):
		r.Mode = cluster.ToTime
		if text, err = set.Value("by-duration"); err == nil {
			var back time.Duration
			if back, err = cluster.ParseDuration(text); err != nil {
				err = &thrown{"java.time.format.DateTimeParseException", err.Error()}
			}
			r.Number = time.Now().Add(-back).UnixMilli()
		}
	default:
		return r, false, nil
	}
	return r, true, err
}

func (g groupTool) warn(text string) {
	fmt.Fprintf(g.f.stderr, "[%s] WARN %s (%s)\n", time.Now().Format("2006-01-02 15:04:05,000"), text, g.f.class)
}

// resetFile reads what the file of --from-file says of a group.
func resetFile(set *options.Set, group string) (map[plan.Partition]int64, error) {
	path, err := set.Value("from-file")
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	plans, err := cluster.ReadResetFile(csv.NewReader(file), group)
	return plans[group], err
}

// partitionsOf reads topic or topic:0,1 arguments; a topic alone is all its partitions.
func (g groupTool) partitionsOf(args []string) ([]plan.Partition, error) {
	list, err := g.cluster.Scope(g.ctx, args)
	return list, badReset(err)
}
