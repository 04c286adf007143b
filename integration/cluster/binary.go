package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// binaries is how the folders of programs under test begin; the id of the test process follows.
const binaries = "barnabas-bin-"

var build struct {
	sync.Once
	path string
	err  error
}

// Binary builds the program once for the test process and returns its path. $BARNABAS_BINARY names another to test instead, such as one that is about to be released.
func Binary(t testing.TB) string {
	t.Helper()
	build.Do(func() {
		if build.path = os.Getenv("BARNABAS_BINARY"); build.path != "" {
			return
		}
		root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
		if err != nil {
			build.err = err
			return
		}
		sweep()
		dir, err := os.MkdirTemp("", binaries+strconv.Itoa(os.Getpid())+"-")
		if err != nil {
			build.err = err
			return
		}
		if build.err = os.Chmod(dir, 0o755); build.err != nil { // tests also run it as another user
			return
		}
		build.path = filepath.Join(dir, "barnabas")
		cmd := exec.Command("go", "build", "-o", build.path, ".")
		cmd.Dir = strings.TrimSpace(string(root))
		if out, err := cmd.CombinedOutput(); err != nil {
			build.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	require.NoError(t, build.err)
	return build.path
}

// sweep removes the programs of test processes that have ended: none hears of its own end.
func sweep() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), binaries+"*-*"))
	for _, dir := range found {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), binaries), "-")
		if pid, err := strconv.Atoi(id); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}
