package record

import "fmt"

// ValidateMessages checks a set of messages of format v0 or v1 before it is appended: what Kafka 3.9's LogValidator checks
// of them, except for the checksums of the messages of the set themselves (Message.CheckCRC). step gets every record, with
// the offset that its producer gave it, valid until it returns. The error is an *Invalid or *Corrupt; records of which step
// was told before it are void.
//
// Kafka counts the records at fault message by message, and ends with the first message that has one.
func ValidateMessages(set []Message, r Rules, step func(*Record)) (Result, error) {
	v := validation{rules: r}
	v.res.MaxTimestamp = NoTimestamp
	var rec LegacyRecord // one for all: step would have each kept on the heap
	for _, m := range set {
		switch {
		case m.Codec() != None && len(set) > 1:
			return Result{}, invalid("Compressed outer record has more than one batch")
		case m.Codec() > Zstd:
			return Result{}, unknownCodec(m.Codec())
		case m.Magic() != set[0].Magic():
			return Result{}, invalidf("Batch magic %d is not the same as the first batch's magic byte %d in topic partition %s",
				m.Magic(), set[0].Magic(), r.Partition)
		}
		if err := v.messages(m, &rec, step); err != nil {
			return Result{}, err
		}
		if v.faults > 0 {
			return Result{}, v.rejected()
		}
	}
	return v.res, nil
}

// messages judges those within a wrapper, or the one that m is.
func (v *validation) messages(m Message, rec *LegacyRecord, step func(*Record)) error {
	i := int32(-1)
	for read, err := range m.Messages(v.rules.Limits) {
		if err != nil {
			return err
		}
		*rec = read
		i++
		if m.Codec() != None {
			if err := rec.Message.CheckCRC(); err != nil {
				return err
			}
		}
		v.message(i, m, rec)
		if v.faults == 0 {
			if rec.Timestamp > v.res.MaxTimestamp {
				v.res.MaxTimestamp, v.res.OffsetDeltaOfMax = rec.Timestamp, int32(v.res.Count)
			}
			v.res.Count++
			step(&rec.Record)
		}
	}
	return nil
}

func (v *validation) message(i int32, m Message, rec *LegacyRecord) {
	switch {
	case rec.Message.Magic() != m.Magic():
		v.fault(i, fmt.Sprintf("Record %d's magic does not match outer magic %d in topic partition %s", i, m.Magic(), v.rules.Partition))
	case rec.Key == nil && v.rules.RequireKey:
		v.fault(i, noKey+v.rules.Partition)
	case v.rules.CheckTimestamps && rec.Timestamp != NoTimestamp:
		v.checkTime(i, rec.Timestamp, rec.Offset)
	case m.IsLogAppendTime():
		v.badTimes = true
		v.fault(i, fmt.Sprintf("Invalid timestamp type in message %d. Producer should not set timestamp type to LogAppendTime.", i))
	}
}
