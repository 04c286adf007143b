package commitlog

import (
	"errors"
	"io"
	"slices"

	"barnabas/broker/record"
)

// reloadProducersLocked sets the producer state to what it is at end, a shorter end than before: from the newest
// snapshot that is left and a replay of what follows. The snapshots behind end describe records that are gone.
func (l *Log) reloadProducersLocked(end int64) error {
	keep := l.mu.snapshots[:0]
	for _, o := range l.mu.snapshots {
		if o > end {
			if err := removeIfThere(l.env.fs, l.segmentPath(o, snapshotSuffix)); err != nil {
				return err
			}
			continue
		}
		keep = append(keep, o)
	}
	l.mu.snapshots = keep
	l.mu.unsynced = slices.DeleteFunc(l.mu.unsynced, func(o int64) bool { return o > end })
	if len(l.mu.producers.byID) == 0 && l.mu.producers.end >= end {
		l.mu.producers.end = end
		return nil
	}
	return l.loadProducersLocked(end)
}

// loadProducersLocked builds the producer state at end from the newest good snapshot and a replay of what follows. Records
// before the log's start that are still there count: Kafka leaves them out, and forgets sequences for it.
func (l *Log) loadProducersLocked(end int64) error {
	p := &l.mu.producers
	p.load(nil, l.list()[0].base, 0, 0)
	for len(l.mu.snapshots) > 0 {
		newest := l.mu.snapshots[len(l.mu.snapshots)-1]
		list, err := readSnapshot(l.env.fs, l.Dir(), newest)
		if err == nil {
			p.load(list, newest, l.env.nowMs(), l.env.expirationMs.Load())
			break
		}
		if bad := (*CorruptionError)(nil); !errors.As(err, &bad) {
			return err
		}
		l.warnf("producer snapshot is not used: %v", err)
		l.newNames.Store(true)
		if err := removeIfThere(l.env.fs, l.segmentPath(newest, snapshotSuffix)); err != nil {
			return err
		}
		l.mu.snapshots = l.mu.snapshots[:len(l.mu.snapshots)-1]
	}
	return l.replayLocked(end)
}

// replayLocked takes the producer state from where it is to end.
func (l *Log) replayLocked(end int64) error {
	p := &l.mu.producers
	if p.end >= end {
		p.end = end
		return nil
	}
	list := l.list()
	for _, s := range list[floor(list, p.end):] {
		if s.base >= end {
			break
		}
		if err := l.replaySegment(s, p, end); err != nil {
			return err
		}
	}
	p.end = end
	return nil
}

func (l *Log) replaySegment(s *segment, p *producers, end int64) error {
	if s.size.Load() == 0 {
		return nil
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	from, err := s.lookup(f, p.end)
	if err != nil {
		return err
	}
	sc := newScanner(f, from, s.size.Load(), walkWindow)
	for {
		e, pos, err := sc.next()
		if err == io.EOF || err == nil && e.base >= end {
			return nil
		}
		if err != nil {
			return err
		}
		if e.last < p.end {
			continue
		}
		if _, err := p.replay(sc, e, pos, s.base); err != nil {
			return err
		}
	}
}

// replay applies one batch of the log to the state.
func (s *producers) replay(sc *scanner, e entry, pos, base int64) ([]abortedTx, error) {
	if e.header == nil || e.header.ProducerID() == record.NoProducerID {
		s.end = e.last + 1
		return nil, nil
	}
	whole := []byte(e.header)
	if e.header.IsControl() {
		var err error
		if whole, err = sc.whole(pos, e.size); err != nil {
			return nil, err
		}
	}
	var c change
	if err := s.plan(&c, record.Batch(whole), Position{e.base, base, pos}, Replication); err != nil {
		return nil, corruptAt(sc.name, pos, "%v", err)
	}
	return s.apply(&c, e.last+1), nil
}

// recallBytes is how much of a log's end is read for the batches of producers that are known from a snapshot alone.
const recallBytes = 64 << 10

// recall fills up what a snapshot leaves out: it holds the last batch of each producer only, and a client that was cut
// off by a restart sends up to five again (BR-004). They are looked for at the very end of the log.
func (l *Log) recall() error {
	s := l.active()
	size := s.size.Load()
	if len(l.mu.producers.byID) == 0 || size == 0 {
		return nil
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	defer s.file.release()
	from, err := s.boundaryBefore(size - recallBytes)
	if err != nil {
		return err
	}
	seen := map[int64]*producer{}
	sc := newScanner(f, from, size, walkWindow)
	for {
		e, _, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if e.header == nil || e.header.IsControl() || l.mu.producers.byID[e.header.ProducerID()] == nil {
			continue
		}
		p := seen[e.header.ProducerID()]
		if p == nil {
			fresh := newProducer(e.header.ProducerID())
			p = &fresh
			seen[p.id] = p
		}
		p.setEpoch(e.header.ProducerEpoch())
		p.add(metaOf(e.header))
	}
	for id, found := range seen {
		known := l.mu.producers.byID[id]
		have, _ := known.last()
		last, _ := found.last()
		if known.epoch == found.epoch && known.count < found.count && have.lastOffset == last.lastOffset {
			known.batches, known.count = found.batches, found.count
		}
	}
	return nil
}

// boundaryBefore returns the position of a batch at or before pos, by the index.
func (s *segment) boundaryBefore(pos int64) (int64, error) {
	if pos <= 0 {
		return 0, nil
	}
	v, err := s.view(&s.offsets)
	if err != nil {
		return 0, err
	}
	var buf [offsetEntryBytes]byte
	found, err := s.offsets.lookupIn(s, v, buf[:], func(e []byte) bool {
		_, at := offsetEntry(e, s.base)
		return at <= pos
	})
	if err != nil || !found {
		return 0, err
	}
	_, at := offsetEntry(buf[:], s.base)
	return at, nil
}
