package record

import (
	"encoding/binary"
	"iter"
)

// Keyed is what compaction looks at in a record: its offset, its key and whether it has a value. Key is nil for a record
// without one and valid until the next step.
type Keyed struct {
	Offset    int64
	Key       []byte
	Tombstone bool // the value is null: the key is deleted
}

func (s *scanned) keyed(base int64, raw []byte) Keyed {
	k := Keyed{Offset: base + int64(s.offsetDelta), Tombstone: s.valueLen < 0}
	if s.keyLen >= 0 {
		k.Key = raw[s.keyAt : s.keyAt+s.keyLen : s.keyAt+s.keyLen]
	}
	return k
}

// Keys yields the records as Keyed, without a look at values and headers. What is wrong with the batch is yielded last.
func (b Batch) Keys(l Limits) iter.Seq2[Keyed, error] {
	return func(yield func(Keyed, error) bool) {
		base := b.BaseOffset()
		err := b.eachRaw(l, func(raw []byte, s *scanned) bool { return yield(s.keyed(base, raw), nil) })
		if err != nil {
			yield(Keyed{}, err)
		}
	}
}

// eachRaw hands over the bytes of each record and where its parts lie in them, until step returns false.
func (b Batch) eachRaw(l Limits, step func(raw []byte, s *scanned) bool) error {
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
	if err := src.open(b.Codec(), b.Payload(), l); err != nil {
		return err
	}
	defer src.close()
	for range count {
		raw, err := src.record()
		if err != nil {
			return err
		}
		if _, reason := s.scan(raw); reason != "" {
			return invalid(reason)
		}
		if !step(raw, &s) {
			return nil
		}
	}
	if more, err := src.more(); err != nil {
		return err
	} else if more {
		return errLeftOver
	}
	return nil
}

// Retainer takes records out of batches, one batch after the other. It keeps its buffers: what it returns is valid until
// the next call.
type Retainer struct {
	Limits Limits
	kept   []byte
	out    []byte
}

// Retained tells what Retain found.
type Retained struct {
	Read, Kept int
	Tombstones bool // one of the kept records has no value
}

// Retain returns the batch with those records of b that keep wants: b itself when it wants all, nil when it wants none.
// Offsets, the offsets at which the batch begins and ends, sequences, codec, kind of timestamp and delete horizon stay; the
// largest timestamp is that of the records that are left.
func (t *Retainer) Retain(b Batch, keep func(Keyed) bool) (Batch, Retained, error) {
	var r Retained
	t.kept = t.kept[:0]
	base, baseTime, maxTime := b.BaseOffset(), b.BaseTimestamp(), NoTimestamp
	err := b.eachRaw(t.Limits, func(raw []byte, s *scanned) bool {
		r.Read++
		if keep(s.keyed(base, raw)) {
			r.Kept++
			r.Tombstones = r.Tombstones || s.valueLen < 0
			maxTime = max(maxTime, baseTime+s.timestampDelta)
			t.kept = append(t.kept, raw...)
		}
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
	Batch(out).SetCRC()
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
