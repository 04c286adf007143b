package oauth

import (
	"testing"

	"go.uber.org/goleak"

	"barnabas/integration/purecore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestJudgementsAreMadeWithoutAsking(t *testing.T) {
	purecore.Check(t, ".", "bearer.go", "refresh.go", "signed.go", "unsecured.go")
}
