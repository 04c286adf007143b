package dumplog

import (
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"barnabas/broker/record"
)

// log prints a log file: a line for each batch and, if asked for, one for each record.
func (d *dumper) log(name string) error {
	base, err := baseOffset(name)
	if err != nil {
		return err
	}
	if d.newer {
		fmt.Fprint(d.out, "Log s")
	} else {
		fmt.Fprint(d.out, "S")
	}
	fmt.Fprintf(d.out, "tarting offset: %d\n", base)
	s, err := openSegment(name)
	if err != nil {
		return err
	}
	defer s.close()
	s.size = min(s.size, d.maxBytes)

	position, last := int64(0), int64(-1)
	for {
		b, err := s.at(position)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		d.batch(&b)
		if d.deep {
			if err := d.records(&b, absolute(name), &last); err != nil {
				return err
			}
		}
		position += b.size()
	}
	if rest := s.size - position; rest > 0 && d.maxBytes == maxInt32 {
		fmt.Fprintf(d.out, "Found %d invalid bytes at the end of %s\n", rest, filepath.Base(name))
	}
	return nil
}

func (d *dumper) batch(b *batch) {
	if v := b.v2; v != nil {
		fmt.Fprintf(d.out, "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d "+
			"partitionLeaderEpoch: %d isTransactional: %t isControl: %t", v.BaseOffset(), v.LastOffset(), v.Count(), v.BaseSequence(),
			v.LastSequence(), v.ProducerID(), v.ProducerEpoch(), v.PartitionLeaderEpoch(), v.IsTransactional(), v.IsControl())
		if d.newer {
			fmt.Fprintf(d.out, " deleteHorizonMs: %s", optionalLong(v.BaseTimestamp(), v.HasDeleteHorizon()))
		}
	} else {
		fmt.Fprintf(d.out, "offset: %d", b.lastOffset())
	}
	fmt.Fprintf(d.out, " position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %t\n",
		b.position, b.timestampType(), b.maxTimestamp(), b.size(), b.magic(), d.codec(b), b.crc(), b.valid())
}

func (d *dumper) codec(b *batch) string {
	if d.newer {
		return b.codec().String()
	}
	return strings.ToUpper(b.codec().String())
}

func optionalLong(v int64, present bool) string {
	if !present {
		return "OptionalLong.empty"
	}
	return fmt.Sprintf("OptionalLong[%d]", v)
}

func (d *dumper) records(b *batch, file string, last *int64) error {
	first, err := b.firstOffset()
	if err != nil {
		return err
	}
	return b.each(func(r logRecord) error {
		if *last != -1 && r.Offset != *last+1 {
			d.faults.gaps.add(file, *last, r.Offset)
		}
		*last = r.Offset
		prefix := "| "
		if !d.skipMetadata {
			if err := d.metadata(b, first, &r); err != nil {
				return err
			}
			prefix = " "
		}
		if d.parse != nil && (b.v2 == nil || !b.v2.IsControl()) {
			p, err := d.parse(r)
			if err != nil {
				return err
			}
			if p.key != nil {
				fmt.Fprintf(d.out, "%skey: %s", prefix, *p.key)
			}
			if p.value != nil {
				fmt.Fprintf(d.out, " payload: %s", *p.value)
			}
		}
		fmt.Fprintln(d.out)
		return nil
	})
}

// metadata prints what is known of a record beside its contents.
func (d *dumper) metadata(b *batch, first int64, r *logRecord) error {
	w := d.out
	crc, valid := "null", true
	if r.message != nil {
		crc, valid = fmt.Sprint(r.message.CRC()), r.message.CheckCRC() == nil
	}
	key, value := length(r.Key), length(r.Value)
	if d.newer {
		fmt.Fprintf(w, "| offset: %d %s: %d keySize: %d valueSize: %d", r.Offset, b.timestampType(), r.Timestamp, key, value)
	} else {
		baseSequence, lastSequence, producerEpoch, leaderEpoch := record.NoSequence, record.NoSequence, record.NoProducerEpoch, record.NoLeaderEpoch
		if v := b.v2; v != nil {
			baseSequence, lastSequence, producerEpoch, leaderEpoch = v.BaseSequence(), v.LastSequence(), v.ProducerEpoch(), v.PartitionLeaderEpoch()
		}
		fmt.Fprintf(w, "| offset: %d isValid: %t crc: %s keySize: %d valueSize: %d %s: %d baseOffset: %d lastOffset: %d baseSequence: %d "+
			"lastSequence: %d producerEpoch: %d partitionLeaderEpoch: %d batchSize: %d magic: %d compressType: %s position: %d",
			r.Offset, valid, crc, key, value, b.timestampType(), r.Timestamp, first, b.lastOffset(), baseSequence,
			lastSequence, producerEpoch, leaderEpoch, b.size(), b.magic(), d.codec(b), b.position)
	}
	switch {
	case b.v2 != nil:
		names := make([]string, len(r.Headers))
		for i, h := range r.Headers {
			names[i] = javaString([]byte(h.Key))
		}
		fmt.Fprintf(w, " sequence: %d headerKeys: [%s]", r.sequence, strings.Join(names, ","))
	case d.newer:
		fmt.Fprintf(w, " isValid: %t crc: %s}", valid, crc) // the brace is in the original, too
	default:
		fmt.Fprintf(w, " crc: %s isvalid: %t", crc, valid)
	}
	if b.v2 != nil && b.v2.IsControl() {
		return d.control(r)
	}
	return nil
}

func length(p []byte) int {
	if p == nil {
		return -1
	}
	return len(p)
}

func (d *dumper) control(r *logRecord) error {
	m, ok, err := record.ParseEndTxnMarker(r.Record)
	if err != nil {
		return invalid(err)
	}
	if ok {
		fmt.Fprintf(d.out, " endTxnMarker: %s coordinatorEpoch: %d", m.Type, m.CoordinatorEpoch)
		return nil
	}
	t, err := record.ParseControlType(r.Key)
	if err != nil {
		return invalid(err)
	}
	fmt.Fprintf(d.out, " controlType: %s(%d)", t, binary.BigEndian.Uint16(r.Key[2:]))
	return nil
}
