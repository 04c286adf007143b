package tools

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/plan"
)

// resetModes are the ways to say where to, of which one has to be given.
var resetModes = []string{"to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "shift-by", "from-file"}

// The times that stand for the ends of a partition.
const (
	latestOffset   = -1
	earliestOffset = -2
)

func (g groupTool) reset() error {
	groups, err := g.groups()
	if err != nil || len(groups) == 0 {
		return err
	}
	described, err := g.admin.DescribeGroups(g.ctx, groups...)
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
		if d.Err == nil && d.State != "Empty" && d.State != "Dead" {
			g.f.groupError(fmt.Sprintf("Assignments can only be reset if the group '%s' is inactive, but the current state is %s.", group, d.State))
			resets[group], refused = nil, true
			continue
		}
		if resets[group], err = g.newOffsets(group); err != nil {
			return err
		}
		if g.set.Has("execute") && len(resets[group]) > 0 {
			if err := g.commit(group, resets[group]); err != nil {
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

func partitionsOf(offsets map[plan.Partition]int64) []plan.Partition {
	list := plan.Assignment{}
	for p := range offsets {
		list[p] = nil
	}
	return list.Partitions()
}

func (g groupTool) printReset(resets map[string]map[plan.Partition]int64) {
	fmt.Fprintf(g.f.stdout, "\n%-30s %-30s %-10s %-15s\n", "GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
	for _, group := range sortedKeys(resets) {
		for _, p := range partitionsOf(resets[group]) {
			fmt.Fprintf(g.f.stdout, "%-30s %-30s %-10d %-15d\n", group, p.Topic, p.ID, resets[group][p])
		}
	}
}

// exportedOffsets are the new offsets as CSV, which --from-file reads. The group is left out when there is only one.
func exportedOffsets(resets map[string]map[plan.Partition]int64, one bool) string {
	var out strings.Builder
	w := csv.NewWriter(&out)
	for _, group := range sortedKeys(resets) {
		for _, p := range partitionsOf(resets[group]) {
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

func (g groupTool) commit(group string, offsets map[plan.Partition]int64) error {
	var list kadm.Offsets
	for p, at := range offsets {
		list.AddOffset(p.Topic, p.ID, at, -1)
	}
	resp, err := g.admin.CommitOffsets(g.ctx, group, list)
	if err != nil {
		return err
	}
	return resp.Error()
}

// scope lists the partitions whose offsets are to be reset.
func (g groupTool) scope(group string, committed map[plan.Partition]int64) ([]plan.Partition, error) {
	switch {
	case g.set.Has("all-topics"):
		return partitionsOf(committed), nil
	case g.set.Has("topic"):
		return g.partitionsOf(g.set.Values("topic"))
	}
	return nil, &badArgument{"One of the reset scopes should be defined: --all-topics, --topic."}
}

// newOffsets works out where a group goes.
func (g groupTool) newOffsets(group string) (map[plan.Partition]int64, error) {
	committed, err := g.committed(group)
	if err != nil {
		return nil, err
	}
	if g.set.Has("from-file") {
		return g.fromFile(group)
	}
	partitions, err := g.scope(group, committed)
	if err != nil {
		return nil, err
	}
	switch {
	case g.set.Has("to-earliest"):
		return g.complete(partitions, earliestOffset)
	case g.set.Has("to-latest"):
		return g.complete(partitions, latestOffset)
	case g.set.Has("to-datetime"):
		text, err := g.set.Value("to-datetime")
		if err != nil {
			return nil, err
		}
		at, err := parseDateTime(text)
		if err != nil {
			return nil, err
		}
		return g.complete(partitions, at.UnixMilli())
	case g.set.Has("by-duration"):
		text, err := g.set.Value("by-duration")
		if err != nil {
			return nil, err
		}
		back, err := parseDuration(text)
		if err != nil {
			return nil, err
		}
		return g.complete(partitions, time.Now().Add(-back).UnixMilli())
	case g.set.Has("to-current"):
		ends, err := g.complete(partitions, latestOffset)
		if err != nil {
			return nil, err
		}
		for _, p := range partitions {
			if at, there := committed[p]; there {
				ends[p] = at
			}
		}
		return ends, nil
	case g.set.Has("to-offset"), g.set.Has("shift-by"):
		return g.numbered(partitions, committed)
	}
	return nil, &badArgument{"Option '[reset-offsets]' requires one of the following scenarios: [" + strings.Join(resetModes, "], [") + "]"}
}

// numbered works out offsets that are given as numbers, kept within what the partitions have.
func (g groupTool) numbered(partitions []plan.Partition, committed map[plan.Partition]int64) (map[plan.Partition]int64, error) {
	asked := map[plan.Partition]int64{}
	for _, p := range partitions {
		if g.set.Has("to-offset") {
			at, err := g.set.Int("to-offset", 0)
			if err != nil {
				return nil, &badArgument{err.Error()}
			}
			asked[p] = at
			continue
		}
		by, err := g.set.Int("shift-by", 0)
		if err != nil {
			return nil, &badArgument{err.Error()}
		}
		at, there := committed[p]
		if !there {
			return nil, &badArgument{fmt.Sprintf("Cannot shift offset for partition %v since there is no current committed offset", p)}
		}
		asked[p] = at + by
	}
	return g.within(asked)
}

// within keeps offsets between the first and the last of their partitions and says where that changes them.
func (g groupTool) within(asked map[plan.Partition]int64) (map[plan.Partition]int64, error) {
	partitions := partitionsOf(asked)
	first, err := g.complete(partitions, earliestOffset)
	if err != nil {
		return nil, err
	}
	last, err := g.complete(partitions, latestOffset)
	if err != nil {
		return nil, err
	}
	for _, p := range partitions {
		switch at := asked[p]; {
		case at > last[p]:
			g.warn(fmt.Sprintf("New offset (%d) is higher than latest offset for topic partition %v. Value will be set to %d", at, p, last[p]))
			asked[p] = last[p]
		case at < first[p]:
			g.warn(fmt.Sprintf("New offset (%d) is lower than earliest offset for topic partition %v. Value will be set to %d", at, p, first[p]))
			asked[p] = first[p]
		}
	}
	return asked, nil
}

func (g groupTool) warn(text string) {
	fmt.Fprintf(g.f.stderr, "[%s] WARN %s (%s)\n", time.Now().Format("2006-01-02 15:04:05,000"), text, g.f.class)
}

// fromFile reads topic,partition,offset for one group, or group,topic,partition,offset.
func (g groupTool) fromFile(group string) (map[plan.Partition]int64, error) {
	path, err := g.set.Value("from-file")
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	plans, err := readResetFile(csv.NewReader(file), group)
	if err != nil {
		return nil, err
	}
	if plans[group] == nil {
		g.f.groupError(fmt.Sprintf("No reset plan for group %s found", group))
		return nil, nil
	}
	return g.within(plans[group])
}

func readResetFile(r *csv.Reader, group string) (map[string]map[plan.Partition]int64, error) {
	r.FieldsPerRecord, r.TrimLeadingSpace = -1, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	plans := map[string]map[plan.Partition]int64{}
	for i, row := range rows {
		to := group
		if len(row) == 4 {
			to, row = row[0], row[1:]
		}
		if len(row) != 3 {
			return nil, fmt.Errorf("line %d of the file has %d fields: topic,partition,offset or group,topic,partition,offset are needed", i+1, len(row))
		}
		id, err := strconv.ParseInt(strings.TrimSpace(row[1]), 10, 32)
		if err != nil || id < 0 {
			return nil, fmt.Errorf("line %d of the file has no partition: %q", i+1, row[1])
		}
		at, err := strconv.ParseInt(strings.TrimSpace(row[2]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %d of the file has no offset: %q", i+1, row[2])
		}
		if plans[to] == nil {
			plans[to] = map[plan.Partition]int64{}
		}
		plans[to][plan.Partition{Topic: row[0], ID: int32(id)}] = at
	}
	return plans, nil
}

// partitionsOf reads topic or topic:0,1 arguments; a topic alone is all its partitions.
func (g groupTool) partitionsOf(args []string) ([]plan.Partition, error) {
	var list []plan.Partition
	var whole []string
	for _, arg := range args {
		topic, numbers, some := strings.Cut(arg, ":")
		if !some {
			whole = append(whole, topic)
			continue
		}
		for _, number := range strings.Split(numbers, ",") {
			id, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
			if err != nil || id < 0 {
				return nil, &badArgument{fmt.Sprintf("Invalid topic arg '%s', expected: 'topic' or 'topic:partitions'", arg)}
			}
			list = append(list, plan.Partition{Topic: topic, ID: int32(id)})
		}
	}
	if whole != nil {
		found, failed, err := (&reassignmentByBroker{g.f, g.client}).replicas(whole)
		if err != nil {
			return nil, err
		}
		if len(failed) > 0 {
			return nil, failed[sortedKeys(failed)[0]]
		}
		list = append(list, found.Partitions()...)
	}
	slices.SortFunc(list, plan.Partition.Compare)
	return slices.Compact(list), nil
}

// complete are the offsets of a time, and the end where nothing is as late.
func (g groupTool) complete(partitions []plan.Partition, at int64) (map[plan.Partition]int64, error) {
	found, err := g.offsets(partitions, at)
	if err != nil {
		return nil, err
	}
	var later []plan.Partition
	for _, p := range partitions {
		if _, there := found[p]; !there {
			later = append(later, p)
		}
	}
	if len(later) == 0 {
		return found, nil
	}
	if at == latestOffset || at == earliestOffset {
		return nil, &badArgument{fmt.Sprintf("Error getting %s offset of topic partition: %v", map[int64]string{latestOffset: "ending", earliestOffset: "starting"}[at], later[0])}
	}
	ends, err := g.complete(later, latestOffset)
	for p, end := range ends {
		found[p] = end
	}
	return found, err
}

// offsets asks for the offsets of a time. A partition about which nothing is known is left out.
func (g groupTool) offsets(partitions []plan.Partition, at int64) (map[plan.Partition]int64, error) {
	found := map[plan.Partition]int64{}
	if len(partitions) == 0 {
		return found, nil
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	byTopic := map[string]int{}
	for _, p := range partitions {
		if _, known := byTopic[p.Topic]; !known {
			byTopic[p.Topic] = len(req.Topics)
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = p.Topic
			req.Topics = append(req.Topics, t)
		}
		r := kmsg.NewListOffsetsRequestTopicPartition()
		r.Partition, r.Timestamp = p.ID, at
		req.Topics[byTopic[p.Topic]].Partitions = append(req.Topics[byTopic[p.Topic]].Partitions, r)
	}
	for _, shard := range g.client.RequestSharded(g.ctx, req) {
		if shard.Err != nil {
			continue // a partition without a leader: its offsets are not known
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 && p.Offset >= 0 {
					found[plan.Partition{Topic: t.Topic, ID: p.Partition}] = p.Offset
				}
			}
		}
	}
	return found, g.ctx.Err()
}

// parseDateTime reads YYYY-MM-DDTHH:mm:SS.sss, in UTC or with Z, +hh:mm, +hhmm or +hh after it.
func parseDateTime(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04:05.000", "2006-01-02T15:04:05.000Z07:00", "2006-01-02T15:04:05.000Z0700", "2006-01-02T15:04:05.000Z07"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("Unparseable date: \"%s\"", text)
}

var durationForm = regexp.MustCompile(`(?i)^([-+]?)P(?:([-+]?\d+)D)?(T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?$`)

// parseDuration reads PnDTnHnMnS (ISO 8601).
func parseDuration(text string) (time.Duration, error) {
	bad := errors.New("Text cannot be parsed to a Duration")
	m := durationForm.FindStringSubmatch(text)
	if m == nil || strings.EqualFold(m[3], "T") || m[2]+m[4]+m[5]+m[6] == "" {
		return 0, bad
	}
	const most = 100 * 365 * 24 * time.Hour
	var total time.Duration
	for i, unit := range map[int]time.Duration{2: 24 * time.Hour, 4: time.Hour, 5: time.Minute, 6: time.Second} {
		if m[i] == "" {
			continue
		}
		n, err := strconv.ParseInt(m[i], 10, 64)
		if err != nil || n > int64(most/unit) || n < -int64(most/unit) {
			return 0, bad
		}
		total += time.Duration(n) * unit
	}
	if m[7] != "" {
		n, _ := strconv.ParseInt((m[7] + "000000000")[:9], 10, 64)
		if strings.HasPrefix(m[6], "-") {
			n = -n
		}
		total += time.Duration(n)
	}
	if m[1] == "-" {
		total = -total
	}
	return total, nil
}
