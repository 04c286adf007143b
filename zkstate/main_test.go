package zkstate_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// The behaviours mostly wait for sessions to end, so many may do so at once, however few the cores.
const waitingAtOnce = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", waitingAtOnce); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
