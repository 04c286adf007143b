package tools

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"barnabas/tools/options"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ran is what a command did.
type ran struct {
	code           int
	stdout, stderr string
}

type command func(args []string, stdout, stderr *bytes.Buffer) int

func runCommand(c command, args ...string) ran {
	var out, errs bytes.Buffer
	code := c(args, &out, &errs)
	return ran{code, out.String(), errs.String()}
}

func parsed(t *testing.T, known []options.Option, args ...string) *options.Set {
	t.Helper()
	set, err := options.Parse(known, args)
	require.NoError(t, err)
	return set
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
