package record

import (
	"encoding/binary"
	"fmt"
)

// ControlType is what a control record is for: the second number in its key.
type ControlType int16

// The control records (KIP-98, KIP-595 for the last four, which only KRaft writes).
const (
	Abort          ControlType = 0
	Commit         ControlType = 1
	LeaderChange   ControlType = 2
	SnapshotHeader ControlType = 3
	SnapshotFooter ControlType = 4
	KRaftVersion   ControlType = 5
	KRaftVoters    ControlType = 6
	UnknownControl ControlType = -1
)

// String is the name as Kafka's dump tool prints it.
func (t ControlType) String() string {
	switch t {
	case Abort:
		return "ABORT"
	case Commit:
		return "COMMIT"
	case LeaderChange:
		return "LEADER_CHANGE"
	case SnapshotHeader:
		return "SNAPSHOT_HEADER"
	case SnapshotFooter:
		return "SNAPSHOT_FOOTER"
	case KRaftVersion:
		return "KRAFT_VERSION"
	case KRaftVoters:
		return "KRAFT_VOTERS"
	}
	return "UNKNOWN"
}

// controlVersion is the version of control keys and of end-of-transaction values that is written. Later ones are read:
// they may only add to the end.
const controlVersion = 0

// ParseControlType reads the key of a control record. A type that is not known is UnknownControl.
func ParseControlType(key []byte) (ControlType, error) {
	if len(key) < 4 {
		return 0, invalidf("Invalid value size found for end control record key. Must have at least 4 bytes, but found only %d", len(key))
	}
	if v := int16(binary.BigEndian.Uint16(key)); v < 0 {
		return 0, invalidf("Invalid version found for control record: %d. May indicate data corruption", v)
	}
	if t := ControlType(binary.BigEndian.Uint16(key[2:])); t >= Abort && t <= KRaftVoters {
		return t, nil
	}
	return UnknownControl, nil
}

// EndTxnMarker ends the transaction of its batch's producer.
type EndTxnMarker struct {
	Type             ControlType // Abort or Commit
	CoordinatorEpoch int32
}

// Key is the key of the marker's record: version and type.
func (m EndTxnMarker) Key() []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, controlVersion), uint16(m.Type))
}

// Value is the value of the marker's record: version and coordinator epoch.
func (m EndTxnMarker) Value() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, controlVersion), uint32(m.CoordinatorEpoch))
}

// ParseEndTxnMarker decodes a control record; false if it is a control record of another kind.
func ParseEndTxnMarker(r Record) (m EndTxnMarker, ok bool, err error) {
	t, err := ParseControlType(r.Key)
	if err != nil || (t != Abort && t != Commit) {
		return EndTxnMarker{}, false, err
	}
	if len(r.Value) < 6 {
		return EndTxnMarker{}, false, invalidf("Invalid value size found for end transaction marker. Must have at least 6 bytes, but found only %d", len(r.Value))
	}
	if v := int16(binary.BigEndian.Uint16(r.Value)); v < 0 {
		return EndTxnMarker{}, false, invalidf("Invalid version found for end transaction marker: %d. May indicate data corruption", v)
	}
	return EndTxnMarker{Type: t, CoordinatorEpoch: int32(binary.BigEndian.Uint32(r.Value[2:]))}, true, nil
}

// NewEndTxnBatch builds the control batch, at offset 0, that ends a transaction.
func NewEndTxnBatch(m EndTxnMarker, producerID int64, producerEpoch int16, ts int64) Batch {
	b := NewBuilder(BuilderOptions{Control: true,
		Producer: &Producer{ID: producerID, Epoch: producerEpoch, BaseSequence: NoSequence, Transactional: true}})
	b.Append(ts, m.Key(), m.Value())
	out, err := b.Build()
	if err != nil {
		panic(fmt.Sprintf("a batch of one uncompressed record: %v", err))
	}
	return out
}
