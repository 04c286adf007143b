package console

import (
	"context"
	"maps"
	"slices"
	"time"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func movesPage() page {
	return page{path: "/moves", title: "Moves", file: "moves.html", under: "/moves", entry: true, pace: 2 * time.Second, live: []string{"moves"}, data: moves}
}

// movesData is the reassignments under way.
type movesData struct {
	Known     bool
	Left      int64 // bytes that are still to be copied, as far as directories tell
	Rate      int64 // bytes a second; 0: cannot be said
	Remaining string
	Stalled   bool
	Throttles []throttleRow
	Moves     pageOf[moveRow]
	Events    []event
}

type throttleRow struct {
	Broker   int32
	Settings []cluster.Setting
}

type moveRow struct {
	Partition        plan.Partition
	Replicas         []int32
	Adding, Removing []int32
	Done, Full       int64 // bytes that the replicas being added have, and will have; Full 0: not known
}

func moves(ctx context.Context, c *Console, q question) (any, error) {
	s, err := c.snapshot(ctx, 2*time.Second)
	if err != nil {
		return nil, err
	}
	stored := storedOf(s)
	left := cluster.BytesLeft(stored, s.Moves)
	d := &movesData{Known: s.Moves != nil}
	full := map[plan.Partition]int64{}
	for _, r := range stored {
		if !r.Future && !slices.Contains(s.Moves[r.Partition].Adding, r.Broker) {
			full[r.Partition] = max(full[r.Partition], r.Size)
		}
	}
	var rows []moveRow
	for _, p := range slices.SortedFunc(maps.Keys(s.Moves), plan.Partition.Compare) {
		m := s.Moves[p]
		row := moveRow{Partition: p, Replicas: m.Replicas, Adding: m.Adding, Removing: m.Removing, Full: full[p] * int64(len(m.Adding))}
		row.Done = row.Full - left[p]
		rows = append(rows, row)
		d.Left += left[p]
	}
	d.Moves = paged(rows, q)
	for _, id := range slices.Sorted(maps.Keys(s.Throttles)) {
		if len(s.Throttles[id]) > 0 {
			d.Throttles = append(d.Throttles, throttleRow{id, s.Throttles[id]})
		}
	}
	d.Rate, d.Remaining, d.Stalled = c.keeper.progress()
	for _, e := range c.keeper.recent(mostEvents) {
		if e.Kind == "move" {
			d.Events = append(d.Events, e)
		}
	}
	return d, nil
}

// storedOf is what the directories of a snapshot hold of the partitions that move.
func storedOf(s *cluster.Snapshot) []cluster.StoredReplica {
	var list []cluster.StoredReplica
	for id, dirs := range s.Dirs {
		for _, dir := range dirs {
			for _, r := range dir.Replicas {
				if _, moving := s.Moves[r.Partition]; moving {
					list = append(list, cluster.StoredReplica{Replica: cluster.Replica{Partition: r.Partition, Broker: id}, Dir: dir.Path, Size: r.Size, Lag: r.OffsetLag, Future: r.Future})
				}
			}
		}
	}
	return list
}
