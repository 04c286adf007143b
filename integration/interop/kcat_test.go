package interop

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// kcat does what people do with it, one line after the other; B is the brokers' address, IN a file of lines, BIG one of 15 MB.
var kcatSteps = []struct{ name, script string }{
	{"metadata", `kcat -b $B -L -J | grep -q '"brokers"'`},
	{"a topic made by writing", `kcat -b $B -P -t t -K : -X acks=all -X allow.auto.create.topics=true < $IN`},
	{"metadata of a topic", `kcat -b $B -L -t t | grep -q 'topic "t" with'`},
	{"everything", `test $(kcat -b $B -C -t t -e -q | wc -l) = 500`},
	{"a format", `kcat -b $B -C -t t -e -q -f '%k|%s|%o|%p|%T\n' | grep -q '^k1|value|'`},
	{"JSON", `kcat -b $B -C -t t -e -q -J | grep -q '"payload":"value"'`},
	{"gzip", `kcat -b $B -P -t gzip -z gzip < $IN && test $(kcat -b $B -C -t gzip -e -q | wc -l) = 500`},
	{"snappy", `kcat -b $B -P -t snappy -z snappy < $IN && test $(kcat -b $B -C -t snappy -e -q | wc -l) = 500`},
	{"lz4", `kcat -b $B -P -t lz4 -z lz4 < $IN && test $(kcat -b $B -C -t lz4 -e -q | wc -l) = 500`},
	{"zstd", `kcat -b $B -P -t zstd -z zstd < $IN && test $(kcat -b $B -C -t zstd -e -q | wc -l) = 500`},
	{"headers", `echo h | kcat -b $B -P -t headers -H a=1 -H b=2 && kcat -b $B -C -t headers -e -q -f '%h\n' | grep -q 'a=1,b=2'`},
	{"a tombstone", `echo 'k:' | kcat -b $B -P -t tombstone -K : -Z && kcat -b $B -C -t tombstone -e -q -J | grep -q '"payload":null'`},
	{"acks=0", `echo a | kcat -b $B -P -t acks0 -X acks=0 && kcat -b $B -C -t acks0 -c 1 -q | grep -qx a`},
	{"idempotent", `kcat -b $B -P -t idempotent -X enable.idempotence=true < $IN && test $(kcat -b $B -C -t idempotent -e -q | wc -l) = 500`},
	{"the latest offset", `kcat -b $B -Q -t t:0:-1 | grep -q 't \[0\] offset 500'`},
	{"an offset by time", `kcat -b $B -Q -t t:0:0 | grep -q 'offset 0'`},
	{"from an offset on", `test $(kcat -b $B -C -t idempotent -p 0 -o 495 -e -q | wc -l) = 5`},
	{"the tail", `kcat -b $B -C -t headers -o -1 -e -q | grep -q h`},
	{"from a time on", `kcat -b $B -C -t t -o s@0 -e -q | grep -q value`},
	{"read committed", `kcat -b $B -C -t t -e -q -X isolation.level=read_committed | grep -q value`},
	{"a large message", `head -c 900000 /dev/zero | tr '\0' x | kcat -b $B -P -t large && kcat -b $B -C -t large -e -q | head -c 900000 | wc -c | grep -qx 900000`},
	{"one too large", `kcat -b $B -P -t large -X message.max.bytes=40000000 -X message.timeout.ms=120000 $BIG 2>&1 | grep -q 'Message size too large'`},
	{"written and read as of 0.10.2", `kcat -b $B -X api.version.request=false -X broker.version.fallback=0.10.2.0 -P -t old10 < $IN && test $(kcat -b $B -X api.version.request=false -X broker.version.fallback=0.10.2.0 -C -t old10 -e -q | wc -l) = 500`},
	{"written and read as of 0.9", `kcat -b $B -X api.version.request=false -X broker.version.fallback=0.9.0.1 -P -t old9 < $IN && test $(kcat -b $B -X api.version.request=false -X broker.version.fallback=0.9.0.1 -C -t old9 -e -q | wc -l) = 500`},
	{"metadata as of 0.9", `kcat -b $B -X api.version.request=false -X broker.version.fallback=0.9.0.1 -L | grep -q broker`},
}

func TestKcatDoesWhatPeopleDoWithIt(t *testing.T) {
	lane.Program(t, "kcat")
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 3, map[string]string{"auto.create.topics.enable": "true"})
	dir := t.TempDir()
	in, big := filepath.Join(dir, "in"), filepath.Join(dir, "big")
	var text strings.Builder
	for i := range 500 {
		text.WriteString("k" + string(keyOf(i+1)) + ":value\n")
	}
	require.NoError(t, os.WriteFile(in, []byte(text.String()), 0o600))
	require.NoError(t, os.WriteFile(big, bytes.Repeat([]byte("x"), 15_000_000), 0o600))
	for _, step := range kcatSteps {
		t.Run(step.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", step.script)
			cmd.Env = append(os.Environ(), "B="+c.Bootstrap(), "IN="+in, "BIG="+big)
			if strings.Contains(step.script, "grep -q ") { // which hangs up as soon as it has found
				cmd.Args = []string{"bash", "-c", step.script}
			}
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s", out)
		})
	}
}
