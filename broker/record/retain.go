package record

import "encoding/binary"

// Keyed is what compaction looks at in a record: its offset, its key and whether it has a value. Key is nil for a record
// without one.
type Keyed struct {
	Offset    int64
	Key       []byte
	Tombstone bool // the value is null: the key is deleted

	raw            []byte // the whole record
	timestampDelta int64
}

func (s *scanned) keyed(base int64, raw []byte) Keyed {
	k := Keyed{Offset: base + int64(s.offsetDelta), Tombstone: s.valueLen < 0, raw: raw, timestampDelta: s.timestampDelta}
	if s.keyLen >= 0 {
		k.Key = raw[s.keyAt : s.keyAt+s.keyLen : s.keyAt+s.keyLen]
	}
	return k
}

// runLength is how many records are handed over at once: enough for a look-up of all their keys to pay, few enough for the
// processor's nearest cache.
const runLength = 64

// Retainer takes records out of batches, one batch after the other. It keeps its buffers: what it returns is valid until
// the next call.
type Retainer struct {
	Limits Limits
	run    []Keyed
	keep   []bool
	kept   []byte
	out    []byte
}

// Runs hands over the records of b, some at a time, until step returns false. What it hands over is valid until step returns.
func (t *Retainer) Runs(b Batch, step func(run []Keyed) (more bool)) error {
	count := b.Count()
	if count == 0 && len(b.Payload()) == 0 {
		return nil
	}
	if count < 0 {
		return invalidf("Found invalid record count %d in magic v2 batch", count)
	}
	var (
		src stream
		s   scanned
	)
	if err := src.open(b.Codec(), b.Payload(), t.Limits); err != nil {
		return err
	}
	defer src.close()
	base := b.BaseOffset()
	t.run = t.run[:0]
	for i := range count {
		raw, err := src.next(&s)
		if err != nil {
			return err
		}
		t.run = append(t.run, s.keyed(base, raw))
		if len(t.run) < runLength && i+1 < count && src.settled() {
			continue
		}
		if !step(t.run) {
			return nil
		}
		t.run = t.run[:0]
	}
	if more, err := src.more(); err != nil {
		return err
	} else if more {
		return errLeftOver
	}
	return nil
}

// Retained tells what Retain found.
type Retained struct {
	Read, Kept int
	Tombstones bool // one of the kept records has no value
}

// Retain returns the batch with those records of b for which choose sets keep, which is false when it is called: b itself
// when it wants all, nil when it wants none. Offsets, the offsets at which the batch begins and ends, sequences, codec, kind of
// timestamp and delete horizon stay; the largest timestamp is that of the records that are left.
func (t *Retainer) Retain(b Batch, choose func(run []Keyed, keep []bool)) (Batch, Retained, error) {
	var r Retained
	t.kept = t.kept[:0]
	baseTime, maxTime := b.BaseTimestamp(), NoTimestamp
	err := t.Runs(b, func(run []Keyed) bool {
		t.keep = append(t.keep[:0], make([]bool, len(run))...)
		choose(run, t.keep)
		for i := range run {
			if k := &run[i]; t.keep[i] {
				r.Kept++
				r.Tombstones = r.Tombstones || k.Tombstone
				maxTime = max(maxTime, baseTime+k.timestampDelta)
				t.kept = append(t.kept, k.raw...)
			}
		}
		r.Read += len(run)
		return true
	})
	switch {
	case err != nil:
		return nil, r, err
	case r.Kept == 0:
		return nil, r, nil
	case r.Kept == r.Read:
		return b, r, nil
	}
	out := append(t.out[:0], b[:HeaderSize]...)
	if b.Codec() == None {
		out = append(out, t.kept...)
	} else if out, err = Compress(b.Codec(), DefaultLevel, out, t.kept); err != nil {
		return nil, r, err
	}
	t.out = out
	if !b.IsLogAppendTime() {
		binary.BigEndian.PutUint64(out[offMaxTimestamp:], uint64(maxTime))
	}
	binary.BigEndian.PutUint32(out[offLength:], uint32(len(out)-Overhead))
	binary.BigEndian.PutUint32(out[offCount:], uint32(r.Kept))
	Batch(out).setCRC()
	return out, r, nil
}

// WithDeleteHorizon returns b with the time (ms) from which its tombstones or its marker may go, which takes the place of the
// base timestamp: the records count from it (KIP-534).
func (b Batch) WithDeleteHorizon(horizon int64, l Limits) (Batch, error) {
	epoch := b.PartitionLeaderEpoch()
	o := BuilderOptions{
		Codec: b.Codec(), BaseOffset: b.BaseOffset(), Control: b.IsControl(), LeaderEpoch: &epoch, DeleteHorizon: &horizon,
		Producer: &Producer{
			ID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(), Transactional: b.IsTransactional(),
		},
	}
	if b.IsLogAppendTime() {
		at := b.MaxTimestamp()
		o.AppendTime = &at
	}
	build := NewBuilder(o)
	for r, err := range b.Records(l) {
		if err != nil {
			return nil, err
		}
		build.AppendRecord(r)
	}
	build.SetLastOffset(b.LastOffset())
	return build.Build()
}
