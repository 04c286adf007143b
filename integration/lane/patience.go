package lane

import (
	"context"
	"testing"
	"time"
)

// patience is longer than anything takes that will still come, also on a busy machine.
const patience = 5 * time.Minute

// Patience is a context for one call that might never be answered, so that it fails by itself, where it stands, and not with the whole run. It ends with the test.
func Patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
