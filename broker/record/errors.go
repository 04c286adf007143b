package record

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Corrupt is the error for bytes that cannot be what they should be: a broken frame, a wrong checksum. On the wire it is
// CORRUPT_MESSAGE.
type Corrupt struct{ Reason string }

func (e *Corrupt) Error() string { return e.Reason }

// Unwrap is the code that clients are told.
func (e *Corrupt) Unwrap() error { return kerr.CorruptMessage }

func corruptf(format string, a ...any) error { return &Corrupt{Reason: fmt.Sprintf(format, a...)} }

// Invalid is the error for a batch that is whole (its checksum is right) but says something that it must not. Err is the
// code that clients are told: INVALID_RECORD, INVALID_TIMESTAMP, UNSUPPORTED_COMPRESSION_TYPE or MESSAGE_TOO_LARGE.
type Invalid struct {
	Err     *kerr.Error
	Message string
	// Records name the records at fault (KIP-467), at most MaxRecordErrors of them; empty when the batch as a whole is.
	Records []RecordError
}

// RecordError is the fault of one record of a batch.
type RecordError struct {
	Index   int32 // place in the batch, from 0
	Message string
}

// MaxRecordErrors bounds Invalid.Records: an error of a hundred bytes for each seven byte record is no answer to send.
const MaxRecordErrors = 1000

func (e *Invalid) Error() string { return e.Message }

// Unwrap is the code that clients are told.
func (e *Invalid) Unwrap() error { return e.Err }

func invalid(message string) error { return &Invalid{Err: kerr.InvalidRecord, Message: message} }

func invalidf(format string, a ...any) error {
	return invalid(fmt.Sprintf(format, a...))
}

// errTooLarge ends the decompression of more than Limits allow.
var errTooLarge = errors.New("decompresses to more than the limit")

// decompressError is what a failed decompression means for the batch. Apache Kafka answers UNKNOWN_SERVER_ERROR to bytes
// that do not decompress; they are the client's fault, and no retry mends them, so INVALID_RECORD it is. A batch that is
// only too large gets the code that lets a producer split it.
func decompressError(c Codec, err error) error {
	var inv *Invalid
	switch {
	case errors.As(err, &inv):
		return err
	case errors.Is(err, errTooLarge):
		return &Invalid{Err: kerr.MessageTooLarge, Message: fmt.Sprintf("%s: %s", c, err)}
	}
	return invalidf("Failed to decompress record stream: %s: %s", c, err)
}
