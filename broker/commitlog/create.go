package commitlog

// The beginning of a log: made without a sync, and durable before its first record.

import (
	"errors"
	"os"
)

// newLog makes a log whose files are not looked at yet.
func newLog(env *environment, parent *logDir, tp TopicPartition, dir string, c Config) *Log {
	l := &Log{tp: tp, env: env, parent: parent}
	l.place.fs, l.place.files = env.fs, env.files
	l.place.dir.Store(&dir)
	l.config.Store(&c)
	list := []*segment{newSegment(&l.place, 0, 0, env.nowMs())}
	l.segments.Store(&list)
	l.end.Store(&Position{})
	l.high.Store(&Position{})
	l.lastFlush.Store(env.nowMs())
	l.cleaned.Store(noOffset)
	return l
}

// create makes the files of a new log that begins at offset 0; its folder is there. Nothing is synced before the first
// append (settled): a broker that becomes replica of thousands of new partitions would wait for tens of thousands of fsyncs,
// and what a power cut takes away of an empty log is made again.
func (l *Log) create(id TopicID) error {
	if !id.IsZero() {
		f, err := l.env.fs.OpenFile(l.place.path(partitionMetadataFile), openCreate|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Append(encodePartitionMetadata(id)), f.Close()); err != nil {
			return err
		}
		l.topicID.Store(&id)
	}
	s, err := createSegment(&l.place, 0, l.env.nowMs())
	if err != nil {
		return err
	}
	c := l.Config()
	s.jitter = jitter(l.tp, 0, &c)
	list := []*segment{s}
	l.segments.Store(&list)
	l.unsettled.Store(true)
	l.newNames.Store(true)
	return nil
}

// settled makes the creation of the log durable: the topic's id before any data, so that data is never found without the
// id of its topic (H36).
func (l *Log) settled() error {
	if !l.unsettled.Load() {
		return nil
	}
	l.flushing.Lock()
	defer l.flushing.Unlock()
	return l.settleLocked()
}

// settleLocked is settled for who holds the lock of flushes.
func (l *Log) settleLocked() error {
	if !l.unsettled.Load() {
		return nil
	}
	if !l.TopicID().IsZero() {
		f, err := l.env.fs.OpenFile(l.place.path(partitionMetadataFile), os.O_RDWR, 0)
		if err != nil {
			return l.parent.fail(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return l.parent.fail(err)
		}
	}
	if err := errors.Join(l.env.fs.SyncDir(l.Dir()), l.env.fs.SyncDir(l.parent.path)); err != nil {
		return l.parent.fail(err)
	}
	l.unsettled.Store(false)
	return nil
}
