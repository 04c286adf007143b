package console

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func toGroup(in url.Values) string { return link("/group", "name", in.Get("group")) }

// The ways of a reset, as the tools call them.
var resetWays = []string{"to-earliest", "to-latest", "to-offset", "shift-by", "to-datetime", "by-duration", "from-file"}

func resetOffsetsAction() action {
	return action{path: "/do/reset-offsets", title: "Reset a group's offsets", danger: true,
		fields: func(_ context.Context, _ *Console, in url.Values) ([]field, error) {
			return []field{
				fixed("group", "Group", in.Get("group")),
				{Name: "topics", Label: "What of", Value: in.Get("topics"), Kind: "text", Help: "topics, or TOPIC:0,1 with some partitions, separated by blanks; empty: all that the group has offsets of"},
				{Name: "way", Label: "Where to", Value: in.Get("way"), Kind: "choice", Choices: resetWays},
				{Name: "value", Label: "With", Value: in.Get("value"), Kind: "text", Help: "to-offset: an offset; shift-by: a number, negative to read again; to-datetime: 2026-01-31T09:00 (UTC); by-duration: PT1H or P1D ago"},
				{Name: "given", Label: "Offsets of from-file", Value: in.Get("given"), Kind: "lines", Help: "topic,partition,offset, one a line"},
			}, nil
		},
		preview: previewReset,
		do: func(ctx context.Context, c *Console, in url.Values) (string, error) {
			name := in.Get("group")
			if err := c.needInactive(ctx, name); err != nil {
				return "", err
			}
			offsets, err := givenOffsets(in.Get("settle"), name)
			if err != nil {
				return "", err
			}
			if len(offsets) == 0 {
				return "", errors.New("there was no preview")
			}
			return fmt.Sprintf("set the offsets of group %s in %s", name, plural(len(offsets), "partition")), c.Cluster.Commit(ctx, name, offsets)
		},
		back: toGroup,
	}
}

// previewReset works out the new offsets. The deed commits exactly these.
func previewReset(ctx context.Context, c *Console, in url.Values) (*preview, error) {
	name, now := in.Get("group"), time.Now()
	if err := c.needInactive(ctx, name); err != nil {
		return nil, err
	}
	reset, err := readReset(in, now)
	if err != nil {
		return nil, err
	}
	committed, err := c.Cluster.Committed(ctx, name)
	if err != nil {
		return nil, err
	}
	partitions := cluster.PartitionsOf(committed)
	scope := strings.Fields(in.Get("topics"))
	if len(scope) > 0 {
		if partitions, err = c.Cluster.Scope(ctx, scope); err != nil {
			return nil, err
		}
	}
	to, clamped, err := c.Cluster.NewOffsets(ctx, reset, partitions, committed)
	if err != nil {
		return nil, err
	}
	if len(to) == 0 {
		return nil, errors.New("the group has committed nothing there: name topics")
	}
	p := &preview{Heading: []string{"Partition", "Old", "New", "Difference"}, Commands: c.commands(resetCommand(in, scope, true), resetCommand(in, scope, false))}
	var settle strings.Builder
	var again, skipped int64
	for _, at := range cluster.PartitionsOf(to) {
		old, difference := "–", "–"
		if was, there := committed[at]; there {
			old, difference = strconv.FormatInt(was, 10), fmt.Sprintf("%+d", to[at]-was)
			again, skipped = again+max(0, was-to[at]), skipped+max(0, to[at]-was)
		}
		p.Rows = append(p.Rows, []string{at.String(), old, strconv.FormatInt(to[at], 10), difference})
		fmt.Fprintf(&settle, "%s,%d,%d\n", at.Topic, at.ID, to[at])
	}
	for _, one := range clamped {
		p.Warnings = append(p.Warnings, one.String()+".")
	}
	p.Sentence = fmt.Sprintf("%s of group %s would be set: %s offsets are read again, %s are passed over.", plural(len(to), "partition"), name, number(again), number(skipped))
	p.Carry = map[string]string{"settle": settle.String()}
	return p, nil
}

// resetCommand is the command that resets likewise, of ours or of Kafka's.
func resetCommand(in url.Values, scope []string, own bool) []string {
	words := []string{"kafka-consumer-groups.sh", "--group", in.Get("group"), "--reset-offsets"}
	if own {
		words = []string{"group", "reset", in.Get("group")}
	}
	if in.Get("way") == "from-file" {
		words = append(words, "--from-file", "OFFSETS.csv")
	} else {
		for _, topic := range scope {
			words = append(words, "--topic", topic)
		}
		if len(scope) == 0 {
			words = append(words, "--all-topics")
		}
		words = append(words, "--"+in.Get("way"))
		if value := strings.TrimSpace(in.Get("value")); value != "" && in.Get("way") != "to-earliest" && in.Get("way") != "to-latest" {
			words = append(words, value)
		}
	}
	if !own {
		words = append(words, "--execute")
	}
	return words
}

func readReset(in url.Values, now time.Time) (cluster.Reset, error) {
	value := strings.TrimSpace(in.Get("value"))
	count := func(mode cluster.ResetMode) (cluster.Reset, error) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return cluster.Reset{}, fmt.Errorf("%q is no number", value)
		}
		return cluster.Reset{Mode: mode, Number: n}, nil
	}
	switch in.Get("way") {
	case "to-earliest":
		return cluster.Reset{Mode: cluster.ToEarliest}, nil
	case "to-latest":
		return cluster.Reset{Mode: cluster.ToLatest}, nil
	case "to-offset":
		return count(cluster.ToOffset)
	case "shift-by":
		return count(cluster.ShiftBy)
	case "to-datetime":
		at, err := parseTime(value)
		return cluster.Reset{Mode: cluster.ToTime, Number: at.UnixMilli()}, err
	case "by-duration":
		back, err := cluster.ParseDuration(value)
		if err != nil {
			return cluster.Reset{}, fmt.Errorf("%q is no duration such as PT1H or P1D", value)
		}
		return cluster.Reset{Mode: cluster.ToTime, Number: now.Add(-back).UnixMilli()}, nil
	case "from-file":
		given, err := givenOffsets(in.Get("given"), in.Get("group"))
		if err == nil && len(given) == 0 {
			err = errors.New("no offsets are given")
		}
		return cluster.Reset{Mode: cluster.ToGiven, Given: given}, err
	}
	return cluster.Reset{}, fmt.Errorf("%q is no way to reset", in.Get("way"))
}

// givenOffsets reads topic,partition,offset lines.
func givenOffsets(text, group string) (map[plan.Partition]int64, error) {
	plans, err := cluster.ReadResetFile(csv.NewReader(strings.NewReader(text)), group)
	return plans[group], err
}

// needInactive fails with the members of a group that has any.
func (c *Console) needInactive(ctx context.Context, name string) error {
	if name == "" {
		return errors.New("which group?")
	}
	told, err := c.Cluster.DescribeGroups(ctx, []string{name})
	if err != nil {
		return err
	}
	d := told[name]
	if cluster.Inactive(d) {
		return nil
	}
	if d.Err != nil {
		return d.Err
	}
	var who []string
	for _, m := range memberRows(d.Members) {
		who = append(who, fmt.Sprintf("%s (%s)", m.Client, m.Host))
	}
	return fmt.Errorf("the group is %s; stop its members first: %s", d.State, strings.Join(who, ", "))
}

func deleteGroupAction() action {
	return action{path: "/do/delete-group", title: "Delete a group", danger: true,
		fields: func(_ context.Context, _ *Console, in url.Values) ([]field, error) {
			return []field{fixed("group", "Group", in.Get("group"))}, nil
		},
		preview: func(ctx context.Context, c *Console, in url.Values) (*preview, error) {
			name := in.Get("group")
			if err := c.needInactive(ctx, name); err != nil {
				return nil, err
			}
			committed, err := c.Cluster.Committed(ctx, name)
			if err != nil {
				return nil, err
			}
			p := &preview{Sentence: fmt.Sprintf("Group %s would be forgotten with its offsets of %s. Who comes back as it begins where auto.offset.reset says.", name, plural(len(committed), "partition")), Type: name, Heading: []string{"Partition", "Committed"},
				Commands: c.commands([]string{"group", "delete", name}, []string{"kafka-consumer-groups.sh", "--delete", "--group", name})}
			for _, at := range cluster.PartitionsOf(committed) {
				p.Rows = append(p.Rows, []string{at.String(), strconv.FormatInt(committed[at], 10)})
			}
			return p, nil
		},
		do: func(ctx context.Context, c *Console, in url.Values) (string, error) {
			return "deleted group " + in.Get("group"), c.Cluster.DeleteGroup(ctx, in.Get("group"))
		},
		back: func(in url.Values) string {
			if in.Get("step") == "do" {
				return "/groups"
			}
			return toGroup(in)
		},
	}
}
