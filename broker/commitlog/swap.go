package commitlog

// Putting cleaned segments in the place of those that they were made from, so that a power cut at any point leaves, after
// what the next start does (arrangeFiles), either the old segments or the new ones:
//
//  1. The new files are complete and durable as .cleaned: a start removes them.
//  2. They are renamed to .swap, durably. From here on a start finishes the swap: it removes every segment whose base
//     lies between the first and the last offset of the .swap files, then renames those.
//  3. The new segments take the place of the old ones in memory. Who reads an old one goes on with the open file.
//  4. The old files are renamed to .deleted, durably, those first that a start would remove. A segment of which nothing
//     is left may lie behind the last offset of the .swap files, and a start would keep it: such segments go one by one,
//     the oldest first, or a record could come back of which the tombstone is gone.
//  5. The new .log gets its name, durably, and only then its indexes: while there is a .log.swap a start removes all
//     that has a final name.
//
// The lock of flushes is held all the time: it keeps truncation, deletion and renaming of the log out. Appends are not kept
// waiting for the disk. Only a follower that begins its log anew may come in between; it removes every file.

import (
	"errors"
	"io/fs"
	"slices"
)

// errOvertaken ends a cleaning because the log was cut, closed or shortened meanwhile.
var errOvertaken = errors.New("the log changed while it was cleaned")

// swapIn replaces old, which follow one another in the log, by what out has written. truncations is the count from before the
// old segments were looked at.
func (l *Log) swapIn(old []*segment, out *cleanOutput, truncations int64) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	if !l.stillHas(old, truncations) {
		return errOvertaken
	}
	sw := swap{l: l, old: old, out: out, truncations: truncations}
	if err := sw.announce(); err != nil {
		return l.parent.fail(err)
	}
	err := sw.carryOut()
	if errors.Is(err, errOvertaken) {
		return err // the files are gone
	}
	return l.parent.fail(err)
}

// stillHas tells that the log has these segments, and that nothing was cut since.
func (l *Log) stillHas(old []*segment, truncations int64) bool {
	return l.Err() == nil && l.truncations.Load() == truncations && indexOfRun(l.list(), old) >= 0
}

// indexOfRun returns where run lies in list, -1 when it does not.
func indexOfRun(list, run []*segment) int {
	i := slices.Index(list, run[0])
	if i < 0 || len(list)-i <= len(run) || !slices.Equal(list[i:i+len(run)], run) {
		return -1 // the last segment, the active one, is never part of it
	}
	return i
}

type swap struct {
	l           *Log
	old         []*segment
	out         *cleanOutput
	truncations int64
	deleted     []string
}

func (sw *swap) syncDir() error { return sw.l.env.fs.SyncDir(sw.l.Dir()) }

// rename gives all files of the new segment s that have one suffix behind their name another one.
func (sw *swap) rename(base int64, suffix, from, to string) error {
	name := sw.l.place.path(fileName(base, suffix))
	if suffix == txnSuffix {
		if _, err := sw.l.env.fs.Stat(name + from); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return sw.l.env.fs.Rename(name+from, name+to)
}

// announce is step 2. The last segment first: as long as there is a .cleaned file the .swap files behind it do not count.
func (sw *swap) announce() error {
	if err := sw.syncDir(); err != nil {
		return err
	}
	for _, s := range backwards(sw.out.done) {
		for _, suffix := range suffixes {
			if err := sw.rename(s.base, suffix, cleanedSuffix, swapSuffix); err != nil {
				return err
			}
		}
		if err := sw.syncDir(); err != nil {
			return err
		}
	}
	return nil
}

// locked does one step under the log's lock, unless the log was begun anew.
func (sw *swap) locked(step func() error) error {
	sw.l.mu.Lock()
	defer sw.l.mu.Unlock()
	if sw.l.truncations.Load() != sw.truncations {
		return errOvertaken
	}
	return step()
}

// carryOut is steps 3 to 5.
func (sw *swap) carryOut() error {
	covered := 0 // segments that a start would remove
	for covered < len(sw.old) && sw.old[covered].base < sw.out.next {
		covered++
	}
	err := sw.locked(func() error {
		sw.publishLocked()
		return sw.discardLocked(sw.old[:covered])
	})
	if err = sw.thenSync(err); err != nil {
		return err
	}
	for i := covered; i < len(sw.old); i++ {
		err := sw.locked(func() error { return sw.discardLocked(sw.old[i : i+1]) })
		if err = sw.thenSync(err); err != nil {
			return err
		}
	}
	sw.l.env.removeLater(sw.l.parent, sw.l.Config().FileDeleteDelayMs, sw.deleted)
	for _, names := range [][]string{{logSuffix}, {indexSuffix, timeSuffix, txnSuffix}} {
		err := sw.locked(func() error {
			for _, s := range sw.out.done {
				for _, suffix := range names {
					if err := sw.rename(s.base, suffix, swapSuffix, ""); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err = sw.thenSync(err); err != nil {
			return err
		}
	}
	return nil
}

func (sw *swap) thenSync(err error) error {
	if err != nil {
		return err
	}
	return sw.syncDir()
}

// publishLocked puts the new segments into the log. A place that is remembered in an old segment is forgotten: the same
// offset stands elsewhere in the new one.
func (sw *swap) publishLocked() {
	l := sw.l
	list := l.list()
	i := indexOfRun(list, sw.old)
	next := slices.Concat(list[:i], sw.out.done, list[i+len(sw.old):])
	l.segments.Store(&next)
	l.marks.Lock()
	if h := l.high.Load(); sw.replaces(h) {
		l.high.CompareAndSwap(h, &Position{h.Offset, noOffset, 0})
	}
	l.marks.Unlock()
	if u := l.unstable.Load(); u != nil && sw.replaces(u) {
		l.unstable.CompareAndSwap(u, &Position{u.Offset, noOffset, 0})
	}
	l.cursor.Store(nil)
	for _, s := range sw.old {
		s.doom()
	}
}

func (sw *swap) replaces(p *Position) bool {
	return slices.ContainsFunc(sw.old, func(s *segment) bool { return s.base == p.SegmentBase })
}

// discardLocked renames the files of old segments. Their snapshots go with them, but for those at the base of a new one.
func (sw *swap) discardLocked(gone []*segment) error {
	l := sw.l
	for _, s := range gone {
		names := []string{logSuffix, indexSuffix, timeSuffix, txnSuffix}
		if !slices.ContainsFunc(sw.out.done, func(n *segment) bool { return n.base == s.base }) {
			names = append(names, snapshotSuffix)
			l.mu.snapshots = slices.DeleteFunc(l.mu.snapshots, func(o int64) bool { return o == s.base })
		}
		for _, suffix := range names {
			from := l.place.path(fileName(s.base, suffix))
			if _, err := l.env.fs.Stat(from); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := l.env.fs.Rename(from, from+deletedSuffix); err != nil {
				return err
			}
			sw.deleted = append(sw.deleted, from+deletedSuffix)
		}
	}
	return nil
}
