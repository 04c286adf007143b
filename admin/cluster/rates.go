package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"barnabas/admin/plan"
)

// What goes through a cluster is worked out from two readings of it: offsets tell messages, the sizes of replicas tell bytes. How many bytes are read is not told by anybody over the protocol: it is estimated from how far
// groups have come and how large messages are on the disk. What a reading lacks, such as of a broker that does not answer, is not known, and never 0.

// Reading is what a cluster held at a time.
type Reading struct {
	CommittedAt, EndsAt, SizesAt time.Time
	Leaders                      map[plan.Partition]int32
	Starts, Ends                 map[plan.Partition]int64
	Sizes                        map[int32]map[plan.Partition]int64 // of the replicas on each broker that answered, in bytes
	Committed                    map[string]map[plan.Partition]int64
}

// Reading reads a cluster; now tells the time. Commits come before ends, so that no lag is negative.
func (c *Cluster) Reading(ctx context.Context, now func() time.Time) (*Reading, error) {
	r := &Reading{Leaders: map[plan.Partition]int32{}, Sizes: map[int32]map[plan.Partition]int64{}, Committed: map[string]map[plan.Partition]int64{}}
	resp, err := c.metadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	var all []plan.Partition
	for _, t := range topicsOf(resp) {
		for _, p := range t.Partitions {
			key := plan.Partition{Topic: t.Name, ID: p.ID}
			if all = append(all, key); !p.Unavailable() {
				r.Leaders[key] = p.Leader
			}
		}
	}
	r.CommittedAt = now()
	groups, err := c.Groups(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		committed, err := c.Committed(ctx, g.Name)
		if IsUnreachable(err) {
			return nil, err
		}
		if err == nil {
			r.Committed[g.Name] = committed
		}
	}
	r.EndsAt = now()
	if r.Ends, _, err = c.Offsets(ctx, all, Latest); err != nil {
		return nil, err
	}
	if r.Starts, _, err = c.Offsets(ctx, all, Earliest); err != nil {
		return nil, err
	}
	var ids []int32
	for _, b := range brokersOf(resp) {
		ids = append(ids, b.ID)
	}
	r.SizesAt = now()
	dirs, _ := each(ctx, ids, func(ctx context.Context, id int32) ([]Dir, error) { return c.Dirs(ctx, id, nil) })
	for id, of := range dirs {
		r.Sizes[id] = map[plan.Partition]int64{}
		for _, d := range of {
			for _, replica := range d.Replicas {
				if !replica.Future {
					r.Sizes[id][replica.Partition] = replica.Size
				}
			}
		}
	}
	return r, ctx.Err()
}

// Rate is an amount a second, where it is known.
type Rate struct {
	PerSecond float64
	Known     bool
}

func (r *Rate) add(amount float64) { r.PerSecond, r.Known = r.PerSecond+amount, true }

// Traffic is what goes through a broker or a topic, or is read by a group.
type Traffic struct {
	Name     string
	Broker   int32 // of a broker
	Messages Rate  // that come in; of a group, that it reads
	BytesIn  Rate  // on the disk; of a broker, of all replicas
	BytesOut Rate  // that groups read: an estimate
	Size     int64 // of all replicas together; -1: not known
	Lag      int64 // of a group; -1: not known
	LagRate  Rate  // how its lag grows
}

// Clears tells when the lag is gone, as it goes now.
func (t Traffic) Clears() (time.Duration, bool) {
	if t.Lag <= 0 || !t.LagRate.Known || t.LagRate.PerSecond >= 0 {
		return 0, t.Lag == 0
	}
	const longest = 365 * 24 * time.Hour
	return time.Duration(min(float64(t.Lag)/-t.LagRate.PerSecond, longest.Seconds()) * float64(time.Second)), true
}

// between is what two readings tell of single partitions.
type between struct {
	before, after *Reading
	messages      map[plan.Partition]float64 // a second
	bytes         map[plan.Partition]float64 // a second, in the leader's log
	mean          map[plan.Partition]float64 // bytes of a message
}

func per(amount int64, from, to time.Time) (float64, bool) {
	passed := to.Sub(from).Seconds()
	if passed <= 0 {
		return 0, false
	}
	return float64(amount) / passed, true
}

func compare(before, after *Reading) between {
	b := between{before, after, map[plan.Partition]float64{}, map[plan.Partition]float64{}, map[plan.Partition]float64{}}
	for p, leader := range after.Leaders {
		end, known := after.Ends[p]
		size, told := after.Sizes[leader][p]
		if held := end - after.Starts[p]; known && told && held > 0 {
			b.mean[p] = float64(size) / float64(held)
		}
		was, knew := before.Ends[p]
		if rate, ok := per(max(end-was, 0), before.EndsAt, after.EndsAt); known && knew && ok {
			b.messages[p] = rate
		}
		wasSize, hadTold := before.Sizes[leader][p]
		switch rate, ok := per(size-wasSize, before.SizesAt, after.SizesAt); {
		case !told || !hadTold || !ok:
		case rate >= 0:
			b.bytes[p] = rate
		default: // something was deleted meanwhile
			if messages, known := b.messages[p]; known {
				b.bytes[p] = messages * b.mean[p]
			}
		}
	}
	return b
}

// read is what a group read of each partition, in messages a second.
func (b between) read(group string) map[plan.Partition]float64 {
	read := map[plan.Partition]float64{}
	for p, now := range b.after.Committed[group] {
		if was, knew := b.before.Committed[group][p]; knew {
			if rate, ok := per(max(now-was, 0), b.before.CommittedAt, b.after.CommittedAt); ok {
				read[p] = rate
			}
		}
	}
	return read
}

// lag is how far a group was behind at a reading; -1 when no partition's lag is known.
func (r *Reading) lag(group string) int64 {
	sum, any := int64(0), false
	for p, at := range r.Committed[group] {
		if end, known := r.Ends[p]; known {
			sum, any = sum+max(end-at, 0), true
		}
	}
	if !any {
		return -1
	}
	return sum
}

// Rates works out what goes through brokers, by id, through topics and to groups, by name.
func Rates(before, after *Reading) (brokers, topics, groups []Traffic) {
	b := compare(before, after)
	byTopic, byBroker := map[string]*Traffic{}, map[int32]*Traffic{}
	topic := func(name string) *Traffic { return traffic(byTopic, name, Traffic{Name: name, Lag: -1, Size: -1}) }
	broker := func(id int32) *Traffic { return traffic(byBroker, id, Traffic{Broker: id, Lag: -1, Size: -1}) }
	for p, leader := range after.Leaders {
		if rate, known := b.messages[p]; known {
			topic(p.Topic).Messages.add(rate)
			broker(leader).Messages.add(rate)
		}
		if rate, known := b.bytes[p]; known {
			topic(p.Topic).BytesIn.add(rate)
		}
		topic(p.Topic)
	}
	for id, sizes := range after.Sizes {
		t := broker(id)
		t.Size = 0
		for p, size := range sizes {
			t.Size += size
			whole := topic(p.Topic)
			whole.Size = max(whole.Size, 0) + size
			if was, knew := before.Sizes[id][p]; knew {
				if rate, ok := per(max(size-was, 0), before.SizesAt, after.SizesAt); ok {
					t.BytesIn.add(rate)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Committed)) {
		g := Traffic{Name: name, Lag: after.lag(name), Size: -1}
		for p, rate := range b.read(name) {
			g.Messages.add(rate)
			if mean, known := b.mean[p]; known {
				g.BytesOut.add(rate * mean)
				topic(p.Topic).BytesOut.add(rate * mean)
				if leader, led := after.Leaders[p]; led {
					broker(leader).BytesOut.add(rate * mean)
				}
			}
		}
		if was := before.lag(name); was >= 0 && g.Lag >= 0 {
			if rate, ok := per(g.Lag-was, before.EndsAt, after.EndsAt); ok {
				g.LagRate.add(rate)
			}
		}
		groups = append(groups, g)
	}
	for _, id := range slices.Sorted(maps.Keys(byBroker)) {
		brokers = append(brokers, *byBroker[id])
	}
	for _, name := range slices.Sorted(maps.Keys(byTopic)) {
		topics = append(topics, *byTopic[name])
	}
	slices.SortStableFunc(groups, func(a, b Traffic) int { return cmp.Compare(a.Name, b.Name) })
	return brokers, topics, groups
}

func traffic[K comparable](all map[K]*Traffic, key K, fresh Traffic) *Traffic {
	if all[key] == nil {
		all[key] = &fresh
	}
	return all[key]
}
