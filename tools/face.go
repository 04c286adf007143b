package tools

import (
	"errors"
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
	needs          []string // options without which the call makes no sense
	misread        misread
	stdout, stderr io.Writer
}

// misread is what the original says when arguments cannot be read.
type misread int8

const (
	reasonAndHelp misread = iota
	exception             // thrown by the parser and caught by nobody
	onlyReason
)

// parse reads arguments. over tells that the command has ended with code: it was called wrongly, or asked for its help or version.
func (f face) parse(args []string) (set *options.Set, code int, over bool) {
	set, err := options.Parse(f.options, args)
	if err != nil {
		return nil, f.unreadable(err), true
	}
	if code, over := f.common(set); over {
		return nil, code, true
	}
	switch lacking := set.Lacking(f.options); {
	case lacking != nil:
		return nil, f.usage("Missing required option(s) [" + strings.Join(lacking, ", ") + "]"), true
	case len(args) == 0:
		return nil, f.usage(f.intro), true
	}
	for _, needed := range f.needs {
		if !set.Has(needed) {
			return nil, f.usage(missing(needed)), true
		}
	}
	return set, 0, false
}

// unreadable says why arguments cannot be read and, beside what the original says, which option may have been meant.
func (f face) unreadable(err error) int {
	meant := ""
	var unknown *options.UnknownError
	if errors.As(err, &unknown) && unknown.Meant != nil {
		meant = "\nDid you mean --" + strings.Join(unknown.Meant, " or --") + "?"
	}
	switch f.misread {
	case exception:
		class := "OptionException"
		if unknown != nil {
			class = "UnrecognizedOptionException"
		}
		fmt.Fprintf(f.stderr, "Exception in thread \"main\" joptsimple.%s: %s%s\n", class, err, meant)
	case onlyReason:
		fmt.Fprintf(f.stderr, "%s%s\n", err, meant)
	default:
		return f.usage(err.Error() + meant)
	}
	return 1
}

// missing says that an option was not given.
func missing(option string) string { return fmt.Sprintf("Missing required argument \"[%s]\"", option) }

// notTogether says that two options exclude each other.
func notTogether(option, other string) string {
	return fmt.Sprintf("Option \"[%s]\" can't be used with option \"[%s]\"", option, other)
}

// atMostOne says which of some options exclude each other, "" where no more than one was given.
func atMostOne(set *options.Set, names []string) string {
	first := ""
	for _, name := range names {
		switch {
		case !set.Has(name):
		case first == "":
			first = name
		default:
			return notTogether(first, name)
		}
	}
	return ""
}

// uncaught reports an error as the originals' main functions do when they let it through.
func (f face) uncaught(err error) int {
	if compat39() {
		fmt.Fprintf(f.stderr, "%s\n%s\n", err, stackTrace(err))
	} else {
		fmt.Fprintf(f.stderr, "Exception in thread \"main\" %s", stackTrace(err))
	}
	return 1
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

// logLine begins a line of the originals' log.
func (f face) logLine(level string) string {
	return fmt.Sprintf("[%s] %s ", time.Now().Format("2006-01-02 15:04:05,000"), level)
}

// logError writes an error as the originals' log does: a time, the exception's class and its message.
func (f face) logError(err error) {
	fmt.Fprintf(f.stderr, "%s%s: %s\n (%s)\n", f.logLine("ERROR"), exceptionClass(err), err, f.class)
}
