package embedded_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDirEnv); dir != "" {
		serveForParent(dir)
		return
	}
	if file := os.Getenv(serveConfigEnv); file != "" {
		serveConfigForParent(file)
		return
	}
	goleak.VerifyTestMain(m)
}
