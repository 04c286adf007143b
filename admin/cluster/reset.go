package cluster

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"barnabas/admin/plan"
)

// ResetMode says where offsets are to be set to.
type ResetMode int8

// The modes of a reset.
const (
	ToEarliest ResetMode = iota // the first offsets
	ToLatest                    // the ends
	ToCurrent                   // what is committed, and the end where nothing is
	ToTime                      // the first offsets of a time, and the end where nothing is as late
	ToOffset                    // one offset
	ShiftBy                     // so many after what is committed
	ToGiven                     // an offset for each partition
)

// Reset is where the offsets of a group are to be set to.
type Reset struct {
	Mode   ResetMode
	Number int64                    // milliseconds of ToTime; of ToOffset and ShiftBy the offset or distance
	Given  map[plan.Partition]int64 // of ToGiven
}

// Clamped is an offset that was asked for outside of what its partition has, and what it became.
type Clamped struct {
	Partition  plan.Partition
	Asked, Set int64
}

func (c Clamped) String() string {
	if c.Asked > c.Set {
		return fmt.Sprintf("New offset (%d) is higher than latest offset for topic partition %v. Value will be set to %d", c.Asked, c.Partition, c.Set)
	}
	return fmt.Sprintf("New offset (%d) is lower than earliest offset for topic partition %v. Value will be set to %d", c.Asked, c.Partition, c.Set)
}

// ImpossibleResetError tells why a reset cannot be worked out.
type ImpossibleResetError struct{ Reason string }

func (e *ImpossibleResetError) Error() string { return e.Reason }

// NewOffsets works out where a reset goes, for partitions of which some offsets are committed. Nothing is set.
func (c *Cluster) NewOffsets(ctx context.Context, r Reset, partitions []plan.Partition, committed map[plan.Partition]int64) (map[plan.Partition]int64, []Clamped, error) {
	switch r.Mode {
	case ToEarliest:
		to, err := c.complete(ctx, partitions, Earliest)
		return to, nil, err
	case ToLatest:
		to, err := c.complete(ctx, partitions, Latest)
		return to, nil, err
	case ToTime:
		to, err := c.complete(ctx, partitions, r.Number)
		return to, nil, err
	case ToCurrent:
		to, err := c.complete(ctx, partitions, Latest)
		for _, p := range partitions {
			if at, there := committed[p]; there && err == nil {
				to[p] = at
			}
		}
		return to, nil, err
	}
	asked, err := r.asked(partitions, committed)
	if err != nil {
		return nil, nil, err
	}
	partitions = PartitionsOf(asked)
	first, err := c.complete(ctx, partitions, Earliest)
	if err != nil {
		return nil, nil, err
	}
	last, err := c.complete(ctx, partitions, Latest)
	if err != nil {
		return nil, nil, err
	}
	to, clamped := within(asked, first, last)
	return to, clamped, nil
}

// asked are the offsets of a reset that says them as numbers.
func (r Reset) asked(partitions []plan.Partition, committed map[plan.Partition]int64) (map[plan.Partition]int64, error) {
	if r.Mode == ToGiven {
		return r.Given, nil
	}
	asked := map[plan.Partition]int64{}
	for _, p := range partitions {
		if r.Mode == ToOffset {
			asked[p] = r.Number
			continue
		}
		at, there := committed[p]
		if !there {
			return nil, &ImpossibleResetError{fmt.Sprintf("Cannot shift offset for partition %v since there is no current committed offset", p)}
		}
		asked[p] = at + r.Number
	}
	return asked, nil
}

// within keeps offsets between the first and the last of their partitions and tells where that changes them, in order.
func within(asked, first, last map[plan.Partition]int64) (map[plan.Partition]int64, []Clamped) {
	to, changed := map[plan.Partition]int64{}, []Clamped(nil)
	for _, p := range PartitionsOf(asked) {
		if to[p] = max(min(asked[p], last[p]), first[p]); to[p] != asked[p] {
			changed = append(changed, Clamped{p, asked[p], to[p]})
		}
	}
	return to, changed
}

// PartitionsOf are the partitions that have an offset, in order.
func PartitionsOf(offsets map[plan.Partition]int64) []plan.Partition {
	list := plan.Assignment{}
	for p := range offsets {
		list[p] = nil
	}
	return list.Partitions()
}

// complete are the offsets of a time, and the end where nothing is as late. A partition about which nothing is known is an error.
func (c *Cluster) complete(ctx context.Context, partitions []plan.Partition, at int64) (map[plan.Partition]int64, error) {
	found, _, err := c.Offsets(ctx, partitions, at)
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
	if which := map[int64]string{Latest: "ending", Earliest: "starting"}[at]; which != "" {
		return nil, &ImpossibleResetError{fmt.Sprintf("Error getting %s offset of topic partition: %v", which, later[0])}
	}
	ends, err := c.complete(ctx, later, Latest)
	for p, end := range ends {
		found[p] = end
	}
	return found, err
}

// ParseScope reads topic and topic:0,1 arguments: topics that are meant as a whole, and single partitions.
func ParseScope(args []string) (whole []string, some []plan.Partition, err error) {
	for _, arg := range args {
		topic, numbers, parts := strings.Cut(arg, ":")
		if !parts {
			whole = append(whole, topic)
			continue
		}
		for _, number := range strings.Split(numbers, ",") {
			id, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
			if err != nil || id < 0 {
				return nil, nil, &ImpossibleResetError{fmt.Sprintf("Invalid topic arg '%s', expected: 'topic' or 'topic:partitions'", arg)}
			}
			some = append(some, plan.Partition{Topic: topic, ID: int32(id)})
		}
	}
	return whole, some, nil
}

// Scope lists the partitions that topic and topic:0,1 arguments name, in order.
func (c *Cluster) Scope(ctx context.Context, args []string) ([]plan.Partition, error) {
	whole, list, err := ParseScope(args)
	if err != nil {
		return nil, err
	}
	replicas, failed, err := c.Replicas(ctx, whole)
	if err != nil {
		return nil, err
	}
	for _, topic := range slices.Sorted(maps.Keys(failed)) {
		return nil, failed[topic]
	}
	list = append(list, replicas.Partitions()...)
	slices.SortFunc(list, plan.Partition.Compare)
	return slices.Compact(list), nil
}

// ReadResetFile reads topic,partition,offset for one group, or group,topic,partition,offset.
func ReadResetFile(r *csv.Reader, group string) (map[string]map[plan.Partition]int64, error) {
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
