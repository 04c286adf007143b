package dumplog

import (
	"errors"
	"io"

	"barnabas/broker/record"
)

// Batch is what a log file says of one batch, or of one message of an older format.
type Batch struct {
	Position, Size         int64
	BaseOffset, LastOffset int64
	Count                  int32 // 0: not told, of a message that may hold others
	Magic                  int8
	Codec                  string
	MaxTimestamp           int64 // milliseconds; -1: none
	LogAppendTime          bool
	LeaderEpoch            int32 // -1: none
	ProducerID             int64 // -1: none
	ProducerEpoch          int16
	BaseSequence           int32
	Transactional, Control bool
	Valid                  bool // the checksum fits

	entry *batch
}

// Batches reads a segment file batch by batch, until f wants no more. rest are the bytes behind the last whole one; the error of a file that does not read on tells where.
func Batches(name string, f func(Batch) error) (rest int64, err error) {
	s, err := openSegment(name)
	if err != nil {
		return 0, plain(err)
	}
	defer s.close()
	position := int64(0)
	for {
		b, err := s.at(position)
		if err == io.EOF {
			return s.size - position, nil
		}
		if err != nil {
			return s.size - position, plain(err)
		}
		told, err := b.told()
		if err != nil {
			return s.size - position, plain(err)
		}
		if err := f(told); err != nil {
			return s.size - position, err
		}
		position += b.size()
	}
}

// plain is an error without the name that scripts look for.
func plain(err error) error {
	var named *exception
	if errors.As(err, &named) {
		return errors.New(named.message)
	}
	return err
}

func (b *batch) told() (Batch, error) {
	t := Batch{Position: b.position, Size: b.size(), LastOffset: b.lastOffset(), Magic: b.magic(), Codec: b.codec().String(), MaxTimestamp: -1, LogAppendTime: b.timestampType() == "LogAppendTime",
		LeaderEpoch: record.NoLeaderEpoch, ProducerID: record.NoProducerID, ProducerEpoch: record.NoProducerEpoch, BaseSequence: record.NoSequence, Valid: b.valid(), entry: b}
	if t.Magic > 0 {
		t.MaxTimestamp = b.maxTimestamp()
	}
	if v := b.v2; v != nil {
		t.BaseOffset, t.Count, t.LeaderEpoch, t.ProducerID, t.ProducerEpoch, t.BaseSequence, t.Transactional, t.Control = v.BaseOffset(), v.Count(), v.PartitionLeaderEpoch(), v.ProducerID(), v.ProducerEpoch(), v.BaseSequence(),
			v.IsTransactional(), v.IsControl()
		return t, nil
	}
	t.BaseOffset = t.LastOffset
	if t.Valid {
		first, err := b.firstOffset()
		t.BaseOffset = first
		return t, err
	}
	return t, nil
}

// Records calls f for the records of the batch. What a record points to is valid until f returns.
func (b Batch) Records(f func(record.Record) error) error {
	return plain(b.entry.each(func(r logRecord) error { return f(r.Record) }))
}
