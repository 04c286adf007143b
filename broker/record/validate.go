package record

import (
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Rules are what a leader asks of a batch that a client or a coordinator wants appended.
type Rules struct {
	// Partition is "topic-partition", for the texts of errors.
	Partition string
	// AllowControl: the batch comes from a coordinator of this broker. What only clients must keep to (offsets from 0
	// and without gaps, a sequence number beside a producer id, no control records) is not asked of it.
	AllowControl bool
	// RequireKey: the topic is compacted, a record without key is refused.
	RequireKey bool
	// CheckTimestamps: the topic keeps the producers' time (message.timestamp.type=CreateTime). Now, BeforeMax and
	// AfterMax, in ms, bound it: message.timestamp.before.max.ms and message.timestamp.after.max.ms (KIP-937). False:
	// the topic's time is the time of the append.
	CheckTimestamps bool
	Now             int64
	BeforeMax       int64
	AfterMax        int64
	// AllowGaps: offset deltas other than 0, 1, 2.. are no error but reported as Result.Gaps.
	AllowGaps bool
	Limits    Limits
}

// Result is what validation found out on its way over the records.
type Result struct {
	Count int
	// MaxTimestamp is the largest of the records' timestamps, NoTimestamp if there is none. A batch whose header says
	// otherwise is not refused, as in Kafka: the log corrects the header.
	MaxTimestamp int64
	// OffsetDeltaOfMax is the offset, counted from the batch's, of the first record that has MaxTimestamp.
	OffsetDeltaOfMax int32
	// Uncompressed is the number of bytes of the records.
	Uncompressed int
	// Gaps: the offset deltas are not 0, 1, 2.. (only with Rules.AllowGaps).
	Gaps bool
}

// Validate checks a batch before it is appended: everything that Kafka 3.9's LogValidator checks, with its texts, except
// for the CRC (Batch.CheckCRC). It walks the records once, allocates nothing for a batch that is right and not
// compressed, and holds at most a window of one that is compressed. The error is an *Invalid.
//
// Stricter than Kafka in one point: records whose offset deltas are not 0, 1, 2.. are refused, where Kafka takes them
// uncompressed (and then serves wrong offsets) and renumbers them compressed.
func Validate(b Batch, r Rules) (Result, error) {
	if err := validateHeader(b, &r); err != nil {
		return Result{}, err
	}
	v := validation{batch: b, rules: r, fixedTime: b.IsLogAppendTime()}
	v.res.MaxTimestamp = NoTimestamp
	v.baseTime = b.BaseTimestamp()
	if v.fixedTime {
		v.baseTime = b.MaxTimestamp()
	}
	var err error
	if b.Codec() == None {
		err = v.plain(b.Payload(), b.Count())
	} else {
		err = v.compressed(b.Payload(), b.Count())
	}
	if err == nil && v.faults > 0 {
		err = v.rejected()
	}
	if err == nil && v.res.Gaps && !r.AllowGaps {
		err = invalidf("Offset deltas of the records of the batch are not consecutive in topic partition %s", r.Partition)
	}
	if err != nil {
		return Result{}, err
	}
	return v.res, nil
}

func validateHeader(b Batch, r *Rules) error {
	if c := b.Codec(); c > Zstd {
		return unknownCodec(c)
	}
	count := b.Count()
	if count < 0 {
		return invalidf("Invalid reported count for record batch: %d in topic partition %s", count, r.Partition)
	}
	if r.AllowControl {
		return nil
	}
	switch base, delta := b.BaseOffset(), b.LastOffsetDelta(); {
	case base != 0:
		return invalidf("The baseOffset of the record batch in the append to %s should be 0, but it is %d", r.Partition, base)
	case delta < 0:
		return invalidf("Batch has an invalid offset range: [%d, %d] in topic partition %s", base, b.LastOffset(), r.Partition)
	case count == 0:
		return invalidf("Invalid reported count for record batch: %d in topic partition %s", count, r.Partition)
	case int64(delta)+1 != int64(count):
		return invalidf("Inconsistent batch offset range [%d, %d] and count of records %d in topic partition %s",
			base, b.LastOffset(), count, r.Partition)
	case b.IsControl():
		return invalidf("Clients are not allowed to write control records in topic partition %s", r.Partition)
	case b.HasProducerID() && b.BaseSequence() < 0:
		return invalidf("Invalid sequence number %d in record batch with producerId %d in topic partition %s",
			b.BaseSequence(), b.ProducerID(), r.Partition)
	}
	return nil
}

func unknownCodec(c Codec) error {
	return &Invalid{Err: kerr.UnsupportedCompressionType, Message: fmt.Sprintf("Unknown compression type id: %d", c)}
}

// validation is the state of one walk.
type validation struct {
	batch     Batch
	rules     Rules
	fixedTime bool
	baseTime  int64 // timestamps count from it; the timestamp itself if fixedTime
	res       Result

	faults   int // records refused
	badTimes bool
	records  []RecordError // the first MaxRecordErrors of them
}

func (v *validation) plain(p []byte, count int32) error {
	var s scanned
	at := 0
	low, high := v.quietBounds()
	for i := range count {
		size := s.scanShort(p[at:])
		if size == 0 {
			var reason string
			if size, reason = s.scanAny(p[at:]); reason != "" {
				return invalid(reason)
			}
		}
		at += size
		// Nearly every record is in order and no later than one before it, or the new latest: nothing to say about it.
		ts := v.baseTime + s.timestampDelta
		if ts < low || ts > high || s.keyLen < 0 && v.rules.RequireKey || s.offsetDelta != i {
			v.check(i, &s)
			continue
		}
		if ts > v.res.MaxTimestamp {
			v.res.MaxTimestamp, v.res.OffsetDeltaOfMax = ts, s.offsetDelta
		}
	}
	v.res.Count = int(count)
	if at != len(p) {
		return errLeftOver
	}
	v.res.Uncompressed = at
	return nil
}

// quietBounds are timestamps between which check has nothing to say about time. They are the rules' bounds, as far as sums
// and differences with them do not overflow; an empty range where every record has the same time or is at fault.
func (v *validation) quietBounds() (low, high int64) {
	const far = math.MinInt64 / 2
	r := &v.rules
	switch {
	case v.fixedTime:
		return 1, 0
	case !r.CheckTimestamps:
		return math.MinInt64, math.MaxInt64
	case r.Now < 0 || r.BeforeMax < 0 || r.AfterMax < 0:
		return 1, 0
	}
	low, high = max(r.Now-r.BeforeMax, far), r.Now+r.AfterMax
	if high < r.Now {
		high = math.MaxInt64
	}
	return low, high
}

// recordHeld is the largest record that is scanned as a whole; of larger ones only the numbers are looked at.
const recordHeld = windowSize

func (v *validation) compressed(p []byte, count int32) error {
	var (
		src stream
		s   scanned
	)
	if err := src.open(v.batch.Codec(), p, v.rules.Limits); err != nil {
		return err
	}
	defer src.close()
	if src.src == nil {
		return v.plain(src.buf[src.r:src.w], count)
	}
	for i := range count {
		size, err := src.head()
		if err != nil {
			return err
		}
		if size > recordHeld {
			if err := src.scanLarge(&s, size); err != nil {
				return err
			}
		} else {
			raw, err := src.record()
			if err != nil {
				return err
			}
			if _, reason := s.scan(raw); reason != "" {
				return invalid(reason)
			}
		}
		v.res.Uncompressed += size
		v.check(i, &s)
	}
	more, err := src.more()
	if err != nil {
		return err
	}
	if more {
		return errLeftOver
	}
	return nil
}

const noKey = "Compacted topic cannot accept message without key in topic partition "

// check judges record i of the batch.
func (v *validation) check(i int32, s *scanned) {
	ts := v.baseTime
	if !v.fixedTime {
		ts += s.timestampDelta
	}
	v.res.Count++
	if s.offsetDelta != i {
		v.res.Gaps = true
	}
	if ts > v.res.MaxTimestamp {
		v.res.MaxTimestamp, v.res.OffsetDeltaOfMax = ts, s.offsetDelta
	}
	if s.keyLen < 0 && v.rules.RequireKey {
		v.fault(i, noKey+v.rules.Partition)
		return
	}
	if v.rules.CheckTimestamps && ts != NoTimestamp {
		v.checkTime(i, ts, v.batch.BaseOffset()+int64(s.offsetDelta))
	} else if v.fixedTime {
		v.badTimes = true
		name := "DefaultRecord"
		if v.batch.Codec() != None {
			name = "PartialDefaultRecord"
		}
		v.fault(i, fmt.Sprintf("Invalid timestamp type in message %s(offset=%d, timestamp=%d, key=%d bytes, value=%d bytes). "+
			"Producer should not set timestamp type to LogAppendTime.",
			name, v.batch.BaseOffset()+int64(s.offsetDelta), ts, max(s.keyLen, 0), max(s.valueLen, 0)))
	}
}

// checkTime holds the producer's time to the topic's bounds.
func (v *validation) checkTime(i int32, ts, offset int64) {
	if age := v.rules.Now - ts; age > v.rules.BeforeMax || -age > v.rules.AfterMax {
		v.badTimes = true
		v.fault(i, fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
			ts, offset, v.rules.Now-v.rules.BeforeMax, v.rules.Now+v.rules.AfterMax))
	}
}

func (v *validation) fault(i int32, message string) {
	v.faults++
	if len(v.records) < MaxRecordErrors {
		v.records = append(v.records, RecordError{Index: i, Message: message})
	}
}

// rejected is the error of a batch with faulty records.
func (v *validation) rejected() error {
	if v.badTimes {
		return &Invalid{Err: kerr.InvalidTimestamp, Records: v.records,
			Message: "One or more records have been rejected due to invalid timestamp"}
	}
	var first []string
	for _, e := range v.records[:min(len(v.records), 3)] {
		first = append(first, fmt.Sprintf("RecordError(batchIndex=%d, message='%s')", e.Index, e.Message))
	}
	return &Invalid{Err: kerr.InvalidRecord, Records: v.records,
		Message: fmt.Sprintf("One or more records have been rejected due to %d record errors in total, and only showing the first three errors at most: [%s]",
			v.faults, strings.Join(first, ", "))}
}
