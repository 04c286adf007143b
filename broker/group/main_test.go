package group

import (
	"testing"

	"go.uber.org/goleak"

	"barnabas/integration/purecore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheCoreIsPure(t *testing.T) {
	purecore.Check(t, ".", "admin.go", "commit.go", "core.go", "group.go", "heartbeat.go", "join.go", "load.go", "member.go", "offsets.go",
		"rebalance.go", "records.go", "requests.go", "state.go", "subscription.go", "sync.go", "timers.go")
}
