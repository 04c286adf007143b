package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

// event is something that happened to the cluster, as far as it was looked at, or that somebody did here.
type event struct {
	At   time.Time
	Kind string // what it is about: broker, controller, isr, leader, topic, move, action
	Text string
	Bad  bool
	Who  string // who did it; "" of what was seen
}

const mostEvents = 500

// events are the last ones, in order.
type events struct{ list []event }

func (e *events) add(one event) {
	e.list = append(e.list, one)
	if len(e.list) > 2*mostEvents {
		e.list = slices.Clone(e.list[len(e.list)-mostEvents:])
	}
}

// recent are the last ones, the newest first.
func (e *events) recent(most int) []event {
	from := max(0, len(e.list)-min(most, mostEvents))
	list := slices.Clone(e.list[from:])
	slices.Reverse(list)
	return list
}

// changes tells what is different between two snapshots. What concerns many partitions is one event.
func changes(before, after *cluster.Snapshot) []event {
	d := difference{before: before, after: after}
	d.brokers()
	if before.Controller != after.Controller {
		if after.Controller < 0 {
			d.add("controller", true, "there is no controller any more; it was broker %d", before.Controller)
		} else {
			d.add("controller", false, "broker %d is the controller now", after.Controller)
		}
	}
	d.topics()
	d.partitions()
	if before.Moves != nil && after.Moves != nil {
		begun, ended := only(after.Moves, before.Moves), only(before.Moves, after.Moves)
		d.some("move", false, begun, "%s began to move")
		d.some("move", false, ended, "%s ended moving")
	}
	return d.found
}

type difference struct {
	before, after *cluster.Snapshot
	found         []event
}

func (d *difference) add(kind string, bad bool, format string, args ...any) {
	d.found = append(d.found, event{At: d.after.Taken, Kind: kind, Bad: bad, Text: fmt.Sprintf(format, args...)})
}

// some adds an event about things, if there are any.
func (d *difference) some(kind string, bad bool, subjects []string, format string) {
	if len(subjects) > 0 {
		d.add(kind, bad, format, few(subjects))
	}
}

// few names some things and counts the rest.
func few(list []string) string {
	const named = 3
	if len(list) <= named {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:named], ", "), len(list)-named)
}

func only[V any](in, notIn map[plan.Partition]V) []string {
	var list []string
	for _, p := range slices.SortedFunc(maps.Keys(in), plan.Partition.Compare) {
		if _, there := notIn[p]; !there {
			list = append(list, p.String())
		}
	}
	return list
}

func (d *difference) brokers() {
	known := func(s *cluster.Snapshot) map[int32]bool {
		ids := map[int32]bool{}
		for _, b := range s.Brokers {
			ids[b.ID] = true
		}
		return ids
	}
	was, is := known(d.before), known(d.after)
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if !is[id] {
			d.add("broker", true, "broker %d is not registered any more", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(is)) {
		silentBefore, silent := d.before.Silent[id], d.after.Silent[id]
		switch {
		case !was[id]:
			d.add("broker", false, "broker %d is registered", id)
		case silentBefore == nil && silent != nil:
			d.add("broker", true, "broker %d does not answer: %v", id, silent)
		case silentBefore != nil && silent == nil:
			d.add("broker", false, "broker %d answers again", id)
		}
	}
}

func (d *difference) topics() {
	names := func(s *cluster.Snapshot) map[string]bool {
		all := map[string]bool{}
		for _, t := range s.Topics {
			all[t.Name] = true
		}
		return all
	}
	was, is := names(d.before), names(d.after)
	var made, gone []string
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if !was[name] {
			made = append(made, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if !is[name] {
			gone = append(gone, name)
		}
	}
	d.some("topic", false, made, "created: %s")
	d.some("topic", false, gone, "deleted: %s")
}

// partitions tells who left or joined in-sync sets, and whose leader is another.
func (d *difference) partitions() {
	before := map[plan.Partition]cluster.Partition{}
	for _, t := range d.before.Topics {
		for _, p := range t.Partitions {
			before[plan.Partition{Topic: t.Name, ID: p.ID}] = p
		}
	}
	left, joined := map[int32][]string{}, map[int32][]string{}
	led := map[int32][]string{}
	var offline []string
	for _, t := range d.after.Topics {
		for _, p := range t.Partitions {
			key := plan.Partition{Topic: t.Name, ID: p.ID}
			was, there := before[key]
			if !there {
				continue
			}
			for _, id := range was.ISR {
				if !slices.Contains(p.ISR, id) {
					left[id] = append(left[id], key.String())
				}
			}
			for _, id := range p.ISR {
				if !slices.Contains(was.ISR, id) {
					joined[id] = append(joined[id], key.String())
				}
			}
			switch {
			case p.Unavailable() && !was.Unavailable():
				offline = append(offline, key.String())
			case !p.Unavailable() && p.Leader != was.Leader:
				led[p.Leader] = append(led[p.Leader], key.String())
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		d.add("isr", true, "broker %d left the in-sync replicas of %s", id, few(left[id]))
	}
	for _, id := range slices.Sorted(maps.Keys(joined)) {
		d.add("isr", false, "broker %d is in sync again with %s", id, few(joined[id]))
	}
	for _, id := range slices.Sorted(maps.Keys(led)) {
		d.add("leader", false, "broker %d leads %s now", id, few(led[id]))
	}
	d.some("leader", true, offline, "without a leader: %s")
}
