package security

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
)

func TestTheNativeToolsComeInByWhatTheyProve(t *testing.T) {
	b := start(t, cluster.Barnabas)
	trust := map[string]string{"ssl.truststore.type": "PEM", "ssl.truststore.location": testdata(t, "ca.pem")}
	carol := with(byScram("SCRAM-SHA-512"), trust)
	bin, file, door := cluster.Binary(t), write(t, carol), b.addrs["SASL_SSL"]
	native := func(input, call string) string {
		return run(t, input, bin, append(strings.Fields(call), "--bootstrap-server", door, "--command-config", file)...)
	}
	native("", "topic create orders --partitions 1")
	assert.Contains(t, native("hello\n", "produce orders"), "Produced 1 record to orders.")
	assert.Equal(t, "hello", native("", "consume orders -f %v"))
	assert.Contains(t, native("", "health"), "HEALTHY")
	assert.Contains(t, native("", "plan spread"), "nothing has to change")

	carol["sasl.jaas.config"] = strings.ReplaceAll(carol["sasl.jaas.config"], "carol-secret", "guess")
	out, err := tryToRun(t, "", bin, "topic", "list", "--bootstrap-server", door, "--command-config", write(t, carol))
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "%v", err)
	assert.Equal(t, 1, exit.ExitCode(), "who is refused has reached somebody: %s", out)
	assert.NotContains(t, out, "guess")
}
