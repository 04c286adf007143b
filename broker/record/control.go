package record

// ControlType is what a control record says: the type in its key.
type ControlType int16

// The control records of partitions in ZooKeeper mode (KIP-98).
const (
	Abort  ControlType = 0
	Commit ControlType = 1
)

// EndTxnMarker ends the transaction of the batch's producer.
type EndTxnMarker struct {
	Type             ControlType
	CoordinatorEpoch int32
}

// Key and Value encode the marker (both version 0).
func (m EndTxnMarker) Key() []byte { panic("not yet") }

// Value encodes the coordinator epoch.
func (m EndTxnMarker) Value() []byte { panic("not yet") }

// ParseEndTxnMarker decodes a control record; false if it is a control record of another kind.
func ParseEndTxnMarker(r Record) (m EndTxnMarker, ok bool, err error) { panic("not yet") }

// NewEndTxnBatch builds the control batch that ends a transaction.
func NewEndTxnBatch(m EndTxnMarker, producerID int64, producerEpoch int16, ts int64) Batch {
	panic("not yet")
}
