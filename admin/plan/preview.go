package plan

import (
	"cmp"
	"maps"
	"slices"
)

// Change is what a plan does to one partition.
type Change struct {
	Partition
	From, To []int32
	Adds     []int32 // brokers that get a replica
	Removes  []int32 // brokers that lose theirs
	Bytes    int64   // that are copied
}

// Share is what a broker has, before and after a plan.
type Share struct {
	Broker
	Replicas, ReplicasAfter int
	Leaders, LeadersAfter   int // partitions of which it is the preferred leader
	Bytes, BytesAfter       int64
	In, Out                 int64 // bytes that are copied to it and removed from it
}

// Preview is all that a plan does.
type Preview struct {
	Summary
	Changes               []Change // by partition
	Shares                []Share  // by broker, those too that are not alive and have replicas
	Crowded, CrowdedAfter int      // partitions with more replicas in one rack than they must have
	SmallestISR           int      // of what changes, meanwhile; -1: not known, or nothing changes
	SmallestISRAt         Partition
}

// PreviewOf works out what an assignment does to a world. inSync says how many replicas of each partition are in sync now; that many stay so while it is carried out, since a replica is removed
// only when those that are added are in sync.
func PreviewOf(w World, to Assignment, inSync map[Partition]int) Preview {
	var changed []Placed
	preview := Preview{SmallestISR: -1}
	shares, racks, names := map[int32]*Share{}, racksOf(w.Brokers), len(rackNames(w.Brokers))
	share := func(id int32) *Share {
		if shares[id] == nil {
			shares[id] = &Share{Broker: Broker{ID: id, Rack: racks[id]}}
		}
		return shares[id]
	}
	for _, b := range w.Brokers {
		share(b.ID)
	}
	for _, p := range w.Partitions {
		after := p.Replicas
		if target, changes := to[p.Partition]; changes {
			after = target
			c := Change{Partition: p.Partition, From: p.Replicas, To: target, Adds: Without(target, p.Replicas), Removes: Without(p.Replicas, target)}
			c.Bytes = p.Bytes * int64(len(c.Adds))
			preview.Changes, changed = append(preview.Changes, c), append(changed, p)
			if n, known := inSync[p.Partition]; known {
				if n = min(n, len(target)); preview.SmallestISR < 0 || n < preview.SmallestISR {
					preview.SmallestISR, preview.SmallestISRAt = n, p.Partition
				}
			}
			for _, id := range c.Adds {
				share(id).In += p.Bytes
			}
			for _, id := range c.Removes {
				share(id).Out += p.Bytes
			}
		}
		for i, id := range p.Replicas {
			share(id).Replicas++
			share(id).Bytes += p.Bytes
			if i == 0 {
				share(id).Leaders++
			}
		}
		for i, id := range after {
			share(id).ReplicasAfter++
			share(id).BytesAfter += p.Bytes
			if i == 0 {
				share(id).LeadersAfter++
			}
		}
		if len(spreadOf(p.Replicas, racks, names)) < len(p.Replicas) {
			preview.Crowded++
		}
		if len(spreadOf(after, racks, names)) < len(after) {
			preview.CrowdedAfter++
		}
	}
	preview.Summary = Summarize(changed, to)
	slices.SortFunc(preview.Changes, func(a, b Change) int { return a.Compare(b.Partition) })
	for _, id := range slices.SortedFunc(maps.Keys(shares), cmp.Compare) {
		preview.Shares = append(preview.Shares, *shares[id])
	}
	return preview
}
