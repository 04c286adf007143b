package commitlog

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// batchOrder knows what the next batch of a log must look like.
type batchOrder struct {
	base  int64 // of the segment
	next  int64 // lowest offset that may come
	epoch int32 // lowest leader epoch that may come
}

// checkOffsets says what is wrong with the offsets of a batch that comes next.
func (o *batchOrder) checkOffsets(e entry) error {
	switch {
	case e.base < o.next && (e.magic == 2 || e.last < o.next):
		return fmt.Errorf("offsets %d to %d where %d is next", e.base, e.last, o.next)
	case e.last-o.base > math.MaxInt32:
		return fmt.Errorf("offset %d is too far from the segment's base", e.last)
	}
	return nil
}

// checkEpoch notices what a truncation had removed and a power cut brought back.
func (o *batchOrder) checkEpoch(e entry) error {
	if e.epoch >= 0 && e.epoch < o.epoch {
		return fmt.Errorf("leader epoch %d follows %d", e.epoch, o.epoch)
	}
	return nil
}

func (o *batchOrder) step(e entry) {
	o.next = e.last + 1
	o.epoch = max(o.epoch, e.epoch)
}

// segmentWalk goes over one segment in recovery. It checks every batch, and gathers on the way what is derived from them.
type segmentWalk struct {
	order     batchOrder
	from      int64 // offset from which leader epochs must not go back
	index     indexBuilder
	producers producers
	aborted   []abortedTx
	epochs    epochList
	bad       *CorruptionError
	damage    damage
	pos       int64 // behind the last good batch
}

// run walks to the end or the first damage.
func (w *segmentWalk) run(f vfs.File, base, size int64) error {
	sc := newScanner(f, 0, size, walkWindow)
	for {
		e, pos, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = w.take(sc, e, pos, base)
		}
		if err == nil {
			w.pos = pos + e.size
			continue
		}
		bad, ok := err.(*CorruptionError)
		if !ok {
			return err
		}
		w.bad = bad
		w.damage = damage{offset: w.order.next, framed: e.size > 0}
		w.damage.more, err = batchFollows(f, pos+1, size, w.order.next)
		return err
	}
}

func (w *segmentWalk) take(sc *scanner, e entry, pos, base int64) error {
	// All of the segment is checked, though what lies below the recovery point was synced: it has to be read for the
	// indexes anyway, and damage there is found here or by a consumer. The CRC does not cover the offsets: a torn one is
	// known by its order.
	whole, err := sc.whole(pos, e.size)
	if err != nil {
		return err
	}
	err = checkEntry(whole)
	if err == nil {
		err = w.order.checkOffsets(e)
	}
	if err == nil && e.last >= w.from {
		err = w.order.checkEpoch(e)
	}
	if err != nil {
		return corruptAt(sc.name, pos, "%v", err)
	}
	if e.header != nil {
		e.header = record.Batch(whole) // the scanner may have moved its buffer
	}
	aborted, err := w.producers.replay(sc, e, pos, base)
	if err != nil {
		return err
	}
	w.aborted = append(w.aborted, aborted...)
	w.order.step(e)
	w.index.add(e, pos)
	switch latest, ok := w.epochs.latest(); {
	case e.magic < 2:
		w.epochs = nil // as when it was written (written.follow)
	case e.epoch >= 0 && (!ok || e.epoch > latest):
		w.epochs, _ = w.epochs.assign(e.epoch, e.base)
	}
	return nil
}

// batchFollows looks for a good batch of format v2 at or behind pos, with an offset that may follow.
func batchFollows(f vfs.File, pos, size, offset int64) (bool, error) {
	buf := make([]byte, walkWindow)
	for ; pos+record.HeaderSize <= size; pos += int64(len(buf)) - record.HeaderSize + 1 {
		n := min(int64(len(buf)), size-pos)
		if got, err := f.ReadAt(buf[:n], pos); int64(got) < n {
			return false, shortRead(err)
		}
		for i := int64(0); i+record.HeaderSize <= n; i++ {
			if buf[i+16] != 2 || int64(binary.BigEndian.Uint64(buf[i:])) < offset {
				continue
			}
			e, err := parseEntry(buf[i : i+record.HeaderSize])
			if err != nil || e.size > size-pos-i || e.base-offset > math.MaxInt32 {
				continue
			}
			whole := make([]byte, e.size)
			if got, err := f.ReadAt(whole, pos+i); int64(got) < e.size {
				return false, shortRead(err)
			}
			if checkEntry(whole) == nil {
				return true, nil
			}
		}
	}
	return false, nil
}
