package commitlog

import (
	"barnabas/broker/record"
)

// lastOfProducer is what must not be removed of a producer: its last batch, or, when its epoch was raised since, the marker
// that did so.
type lastOfProducer struct {
	offset int64 // last offset of the batch; noOffset: there is none of this epoch
	epoch  int16
}

// cleanFilter decides what is left of each entry of a log that is being copied.
type cleanFilter struct {
	keys     *offsetMap
	txns     *txnTracker
	lasts    map[int64]lastOfProducer
	start    int64 // log start: nothing before it can be read
	nowMs    int64
	retainMs int64 // delete.retention.ms
	// legacyTombstones: tombstones of the old formats stay. They have no delete horizon, and go by the age of their segment.
	legacyTombstones bool

	retainer record.Retainer
	hashes   []keyHash  // of one run of records
	kept     *abortedTx // set beside a marker whose entry in the transaction index stays
	stats    cleanStats
}

// cleanStats counts what a cleaning did.
type cleanStats struct {
	bytesRead, bytesWritten     int64
	recordsRead, recordsWritten int64
}

// entry returns what is left of one batch or message of old: itself, another one, or nil. What it returns is valid until
// the next call.
func (f *cleanFilter) entry(whole []byte) ([]byte, error) {
	f.kept = nil
	if int8(whole[16]) != 2 {
		return f.message(whole)
	}
	b := record.Batch(whole)
	if b.IsControl() {
		return f.control(b)
	}
	if f.txns.data(b) {
		f.stats.recordsRead += int64(b.Count())
		return f.emptied(b), nil
	}
	tombstonesStay := !b.HasDeleteHorizon() || f.nowMs < b.BaseTimestamp()
	left, r, err := f.retainer.Retain(b, func(run []record.Keyed, keep []bool) {
		f.hashes = f.keys.hashRun(f.hashes[:0], run)
		for i := range run {
			keep[i] = f.keeps(&run[i], f.hashes[i], tombstonesStay)
		}
	})
	if err != nil {
		return nil, err
	}
	f.stats.recordsRead += int64(r.Read)
	f.stats.recordsWritten += int64(r.Kept)
	switch {
	case r.Kept == 0:
		return f.emptied(b), nil
	case r.Tombstones && !b.HasDeleteHorizon():
		return left.WithDeleteHorizon(f.nowMs+f.retainMs, f.retainer.Limits)
	}
	return left, nil
}

// keeps decides about one record; h is the hash of its key.
func (f *cleanFilter) keeps(k *record.Keyed, h keyHash, tombstonesStay bool) bool {
	switch {
	case k.Offset < f.start:
		return false
	case k.Offset > f.keys.latest:
		return true
	case k.Key == nil:
		return false // appended before the topic was compacted
	case k.Tombstone && !tombstonesStay:
		return false
	}
	return k.Offset >= f.keys.get(h)
}

// control decides about a marker. One that is not needed gets a delete horizon, and goes when that has passed.
func (f *cleanFilter) control(b record.Batch) ([]byte, error) {
	f.stats.recordsRead += int64(b.Count())
	needless, kept, err := f.txns.marker(b)
	if err != nil {
		return nil, err
	}
	f.kept = kept
	switch {
	case b.Count() == 0 || needless && b.HasDeleteHorizon() && b.BaseTimestamp() <= f.nowMs:
		return f.emptied(b), nil
	case needless && !b.HasDeleteHorizon():
		f.stats.recordsWritten += int64(b.Count())
		return b.WithDeleteHorizon(f.nowMs+f.retainMs, f.retainer.Limits)
	}
	f.stats.recordsWritten += int64(b.Count())
	return b, nil
}

// emptied is what stays of a batch that has lost its records.
func (f *cleanFilter) emptied(b record.Batch) []byte {
	if !b.HasProducerID() {
		return nil
	}
	last, ok := f.lasts[b.ProducerID()]
	switch {
	case !ok:
		return nil
	case last.offset == noOffset && (!b.IsControl() || b.ProducerEpoch() != last.epoch):
		return nil
	case last.offset != noOffset && b.LastOffset() != last.offset:
		return nil
	}
	return b.WithoutRecords()
}

// message is entry for the formats of old: a message, or a compressed one that holds others.
func (f *cleanFilter) message(whole []byte) ([]byte, error) {
	m, _, err := record.NextMessage(whole)
	if err != nil {
		return nil, err
	}
	var left []record.LegacyRecord
	read := 0
	for r, err := range m.Messages(f.retainer.Limits) {
		if err != nil {
			return nil, err
		}
		read++
		k := record.Keyed{Offset: r.Offset, Key: r.Key, Tombstone: r.Value == nil}
		if f.keeps(&k, f.keys.hash(k.Key), f.legacyTombstones) {
			r.Key, r.Value = clonedOrNil(r.Key), clonedOrNil(r.Value)
			left = append(left, r)
		}
	}
	f.stats.recordsRead += int64(read)
	f.stats.recordsWritten += int64(len(left))
	switch len(left) {
	case 0:
		return nil, nil
	case read:
		return whole, nil
	}
	return wrapped(m, left)
}

// clonedOrNil keeps the difference between an empty key or value and none.
func clonedOrNil(p []byte) []byte {
	if p == nil {
		return nil
	}
	return append(make([]byte, 0, len(p)), p...)
}

// wrapped compresses what is left of the messages of wrapper m.
func wrapped(m record.Message, left []record.LegacyRecord) ([]byte, error) {
	o := record.MessageOptions{Magic: m.Magic(), Codec: m.Codec()}
	if m.IsLogAppendTime() {
		at := m.Timestamp()
		o.AppendTime = &at
	}
	build := record.NewMessageBuilder(nil, nil, o)
	for i := range left {
		build.Append(&left[i].Record)
	}
	return build.Build()
}

// fill reads one entry's keys into the map; false when the map is full, and then the map reaches to the last record that
// found room.
func (f *cleanFilter) fill(whole []byte, last, from int64) (more bool, err error) {
	more = true
	if int8(whole[16]) == 2 {
		b := record.Batch(whole)
		switch {
		case b.IsControl():
			_, _, err = f.txns.marker(b)
		case !f.txns.data(b):
			err = f.retainer.Runs(b, func(run []record.Keyed) bool {
				f.hashes = f.keys.hashRun(f.hashes[:0], run)
				for i := range run {
					if k := &run[i]; more && k.Key != nil && k.Offset >= from {
						more = f.keys.put(f.hashes[i], k.Offset)
					}
				}
				return more
			})
		}
	} else {
		err = eachRecord(whole, f.retainer.Limits, func(r record.Record) bool {
			if r.Key != nil && r.Offset >= from {
				more = f.keys.put(f.keys.hash(r.Key), r.Offset)
			}
			return more
		})
	}
	if err == nil && more && last >= from {
		f.keys.latest = last
	}
	return more, err
}
