package commitlog

// The files of a log that is opened: leftovers go, swaps that were announced are finished, the rest is sorted. The decisions are
// planFiles's (recovery.go).

import (
	"io"
	"os"
	"slices"
	"strings"
)

// arrangeFiles removes leftovers, finishes swaps and sorts what is there.
func (l *Log) arrangeFiles() (filePlan, error) {
	names, err := l.fileNames()
	if err != nil {
		return filePlan{}, err
	}
	plan := planFiles(names)
	if len(plan.remove) == 0 && len(plan.swaps) == 0 {
		return plan, nil
	}
	for _, name := range plan.remove {
		if err := removeIfThere(l.env.fs, l.place.path(name)); err != nil {
			return plan, err
		}
	}
	if err := l.finishSwaps(plan.swaps); err != nil {
		return plan, err
	}
	if err := l.env.fs.SyncDir(l.Dir()); err != nil {
		return plan, err
	}
	if names, err = l.fileNames(); err != nil {
		return plan, err
	}
	return planFiles(names), nil
}

func (l *Log) fileNames() ([]string, error) {
	entries, err := l.env.fs.ReadDir(l.Dir())
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// finishSwaps puts complete swap files in the place of the segments whose offsets they cover.
func (l *Log) finishSwaps(swaps []string) error {
	low, high := int64(-1), int64(-1)
	for _, name := range swaps {
		base, suffix, _ := parseFileName(name)
		if suffix != logSuffix+swapSuffix {
			continue
		}
		end, err := l.endOfFile(name, base)
		if err != nil {
			return err
		}
		if low < 0 || base < low {
			low = base
		}
		high = max(high, end, base+1) // base+1: of the segment at base nothing may be left
	}
	names, err := l.fileNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		base, suffix, ok := parseFileName(name)
		if ok && !strings.HasSuffix(suffix, swapSuffix) && base >= low && base < high {
			if err := removeIfThere(l.env.fs, l.place.path(name)); err != nil {
				return err
			}
		}
	}
	for _, name := range swaps {
		if err := l.env.fs.Rename(l.place.path(name), l.place.path(strings.TrimSuffix(name, swapSuffix))); err != nil {
			return err
		}
	}
	return nil
}

// endOfFile returns the offset behind the last batch of a file of batches.
func (l *Log) endOfFile(name string, base int64) (int64, error) {
	f, err := l.env.fs.OpenFile(l.place.path(name), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	end := base
	sc := newScanner(f, 0, f.Size(), walkWindow)
	for {
		e, _, err := sc.next()
		if err == io.EOF {
			return end, nil
		}
		if err != nil {
			return end, ignoreCorruption(err)
		}
		end = e.last + 1
	}
}

func (l *Log) openSegments(plan filePlan) error {
	now, c := l.env.nowMs(), l.Config()
	list := make([]*segment, 0, max(1, len(plan.segments)))
	for _, base := range plan.segments {
		info, err := l.env.fs.Stat(l.segmentPath(base, logSuffix))
		if err != nil {
			return err
		}
		s := newSegment(&l.place, base, info.Size(), now)
		s.modified = info.ModTime().UnixMilli()
		s.indexSynced.Store(true) // of those that recovery looks at it is taken back
		s.jitter = jitter(l.tp, base, &c)
		if !plan.indexed[base].aborted {
			s.aborted.Store(new([]abortedTx))
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		base := l.start.Load()
		s, err := createSegment(&l.place, base, now)
		if err != nil {
			return err
		}
		s.jitter = jitter(l.tp, base, &c)
		list = append(list, s)
		l.newNames.Store(true)
	}
	list[len(list)-1].reserved = c.Preallocate
	l.segments.Store(&list)
	stray := strays(plan.snapshots, plan.segments)
	for _, o := range plan.snapshots {
		if slices.Contains(stray, o) {
			l.newNames.Store(true)
			if err := removeIfThere(l.env.fs, l.segmentPath(o, snapshotSuffix)); err != nil {
				return err
			}
			continue
		}
		l.mu.snapshots = append(l.mu.snapshots, o)
	}
	return nil
}
