package commitlog

import (
	"errors"
	"math"
	"os"
	"time"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// cleanedName names a file of a segment that is being written by a compaction.
func cleanedName(base int64, suffix string) string { return fileName(base, suffix) + cleanedSuffix }

// cleanOutput writes what a cleaning leaves of some segments: one new segment, or several when the offsets do not fit into
// one (KAFKA-6264). All files stay open until they have their final names, so that nobody has to open them by a name that is
// about to change.
type cleanOutput struct {
	place    *place
	like     *segment // the oldest segment it is made from
	modified int64    // of the newest
	interval int64
	buffer   int
	written  func(n int64) error // paces the writing; its error ends it

	done []*segment
	held []*handle
	next int64 // offset behind the last batch

	s       *segment
	f       vfs.File
	buf     []byte
	pos     int64
	index   indexBuilder
	aborted []abortedTx
}

// begin opens a new segment.
func (o *cleanOutput) begin(base int64) error {
	s := newSegment(o.place, base, 0, o.like.created)
	s.modified, s.jitter = o.modified, o.like.jitter
	s.aborted.Store(new([]abortedTx))
	for _, suffix := range suffixes {
		if err := removeIfThere(o.place.fs, o.place.path(cleanedName(base, suffix))); err != nil {
			return err
		}
	}
	o.s, o.pos, o.aborted = s, 0, nil
	o.index = indexBuilder{
		base: base, interval: o.interval, newest: timeOffset{record.NoTimestamp, base}, lastTime: record.NoTimestamp,
	}
	o.done = append(o.done, s)
	var err error
	if o.f, err = o.create(&s.file, logSuffix); err != nil {
		return err
	}
	if _, err = o.create(&s.offsets.handle, indexSuffix); err != nil {
		return err
	}
	_, err = o.create(&s.times.handle, timeSuffix)
	return err
}

func (o *cleanOutput) create(h *handle, suffix string) (vfs.File, error) {
	f, err := h.create(o.place, cleanedName(o.s.base, suffix))
	if err == nil {
		o.held = append(o.held, h)
	}
	return f, err
}

// add writes one entry behind the others. e tells its offsets and time.
func (o *cleanOutput) add(data []byte, e entry) error {
	if e.last-o.s.base > math.MaxInt32 {
		if err := o.finish(); err != nil {
			return err
		}
		if err := o.begin(e.base); err != nil {
			return err
		}
	}
	o.index.add(e, o.pos+int64(len(o.buf)))
	o.buf = append(o.buf, data...)
	o.next = e.last + 1
	if len(o.buf) < o.buffer {
		return nil
	}
	return o.flush()
}

func (o *cleanOutput) flush() error {
	if len(o.buf) == 0 {
		return nil
	}
	if err := o.f.Append(o.buf); err != nil {
		return err
	}
	n := int64(len(o.buf))
	o.pos += n
	o.buf = o.buf[:0]
	return o.written(n)
}

// finish makes the open segment complete and durable, but for its names.
func (o *cleanOutput) finish() error {
	if err := o.flush(); err != nil {
		return err
	}
	s := o.s
	s.size.Store(o.pos)
	s.mu.Lock()
	err := s.installLocked(&o.index)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	// Messages without timestamps are as old as their file, also at the next start.
	if err := o.place.fs.SetModified(o.f.Name(), time.UnixMilli(s.modified)); err != nil {
		return err
	}
	if err := errors.Join(o.f.Sync(), s.offsets.sync(o.place, s.base), s.times.sync(o.place, s.base)); err != nil {
		return err
	}
	s.indexSynced.Store(true)
	if len(o.aborted) == 0 {
		return nil
	}
	s.aborted.Store(&o.aborted)
	var data []byte
	for _, a := range o.aborted {
		data = append(data, a.encode()...)
	}
	f, err := o.place.fs.OpenFile(o.place.path(cleanedName(s.base, txnSuffix)), openCreate|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(f.Append(data), f.Sync(), f.Close())
}

// release lets go of the files: they have their final names, or are to be removed.
func (o *cleanOutput) release() {
	for _, h := range o.held {
		h.release()
	}
	o.held = nil
}

// discard removes what was written: the cleaning has ended early.
func (o *cleanOutput) discard() {
	o.release()
	for _, s := range o.done {
		s.doom()
		for _, suffix := range suffixes {
			_ = o.place.fs.Remove(o.place.path(cleanedName(s.base, suffix))) // the next start removes what is left
		}
	}
}
