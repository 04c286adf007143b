package kerberos

import (
	"testing"

	"go.uber.org/goleak"

	"barnabas/integration/purecore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheServicesSideIsPure(t *testing.T) {
	purecore.Check(t, ".", "acceptor.go", "name.go", "request.go", "rules.go", "token.go")
}
