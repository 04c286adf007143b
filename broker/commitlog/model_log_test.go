package commitlog

import (
	"math"
	"slices"
)

// plainLog is a partition's log as a plain list, with rules of its own that can be checked by eye: it knows no segment,
// index, map of keys or file, and shares no code with the log it judges. What depends on how many bytes something takes is
// told to it (segmentPlace, cleaning).
//
//   - Offsets never change. An append adds a batch; a cut removes every batch that reaches the offset or lies behind it.
//   - A transaction is what its marker says. Until that is below the high watermark it is undecided, and nothing from its
//     first record on is stable.
//   - A cleaning touches nothing at or behind the first offset that is not stable. A committed record gives way to a later
//     one of its key that the cleaning knows, a tombstone to the passing of its horizon, an aborted record to nothing at
//     all, and a marker to its horizon once no batch of its transaction is left. What a producer sent last leaves its batch.
//   - A message of format v0 or v1 is a batch that knows its last offset alone, one record or a wrapper of many. It belongs to
//     no producer and no leader epoch, and ends the history of those before it. Cleaned, it ends with its last record that is
//     left; a tombstone in it goes by the age of its segment.
type plainLog struct {
	journal []plainBatch // all that was appended and not cut off again
	batches []plainBatch // what is left of it; those before the first segment are only remembered, a power cut may bring them back
	start   int64        // nothing before it is read
	deleted int64        // the largest start there was: what lies before it may be gone even when a power cut brings an older start back
	end     int64
	high    int64 // high watermark
	dirty   int64 // everything before it was cleaned; -1: nothing was
	decided int64 // what was cleaned, or was going to be when the power was cut, lies before it
	// trusted: markers before it count though they are not below the high watermark. It may be raised up to trustable.
	trusted, trustable int64
}

// plainHeader is what a reader, a producer or a later cleaning can tell batches by.
type plainHeader struct {
	magic         int8
	base, last    int64 // of a message both are the offset of its last record
	epoch         int32 // of the leader
	pid           int64 // -1: none
	lastSeq       int32
	transactional bool
	control       bool
	appendTime    bool
	newest        int64 // ms; the largest timestamp, as the header says
	horizon       int64 // ms; -1: none
}

type plainBatch struct {
	plainHeader
	records []plainRecord
}

type plainRecord struct {
	offset, ts int64
	key, value string
	keyless    bool
	null       bool // no value: a tombstone, if there is a key
	aborts     bool // of a control batch: the marker says so
}

func (b plainBatch) equal(o plainBatch) bool {
	return b.plainHeader == o.plainHeader && slices.Equal(b.records, o.records)
}

// first is the first offset that there is a record of.
func (b plainBatch) first() int64 {
	if b.magic < 2 {
		return b.records[0].offset
	}
	return b.base
}

// segmentPlace is where a segment begins, how large it is, and when it was written to last.
type segmentPlace struct{ base, size, modified int64 }

// holder is which of the segments holds offset.
func holder(segments []segmentPlace, offset int64) int {
	i := len(segments) - 1
	for i > 0 && segments[i].base > offset {
		i--
	}
	return i
}

func (p *plainLog) append(b plainBatch) {
	p.journal, p.batches = append(p.journal, b), append(p.batches, b)
	p.end = b.last + 1
}

func (p *plainLog) startAt(offset int64) {
	p.start = max(p.start, offset)
	p.deleted = max(p.deleted, p.start)
}

// cut removes what reaches offset; the new end.
func (p *plainLog) cut(offset int64) int64 {
	reaches := func(b plainBatch) bool { return b.last >= offset }
	for _, b := range p.batches {
		if reaches(b) {
			offset = min(offset, b.first())
		}
	}
	p.batches = slices.DeleteFunc(slices.Clone(p.batches), reaches)
	p.journal = slices.DeleteFunc(slices.Clone(p.journal), reaches)
	p.end = min(p.end, offset)
	p.high, p.start, p.dirty = min(p.high, p.end), min(p.start, p.end), min(p.dirty, p.end)
	return p.end
}

// recovered is what a power cut does that left everything up to end, and the log's segments from first on. A log that has lost
// everything behind its start goes on there.
func (p *plainLog) recovered(end, first, start, high int64) {
	p.high = min(p.high, end, max(high, start))
	p.cut(end)
	if start == end {
		p.end, p.high = end, end
	}
	p.batches = slices.DeleteFunc(p.batches, func(b plainBatch) bool { return b.last < first })
	p.start = start
}

// cleanTo is the first offset that is not clean; a point outside of the log counts as none.
func (p *plainLog) cleanTo() int64 {
	if p.dirty < p.start || p.dirty > p.end {
		return p.start
	}
	return p.dirty
}

// undecided is the first offset of each open transaction, by producer.
func (p *plainLog) undecided() map[int64]int64 {
	open := map[int64]int64{}
	for _, b := range p.journal {
		if b.control {
			delete(open, b.pid)
		} else if _, known := open[b.pid]; b.transactional && !known {
			open[b.pid] = b.base
		}
	}
	return open
}

// boundary is the first end of a batch at or behind offset.
func (p *plainLog) boundary(offset int64) int64 {
	for _, b := range p.batches {
		if b.first() < offset && b.last >= offset {
			return b.last + 1
		}
	}
	return offset
}

// stable is the last stable offset, by what is known of these batches.
func (p *plainLog) stable(batches []plainBatch) int64 {
	stable := p.high
	began := map[int64]int64{}
	for _, b := range batches {
		first, known := began[b.pid]
		switch {
		case b.control:
			if known && b.base >= max(p.high, p.trusted) {
				stable = min(stable, first)
			}
			delete(began, b.pid)
		case b.transactional && !known:
			began[b.pid] = b.base
		}
	}
	for _, first := range began {
		stable = min(stable, first)
	}
	return min(max(stable, p.start), p.high)
}

// trust takes over from the log that it counts markers which it may trust, if the last stable offset shows that it does.
func (p *plainLog) trust(stable int64, present []plainBatch) {
	before := p.trusted
	is := func() bool { return p.stable(p.journal) == stable || p.stable(present) == stable }
	for _, b := range present {
		if is() {
			return
		}
		if b.control && b.base >= p.trusted && b.base < p.trustable {
			p.trusted = b.base + 1
		}
	}
	if !is() {
		p.trusted = before
	}
}

// aborted is the batches (by base offset) whose transaction the next marker of their producer aborts.
func (p *plainLog) aborted() map[int64]bool {
	out := map[int64]bool{}
	ends := map[int64]bool{} // by producer: how the transaction ends that we are in, going backwards
	for _, b := range slices.Backward(p.journal) {
		switch {
		case b.control:
			ends[b.pid] = b.records[0].aborts
		case b.transactional && ends[b.pid]:
			out[b.base] = true
		}
	}
	return out
}

// lastSent is the last sequence that each producer sent, of the given batches.
func lastSent(batches []plainBatch) map[int64]int32 {
	out := map[int64]int32{}
	for _, b := range batches {
		if b.pid >= 0 && !b.control {
			out[b.pid] = b.lastSeq
		}
	}
	return out
}

// latest is what a reader of committed records who has read all that is stable knows: the last record of each key.
func (p *plainLog) latest(stable int64) map[string]plainRecord {
	out := map[string]plainRecord{}
	aborted := p.aborted()
	for _, b := range p.journal {
		if b.control || b.last >= stable || aborted[b.base] {
			continue
		}
		for _, r := range b.records {
			if !r.keyless {
				out[r.key] = r
			}
		}
	}
	return out
}

// newest is the largest timestamp of the batches with base offsets from..upTo-1; -1 when there is none.
func (p *plainLog) newest(from, upTo int64) int64 {
	newest := int64(-1)
	for _, b := range p.batches {
		if b.base >= from && b.base < upTo {
			newest = max(newest, b.newest)
		}
	}
	return newest
}

// cleanable says up to where a cleaning may look: the base of the segment that holds the first offset which is not stable,
// or whose records are younger than min.compaction.lag.ms. false when nothing is there to be cleaned.
func (p *plainLog) cleanable(segments []segmentPlace, stable, nowMs, lagMs int64) (bound int64, worthIt bool) {
	active := len(segments) - 1
	limit := min(stable, segments[active].base)
	first := holder(segments, p.cleanTo())
	for i := first; i < active && lagMs > 0; i++ {
		newest := p.newest(segments[i].base, segments[i+1].base)
		if newest < 0 {
			newest = segments[i].modified
		}
		if newest > nowMs-lagMs {
			limit = min(limit, segments[i].base)
			break
		}
	}
	last := holder(segments, max(limit, p.cleanTo()))
	for _, s := range segments[first:max(first, last)] {
		worthIt = worthIt || s.size > 0
	}
	return segments[last].base, worthIt
}

// cleaning is what the model has to be told of one.
type cleaning struct {
	segments  []segmentPlace         // what lies before the first is gone
	untouched int64                  // base of the first segment that is not written anew
	upTo      int64                  // the keys of what is dirty were read up to here
	nowMs     int64                  // when
	retainMs  int64                  // delete.retention.ms
	isLast    func(plainHeader) bool // what its producer sent last
}

// clean removes what a cleaning removes.
func (p *plainLog) clean(c cleaning) {
	aborted, dirty := p.aborted(), p.cleanTo()
	last := map[string]int64{}
	for _, b := range p.batches {
		for _, r := range b.records {
			if !b.control && !aborted[b.base] && !r.keyless && r.offset >= dirty && r.offset < c.upTo {
				last[r.key] = r.offset
			}
		}
	}
	horizon := int64(0) // a tombstone in a message goes with a segment that is not younger
	for _, segment := range c.segments {
		if segment.base < dirty {
			horizon = segment.modified - c.retainMs
		}
	}
	met := map[int64]bool{} // producers of whose transaction there is a batch
	var left []plainBatch
	for _, b := range p.batches {
		if b.last < c.segments[0].base || b.base >= c.untouched {
			left = append(left, b)
			continue
		}
		switch {
		case b.control:
			b = b.afterAll(met[b.pid], c)
			delete(met, b.pid)
		case b.magic < 2:
			tombstonesGo := c.segments[holder(c.segments, b.last)].modified <= horizon
			b = b.with(func(r plainRecord) bool { return p.survives(r, tombstonesGo, last, c) }, c)
		default:
			met[b.pid] = met[b.pid] || b.transactional
			tombstonesGo := b.horizon >= 0 && c.nowMs >= b.horizon
			b = b.with(func(r plainRecord) bool { return !aborted[b.base] && p.survives(r, tombstonesGo, last, c) }, c)
		}
		if len(b.records) > 0 || c.isLast(b.plainHeader) {
			left = append(left, b)
		}
	}
	// A map that was full ends inside of a batch. The rest of it is committed too.
	p.decided = max(p.decided, p.boundary(c.upTo))
	p.batches, p.dirty = left, c.upTo
}

func (p *plainLog) survives(r plainRecord, tombstonesGo bool, last map[string]int64, c cleaning) bool {
	switch {
	case r.offset < p.start:
		return false
	case r.offset >= c.upTo:
		return true
	case r.keyless, r.null && tombstonesGo:
		return false
	}
	later, known := last[r.key]
	return !known || later <= r.offset
}

// with is what is left of a batch of which some records survive.
func (b plainBatch) with(survives func(plainRecord) bool, c cleaning) plainBatch {
	var stay []plainRecord
	newest, tombstones := int64(math.MinInt64), false
	for _, r := range b.records {
		if survives(r) {
			stay, newest, tombstones = append(stay, r), max(newest, r.ts), tombstones || r.null
		}
	}
	switch {
	case len(stay) == 0:
		b.horizon = -1
	case !b.appendTime:
		b.newest = newest
	}
	b.records = stay
	switch {
	case b.magic < 2 && len(stay) > 0:
		b.base, b.last = stay[len(stay)-1].offset, stay[len(stay)-1].offset
	case b.magic == 2 && tombstones && b.horizon < 0:
		b.horizon = c.nowMs + c.retainMs
	}
	return b
}

// afterAll is what is left of a marker; met tells that there was a batch of its transaction.
func (b plainBatch) afterAll(met bool, c cleaning) plainBatch {
	switch {
	case met || len(b.records) == 0:
	case b.horizon < 0:
		b.horizon = c.nowMs + c.retainMs
	case b.horizon <= c.nowMs:
		b.records, b.horizon = nil, -1
	}
	return b
}
