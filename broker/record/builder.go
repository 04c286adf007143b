package record

// Producer is who wrote a batch, for idempotence and transactions.
type Producer struct {
	ID            int64
	Epoch         int16
	BaseSequence  int32 // NoSequence for control batches
	Transactional bool
}

// BuilderOptions say what batch to build. The zero value is an uncompressed batch at offset 0 of no producer.
type BuilderOptions struct {
	Codec         Codec
	Level         int // 0 or DefaultLevel: the codec's default
	BaseOffset    int64
	LogAppendTime bool
	Producer      *Producer // nil: none
	Control       bool
	// LeaderEpoch is stamped if not nil; NoLeaderEpoch otherwise.
	LeaderEpoch *int32
	// DeleteHorizon, if not nil, is stored in place of the base timestamp (compaction).
	DeleteHorizon *int64
}

// Builder builds one batch of format v2.
type Builder struct{ o BuilderOptions }

// NewBuilder starts a batch.
func NewBuilder(o BuilderOptions) *Builder { return &Builder{o: o} }

// Append adds a record at the next offset. A nil key or value is null.
func (b *Builder) Append(ts int64, key, value []byte, headers ...Header) { panic("not yet") }

// AppendRecord adds a record at its own offset, which must be behind the last one's.
func (b *Builder) AppendRecord(r Record) { panic("not yet") }

// SetLastOffset makes the batch end at an offset behind its last record (compaction keeps the end of a batch).
func (b *Builder) SetLastOffset(o int64) { panic("not yet") }

// Count is the number of records so far; Len the bytes they take uncompressed.
func (b *Builder) Count() int { panic("not yet") }

// Len is the size of the batch so far, header included, before compression.
func (b *Builder) Len() int { panic("not yet") }

// Build returns the batch, CRC set. The Builder must not be used again.
func (b *Builder) Build() ([]byte, error) { panic("not yet") }
