package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"barnabas/admin/plan"
)

// World is a cluster as plans see it: where replicas are, or, where a reassignment is under way, are going to be.
type World struct {
	plan.World
	Alive  []Broker
	InSync map[plan.Partition]int
	Free   map[int32]int64 // bytes left on a broker's volumes, of those that tell (from 3.3 on)
	Moving Moves
	Notes  []string // what could not be asked for or respected
}

// World reads what a plan is made of. A broker that does not tell its sizes makes some of them unknown, no more.
func (c *Cluster) World(ctx context.Context) (*World, error) {
	resp, err := c.metadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	moves, err := c.Moves(ctx)
	if err != nil {
		return nil, err
	}
	w := &World{Alive: brokersOf(resp), InSync: map[plan.Partition]int{}, Free: map[int32]int64{}, Moving: moves}
	sizes := c.sizes(ctx, w)
	for _, t := range topicsOf(resp) {
		for _, p := range t.Partitions {
			key := plan.Partition{Topic: t.Name, ID: p.ID}
			replicas := p.Replicas
			if m, moving := moves[key]; moving {
				replicas = plan.Without(m.Replicas, m.Removing)
			}
			if len(replicas) == 0 {
				continue
			}
			w.InSync[key] = len(p.ISR)
			w.Partitions = append(w.Partitions, plan.Placed{Partition: key, Replicas: replicas, Bytes: sizes[key]})
		}
	}
	racked := 0
	for _, b := range w.Alive {
		w.Brokers = append(w.Brokers, plan.Broker{ID: b.ID, Rack: b.Rack})
		if b.Rack != "" {
			racked++
		}
	}
	if racked != 0 && racked != len(w.Brokers) {
		w.Notes = append(w.Notes, "some brokers have a rack and others none: racks are not respected")
		for i := range w.Brokers {
			w.Brokers[i].Rack = ""
		}
	}
	return w, nil
}

// sizes are the bytes of the largest replica of each partition. It notes what is left on the brokers' volumes too; directories with the same size and room are taken for ones of one volume.
func (c *Cluster) sizes(ctx context.Context, w *World) map[plan.Partition]int64 {
	var ids []int32
	for _, b := range w.Alive {
		ids = append(ids, b.ID)
	}
	all, failures := each(ctx, ids, func(ctx context.Context, id int32) ([]Dir, error) { return c.Dirs(ctx, id, nil) })
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		w.Notes = append(w.Notes, fmt.Sprintf("the sizes on broker %d are not known: %v", id, failures[id]))
	}
	sizes := map[plan.Partition]int64{}
	for id, dirs := range all {
		type volume struct{ total, usable int64 }
		volumes := map[volume]bool{}
		for _, d := range dirs {
			if d.Err == nil && d.Total >= 0 && d.Usable >= 0 {
				volumes[volume{d.Total, d.Usable}] = true
			}
			for _, r := range d.Replicas {
				if !r.Future {
					sizes[r.Partition] = max(sizes[r.Partition], r.Size)
				}
			}
		}
		for v := range volumes {
			w.Free[id] += v.usable
		}
	}
	return sizes
}

// Factor plans another number of replicas for the partitions that may move, where they have another. Partitions that are moving are refused, and so are those that would lose replicas while one is out
// of sync, since their last one in sync might go.
func (w *World) Factor(n int) (plan.Assignment, error) {
	load := map[int32]int{}
	var placed []plan.Placed
	for _, p := range w.Partitions {
		for _, id := range p.Replicas {
			load[id]++
		}
		if w.World.Moves != nil && !w.World.Moves(p.Partition) || len(p.Replicas) == n {
			continue
		}
		if _, moving := w.Moving[p.Partition]; moving {
			return nil, fmt.Errorf("partition %v is being reassigned; wait until that is over", p.Partition)
		}
		if n < len(p.Replicas) && w.InSync[p.Partition] < len(p.Replicas) {
			return nil, fmt.Errorf("partition %v has a replica out of sync; replicas are taken away only from partitions that have all in sync", p.Partition)
		}
		placed = append(placed, p)
	}
	return plan.WithFactor(placed, w.Brokers, load, n)
}
