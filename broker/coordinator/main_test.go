package coordinator

import (
	"testing"

	"go.uber.org/goleak"

	"barnabas/integration/purecore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatCoresAreMadeOfIsPure(t *testing.T) { purecore.Check(t, ".", "core.go", "hash.go") }
