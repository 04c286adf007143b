package commitlog

import (
	"errors"
	"io"
	"path/filepath"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// Problem is something that Verify found wrong.
type Problem struct {
	File     string
	Position int64 // in bytes; -1 when it concerns the whole file
	Cause    string
}

func (p Problem) String() string { return corruptAt(p.File, p.Position, "%s", p.Cause).Error() }

// Verify walks one partition's directory (segments, indexes, epochs, producer snapshots) and tells what is wrong.
// It changes nothing. The error is for a directory that cannot be read.
//
// A log that is in use, or that was not closed cleanly, may have a torn tail and indexes that end early or in zeros in its
// last segment: that is told too.
func Verify(f vfs.FS, dir string) ([]Problem, error) {
	v := verifier{fs: f, dir: dir}
	entries, err := f.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	plan := planFiles(names)
	if v.epochs, err = readEpochs(f, dir); err != nil {
		v.add(err)
	}
	if _, err := readPartitionMetadata(f, dir); err != nil {
		v.add(err)
	}
	for i, base := range plan.segments {
		next := int64(-1)
		if i+1 < len(plan.segments) {
			next = plan.segments[i+1]
		}
		if err := v.segment(base, next, plan.indexed[base], plan.snapshots); err != nil {
			return v.problems, err
		}
	}
	v.snapshot(v.order.next, plan.snapshots)
	return v.problems, nil
}

// verifier carries over from segment to segment what the next one must agree with.
type verifier struct {
	fs        vfs.FS
	dir       string
	problems  []Problem
	epochs    epochList
	order     batchOrder
	producers producers
	started   bool
	whole     bool // the log holds everything that was ever written: nothing was deleted from its start, nothing compacted
	compacted bool // records are missing
}

func (v *verifier) add(err error) {
	if c := (*CorruptionError)(nil); errors.As(err, &c) {
		v.problems = append(v.problems, Problem{c.File, c.Position, c.Cause})
		return
	}
	v.problems = append(v.problems, Problem{v.dir, -1, err.Error()})
}

func (v *verifier) addf(file string, pos int64, format string, args ...any) {
	v.add(corruptAt(file, pos, format, args...))
}

func (v *verifier) path(base int64, suffix string) string {
	return filepath.Join(v.dir, fileName(base, suffix))
}

// placed is a batch with its place in the segment.
type placed struct {
	base, last, pos, maxTime int64
}

func (v *verifier) segment(base, next int64, files fileSet, snapshots []int64) error {
	if !v.started {
		v.started, v.order.next = true, base
		v.whole = base == 0
		v.producers.end = base
	}
	if base < v.order.next {
		v.addf(v.path(base, logSuffix), -1, "the segment before it reaches to offset %d", v.order.next-1)
	}
	if base > v.order.next {
		v.compacted, v.whole = true, false
	}
	v.order.base, v.order.next = base, max(base, v.order.next)
	v.snapshot(base, snapshots)
	f, err := v.fs.OpenFile(v.path(base, logSuffix), 0, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	batches, aborted, err := v.batches(f, base)
	if err != nil {
		return err
	}
	if next >= 0 && v.order.next > next {
		v.addf(f.Name(), -1, "holds offset %d, the next segment begins at %d", v.order.next-1, next)
	}
	if files.offsets {
		err = errors.Join(err, v.offsets(base, batches, next < 0))
	}
	if files.times {
		err = errors.Join(err, v.times(base, batches, next < 0))
	}
	if !files.offsets || !files.times {
		v.addf(f.Name(), -1, "has no index")
	}
	return errors.Join(err, v.aborted(base, files.aborted, aborted))
}

// batches walks over a segment and returns where its batches are and which transactions its markers abort.
func (v *verifier) batches(f vfs.File, base int64) ([]placed, []abortedTx, error) {
	var batches []placed
	var aborted []abortedTx
	sc := newScanner(f, 0, f.Size(), walkWindow)
	for {
		e, pos, err := sc.next()
		if err == io.EOF {
			return batches, aborted, nil
		}
		if err != nil {
			return batches, aborted, v.unlessCorrupt(err)
		}
		whole, err := sc.whole(pos, e.size)
		if err != nil {
			return batches, aborted, err
		}
		if err := checkEntry(whole); err != nil {
			v.addf(f.Name(), pos, "%v", err)
		} else if err := errors.Join(v.order.checkOffsets(e), v.order.checkEpoch(e)); err != nil {
			v.addf(f.Name(), pos, "%v", err)
		}
		if e.header != nil {
			e.header = record.Batch(whole)
		}
		if e.base > v.order.next && e.header != nil || e.header != nil && e.header.Count() <= e.header.LastOffsetDelta() {
			v.compacted, v.whole = true, false
		}
		if epoch, ok := v.epochs.at(e.base); ok && e.epoch >= 0 && epoch != e.epoch {
			v.addf(f.Name(), pos, "leader epoch is %d, by %s it is %d", e.epoch, epochFile, epoch)
		}
		ended, err := v.producers.replay(sc, e, pos, base)
		if err != nil {
			v.add(err)
		}
		aborted = append(aborted, ended...)
		v.order.step(e)
		batches = append(batches, placed{e.base, e.last, pos, e.maxTime})
	}
}

func (v *verifier) unlessCorrupt(err error) error {
	if c := (*CorruptionError)(nil); errors.As(err, &c) {
		v.add(err)
		return nil
	}
	return err
}

// index reads an index without the zeros that Kafka preallocates in the last segment.
func (v *verifier) index(path string, width int, last bool) ([]byte, error) {
	data, err := readSmallFile(v.fs, path, 1<<31)
	if err != nil {
		return nil, v.unlessCorrupt(err)
	}
	if last {
		end := len(data)
		for end > 0 && data[end-1] == 0 {
			end--
		}
		data = data[:min(len(data), (end+width-1)/width*width)]
	}
	if len(data)%width != 0 {
		v.addf(path, int64(len(data)), "%d bytes are no whole number of entries", len(data))
		data = data[:len(data)/width*width]
	}
	return data, nil
}

func (v *verifier) offsets(base int64, batches []placed, last bool) error {
	path := v.path(base, indexSuffix)
	data, err := v.index(path, offsetEntryBytes, last)
	lastOffset, lastPos, i := base-1, int64(-1), 0
	for at := 0; at < len(data); at += offsetEntryBytes {
		offset, pos := offsetEntry(data[at:], base)
		for i < len(batches) && batches[i].pos < pos {
			i++
		}
		switch {
		case offset <= lastOffset || pos <= lastPos:
			v.addf(path, int64(at), "offset %d at %d follows offset %d at %d", offset, pos, lastOffset, lastPos)
		case i == len(batches) || batches[i].pos != pos:
			v.addf(path, int64(at), "no batch begins at %d", pos)
		case batches[i].last > offset:
			v.addf(path, int64(at), "offset %d leads to a batch that reaches to %d", offset, batches[i].last)
		}
		lastOffset, lastPos = offset, pos
	}
	return err
}

func (v *verifier) times(base int64, batches []placed, last bool) error {
	path := v.path(base, timeSuffix)
	data, err := v.index(path, timeEntryBytes, last)
	before := timeOffset{record.NoTimestamp, base - 1}
	newest, i := record.NoTimestamp, 0
	for at := 0; at < len(data); at += timeEntryBytes {
		ts, offset := timeEntry(data[at:], base)
		for i < len(batches) && batches[i].last <= offset {
			newest = max(newest, batches[i].maxTime)
			i++
		}
		switch {
		case ts <= before.ts || offset < before.offset:
			v.addf(path, int64(at), "time %d at offset %d follows time %d at offset %d", ts, offset, before.ts, before.offset)
		case newest != ts:
			v.addf(path, int64(at), "time %d at offset %d, by the batches it is %d", ts, offset, newest)
		}
		before = timeOffset{ts, offset}
	}
	for ; i < len(batches); i++ {
		newest = max(newest, batches[i].maxTime)
	}
	if !last && newest > before.ts {
		v.addf(path, int64(len(data)), "ends with time %d, the segment holds %d", before.ts, newest)
	}
	return err
}

// aborted compares the transaction index with what the markers say. Where a log has lost its start, the first records of a
// transaction may be known to one and not to the other.
func (v *verifier) aborted(base int64, exists bool, want []abortedTx) error {
	path := v.path(base, txnSuffix)
	var have []abortedTx
	if exists {
		data, err := readSmallFile(v.fs, path, maxAbortedBytes)
		if err != nil {
			return v.unlessCorrupt(err)
		}
		if have, err = parseAborted(path, data, base); err != nil {
			v.add(err)
			return nil
		}
	}
	for i, a := range have {
		if len(want) > 0 && want[0].producerID == a.producerID && want[0].last == a.last && (!v.whole || want[0] == a) {
			want = want[1:]
		} else if v.whole {
			v.addf(path, int64(i)*abortedBytes, "aborted transaction %+v is not what the markers say", a)
			return nil
		}
	}
	if len(want) > 0 && v.whole {
		v.addf(path, int64(len(have))*abortedBytes, "aborted transaction %+v is missing", want[0])
	}
	return nil
}

// snapshot compares the snapshot at offset, if there is one, with the replayed state. Producers that have expired may be
// in one and not in the other; open transactions are compared only while the log has all of its records.
func (v *verifier) snapshot(offset int64, snapshots []int64) {
	for _, o := range snapshots {
		if o != offset {
			continue
		}
		path := v.path(offset, snapshotSuffix)
		list, err := readSnapshot(v.fs, v.dir, offset)
		if err != nil {
			v.add(err)
			return
		}
		for i := range list {
			v.producer(path, &list[i])
		}
		return
	}
}

func (v *verifier) producer(path string, have *producer) {
	want := v.producers.byID[have.id]
	if want == nil {
		return
	}
	h, _ := have.last()
	w, known := want.last()
	if v.compacted && w.lastOffset < h.lastOffset {
		return // the batch is gone: its producer had written another one, which a crash or truncation may have taken
	}
	switch {
	case have.epoch != want.epoch, known && h.lastOffset >= 0 && (h.lastSeq != w.lastSeq || h.lastOffset != w.lastOffset):
		v.addf(path, -1, "producer %d: epoch %d, sequence %d at offset %d; by the log epoch %d, sequence %d at offset %d",
			have.id, have.epoch, h.lastSeq, h.lastOffset, want.epoch, w.lastSeq, w.lastOffset)
	case v.whole && have.txnStart != want.txnStart:
		v.addf(path, -1, "producer %d: transaction open from %d, by the log from %d", have.id, have.txnStart, want.txnStart)
	}
}
