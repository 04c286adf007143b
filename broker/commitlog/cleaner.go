package commitlog

// Compaction, the decisions: which log is cleaned, how far, which of its segments become one. cleaner_filter.go decides
// about batches and records, cleaner_txn.go about transactions. Nothing here does I/O or knows the time.
//
// A log has a clean part, in which each key stands at most once (and perhaps once more in what follows), and a dirty part
// behind it. A cleaning
//
//  1. reads keys and offsets of the dirty part into a map of bounded memory, as far as it reaches;
//  2. copies all segments up to there and leaves out what the map knows a later record of;
//  3. puts the copies in the place of the segments (swap.go);
//  4. notes that everything up to there is clean (cleaner-offset-checkpoint).
//
// What it keeps to:
//
//   - The last record of each key stays, at its offset, however often a cleaning is cut off in the middle.
//   - A tombstone or a transaction's marker stays delete.retention.ms longer than what it deletes or decides, so that a reader
//     who has seen the one sees the other.
//   - The last batch of each producer stays, without its records if need be: its sequence must not be forgotten (H50).
//   - Nothing at or behind the last stable offset is looked at, nor the active segment, nor what is younger than
//     min.compaction.lag.ms.
//   - Who truncates, deletes or closes a log waits for no cleaning. The cleaning notices and gives up; it holds nothing that
//     somebody would have to give back (H10).

import "math"

// cleanSegment is what is to be known of a sealed segment.
type cleanSegment struct {
	base, size int64
	newest     int64 // ms; largest timestamp, or the file's. Looked at only with a min.compaction.lag.ms
	oldest     int64 // ms; largest timestamp of the first batch. Looked at only with a max.compaction.lag.ms
}

// cleanFacts is what decides how far a log can be cleaned and whether it is worth it.
type cleanFacts struct {
	sealed     []cleanSegment
	active     int64 // base offset of the active segment
	dirty      int64 // first offset that is not clean
	stable     int64 // last stable offset
	nowMs      int64
	lagMs      int64 // min.compaction.lag.ms
	maxLagMs   int64 // max.compaction.lag.ms
	worthwhile float64
}

// cleanScope is what can be cleaned.
type cleanScope struct {
	dirty, bound int64   // the offsets that come into the map; bound is the base of a segment
	ratio        float64 // bytes of them, of all bytes before bound
	ready        bool
}

// firstDirty is where the dirty part begins: where the checkpoint says, unless the log has no such offset (any more).
func firstDirty(checkpoint, start, end int64) int64 {
	if checkpoint < start || checkpoint > end {
		return start
	}
	return checkpoint
}

// holder returns which sealed segment holds an offset, len(sealed) for the active one.
func (f *cleanFacts) holder(offset int64) int {
	if offset >= f.active {
		return len(f.sealed)
	}
	i := len(f.sealed) - 1
	for i > 0 && f.sealed[i].base > offset {
		i--
	}
	return i
}

func (f *cleanFacts) base(i int) int64 {
	if i >= len(f.sealed) {
		return f.active
	}
	return f.sealed[i].base
}

// scope decides how far the log can be cleaned, and whether it is time: when the share of its dirty bytes is above
// min.cleanable.dirty.ratio, or something in it has waited for max.compaction.lag.ms.
func (f *cleanFacts) scope() cleanScope {
	first := f.holder(f.dirty)
	bound := min(f.stable, f.active)
	overdue := false
	for _, s := range f.sealed[first:] {
		if f.lagMs > 0 && s.newest > f.nowMs-f.lagMs {
			bound = min(bound, s.base)
			break
		}
		overdue = overdue || s.oldest > 0 && s.oldest < f.nowMs-f.maxLagMs
	}
	sc := cleanScope{dirty: f.dirty, bound: f.base(f.holder(max(bound, f.dirty)))}
	var cleanBytes, dirtyBytes int64
	for i, s := range f.sealed {
		if s.base < f.dirty {
			cleanBytes += s.size
		}
		if i >= first && s.base < sc.bound {
			dirtyBytes += s.size
		}
	}
	if dirtyBytes > 0 {
		sc.ratio = float64(dirtyBytes) / float64(cleanBytes+dirtyBytes)
		sc.ready = overdue || sc.ratio > f.worthwhile
	}
	return sc
}

// groupFact is what decides whether a segment is merged with others.
type groupFact struct {
	base, size     int64
	offsets, times int64 // bytes of the indexes
}

// groupSegments cuts the segments into runs that become one segment each: as long as the run is not larger than a segment
// may be, neither are its indexes, and its last offset can be told relative to its base. bound is the base of what follows
// the last segment. It returns how many segments each run has.
func groupSegments(list []groupFact, bound int64, maxBytes, maxIndexBytes int64) []int {
	var runs []int
	for i := 0; i < len(list); {
		first, sum := list[i].base, list[i]
		n := 1
		for ; i+n < len(list); n++ {
			s := list[i+n]
			end := bound
			if i+n+1 < len(list) {
				end = list[i+n+1].base
			}
			if sum.size+s.size > maxBytes || sum.offsets+s.offsets > maxIndexBytes || sum.times+s.times > maxIndexBytes ||
				end-1-first > math.MaxInt32 {
				break
			}
			sum.size, sum.offsets, sum.times = sum.size+s.size, sum.offsets+s.offsets, sum.times+s.times
		}
		runs = append(runs, n)
		i += n
	}
	return runs
}
