package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// there are those of some topics that are in the cluster.
func (a streamsApplication) there(topics []string) (found, missing []string) {
	for _, topic := range topics {
		if slices.Contains(a.topics, topic) {
			found = append(found, topic)
		} else {
			missing = append(missing, topic)
		}
	}
	return found, missing
}

// resetOffsets sets the offsets of input and intermediate topics; whole is false when some of them are not there.
func (a streamsApplication) resetOffsets() (whole bool, err error) {
	out := a.f.stdout
	if a.input == nil && a.intermediate == nil {
		fmt.Fprintln(out, "No input or intermediate topics specified. Skipping seek.")
		return true, nil
	}
	if a.input != nil {
		fmt.Fprintf(out, "Reset-offsets for input topics %s\n", javaList(a.input))
	}
	if a.intermediate != nil {
		fmt.Fprintf(out, "Seek-to-end for intermediate topics %s\n", javaList(a.intermediate))
	}
	input, missingInput := a.there(a.input)
	intermediate, missingIntermediate := a.there(a.intermediate)
	intermediate = slices.DeleteFunc(intermediate, func(topic string) bool { return slices.Contains(input, topic) })
	if missingInput != nil {
		fmt.Fprintf(out, "Following input topics are not found, skipping them\nTopic: %s\n", strings.Join(missingInput, "\nTopic: "))
	}
	if missingIntermediate != nil {
		fmt.Fprintf(out, "Following intermediate topics are not found, skipping them\nTopic:%s\n", strings.Join(missingIntermediate, "\nTopic:"))
	}
	whole = missingInput == nil && missingIntermediate == nil
	if input == nil && intermediate == nil {
		return whole, nil
	}
	to, err := a.inputOffsets(input)
	if err != nil {
		return false, err
	}
	ends, err := a.intermediateOffsets(intermediate)
	if err != nil {
		return false, err
	}
	maps.Copy(to, ends)
	if !a.dryRun {
		if err := a.cluster.Commit(a.ctx, a.id, to); err != nil {
			return false, err
		}
	}
	fmt.Fprintln(out, "Done.")
	return whole, nil
}

// inputOffsets works out, and tells, where the offsets of the input topics go.
func (a streamsApplication) inputOffsets(topics []string) (map[plan.Partition]int64, error) {
	to := map[plan.Partition]int64{}
	if len(topics) == 0 {
		return to, nil
	}
	partitions, err := a.cluster.Scope(a.ctx, topics)
	if err != nil {
		return nil, badReset(err)
	}
	fmt.Fprintf(a.f.stdout, "Following input topics offsets will be reset to (for consumer group %s)\n", a.id)
	reset, _, err := resetAsked(a.set, a.id) // without any, it is to the first offsets
	if err == nil {
		to, err = a.newOffsets(reset, partitions)
	}
	if err != nil {
		if a.set.Has("from-file") || a.set.Has("to-datetime") {
			fmt.Fprintln(a.f.stderr, "ERROR: Resetting offsets failed.")
		}
		return nil, badReset(err)
	}
	for _, p := range partitions {
		fmt.Fprintf(a.f.stdout, "Topic: %s Partition: %d Offset: %d\n", p.Topic, p.ID, to[p])
	}
	return to, nil
}

// newOffsets works out where a reset of all partitions of the input topics goes.
func (a streamsApplication) newOffsets(reset cluster.Reset, partitions []plan.Partition) (map[plan.Partition]int64, error) {
	var committed map[plan.Partition]int64
	switch reset.Mode {
	case cluster.ToGiven:
		if given := cluster.PartitionsOf(reset.Given); !slices.Equal(given, partitions) {
			return nil, &badArgument{fmt.Sprintf("The file has offsets of [%s], but the input topics have the partitions [%s]", joinPartitions(given, ", "), joinPartitions(partitions, ", "))}
		}
	case cluster.ToTime:
		later, _, err := a.cluster.Offsets(a.ctx, partitions, reset.Number)
		if err != nil {
			return nil, err
		}
		for _, p := range partitions {
			if _, there := later[p]; !there {
				fmt.Fprintf(a.f.stdout, "Partition %d from topic %s is empty, without a committed record. Falling back to latest known offset.\n", p.ID, p.Topic)
			}
		}
	case cluster.ShiftBy:
		var err error
		if committed, err = a.positions(partitions); err != nil {
			return nil, err
		}
	}
	to, clamped, err := a.cluster.NewOffsets(a.ctx, reset, partitions, committed)
	for _, c := range clamped {
		how := "lower than earliest"
		if c.Asked > c.Set {
			how = "higher than latest"
		}
		fmt.Fprintf(a.f.stdout, "New offset (%d) is %s offset. Value will be set to %d\n", c.Asked, how, c.Set)
	}
	return to, err
}

// positions are where a member of the group would begin: at what is committed, else where auto.offset.reset says.
func (a streamsApplication) positions(partitions []plan.Partition) (map[plan.Partition]int64, error) {
	at, err := a.cluster.Committed(a.ctx, a.id)
	if err != nil {
		return nil, err
	}
	uncommitted := slices.DeleteFunc(slices.Clone(partitions), func(p plan.Partition) bool { _, there := at[p]; return there })
	start := cluster.ToLatest
	if a.settings["auto.offset.reset"] == "earliest" {
		start = cluster.ToEarliest
	}
	starts, _, err := a.cluster.NewOffsets(a.ctx, cluster.Reset{Mode: start}, uncommitted, nil)
	maps.Copy(at, starts)
	return at, err
}

// intermediateOffsets are the ends of the intermediate topics.
func (a streamsApplication) intermediateOffsets(topics []string) (map[plan.Partition]int64, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	partitions, err := a.cluster.Scope(a.ctx, topics)
	if err != nil {
		return nil, badReset(err)
	}
	fmt.Fprintf(a.f.stdout, "Following intermediate topics offsets will be reset to end (for consumer group %s)\n", a.id)
	for _, p := range partitions {
		fmt.Fprintf(a.f.stdout, "Topic: %s\n", p.Topic)
	}
	ends, _, err := a.cluster.NewOffsets(a.ctx, cluster.Reset{Mode: cluster.ToLatest}, partitions, nil)
	return ends, badReset(err)
}
