package tools

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"barnabas/tools/options"
)

// face is what a command of Kafka's face says, and where.
type face struct {
	class          string // of the original, which stands in log lines
	intro          string // first line of the help
	options        []options.Option
	stdout, stderr io.Writer
}

// compat39 tells whether the newer texts were asked for.
func compat39() bool { return strings.HasPrefix(os.Getenv("BARNABAS_COMPAT"), "3.9") }

// usage reports a wrong call: the reason, then the help, both on stderr, and exit code 1.
func (f face) usage(reason string) int {
	fmt.Fprintln(f.stderr, reason)
	options.WriteHelp(f.stderr, f.options)
	return 1
}

// common handles --help and --version, which come before everything else; done tells that the command is over.
func (f face) common(set *options.Set) (code int, done bool) {
	if set.Has("help") {
		return f.usage(f.intro), true
	}
	if set.Has("version") {
		if compat39() {
			fmt.Fprintln(f.stdout, "3.9.1")
		} else {
			fmt.Fprintln(f.stdout, "2.8.2 (Commit:3146c6ff4a24cc24)")
		}
		return 0, true
	}
	return 0, false
}

// strict tells whether failures that the originals pass over in silence end with exit code 1.
func strict() bool { return os.Getenv("BARNABAS_STRICT") == "1" }

// logError writes an error as the originals' log does: a time, the exception's class and its message.
func (f face) logError(err error) {
	class := exceptionClass(err)
	fmt.Fprintf(f.stderr, "[%s] ERROR %s: %s\n (%s)\n", time.Now().Format("2006-01-02 15:04:05,000"), class, err, f.class)
}
