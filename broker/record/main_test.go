package record

import (
	"testing"

	"go.uber.org/goleak"
)

// go-metrics, which sarama uses, keeps one goroutine of its own for ever.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}
