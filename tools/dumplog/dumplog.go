// Package dumplog is kafka-dump-log: it prints what segment files hold, and says where an index does not fit its log.
//
// It reads files by itself and not through the log engine: a tool that is called because a log may be broken must not
// mend, cache or believe anything, and it is a second opinion on what the engine writes.
package dumplog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"barnabas/tools/options"
)

var declared = []options.Option{
	{Name: "files", Arity: options.One, Value: "String: file1, file2, ...", Doc: "REQUIRED: the log, index, time index, producer snapshot and transaction index files to print, separated by commas."},
	{Name: "print-data-log", Doc: "Print keys and values of records, too. Implied by every decoder option."},
	{Name: "deep-iteration", Doc: "Print records and not only batches. Implied by print-data-log."},
	{Name: "skip-record-metadata", Doc: "Print of a record only what a decoder makes of it."},
	{Name: "verify-index-only", Doc: "Check indexes against their log without printing them."},
	{Name: "index-sanity-check", Doc: "Only make the check of indexes that a broker makes when it starts, which decides whether an index is built anew."},
	{Name: "max-message-size", Arity: options.One, Value: "Integer: size", Doc: "Largest batch to expect where an index points. (default: 5242880)"},
	{Name: "max-bytes", Arity: options.One, Value: "Integer: size", Doc: "Stop reading a log behind this many bytes. (default: 2147483647)"},
	{Name: "offsets-decoder", Doc: "Decode records as those of __consumer_offsets."},
	{Name: "transaction-log-decoder", Doc: "Decode records as those of __transaction_state."},
	{Name: "cluster-metadata-decoder", Doc: "Records of KRaft's metadata log: not supported."},
	{Name: "remote-log-metadata-decoder", Doc: "Records about tiered storage: not supported."},
	{Name: "key-decoder-class", Arity: options.Maybe, Value: "String", Doc: "StringDecoder, LongDecoder or IntegerDecoder of Kafka's, by full name. Other classes would need a Java runtime. (default: org.apache.kafka.tools.api.StringDecoder)"},
	{Name: "value-decoder-class", Arity: options.Maybe, Value: "String", Doc: "As key-decoder-class, for values. (default: org.apache.kafka.tools.api.StringDecoder)"},
	{Name: "help", Doc: "Print usage information."},
	{Name: "version", Doc: "Display Kafka version."},
}

const intro = "This tool prints log segments and the files beside them, for looking into a log that may be damaged."

// dumper is one run of the tool.
type dumper struct {
	out   *bufio.Writer
	err   io.Writer
	newer bool // print as 3.9 does, not as 2.8 does

	files          []string
	deep           bool
	parse          func(logRecord) (parsed, error) // nil: contents are not printed
	skipMetadata   bool
	verifyOnly     bool
	sanityOnly     bool
	maxMessageSize int64
	maxBytes       int64

	faults faults
}

// Run prints files as the arguments say and returns the exit code: 0 also when indexes and log do not fit (as Kafka has
// it), 1 for a wrong call or a file that cannot be read to its end.
func Run(args []string, stdout, stderr io.Writer) int {
	d := &dumper{out: bufio.NewWriter(stdout), err: stderr, newer: strings.HasPrefix(os.Getenv("BARNABAS_COMPAT"), "3.9")}
	set, err := options.Parse(declared, args)
	switch {
	case err != nil:
		return usage(stderr, err.Error())
	case len(args) == 0 || set.Has("help"):
		return usage(stderr, intro)
	case set.Has("version"):
		fmt.Fprintln(stdout, map[bool]string{false: "2.8.2 (Commit:3146c6ff4a24cc24)", true: "3.9.1"}[d.newer])
		return 0
	case !set.Has("files"):
		return usage(stderr, "Missing required argument \"[files]\"")
	}
	if err := d.configure(set); err != nil {
		return usage(stderr, err.Error())
	}
	err = d.run()
	d.out.Flush() // stdout first: what was printed came before the error
	d.faults.print(stderr)
	if err != nil {
		fmt.Fprintf(stderr, "Exception in thread \"main\" %s\n", err)
		return 1
	}
	return 0
}

func usage(w io.Writer, reason string) int {
	fmt.Fprintln(w, reason)
	options.WriteHelp(w, declared)
	return 1
}

func (d *dumper) configure(set *options.Set) error {
	files, err := set.Value("files")
	if err != nil {
		return err
	}
	d.files = strings.Split(files, ",")
	if d.maxMessageSize, err = set.Int("max-message-size", 5<<20); err != nil {
		return err
	}
	if d.maxBytes, err = set.Int("max-bytes", maxInt32); err != nil {
		return err
	}
	d.skipMetadata = set.Has("skip-record-metadata")
	d.verifyOnly = set.Has("verify-index-only")
	d.sanityOnly = set.Has("index-sanity-check")
	if d.parse, err = d.parser(set); err != nil {
		return err
	}
	d.deep = set.Has("deep-iteration") || d.parse != nil
	return nil
}

const maxInt32 = 1<<31 - 1

func (d *dumper) run() error {
	for _, name := range d.files {
		fmt.Fprintf(d.out, "Dumping %s\n", name)
		var err error
		switch filepath.Ext(name) {
		case ".log":
			err = d.log(name)
		case ".index":
			err = d.offsetIndex(name)
		case ".timeindex":
			err = d.timeIndex(name)
		case ".snapshot":
			err = d.snapshot(name)
		case ".txnindex":
			err = d.abortedTransactions(name)
		default:
			d.out.Flush()
			fmt.Fprintf(d.err, "Ignoring unknown file %s\n", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// exception is an error with the name that scripts may look for.
type exception struct{ class, message string }

func (e *exception) Error() string { return e.class + ": " + e.message }

func open(name string) (*os.File, int64, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, &exception{"java.nio.file.NoSuchFileException", name}
	}
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, st.Size(), nil
}

// baseOffset is the offset in a file's name.
func baseOffset(name string) (int64, error) {
	stem, _, _ := strings.Cut(filepath.Base(name), ".")
	n, err := strconv.ParseInt(stem, 10, 64)
	if err != nil {
		return 0, &exception{"java.lang.NumberFormatException", fmt.Sprintf("For input string: %q", stem)}
	}
	return n, nil
}

// sibling is the name of the file of that kind beside name.
func sibling(name, suffix string) string {
	stem, _, _ := strings.Cut(filepath.Base(name), ".")
	return filepath.Join(filepath.Dir(name), stem+suffix)
}

func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
