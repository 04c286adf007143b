package txn

import (
	"testing"

	"go.uber.org/goleak"

	"barnabas/integration/purecore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheCoreTouchesNothingOutside(t *testing.T) {
	purecore.Check(t, ".", "core.go", "describe.go", "end.go", "init.go", "load.go", "mark.go", "partitions.go", "records.go", "requests.go", "state.go", "transaction.go")
}
