package commitlog

import "barnabas/broker/vfs"

// ReadOptions bounds a read.
type ReadOptions struct {
	MaxBytes    int
	MinOneBatch bool  // return the first batch even when it is larger than MaxBytes
	UpTo        int64 // exclusive: the reader's bound (high watermark, last stable offset or log end)
}

// ReadResult is a piece of one segment that starts with the batch holding the wanted offset. The caller releases Range.
type ReadResult struct {
	Range                vfs.FileRange // zero when there is nothing to read below UpTo
	Bytes                int
	FirstEntryIncomplete bool // MaxBytes cut the first batch
	StartPos             Position
}

// Read finds the batches from offset on. OFFSET_OUT_OF_RANGE outside of the log. It takes no lock that an append holds.
func (l *Log) Read(from int64, o ReadOptions) (ReadResult, error) { panic("commitlog: Read") }

// AbortedTxn is an entry of the list of aborted transactions that a read-committed reader gets.
type AbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// AbortedTransactions lists the aborted transactions that have records in [from, upTo).
func (l *Log) AbortedTransactions(from, upTo int64) ([]AbortedTxn, error) {
	panic("commitlog: AbortedTransactions")
}

// OffsetForTimestamp finds the first record at or after the log's start whose timestamp is ts or later.
func (l *Log) OffsetForTimestamp(ts int64) (offset, timestamp int64, leaderEpoch int32, found bool, err error) {
	panic("commitlog: OffsetForTimestamp")
}

// MaxTimestampOffset finds the record with the largest timestamp, the first of them when there are several (KIP-734).
func (l *Log) MaxTimestampOffset() (offset, timestamp int64, leaderEpoch int32, found bool, err error) {
	panic("commitlog: MaxTimestampOffset")
}
