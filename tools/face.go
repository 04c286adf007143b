package tools

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

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

// logError writes an error as the originals' log does: a time, the exception's class and its message.
func (f face) logError(err error) {
	class := exceptionClass(err)
	fmt.Fprintf(f.stderr, "[%s] ERROR %s: %s\n (%s)\n", time.Now().Format("2006-01-02 15:04:05,000"), class, err, f.class)
}

// answerError is a Kafka error code with the message that the broker gave beside it.
type answerError struct {
	code    *kerr.Error
	message string
}

func (e *answerError) Error() string {
	if e.message != "" {
		return e.message
	}
	return e.code.Description
}
func (e *answerError) Unwrap() error { return e.code }

// answered turns an error code and message of an answer into an error; nil for code 0.
func answered(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil {
		return nil
	}
	var known *kerr.Error
	if !errors.As(err, &known) {
		return err
	}
	e := &answerError{code: known}
	if message != nil {
		e.message = *message
	}
	return e
}

// exceptionClass names the Java class that stands for an error in the originals' log lines.
func exceptionClass(err error) string {
	var bad *badArgument
	if errors.As(err, &bad) {
		return "java.lang.IllegalArgumentException"
	}
	var code *kerr.Error
	if !errors.As(err, &code) {
		return "org.apache.kafka.common.KafkaException"
	}
	switch code.Code {
	case kerr.TopicAlreadyExists.Code:
		return "org.apache.kafka.common.errors.TopicExistsException"
	case kerr.InvalidTopicException.Code:
		return "org.apache.kafka.common.errors.InvalidTopicException"
	}
	var name strings.Builder
	for _, word := range strings.Split(strings.ToLower(code.Message), "_") {
		if word != "" {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	name.WriteString("Exception")
	return "org.apache.kafka.common.errors." + name.String()
}

// badArgument is a call that makes no sense, found after the arguments were parsed.
type badArgument struct{ reason string }

func (e *badArgument) Error() string { return e.reason }
