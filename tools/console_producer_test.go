package tools

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatCannotBeSentIsAFailureForThoseWhoAsk(t *testing.T) {
	args := strings.Fields("--bootstrap-server 127.0.0.1:1 --topic t --producer-property delivery.timeout.ms=1000")
	run := func() ran {
		return runCommand(func(args []string, out, errs *bytes.Buffer) int {
			return ConsoleProducer(args, strings.NewReader("a\n"), out, errs)
		}, args...)
	}
	got := run()
	assert.Zero(t, got.code, "as the original")
	assert.Contains(t, got.stderr, "ERROR Error when sending message to topic t with key: null, value: 1 bytes with error: ")
	t.Setenv("BARNABAS_STRICT", "1")
	assert.Equal(t, 1, run().code)
}
