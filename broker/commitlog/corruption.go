package commitlog

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// CorruptionError says that a file of the log is not what it should be. It carries its place, so that an operator can look.
type CorruptionError struct {
	File     string
	Position int64 // in bytes; -1 when the whole file is meant
	Cause    string
}

func (e *CorruptionError) Error() string {
	if e.Position < 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Cause)
	}
	return fmt.Sprintf("%s at byte %d: %s", e.File, e.Position, e.Cause)
}

// Unwrap makes a corruption answer clients with KAFKA_STORAGE_ERROR: the replica cannot serve.
func (e *CorruptionError) Unwrap() error { return kerr.KafkaStorageError }

func corruptAt(file string, pos int64, format string, args ...any) *CorruptionError {
	return &CorruptionError{File: file, Position: pos, Cause: fmt.Sprintf(format, args...)}
}
