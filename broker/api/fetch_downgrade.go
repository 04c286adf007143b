package api

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/partition"
	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// Records for readers of old. Fetch 0 and 1 carry messages of format v0, 2 and 3 those of v1, whatever the log holds; what
// becomes of each entry is in record.Downgrade.
//
// The answer says how long its records are before they are converted, and they are converted while they are sent (KIP-283),
// so that a connection holds one entry in both formats and not all that it asked for. As Kafka does, the length told is that
// of the records in the log, or of the first entry converted if that is longer; what is missing in the end is filled with
// the head of an entry that is too long to be whole, which every reader takes for the cut end of an answer. Where it is plain
// that less will do, less is told: the cut end of the records in the log can be as long as a batch.

// The first versions of Fetch that carry batches, and messages of format v1.
const (
	batchesSince    = int16(4)
	timestampsSince = int16(2)
)

// downgrades bounds how many entries are converted at once, for each takes memory for what it decompresses to.
var downgrades = make(chan struct{}, runtime.NumCPU())

// downgrade converts results, which are in line with the request's partitions.
func (op *fetchCall) downgrade(results []partition.FetchResult) {
	to := int8(0)
	if op.version >= timestampsSince {
		to = 1
	}
	for i := range results {
		if r := &results[i]; r.Err == nil {
			if err := op.downgradeOne(r, op.request.Partitions[i].FetchOffset, to); err != nil {
				r.Records.Release()
				*r = failedFetch(&op.request.Partitions[i], err)
			}
		}
	}
}

func (op *fetchCall) downgradeOne(r *partition.FetchResult, from int64, to int8) error {
	p := op.d.deps.Replicas.Partition(r.Topic, r.Partition)
	if p == nil || p.Log() == nil {
		return kerr.NotLeaderForPartition
	}
	log := p.Log()
	if c := log.Config(); !c.DownConversion && c.Format.Magic() > to {
		return kerr.UnsupportedVersion
	}
	for at := from; r.Records.Length > 0; {
		source := newDowngraded(r.Records, record.Downgrade{To: to, From: from, Limits: log.Limits()})
		source.asItIs = log.Config().Format.Magic() <= to
		if err := source.begin(); err != nil {
			source.done()
			return err
		}
		if source.length > 0 {
			release := r.Records.Release
			r.Records = vfs.NewRange(source, 0, source.length, func() {
				release()
				source.done()
			})
			return nil
		}
		// Nothing but what the old formats have no word for. Such readers cannot be told to go on, so this one goes on for
		// them: else they would ask for the same offset for ever.
		at = max(at, source.last) + 1
		any := source.any
		source.done()
		length := int(r.Records.Length)
		r.Records.Release()
		r.Records = vfs.FileRange{}
		if !any || at >= r.HighWatermark {
			return nil
		}
		next, err := log.Read(at, commitlog.ReadOptions{MaxBytes: length, MinOneBatch: true, UpTo: r.HighWatermark})
		if err != nil {
			return err
		}
		r.Records = next.Range
	}
	return nil
}

// emptyPause is how long an answer is held back that tells nothing although there was something to read: its reader is going
// to ask for the same place at once.
const emptyPause = 100 * time.Millisecond

// pause is how long to wait before answering.
func (op *fetchCall) pause(bytesRead int64, results []partition.FetchResult) time.Duration {
	if bytesRead == 0 {
		return 0
	}
	for i := range results {
		if results[i].Err != nil || results[i].Records.Length > 0 {
			return 0
		}
	}
	return min(op.request.MaxWait, emptyPause)
}

func recordBytes(results []partition.FetchResult) (n int64) {
	for i := range results {
		n += results[i].Records.Length
	}
	return n
}

// downgraded is records of a log in an older format, a source that is read once from its beginning to its length.
type downgraded struct {
	from   vfs.FileRange // what was not read yet
	to     record.Downgrade
	window []byte // what was read; unread is its part that was not converted yet
	unread []byte
	ready  []byte // what was converted; given counts its bytes that were read
	given  int

	length  int64
	at      int64
	any     bool  // there was a whole entry
	last    int64 // last offset of the last whole entry
	filling bool
	// asItIs: the log's format is the reader's, so that the cut end of what was read is of use: readers of versions below 3
	// see from it that a message is too large for what they ask.
	asItIs bool
}

// downgradeWindow is how much of a log is read at once, unless an entry is larger.
const downgradeWindow = 128 << 10

// downgradeKept bounds what is kept of each piece of memory for the next fetch.
const downgradeKept = 1 << 20

// spareDowngradeds are empty ones that have the memory of those that are done.
var spareDowngradeds = sync.Pool{New: func() any { return new(downgraded) }}

func newDowngraded(from vfs.FileRange, to record.Downgrade) *downgraded {
	d := spareDowngradeds.Get().(*downgraded)
	to.TakeRoom(&d.to)
	d.from, d.to, d.last = from, to, -1
	return d
}

// done gives the memory away: nothing is read any more.
func (d *downgraded) done() {
	if cap(d.window) <= downgradeKept && cap(d.ready) <= downgradeKept {
		spare := &downgraded{window: d.window[:0], ready: d.ready[:0]}
		spare.to.TakeRoom(&d.to)
		spareDowngradeds.Put(spare)
	}
	d.window, d.unread, d.ready, d.given = nil, nil, nil, 0
}

// begin converts the first entry that becomes something, and settles the length: 0 when there is none.
func (d *downgraded) begin() error {
	total := d.from.Length
	if most, ok := d.trim(); ok {
		total = min(total, most)
	}
	if err := d.convert(); err != nil && err != io.EOF {
		return err
	}
	if len(d.ready) > 0 {
		d.length = max(total, int64(len(d.ready)))
	}
	return nil
}

// trimmedFrom is the size of entries from which on it pays to look at the heads of all that are to be read.
const trimmedFrom = 32 << 10

// trim leaves out an entry at the end that is not whole, and returns the most that becomes of those that are. It says no,
// and leaves all, where that is not to be seen from a few heads.
func (d *downgraded) trim() (most int64, ok bool) {
	if d.asItIs {
		return 0, false
	}
	d.window = append(d.window[:0], make([]byte, record.HeaderSize)...)
	left := d.from
	for left.Length > 0 {
		head := d.window[:min(record.HeaderSize, left.Length)]
		if left.ReadInto(head) != nil {
			return 0, false // whoever converts comes upon it too
		}
		size, known := record.PeekSize(head)
		if !known || size > left.Length {
			break
		}
		n, ok := d.to.Most(head)
		if !ok || size < trimmedFrom {
			return 0, false
		}
		most += n
		left.Offset += size
		left.Length -= size
	}
	d.from.Length -= left.Length
	return most, true
}

// convert makes the next entries ready until something came of one; io.EOF when there is no whole entry left.
func (d *downgraded) convert() error {
	d.ready, d.given = d.ready[:0], 0
	for len(d.ready) == 0 {
		entry, err := d.next()
		if err == io.EOF && d.asItIs {
			return d.cutEnd()
		}
		if err != nil {
			return err
		}
		d.any, d.last = true, entry.LastOffset()
		downgrades <- struct{}{}
		d.ready, err = d.to.Append(d.ready, entry)
		<-downgrades
		if err != nil {
			return err
		}
	}
	return nil
}

// cutEnd makes a piece of an entry ready that is not whole.
func (d *downgraded) cutEnd() error {
	if err := d.fill(1); err != nil {
		return err
	}
	d.ready, d.unread = append(d.ready, d.unread...), nil
	return nil
}

// next returns the next whole entry, valid until the next call; io.EOF when there is none.
func (d *downgraded) next() (record.Entry, error) {
	if err := d.fill(upToMagic); err != nil {
		return nil, err
	}
	size, _ := record.PeekSize(d.unread)
	if err := d.fill(int(size)); err != nil {
		return nil, err
	}
	entry, rest, err := record.NextEntry(d.unread)
	if err != nil {
		return nil, err
	}
	d.unread = rest
	return entry, nil
}

// fill reads on until n bytes are unread; io.EOF when there are not that many.
func (d *downgraded) fill(n int) error {
	more := min(d.from.Length, int64(max(n, downgradeWindow)-len(d.unread)))
	if len(d.unread) >= n {
		return nil
	}
	if int64(len(d.unread))+more < int64(n) {
		return io.EOF
	}
	switch { // unread is the end of window
	case cap(d.window) < len(d.unread)+int(more):
		d.window = append(make([]byte, 0, len(d.unread)+int(more)), d.unread...)
	case len(d.unread) < len(d.window):
		d.window = append(d.window[:0], d.unread...)
	}
	have := len(d.window)
	d.window = d.window[:have+int(more)]
	if err := d.from.ReadInto(d.window[have:]); err != nil {
		return err
	}
	d.from.Offset += more
	d.from.Length -= more
	d.unread = d.window
	return nil
}

// Name implements vfs.Source.
func (d *downgraded) Name() string { return d.from.File.Name() }

// ReadAt implements vfs.Source.
func (d *downgraded) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		lent, err := d.Lend(off+int64(n), len(p)-n)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], lent)
	}
	return n, nil
}

// Lend implements vfs.Lender. What cannot be converted ends the records, as too small an answer would have: the reader gets
// what was before it, asks from there, and is told.
func (d *downgraded) Lend(off int64, most int) ([]byte, error) {
	if off != d.at {
		return nil, fmt.Errorf("converted records of %s are read at %d, are at %d", d.Name(), off, d.at)
	}
	if d.given == len(d.ready) {
		left := d.length - d.at
		if d.filling {
			d.ready, d.given = append(d.ready[:0], make([]byte, min(left, downgradeWindow))...), 0
		} else if err := d.convert(); err != nil {
			if told := (*kerr.Error)(nil); err != io.EOF && !errors.As(err, &told) {
				return nil, err // the disk's, and the connection's end
			}
			d.fillUp(left)
		}
	}
	p := d.ready[d.given:min(len(d.ready), d.given+most)]
	d.given += len(p)
	d.at += int64(len(p))
	return p, nil
}

// fillUp makes the head of an entry ready that is longer than what is left of the answer.
func (d *downgraded) fillUp(left int64) {
	d.filling = true
	d.ready = binary.BigEndian.AppendUint64(d.ready[:0], 1<<64-1)
	d.ready = binary.BigEndian.AppendUint32(d.ready, uint32(max(left+1, record.HeaderSize)))
	d.given = 0
}
