package history

import (
	"fmt"
	"maps"
	"slices"
)

// Name is what a record is known by: who wrote it, and its number among that producer's records. Numbers begin at 1 and grow.
type Name struct {
	Producer uint32
	Number   uint64
}

// Ack is an answer to a producer. Offset is -1 when the answer named none, as it does for a batch that was repeated long after it had been written.
type Ack struct {
	Name
	Partition int32
	Offset    int64
}

// Read is a record as a consumer found it.
type Read struct {
	Name
	Offset int64
}

// Promise says what the producers were promised.
type Promise struct {
	Idempotent bool // nothing is written twice, and the records of one producer stand in its order
}

// faultsShown bounds the faults of one kind in one partition that are told one by one.
const faultsShown = 5

// Judge compares what was acknowledged with what the partitions hold, from their starts to their ends, in the order of reading. It returns one line for each fault.
func Judge(acks []Ack, logs map[int32][]Read, promise Promise) []string {
	var faults tally
	at := map[int32]map[int64]Name{}
	times := map[Name]int{}
	for _, p := range slices.Sorted(maps.Keys(logs)) {
		at[p] = make(map[int64]Name, len(logs[p]))
		last := map[uint32]uint64{}
		for i, r := range logs[p] {
			if i > 0 && r.Offset != logs[p][i-1].Offset+1 {
				faults.add(p, "gap", "offset %d is followed by %d", logs[p][i-1].Offset, r.Offset)
			}
			at[p][r.Offset] = r.Name
			times[r.Name]++
			if !promise.Idempotent {
				continue
			}
			if times[r.Name] == 2 {
				faults.add(p, "doubled", "record %d of producer %d is there again at offset %d", r.Number, r.Producer, r.Offset)
			} else if r.Number < last[r.Producer] {
				faults.add(p, "order", "record %d of producer %d at offset %d comes after its record %d", r.Number, r.Producer, r.Offset, last[r.Producer])
			}
			last[r.Producer] = max(last[r.Producer], r.Number)
		}
	}
	for _, a := range acks {
		if a.Offset < 0 {
			if times[a.Name] == 0 {
				faults.add(a.Partition, "lost", "record %d of producer %d is nowhere", a.Number, a.Producer)
			}
			continue
		}
		switch got, there := at[a.Partition][a.Offset]; {
		case !there:
			faults.add(a.Partition, "lost", "record %d of producer %d was acknowledged at offset %d, where nothing is", a.Number, a.Producer, a.Offset)
		case got != a.Name:
			faults.add(a.Partition, "lost", "record %d of producer %d was acknowledged at offset %d, where record %d of producer %d is", a.Number, a.Producer, a.Offset, got.Number, got.Producer)
		}
	}
	return faults.lines()
}

// tally keeps the first faults of each kind and counts the rest.
type tally struct {
	shown  []string
	counts map[string]int
}

func (t *tally) add(partition int32, kind, format string, args ...any) {
	t.about(fmt.Sprintf("partition %d", partition), kind, format, args...)
}

// about is add for what is not a partition.
func (t *tally) about(subject, kind, format string, args ...any) {
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	key := subject + ": " + kind
	if t.counts[key]++; t.counts[key] <= faultsShown {
		t.shown = append(t.shown, key+": "+fmt.Sprintf(format, args...))
	}
}

func (t *tally) lines() []string {
	for _, key := range slices.Sorted(maps.Keys(t.counts)) {
		if more := t.counts[key] - faultsShown; more > 0 {
			t.shown = append(t.shown, fmt.Sprintf("%s: %d more", key, more))
		}
	}
	return t.shown
}
