package dumplog

import (
	"errors"
	"fmt"
	"io"
	"os"

	"barnabas/broker/record"
)

// segment reads the batches of a log file one by one.
type segment struct {
	f    *os.File
	name string
	size int64 // bytes to read; what lies behind is not looked at
}

func openSegment(name string) (*segment, error) {
	f, size, err := open(name)
	if err != nil {
		return nil, err
	}
	return &segment{f: f, name: name, size: size}, nil
}

func (s *segment) close() { s.f.Close() } // read only

// batch is one entry of a log: a batch, or a message of an older format.
type batch struct {
	v2       record.Batch   // nil for an older format
	old      record.Message // of an older format
	position int64
}

const (
	headToMagic   = 17
	smallestEntry = 14 // bytes behind the length field of the smallest message
)

// at reads the batch at a position; io.EOF when no whole batch lies there.
func (s *segment) at(position int64) (batch, error) {
	var head [headToMagic]byte
	if s.size-position < headToMagic {
		return batch{}, io.EOF
	}
	if _, err := s.f.ReadAt(head[:], position); err != nil {
		return batch{}, err
	}
	size, _ := record.PeekSize(head[:])
	if size < smallestEntry+record.Overhead {
		return batch{}, corrupt("Found record size %d smaller than minimum record overhead (%d) in file %s.", size-record.Overhead, smallestEntry, s.name)
	}
	if size > s.size-position {
		return batch{}, io.EOF
	}
	buf := make([]byte, size)
	if _, err := s.f.ReadAt(buf, position); err != nil {
		return batch{}, err
	}
	b := batch{position: position}
	var err error
	switch magic, _ := record.PeekMagic(buf); {
	case magic < 2:
		b.old, _, err = record.NextMessage(buf)
	case len(buf) < record.HeaderSize:
		err = fmt.Errorf("a batch of %d bytes", len(buf))
	default:
		b.v2 = record.Batch(buf) // whatever the number of its format is: the reader shall see it
	}
	if err != nil {
		return batch{}, corrupt("%s at position %d in file %s", err, position, s.name)
	}
	return b, nil
}

func corrupt(format string, a ...any) error {
	return &exception{"org.apache.kafka.common.errors.CorruptRecordException", fmt.Sprintf(format, a...)}
}

func (b *batch) size() int64 { return int64(len(b.v2) + len(b.old)) }

func (b *batch) magic() int8 {
	if b.v2 != nil {
		return b.v2.Magic()
	}
	return b.old.Magic()
}

func (b *batch) lastOffset() int64 {
	if b.v2 != nil {
		return b.v2.LastOffset()
	}
	return b.old.Offset()
}

func (b *batch) codec() record.Codec {
	if b.v2 != nil {
		return b.v2.Codec()
	}
	return b.old.Codec()
}

func (b *batch) crc() uint32 {
	if b.v2 != nil {
		return b.v2.CRC()
	}
	return b.old.CRC()
}

func (b *batch) valid() bool {
	if b.v2 != nil {
		return b.v2.CheckCRC() == nil
	}
	return b.old.CheckCRC() == nil
}

func (b *batch) maxTimestamp() int64 {
	if b.v2 != nil {
		return b.v2.MaxTimestamp()
	}
	return b.old.Timestamp()
}

func (b *batch) timestampType() string {
	switch {
	case b.magic() == 0:
		return "NoTimestampType"
	case b.v2 != nil && b.v2.IsLogAppendTime(), b.old != nil && b.old.IsLogAppendTime():
		return "LogAppendTime"
	}
	return "CreateTime"
}

// logRecord is a record with what its batch says about it.
type logRecord struct {
	record.Record
	sequence int32
	message  record.Message // the bytes of a message of an older format
}

// each calls f for the records of the batch.
func (b *batch) each(f func(logRecord) error) error {
	if b.v2 == nil {
		for r, err := range b.old.Messages(record.Limits{}) {
			if err != nil {
				return invalid(err)
			}
			if err := f(logRecord{Record: r.Record, sequence: record.NoSequence, message: r.Message}); err != nil {
				return err
			}
		}
		return nil
	}
	base := b.v2.BaseSequence()
	for r, err := range b.v2.Records(record.Limits{}) {
		if err != nil {
			return invalid(err)
		}
		sequence := record.NoSequence
		if base >= 0 {
			sequence = record.AddSequence(base, int32(r.Offset-b.v2.BaseOffset()))
		}
		if err := f(logRecord{Record: r, sequence: sequence}); err != nil {
			return err
		}
	}
	return nil
}

func invalid(err error) error {
	return &exception{"org.apache.kafka.common.InvalidRecordException", err.Error()}
}

// firstOffset is the offset of the first record of the batch.
func (b *batch) firstOffset() (int64, error) {
	if b.v2 != nil {
		return b.v2.BaseOffset(), nil
	}
	var first int64
	err := b.each(func(r logRecord) error {
		first = r.Offset
		return errStop
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return first, err
}

var errStop = errors.New("stop")
