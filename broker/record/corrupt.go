package record

import "fmt"

// Corrupt is the error for bytes that cannot be what they should be.
type Corrupt struct{ Reason string }

func (e *Corrupt) Error() string { return e.Reason }

func corruptf(format string, a ...any) error { return &Corrupt{Reason: fmt.Sprintf(format, a...)} }
