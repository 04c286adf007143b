package commitlog

import (
	"time"

	"barnabas/broker/record"
)

// segmentFact is what retention has to know of a segment.
type segmentFact struct {
	next int64 // base offset of the segment behind it, the log's end for the last one
	size int64
	time int64 // ms; of the newest record, or of the file when records have no timestamps
	last bool
}

// expired says how many segments, from the oldest on, have to go. None goes that holds an offset at or behind the high
// watermark (H41), and never an empty last one. The reason is for the broker's log.
func expired(segments []segmentFact, c *Config, start, high, nowMs int64) (n int, reason string) {
	total := int64(0)
	for _, s := range segments {
		total += s.size
	}
	over := int64(-1)
	if c.CleanupDelete && c.RetentionBytes >= 0 {
		over = total - c.RetentionBytes
	}
	for _, s := range segments {
		why := ""
		switch {
		case !s.last && s.next <= start:
			why = "it lies before the log's start"
		case over >= s.size && over >= 0:
			why = "retention.bytes is exceeded"
		case c.CleanupDelete && c.RetentionMs >= 0 && nowMs-s.time > c.RetentionMs:
			why = "retention.ms is exceeded"
		}
		if why == "" || s.next > high || s.last && s.size == 0 {
			break
		}
		if reason == "" {
			reason = why
		}
		over -= s.size
		n++
	}
	return n, reason
}

// applyRetention deletes what the settings do not keep, in the background's own time.
func (l *Log) applyRetention(nowMs int64) error {
	l.flushing.Lock() // not while a cleaning puts segments in their place
	defer l.flushing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	list := l.list()
	c := l.Config()
	if l.IsFuture() {
		c.CleanupDelete = false // its start is that of the log it is a copy of
	}
	facts := make([]segmentFact, len(list))
	for i, s := range list {
		facts[i] = segmentFact{next: l.EndOffset(), size: s.size.Load(), last: i == len(list)-1}
		if !facts[i].last {
			facts[i].next = list[i+1].base
		}
		if needTime := c.CleanupDelete && c.RetentionMs >= 0 && (i == 0 || nowMs-facts[i-1].time > c.RetentionMs); !needTime {
			// A younger one before it stops the deletion, so that its time is not asked for.
			facts[i].time = nowMs
			continue
		}
		t, err := s.retentionTime()
		if err != nil {
			return l.readError(err)
		}
		facts[i].time = t
	}
	n, reason := expired(facts, &c, l.StartOffset(), l.HighWatermark(), nowMs)
	if n == 0 {
		return nil
	}
	return l.deleteOldestLocked(n, reason)
}

// retentionTime is how old the segment is by its newest record, or by its file when records have no timestamps.
func (s *segment) retentionTime() (int64, error) {
	newest, err := s.largest()
	if err != nil {
		return 0, err
	}
	if newest.ts == record.NoTimestamp {
		return s.modified, nil
	}
	return newest.ts, nil
}

func (l *Log) deleteOldestLocked(n int, reason string) error {
	if n == len(l.list()) {
		if err := l.rollLocked(l.EndOffset()); err != nil {
			return err
		}
	}
	list := l.list()
	gone, rest := list[:n:n], list[n:]
	if _, err := l.advanceStartLocked(rest[0].base); err != nil {
		return err
	}
	rest = rest[:len(rest):len(rest)]
	l.segments.Store(&rest)
	l.env.log.WithField("partition", l.tp.String()).
		Infof("deleting %d segments up to offset %d: %s", n, rest[0].base, reason)
	return l.parent.fail(l.discardLocked(gone))
}

// discardLocked renames the files of segments that no reader can find any more, and has them deleted later: whoever
// holds a range of one goes on reading it. Their snapshots go with them.
func (l *Log) discardLocked(gone []*segment) error {
	var paths []string
	rename := func(name string) error {
		from := l.place.path(name)
		if _, err := l.env.fs.Stat(from); err != nil {
			return nil // most segments have no .txnindex, some no snapshot
		}
		if err := l.env.fs.Rename(from, from+deletedSuffix); err != nil {
			return err
		}
		paths = append(paths, from+deletedSuffix)
		return nil
	}
	for _, s := range gone {
		for _, suffix := range suffixes {
			if err := rename(fileName(s.base, suffix)); err != nil {
				return err
			}
		}
		for i, o := range l.mu.snapshots {
			if o == s.base {
				if err := rename(fileName(o, snapshotSuffix)); err != nil {
					return err
				}
				l.mu.snapshots = append(l.mu.snapshots[:i:i], l.mu.snapshots[i+1:]...)
				break
			}
		}
		s.doom()
	}
	l.newNames.Store(true)
	l.env.removeLater(l.parent, l.Config().FileDeleteDelayMs, paths)
	return nil
}

// flushDue tells that flush.ms has passed since the last flush and something is waiting for one.
func (l *Log) flushDue(now time.Time) bool {
	c := l.Config()
	return l.EndOffset() > l.RecoveryPoint() && now.UnixMilli()-l.lastFlush.Load() >= c.FlushMs
}
