package record

// Rules are what a leader asks of a batch that a client or a coordinator wants appended.
type Rules struct {
	// RequireKey: the topic is compacted, a record without key is refused.
	RequireKey bool
	// AllowControl: the batch comes from a coordinator of this broker, not from a client.
	AllowControl bool
	// CheckTimestamps: the topic keeps the producers' time (message.timestamp.type=CreateTime). Now, BeforeMax and
	// AfterMax (ms) bound it: message.timestamp.before.max.ms and message.timestamp.after.max.ms (KIP-937).
	CheckTimestamps bool
	Now             int64
	BeforeMax       int64
	AfterMax        int64
	Limits          Limits
}

// Result is what validation found out on its way over the records.
type Result struct {
	Count        int
	MaxTimestamp int64 // of the records; NoTimestamp if they have none
	// OffsetDeltaOfMax is the offset, relative to the batch's, of the first record that has MaxTimestamp.
	OffsetDeltaOfMax int32
	// Uncompressed is the number of bytes of the records.
	Uncompressed int
}

// Validate checks a batch before it is appended. See validate.go's head for errors.
func Validate(b Batch, r Rules) (Result, error) { panic("not yet") }
