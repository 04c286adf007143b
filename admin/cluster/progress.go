package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"barnabas/admin/plan"
)

// Replica names one replica.
type Replica struct {
	Partition plan.Partition
	Broker    int32
}

func (r Replica) String() string { return fmt.Sprintf("%v-%d", r.Partition, r.Broker) }

// Compare orders replicas by broker, then by partition.
func (r Replica) Compare(other Replica) int {
	return cmp.Or(cmp.Compare(r.Broker, other.Broker), r.Partition.Compare(other.Partition))
}

// StoredReplica is one directory's copy of a replica.
type StoredReplica struct {
	Replica
	Dir    string
	Size   int64
	Lag    int64
	Future bool // is to replace the replica in another directory of the same broker
}

// Stored lists the copies of some partitions on all registered brokers. What lies in directories that are out of use is not found.
func (c *Cluster) Stored(ctx context.Context, partitions []plan.Partition) ([]StoredReplica, error) {
	alive, _, err := c.Brokers(ctx)
	if err != nil {
		return nil, err
	}
	byTopic := map[string][]int32{}
	for _, p := range partitions {
		byTopic[p.Topic] = append(byTopic[p.Topic], p.ID)
	}
	var ids []int32
	for _, b := range alive {
		ids = append(ids, b.ID)
	}
	all, failures := each(ctx, ids, func(ctx context.Context, id int32) ([]Dir, error) { return c.Dirs(ctx, id, byTopic) })
	for _, id := range slices.Sorted(maps.Keys(failures)) {
		return nil, fmt.Errorf("the log directories of broker %d: %w", id, failures[id])
	}
	var list []StoredReplica
	for _, id := range ids {
		for _, dir := range all[id] {
			if dir.Err != nil {
				continue
			}
			for _, r := range dir.Replicas {
				list = append(list, StoredReplica{Replica{r.Partition, id}, dir.Path, r.Size, r.OffsetLag, r.Future})
			}
		}
	}
	return list, nil
}

// BytesLeft compares what new replicas have with what the largest of the old ones has, by partition.
func BytesLeft(stored []StoredReplica, moves Moves) map[plan.Partition]int64 {
	current, full := map[Replica]int64{}, map[plan.Partition]int64{}
	for _, s := range stored {
		if s.Future {
			continue
		}
		current[s.Replica] = s.Size
		if !slices.Contains(moves[s.Partition].Adding, s.Broker) {
			full[s.Partition] = max(full[s.Partition], s.Size)
		}
	}
	left := map[plan.Partition]int64{}
	for p, m := range moves {
		left[p] = 0
		for _, id := range m.Adding {
			left[p] += max(0, full[p]-current[Replica{p, id}])
		}
	}
	return left
}

// DirBytesLeft compares copies that are to replace others of the same broker with these, and counts them.
func DirBytesLeft(stored []StoredReplica, of func(Replica) bool) (bytes int64, moves int) {
	current := map[Replica]int64{}
	for _, s := range stored {
		if !s.Future {
			current[s.Replica] = s.Size
		}
	}
	for _, s := range stored {
		if s.Future && of(s.Replica) {
			moves++
			bytes += max(0, current[s.Replica]-s.Size)
		}
	}
	return bytes, moves
}

// Pace remembers how much was left at which time, to tell how fast it goes. Its zero value has seen nothing.
type Pace struct{ seen []sighting }

type sighting struct {
	at   time.Time
	left int64
}

// rateWindow is over how long a rate is measured: long enough to even out single fetches, short enough to follow a change of the throttle.
const rateWindow = 20 * time.Second

// See notes how many bytes are left; a negative number is not known and not noted.
func (p *Pace) See(at time.Time, left int64) {
	if left < 0 {
		return
	}
	p.seen = append(p.seen, sighting{at, left})
	for len(p.seen) > 2 && at.Sub(p.seen[0].at) > rateWindow {
		p.seen = p.seen[1:]
	}
}

// Rate is how many bytes a second are copied; 0 when that cannot be said yet.
func (p *Pace) Rate() float64 {
	if len(p.seen) < 2 {
		return 0
	}
	first, last := p.seen[0], p.seen[len(p.seen)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 || first.left <= last.left {
		return 0
	}
	return float64(first.left-last.left) / seconds
}

// Remaining is how long what was left last takes at the present rate; false when that cannot be said.
func (p *Pace) Remaining() (time.Duration, bool) {
	rate := p.Rate()
	if rate <= 0 {
		return 0, false
	}
	return time.Duration(float64(p.seen[len(p.seen)-1].left) / rate * float64(time.Second)).Round(time.Second), true
}

// stalledAfter is for how long nothing may be copied before a move is called stalled: several of the longest waits of a follower.
const stalledAfter = 10 * time.Second

// Stalled tells that bytes are left and that for a while none was copied.
func (p *Pace) Stalled() bool {
	if len(p.seen) == 0 {
		return false
	}
	last := p.seen[len(p.seen)-1]
	if last.left == 0 {
		return false
	}
	for i := len(p.seen) - 1; i >= 0; i-- {
		if p.seen[i].left > last.left {
			return false
		}
		if last.at.Sub(p.seen[i].at) >= stalledAfter {
			return true
		}
	}
	return false
}
