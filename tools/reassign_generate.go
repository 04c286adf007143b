package tools

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"barnabas/admin"
	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
)

// generate proposes where replicas should be.
func (r reassigner) generate(set *options.Set) error {
	file, err := readFileOption(set, "topics-to-move-json-file")
	if err != nil {
		return err
	}
	list, err := set.Value("broker-list")
	if err != nil {
		return err
	}
	wanted, err := readBrokerList(list)
	if err != nil {
		return err
	}
	topics, err := readTopicsToMove(file)
	if err != nil {
		return err
	}
	strategy, err := set.Value("strategy")
	if err != nil {
		return err
	}
	now, failed, err := r.door.replicas(topics)
	if err != nil {
		return err
	}
	if len(failed) > 0 && !r.byZooKeeper() {
		return topicError(failed)
	}
	brokers, err := r.usableBrokers(wanted, set.Has("disable-rack-aware"))
	if err != nil {
		return err
	}
	var proposed plan.Assignment
	placed := r.placed(now)
	switch strategy {
	case "", "least":
		proposed, err = plan.LeastMovement(placed, brokers)
	case "kafka":
		proposed, err = dealtAnew(now, brokers)
	default:
		return &badArgument{fmt.Sprintf("The strategy %q is not known: it is least or kafka", strategy)}
	}
	if errors.Is(err, plan.ErrRacks) {
		return &operationFailed{noRacks}
	}
	if err != nil {
		return err
	}
	r.say("Current partition replica assignment\n%s\n", reassignmentJSON(now))
	r.say("Proposed partition reassignment configuration\n%s", reassignmentJSON(proposed))
	fmt.Fprintln(r.f.stderr, planSummary(plan.Summarize(placed, proposed)))
	return nil
}

const noRacks = "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment without rack information."

// usableBrokers are those of the list that are alive; the others are named and left out.
func (r reassigner) usableBrokers(wanted []int32, withoutRacks bool) ([]plan.Broker, error) {
	alive, err := r.door.brokers()
	if err != nil {
		return nil, err
	}
	var usable []plan.Broker
	var found []int32
	racked := 0
	for _, b := range alive {
		if !slices.Contains(wanted, b.ID) {
			continue
		}
		if withoutRacks {
			b.Rack = ""
		}
		if b.Rack != "" {
			racked++
		}
		usable, found = append(usable, b), append(found, b.ID)
	}
	if missing := plan.Without(wanted, found); len(missing) > 0 {
		fmt.Fprintf(r.f.stderr, "Broker%s %s cannot be reached and will get nothing.\n", plural(len(missing)), joinInts(missing))
	}
	if racked != 0 && racked != len(usable) {
		return nil, &operationFailed{noRacks}
	}
	return usable, nil
}

// placed adds to the partitions what a new replica of each has to copy, where that can be found out.
func (r reassigner) placed(now plan.Assignment) []plan.Placed {
	sizes := map[plan.Partition]int64{}
	if door, ok := r.door.(directories); ok {
		stored, err := door.stored(now.Partitions())
		if err != nil {
			fmt.Fprintf(r.f.stderr, "The sizes of partitions are not known, so that all count the same: %s\n", err)
		}
		for _, s := range stored {
			sizes[s.Partition] = max(sizes[s.Partition], s.Size)
		}
	}
	list := make([]plan.Placed, 0, len(now))
	for _, p := range now.Partitions() {
		list = append(list, plan.Placed{Partition: p, Replicas: now[p], Bytes: sizes[p]})
	}
	return list
}

// dealtAnew is the original's algorithm: each topic is dealt as a new one would be, with as many replicas as its first partition has.
func dealtAnew(now plan.Assignment, brokers []plan.Broker) (plan.Assignment, error) {
	var dealt []admin.BrokerRack
	for _, b := range brokers {
		br := admin.BrokerRack{ID: b.ID}
		if b.Rack != "" {
			br.Rack = &b.Rack
		}
		dealt = append(dealt, br)
	}
	out := plan.Assignment{}
	partitions := now.Partitions()
	for len(partitions) > 0 {
		n := 1
		for n < len(partitions) && partitions[n].Topic == partitions[0].Topic {
			n++
		}
		start := admin.AssignmentStart{}
		if len(dealt) > 0 {
			start = admin.AssignmentStart{Index: rand.IntN(len(dealt)), Shift: rand.IntN(len(dealt))}
		}
		assigned, err := admin.AssignReplicas(dealt, n, len(now[partitions[0]]), 0, start)
		if err != nil {
			return nil, err
		}
		for i, p := range partitions[:n] {
			out[p] = assigned[int32(i)]
		}
		partitions = partitions[n:]
	}
	return out, nil
}

// planSummary says what a plan costs.
func planSummary(s plan.Summary) string {
	if s.Moved == 0 && s.LeadersChanged == 0 {
		return "Nothing has to move: the replicas and leaders are even already."
	}
	var parts []string
	parts = append(parts, fmt.Sprintf("%d of %d replicas move", s.Moved, s.Replicas))
	if s.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s are copied", cluster.ByteCount(s.MovedBytes), cluster.ByteCount(s.Bytes)))
	}
	parts = append(parts, fmt.Sprintf("%d of %d partitions get another preferred leader", s.LeadersChanged, s.Leaders))
	return "The proposal: " + strings.Join(parts, ", ") + "."
}
