package record

import "iter"

// Record is one record of a batch, or one message of a legacy set.
type Record struct {
	Offset     int64
	Timestamp  int64 // ms
	Key, Value []byte
	Headers    []Header
	Attributes int8 // unused by Kafka, kept
}

// Header is one header of a record (KIP-82).
type Header struct {
	Key   string
	Value []byte
}

// Records yields the records one by one. The slices of a record point into buffers that are valid only until the next
// step; an error is the last thing yielded.
func (b Batch) Records(l Limits) iter.Seq2[Record, error] {
	panic("not yet")
}
