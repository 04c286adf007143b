package commitlog

// What to do with what a crash left behind: decisions as functions over facts. load.go gathers the facts and acts.
//
// Only what is not known to be on disk is looked at: everything below the recovery point was synced and is believed.
// Above it every batch is checked, and the log ends before the first one that does not hold: a power cut takes any page
// that was not synced, also one in the middle, with good batches behind it. Kafka cuts there too. What was committed behind
// it the other replicas have, and this one fetches it again; if it is the last one, Log.Recovery tells that it came back
// short, and goes on telling until somebody has decided to go on with what there is. But damage in what was synced is no
// torn tail: cutting there would lose what no crash takes (H47). Such a log is kept as it is and taken out of use.

import (
	"sort"
	"strings"
)

// filePlan is what to do with the files of a partition's directory before its segments are opened.
type filePlan struct {
	remove    []string // leftovers of deletions, of compaction that was interrupted, of checkpoints half written
	swaps     []string // finished by compaction, to be renamed into place
	segments  []int64  // base offsets, in order
	snapshots []int64  // offsets, in order
	indexed   map[int64]fileSet
}

// fileSet tells which files a segment has beside its .log.
type fileSet struct{ offsets, times, aborted bool }

// planFiles sorts the names of a directory's files.
//
// A .cleaned file belongs to a compaction that did not finish. Swap files at or behind the first such file belong to a
// split of a segment that did not finish either; the others are complete and replace the segments that they were made
// from (KAFKA-6264).
func planFiles(names []string) filePlan {
	p := filePlan{indexed: map[int64]fileSet{}}
	firstCleaned, anyCleaned := int64(0), false
	for _, name := range names {
		if base, suffix, ok := parseFileName(name); ok && strings.HasSuffix(suffix, cleanedSuffix) {
			if !anyCleaned || base < firstCleaned {
				firstCleaned, anyCleaned = base, true
			}
		}
	}
	logs := map[int64]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, temporarySuffix) {
			p.remove = append(p.remove, name)
			continue
		}
		base, suffix, ok := parseFileName(name)
		if !ok {
			continue
		}
		switch {
		case strings.HasSuffix(suffix, deletedSuffix), strings.HasSuffix(suffix, cleanedSuffix):
			p.remove = append(p.remove, name)
		case strings.HasSuffix(suffix, swapSuffix):
			if anyCleaned && base >= firstCleaned {
				p.remove = append(p.remove, name)
			} else {
				p.swaps = append(p.swaps, name)
			}
		case suffix == logSuffix:
			logs[base] = true
			p.segments = append(p.segments, base)
		case suffix == snapshotSuffix:
			p.snapshots = append(p.snapshots, base)
		}
	}
	for _, name := range names {
		base, suffix, ok := parseFileName(name)
		if !ok || suffix != indexSuffix && suffix != timeSuffix && suffix != txnSuffix {
			continue
		}
		if !logs[base] {
			p.remove = append(p.remove, name)
			continue
		}
		set := p.indexed[base]
		switch suffix {
		case indexSuffix:
			set.offsets = true
		case timeSuffix:
			set.times = true
		case txnSuffix:
			set.aborted = true
		}
		p.indexed[base] = set
	}
	sort.Slice(p.segments, func(i, j int) bool { return p.segments[i] < p.segments[j] })
	sort.Slice(p.snapshots, func(i, j int) bool { return p.snapshots[i] < p.snapshots[j] })
	return p
}

// strays returns the snapshots that belong to no segment, except the newest one if it lies behind the last segment's
// base: that one was written when the log was closed.
func strays(snapshots, segments []int64) []int64 {
	if len(segments) == 0 {
		return nil
	}
	bases := make(map[int64]bool, len(segments))
	for _, base := range segments {
		bases[base] = true
	}
	var stray []int64
	for _, o := range snapshots {
		if !bases[o] {
			stray = append(stray, o)
		}
	}
	if n := len(stray); n > 0 && stray[n-1] > segments[len(segments)-1] {
		stray = stray[:n-1]
	}
	return stray
}

// checkFrom says which segments have to be checked: those that hold anything at or behind the recovery point. It
// returns the index of the first one; after a clean shutdown there is none.
func checkFrom(segments []int64, clean bool, recoveryPoint int64) int {
	if clean {
		return len(segments)
	}
	return max(0, sort.Search(len(segments), func(i int) bool { return segments[i] > recoveryPoint })-1)
}

// damage is the first place of a log at which no good batch stands.
type damage struct {
	offset int64 // that the batch there should have, or more
	framed bool  // a whole batch stands there, and its content is wrong
	more   bool  // good batches follow
}

// verdict is what to do about a damage.
type verdict int8

const (
	cut    verdict = iota // the log ends here: the tail was torn
	refuse                // the log must not be used: something that was safe is damaged
)

// judge decides. Recovery point: below it all was synced. A batch at the very end that is incomplete is cut even below
// it: a file that lost its end is no flipped bit, and what is missing can be fetched again; Log.Recovery tells the caller
// that it is missing.
func judge(d damage, recoveryPoint int64) verdict {
	if d.offset < recoveryPoint && (d.framed || d.more) {
		return refuse
	}
	return cut
}
