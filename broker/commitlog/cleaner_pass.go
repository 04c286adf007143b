package commitlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"barnabas/broker/record"
)

// cleanPass is one cleaning of one log.
type cleanPass struct {
	l           *Log
	c           Config
	scope       cleanScope
	nowMs       int64
	truncations int64
	list        []*segment // sealed segments before scope.bound
	aborted     []abortedTx
	keys        *offsetMap
	buffer      int                 // bytes of a read and of a write
	pace        func(n int64) error // waits as the throttle wants; its error ends the cleaning
	stats       cleanStats
	upTo        int64 // everything below is clean when run has returned
}

// run cleans the log.
func (p *cleanPass) run(bytes int64, load float64) error {
	p.truncations = p.l.truncations.Load()
	for _, s := range p.l.list() {
		if s.base < p.scope.bound && s != p.l.active() {
			p.list = append(p.list, s)
		}
	}
	if len(p.list) == 0 {
		return errOvertaken
	}
	for _, s := range p.l.list() {
		list, err := s.abortedList()
		if err != nil {
			return p.told(err)
		}
		p.aborted = append(p.aborted, list...)
	}
	p.keys = newOffsetMap(bytes, load, p.scope.bound-p.scope.dirty)
	if err := p.fill(); err != nil {
		return p.told(err)
	}
	p.upTo = p.keys.latest + 1
	if p.upTo <= p.scope.dirty {
		return fmt.Errorf("the memory for its keys is too small for a single batch at offset %d", p.scope.dirty)
	}
	return p.told(p.copyAll())
}

// told turns what happens when segments go away during the cleaning into errOvertaken.
func (p *cleanPass) told(err error) error {
	if err != nil && (errors.Is(err, fs.ErrNotExist) || p.l.closed.Load()) && !p.l.stillHas(p.list, p.truncations) {
		return errOvertaken
	}
	return err
}

// each hands over the entries of a segment, from the one on that holds an offset.
func (p *cleanPass) each(s *segment, from int64, take func(e entry, whole []byte) (more bool, err error)) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	pos, err := s.lookup(f, from)
	if err != nil {
		return err
	}
	sc := newScanner(f, pos, s.size.Load(), p.buffer)
	paced := pos
	for {
		e, pos, err := sc.next()
		if err == io.EOF {
			return p.pace(sc.pos - paced)
		}
		if err != nil {
			return err
		}
		whole, err := sc.whole(pos, e.size)
		if err != nil {
			return err
		}
		// A batch that is written anew gets a new checksum: damage must not be made good by it.
		if err := checkEntry(whole); err != nil {
			return corruptAt(s.place.path(s.logName()), pos, "%v", err)
		}
		more, err := take(e, whole)
		if err != nil {
			return fmt.Errorf("%s at byte %d: %w", s.place.path(s.logName()), pos, err)
		}
		if !more {
			return nil
		}
		if sc.pos-paced >= int64(p.buffer) {
			if p.l.truncations.Load() != p.truncations || p.l.closed.Load() {
				return errOvertaken
			}
			if err := p.pace(sc.pos - paced); err != nil {
				return err
			}
			paced = sc.pos
		}
	}
}

// fill reads the keys of the dirty part into the map, as far as there is room.
func (p *cleanPass) fill() error {
	f := cleanFilter{keys: p.keys, retainer: record.Retainer{Limits: p.l.env.limits}}
	first := floor(p.list, p.scope.dirty)
	f.txns = newTxnTracker(p.aborted, p.scope.dirty) // the walk meets no marker before
	full := false
	for i := first; i < len(p.list) && !full; i++ {
		err := p.each(p.list[i], p.scope.dirty, func(e entry, whole []byte) (bool, error) {
			if e.last < p.scope.dirty {
				return true, nil
			}
			more, err := f.fill(whole, e.last, p.scope.dirty)
			full = !more
			return more, err
		})
		if err != nil {
			return err
		}
		if !full {
			next := p.scope.bound
			if i+1 < len(p.list) {
				next = p.list[i+1].base
			}
			p.keys.latest = max(p.keys.latest, next-1) // offsets between segments may be missing
		}
	}
	return nil
}

// copyAll copies the segments up to where the map reaches, run by run, and puts the copies in their place.
func (p *cleanPass) copyAll() error {
	list := p.list
	for len(list) > 0 && list[len(list)-1].base >= p.upTo {
		list = list[:len(list)-1]
	}
	facts := make([]groupFact, len(list))
	for i, s := range list {
		offsets, err := s.view(&s.offsets)
		if err != nil {
			return err
		}
		times, err := s.view(&s.times)
		if err != nil {
			return err
		}
		facts[i] = groupFact{
			base: s.base, size: s.size.Load(), offsets: int64(offsets.entries(offsetEntryBytes)) * offsetEntryBytes,
			times: int64(times.entries(timeEntryBytes)) * timeEntryBytes,
		}
	}
	f := cleanFilter{
		keys: p.keys, txns: newTxnTracker(p.aborted, list[0].base), nowMs: p.nowMs, retainMs: p.c.DeleteRetentionMs,
		retainer: record.Retainer{Limits: p.l.env.limits},
	}
	horizon := int64(0) // by the age of the last segment that was clean before
	for _, s := range list {
		if s.base < p.scope.dirty {
			horizon = s.modified - p.c.DeleteRetentionMs
		}
	}
	for _, n := range groupSegments(facts, p.scope.bound, int64(p.c.SegmentBytes), int64(p.c.SegmentIndexBytes)) {
		if err := p.copyRun(list[:n], &f, horizon); err != nil {
			return err
		}
		list = list[n:]
	}
	p.stats.bytesRead += f.stats.bytesRead
	p.stats.bytesWritten += f.stats.bytesWritten
	p.stats.recordsRead += f.stats.recordsRead
	p.stats.recordsWritten += f.stats.recordsWritten
	return nil
}

// copyRun makes one segment of a run of them.
func (p *cleanPass) copyRun(run []*segment, f *cleanFilter, horizon int64) error {
	l := p.l
	f.start, f.lasts = l.StartOffset(), l.lastsOfProducers()
	out := &cleanOutput{
		place: &l.place, like: run[0], modified: run[len(run)-1].modified, interval: int64(p.c.IndexInterval),
		buffer: p.buffer, written: p.pace, next: run[0].base,
	}
	err := out.begin(run[0].base)
	for _, s := range run {
		if err != nil {
			break
		}
		f.legacyTombstones = s.modified > horizon
		err = p.each(s, s.base, func(e entry, whole []byte) (bool, error) {
			f.stats.bytesRead += e.size
			left, err := f.entry(whole)
			if err != nil {
				return false, err
			}
			if f.kept != nil {
				out.aborted = append(out.aborted, *f.kept)
			}
			if left == nil {
				return true, nil
			}
			f.stats.bytesWritten += int64(len(left))
			if e, err = parseEntry(left[:min(len(left), peekBytes)]); err != nil {
				return false, err
			}
			return true, out.add(left, e)
		})
	}
	if err == nil {
		err = out.finish()
	}
	if err == nil {
		err = l.swapIn(run, out, p.truncations)
	}
	if err != nil {
		out.discard()
		return err
	}
	out.release()
	return nil
}

// lastsOfProducers tells which batches must stay so that no sequence is forgotten.
func (l *Log) lastsOfProducers() map[int64]lastOfProducer {
	l.mu.Lock()
	defer l.mu.Unlock()
	lasts := make(map[int64]lastOfProducer, len(l.mu.producers.byID))
	for id, p := range l.mu.producers.byID {
		last, _ := p.last()
		lasts[id] = lastOfProducer{last.lastOffset, p.epoch}
	}
	return lasts
}
