package auth

import (
	"testing"

	"go.uber.org/goleak"

	"barnabas/integration/purecore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheExchangeIsPure(t *testing.T) {
	purecore.Check(t, ".", "mechanism.go", "oauth.go", "plain.go", "scram.go", "session.go")
}
