package commitlog

// Log is the log of one partition. Appends, truncations and rolls exclude one another; readers take no lock.
type Log struct{}

// Position is a place in a log: an offset and where its bytes begin. A Position whose SegmentBase is -1 knows the offset only.
type Position struct {
	Offset      int64
	SegmentBase int64 // base offset of the segment
	SegmentPos  int64 // byte position in it
}

// BytesSince returns how many bytes lie between b and a; false when they are in different segments (or one is unknown).
func (a Position) BytesSince(b Position) (int64, bool) {
	if a.SegmentBase < 0 || a.SegmentBase != b.SegmentBase {
		return 0, false
	}
	return a.SegmentPos - b.SegmentPos, true
}

// Before tells that a lies in an older segment than b.
func (a Position) Before(b Position) bool { return a.SegmentBase < b.SegmentBase }

// TP returns the partition whose log this is.
func (l *Log) TP() TopicPartition { panic("commitlog: TP") }

// Dir returns the partition's directory.
func (l *Log) Dir() string { panic("commitlog: Dir") }

// ParentDir returns the log directory that the partition's directory is in.
func (l *Log) ParentDir() string { panic("commitlog: ParentDir") }

// IsFuture tells that the log is to replace another one.
func (l *Log) IsFuture() bool { panic("commitlog: IsFuture") }

// TopicID returns the id in partition.metadata, zero when there is none.
func (l *Log) TopicID() TopicID { panic("commitlog: TopicID") }

// SetTopicID writes partition.metadata for a log that has none. INCONSISTENT_TOPIC_ID when it has another id.
func (l *Log) SetTopicID(id TopicID) error { panic("commitlog: SetTopicID") }

// Config returns the settings in force.
func (l *Log) Config() Config { panic("commitlog: Config") }

// SetConfig puts new settings in force.
func (l *Log) SetConfig(c Config) { panic("commitlog: SetConfig") }

// Err returns why the log cannot be used: KAFKA_STORAGE_ERROR after its directory failed or when recovery found
// corruption; nil while it works.
func (l *Log) Err() error { panic("commitlog: Err") }

// StartOffset is the first offset that may be read.
func (l *Log) StartOffset() int64 { panic("commitlog: StartOffset") }

// EndOffset is the offset that the next record will get.
func (l *Log) EndOffset() int64 { panic("commitlog: EndOffset") }

// EndPosition is the place of EndOffset.
func (l *Log) EndPosition() Position { panic("commitlog: EndPosition") }

// HighWatermark is the offset below which everything is committed, as far as this replica knows.
func (l *Log) HighWatermark() int64 { panic("commitlog: HighWatermark") }

// HighWatermarkPosition is HighWatermark with its place, found by looking it up when it is not known.
func (l *Log) HighWatermarkPosition() Position { panic("commitlog: HighWatermarkPosition") }

// SetHighWatermark moves the high watermark, bounded to StartOffset and EndOffset, and returns what it is now.
func (l *Log) SetHighWatermark(offset int64) int64 { panic("commitlog: SetHighWatermark") }

// SetHighWatermarkPosition is SetHighWatermark with a place that is already known, so that nobody has to look it up.
func (l *Log) SetHighWatermarkPosition(p Position) int64 {
	panic("commitlog: SetHighWatermarkPosition")
}

// LastStableOffset is the offset below which every transaction is decided and everything is committed.
func (l *Log) LastStableOffset() int64 { panic("commitlog: LastStableOffset") }

// LastStablePosition is LastStableOffset with its place.
func (l *Log) LastStablePosition() Position { panic("commitlog: LastStablePosition") }

// FirstUnstableOffset is the first offset of the oldest open (or not yet replicated) transaction; false when there is none.
func (l *Log) FirstUnstableOffset() (int64, bool) { panic("commitlog: FirstUnstableOffset") }

// RecoveryPoint is the offset below which everything is known to be on disk.
func (l *Log) RecoveryPoint() int64 { panic("commitlog: RecoveryPoint") }

// Size is the number of bytes in all segments.
func (l *Log) Size() int64 { panic("commitlog: Size") }

// Segments is the number of segments.
func (l *Log) Segments() int { panic("commitlog: Segments") }

// Flush makes everything appended so far durable and moves the recovery point to the end.
func (l *Log) Flush() error { panic("commitlog: Flush") }

// Roll starts a new segment unless the active one is empty.
func (l *Log) Roll() error { panic("commitlog: Roll") }

// TruncateTo removes every batch that holds an offset at or above offset.
func (l *Log) TruncateTo(offset int64) error { panic("commitlog: TruncateTo") }

// TruncateFullyAndStartAt removes everything; the next record gets newOffset. The log begins at logStart, or at
// newOffset when logStart is negative.
func (l *Log) TruncateFullyAndStartAt(newOffset int64, logStart int64) error {
	panic("commitlog: TruncateFullyAndStartAt")
}

// AdvanceStartOffset moves the log's start forward. OFFSET_OUT_OF_RANGE beyond the high watermark; false when the
// start is already there. Reason says who asked, for the broker's log.
func (l *Log) AdvanceStartOffset(offset int64, reason string) (bool, error) {
	panic("commitlog: AdvanceStartOffset")
}

// LatestEpoch returns the newest leader epoch in the log.
func (l *Log) LatestEpoch() (int32, bool) { panic("commitlog: LatestEpoch") }

// EpochAt returns the leader epoch under which the record at offset was written.
func (l *Log) EpochAt(offset int64) (int32, bool) { panic("commitlog: EpochAt") }

// EndOffsetForEpoch returns the largest epoch that is not above the asked one, and the offset at which the next
// epoch starts (the log's end for the newest). (-1, -1) when there is none. KIP-279.
func (l *Log) EndOffsetForEpoch(epoch int32) (foundEpoch int32, endOffset int64) {
	panic("commitlog: EndOffsetForEpoch")
}

// AssignEpochStart notes that epoch starts at offset; on disk when it returns.
func (l *Log) AssignEpochStart(epoch int32, offset int64) error { panic("commitlog: AssignEpochStart") }

// ProducerState is what the log knows of one producer id (DescribeProducers, KIP-664).
type ProducerState struct {
	ProducerID       int64
	Epoch            int16
	LastSequence     int32
	LastTimestamp    int64
	CoordinatorEpoch int32 // -1 before the first marker
	TxnStartOffset   int64 // -1 without an open transaction
}

// ProducerStates lists the producers, ordered by id.
func (l *Log) ProducerStates() []ProducerState { panic("commitlog: ProducerStates") }

// HasOpenTransaction tells that producerID has a transaction open in this log.
func (l *Log) HasOpenTransaction(producerID int64) bool { panic("commitlog: HasOpenTransaction") }
