package ecosystem

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
)

// patience is longer than anything takes here, also on a busy machine.
const patience = 5 * time.Minute

// jars needs a Java with its compiler, and Kafka's own programs beyond the broker.
func jars(t *testing.T) string {
	t.Helper()
	lane.Java(t)
	lane.Program(t, "javac")
	return lane.KafkaJars(t, "ecosystem-3.9.1") + "/*"
}

// compiled is a class path with a program of testdata in it.
func compiled(t *testing.T, source string) string {
	t.Helper()
	classes := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "javac", "-nowarn", "-d", classes, "-cp", jars(t), filepath.Join("testdata", source)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return classes + ":" + jars(t)
}

// flags of a Java process that lives for a minute beside others on two cores.
var flags = []string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"}

// program is a Java process, whose output goes to a log of its own.
type program struct {
	name string
	args []string // from the class path on
	log  string
	cmd  *exec.Cmd
	gone chan struct{} // closed when the process has ended
}

// launch starts a main class. It ends with the test, and the end of its log is printed when the test failed.
func launch(t *testing.T, name, classpath, class string, args ...string) *program {
	t.Helper()
	dir := t.TempDir()
	log4j := filepath.Join(dir, "log4j.properties")
	require.NoError(t, os.WriteFile(log4j, []byte(`log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.org.apache.kafka.clients=WARN
log4j.logger.org.apache.kafka.common=WARN
`), 0o600))
	p := &program{name: name, log: filepath.Join(dir, "log"), args: append([]string{"-Djava.io.tmpdir=" + dir, "-Dlog4j.configuration=file:" + log4j, "-cp", classpath, class}, args...)} // one that is killed leaves its codecs and RocksDB in the folder for temporary files
	p.start(t)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", p.name, p.tail(4000))
		}
	})
	return p
}

// start starts the process, also once more after it has ended; its log goes on.
func (p *program) start(t *testing.T) {
	t.Helper()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer out.Close()
	cmd, gone := exec.Command(lane.Java(t), slices.Concat(flags, p.args)...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = out, out
	lane.Bind(cmd)
	require.NoError(t, cmd.Start())
	p.cmd, p.gone = cmd, gone
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
}

// kill ends the process as a crash would.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// stop ends the process as its operator would.
func (p *program) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.gone:
	case <-time.After(patience):
		t.Fatalf("%s did not stop", p.name)
	}
}

func (p *program) running() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// tail is the end of the process's log, at most so many bytes.
func (p *program) tail(n int) string {
	text, _ := os.ReadFile(p.log)
	return strings.TrimSpace(string(text[max(0, len(text)-n):]))
}

// runs runs a main class to its end and returns what it said.
func runs(t *testing.T, classpath, class string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var complaints strings.Builder
	cmd := exec.CommandContext(ctx, lane.Java(t), slices.Concat(flags, []string{"-cp", classpath, class}, args)...)
	cmd.Stderr = &complaints
	lane.Bind(cmd)
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s\n%s", class, args, out, complaints.String())
	return string(out)
}

// properties writes a file of settings.
func properties(t *testing.T, settings map[string]string) string {
	t.Helper()
	var text strings.Builder
	for name, value := range settings {
		fmt.Fprintf(&text, "%s=%s\n", name, value)
	}
	file := filepath.Join(t.TempDir(), "properties")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	return file
}

// await waits until something holds while certain programs run. What it says instead is told when it does not.
func await(t *testing.T, instead func() string, running ...*program) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for said := instead(); said != ""; said = instead() {
		for _, p := range running {
			require.True(t, p.running(), "%s has ended: %s", p.name, said)
		}
		require.False(t, time.Now().After(deadline), "after %s: %s", patience, said)
		time.Sleep(50 * time.Millisecond) // the pace of looking
	}
}
