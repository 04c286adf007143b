package tools

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/tools/options"
)

var consoleConsumerOptions = []options.Option{
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "consumer-property", Arity: options.Many, Value: "String: consumer_prop", Doc: "A setting of the consumer, as name=value."},
	{Name: "consumer.config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the consumer."},
	{Name: "enable-systest-events", Doc: "Also log lifecycle events; accepted for old scripts."},
	{Name: "formatter", Arity: options.One, Value: "String: class", Doc: "How records are printed: the original's default, logging and no-op formatters are known."},
	{Name: "formatter-config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the formatter."},
	{Name: "from-beginning", Doc: "Begin with the oldest record when there is no committed offset."},
	{Name: "group", Arity: options.One, Value: "String: consumer group id", Doc: "Consume as a member of this group."},
	{Name: "help", Doc: "Print this text."},
	{Name: "include", Arity: options.One, Value: "String: Java regex (String)", Doc: "A regular expression for the topics."},
	{Name: "isolation-level", Arity: options.One, Value: "String", Doc: "read_committed leaves records of open and aborted transactions out. (default: read_uncommitted)"},
	{Name: "key-deserializer", Arity: options.One, Value: "String: deserializer for key", Doc: "Java class whose format keys have: strings, bytes and numbers are known."},
	{Name: "max-messages", Arity: options.One, Value: "Integer: num_messages", Doc: "Stop after that many records."},
	{Name: "offset", Arity: options.One, Value: "String: consume offset", Doc: "With --partition: where to begin: a number, earliest, or latest. (default: latest)"},
	{Name: "partition", Arity: options.One, Value: "Integer: partition", Doc: "Consume this partition only."},
	{Name: "property", Arity: options.Many, Value: "String: prop", Doc: "A setting of the formatter, as name=value: print.timestamp, print.key, print.offset, print.partition, print.headers, print.value, key.separator, line.separator, headers.separator, null.literal, key.deserializer, value.deserializer, header.deserializer."},
	{Name: "skip-message-on-error", Doc: "Go on after a record that cannot be printed."},
	{Name: "timeout-ms", Arity: options.One, Value: "Integer: timeout_ms", Doc: "Stop when no record came for so long."},
	{Name: "topic", Arity: options.One, Value: "String: topic", Doc: "The topic."},
	{Name: "value-deserializer", Arity: options.One, Value: "String: deserializer for values", Doc: "Java class whose format values have."},
	{Name: "version", Doc: "Print the version."},
	{Name: "whitelist", Arity: options.One, Value: "String: whitelist", Doc: "Old name of --include."},
}

// ConsoleConsumer is kafka-console-consumer: records are printed, a line each.
//
// Without --group the original joins a group with a random name that nobody else ever sees; here all partitions are then read without a group.
func ConsoleConsumer(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	stderr = &inTurn{w: stderr}
	f := face{class: "kafka.tools.ConsoleConsumer$", intro: "This tool helps to read data from Kafka topics and outputs it to standard output.", options: consoleConsumerOptions, stdout: stdout, stderr: stderr}
	if compat39() {
		f.class = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if reason := wrongConsumerCall(set); reason != "" {
		return f.usage(reason)
	}
	code, err := consoleConsume(f, set)
	if err != nil {
		fmt.Fprintf(stderr, "%sUnknown error when running consumer:  (%s)\n%s: %s\n", f.logLine("ERROR"), f.class, exceptionClass(err), err)
		return 1
	}
	return code
}

func wrongConsumerCall(set *options.Set) string {
	sources := 0
	for _, name := range []string{"topic", "include", "whitelist"} {
		if set.Has(name) {
			sources++
		}
	}
	if sources != 1 {
		if compat39() {
			return "Exactly one of --include/--topic is required. "
		}
		return "Exactly one of whitelist/topic is required."
	}
	if !set.Has("bootstrap-server") {
		return missing("bootstrap-server")
	}
	if set.Has("partition") && !set.Has("topic") {
		return "The topic is required when partition is specified."
	}
	if set.Has("offset") && !set.Has("partition") {
		return "The partition is required when offset is specified."
	}
	if set.Has("from-beginning") && set.Has("offset") {
		return "Options from-beginning and offset cannot be specified together."
	}
	if set.Has("partition") && set.Has("group") {
		return "Options group and partition cannot be specified together."
	}
	if text, err := set.Value("offset"); err == nil {
		if _, err := startOffset(text, false); err != nil {
			return err.Error()
		}
	}
	return ""
}

func consumerClient(f face, set *options.Set) (*kgo.Client, error) {
	text := func(name string) string { v, _ := set.Value(name); return v }
	settings, err := clientOptions{[]string{"bootstrap-server"}, "consumer.config", "consumer-property"}.settings(set)
	if err != nil {
		return nil, err
	}
	if set.Has("from-beginning") {
		settings["auto.offset.reset"] = "earliest"
	}
	for option, name := range map[string]string{"isolation-level": "isolation.level", "group": "group.id"} {
		if v := text(option); v != "" {
			settings[name] = v
		}
	}
	if set.Has("partition") {
		delete(settings, "group.id")
	}
	nameClient(settings, "console-consumer")
	opts, err := consumerOptions(settings)
	if err != nil {
		return nil, err
	}
	topic := text("topic")
	switch {
	case set.Has("partition"):
		partition, err := set.Int("partition", 0)
		if err != nil {
			return nil, err
		}
		offset, err := startOffset(text("offset"), set.Has("from-beginning"))
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {int32(partition): offset}}))
	case set.Has("topic"):
		opts = append(opts, kgo.ConsumeTopics(topic))
	default:
		topics, err := consumedTopics(text("include") + text("whitelist"))
		if err != nil {
			return nil, err
		}
		opts = append(opts, topics...)
	}
	return f.connect(settings, opts...)
}

// startOffset reads --offset. A negative number is refused, as by the original.
func startOffset(text string, fromBeginning bool) (kgo.Offset, error) {
	switch {
	case strings.EqualFold(text, "earliest"), text == "" && fromBeginning:
		return kgo.NewOffset().AtStart(), nil
	case strings.EqualFold(text, "latest"), text == "":
		return kgo.NewOffset().AtEnd(), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return kgo.Offset{}, &badArgument{fmt.Sprintf("The provided offset value '%s' is incorrect. Valid values are 'earliest', 'latest', or a non-negative long.", text)}
	}
	return kgo.NewOffset().At(n), nil
}

func consoleConsume(f face, set *options.Set) (int, error) {
	limit, err := set.Int("max-messages", -1)
	if err != nil {
		return 0, err
	}
	timeout, err := set.Int("timeout-ms", -1)
	if err != nil {
		return 0, err
	}
	format, err := newFormatter(set)
	if err != nil {
		return 0, err
	}
	client, err := consumerClient(f, set)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	interrupted, restore := untilStopped()
	defer restore()

	printed := int64(0)
	defer commitPrinted(client)
	defer func() { fmt.Fprintf(f.stderr, "Processed a total of %d messages\n", printed) }()
	for limit < 0 || printed < limit {
		ctx, cancel := interrupted, context.CancelFunc(func() {})
		if timeout >= 0 {
			ctx, cancel = context.WithTimeout(interrupted, time.Duration(timeout)*time.Millisecond)
		}
		fetches := client.PollRecords(ctx, 1000)
		cancel()
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) && !errors.Is(e.Err, context.Canceled) {
				return 0, e.Err
			}
		}
		if interrupted.Err() != nil {
			return stopCode(interrupted), nil
		}
		if fetches.NumRecords() == 0 {
			if timeout >= 0 {
				fmt.Fprintf(f.stderr, "%sError processing message, terminating consumer process:  (%s)\norg.apache.kafka.common.errors.TimeoutException\n", f.logLine("ERROR"), f.class)
				return 0, nil
			}
			continue
		}
		for records := fetches.RecordIter(); !records.Done() && (limit < 0 || printed < limit); {
			r := records.Next()
			if _, err := f.stdout.Write(format.line(r)); err != nil {
				return 1, nil // whoever read our output has gone
			}
			client.MarkCommitRecords(r)
			printed++
		}
	}
	return 0, nil
}

// commitPrinted commits for its group, if there is one, what was printed since the last commit.
func commitPrinted(client *kgo.Client) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = client.CommitMarkedOffsets(ctx) // the group has gone on without it, or sees the records again
}

// formatter prints a record as the original's default formatter does.
type formatter struct {
	off                                               bool
	timestamp, key, offset, partition, headers, value bool
	keySeparator, lineSeparator, headersSeparator     string
	nullLiteral                                       string
	keyText, valueText, headerText                    func([]byte) string
}

func newFormatter(set *options.Set) (*formatter, error) {
	props, err := readConsoleProperties(set, "formatter-config")
	if err != nil {
		return nil, err
	}
	f := &formatter{timestamp: props.truth("print.timestamp", false), key: props.truth("print.key", false), offset: props.truth("print.offset", false), partition: props.truth("print.partition", false),
		headers: props.truth("print.headers", false), value: props.truth("print.value", true), keySeparator: props.get("key.separator", "\t"), lineSeparator: props.get("line.separator", "\n"),
		headersSeparator: props.get("headers.separator", ","), nullLiteral: props.get("null.literal", "null")}
	class := func(option, property string) string {
		if v, _ := set.Value(option); v != "" {
			return v
		}
		return props[property]
	}
	if f.keyText, err = deserializer(class("key-deserializer", "key.deserializer")); err != nil {
		return nil, err
	}
	if f.valueText, err = deserializer(class("value-deserializer", "value.deserializer")); err != nil {
		return nil, err
	}
	if f.headerText, err = deserializer(props["headers.deserializer"]); err != nil {
		return nil, err
	}
	name, err := set.Value("formatter")
	if err != nil {
		return nil, err
	}
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "", "DefaultMessageFormatter":
	case "NoOpMessageFormatter":
		f.off = true
	case "LoggingMessageFormatter":
		f.timestamp, f.key = true, true
	default:
		return nil, &badArgument{"the formatter " + name + " is not known here"}
	}
	return f, nil
}

func (f *formatter) line(r *kgo.Record) []byte {
	if f.off {
		return nil
	}
	var parts []string
	if f.timestamp {
		kind := "CreateTime"
		if r.Attrs.TimestampType() == 1 {
			kind = "LogAppendTime"
		}
		ms := r.Timestamp.UnixMilli()
		if r.Attrs.TimestampType() == -1 {
			kind, parts = "", append(parts, "NO_TIMESTAMP")
		}
		if kind != "" {
			parts = append(parts, kind+":"+strconv.FormatInt(ms, 10))
		}
	}
	if f.partition {
		parts = append(parts, "Partition:"+strconv.Itoa(int(r.Partition)))
	}
	if f.offset {
		parts = append(parts, "Offset:"+strconv.FormatInt(r.Offset, 10))
	}
	if f.headers {
		parts = append(parts, f.headersOf(r))
	}
	if f.key {
		parts = append(parts, f.text(r.Key, f.keyText))
	}
	if f.value {
		parts = append(parts, f.text(r.Value, f.valueText))
	}
	return []byte(strings.Join(parts, f.keySeparator) + f.lineSeparator)
}

func (f *formatter) headersOf(r *kgo.Record) string {
	if len(r.Headers) == 0 {
		return "NO_HEADERS"
	}
	var parts []string
	for _, h := range r.Headers {
		parts = append(parts, h.Key+":"+f.text(h.Value, f.headerText))
	}
	return strings.Join(parts, f.headersSeparator)
}

func (f *formatter) text(b []byte, as func([]byte) string) string {
	if b == nil {
		return f.nullLiteral
	}
	return as(b)
}

// deserializer returns how bytes written by a Java serializer are shown.
func deserializer(class string) (func([]byte) string, error) {
	number := func(size int, show func([]byte) string) func([]byte) string {
		return func(b []byte) string {
			if len(b) != size {
				return fmt.Sprintf("(%d bytes instead of %d)", len(b), size)
			}
			return show(b)
		}
	}
	switch class[strings.LastIndexByte(class, '.')+1:] {
	case "", "StringDeserializer", "ByteArrayDeserializer", "BytesDeserializer":
		return func(b []byte) string { return string(b) }, nil
	case "LongDeserializer":
		return number(8, func(b []byte) string { return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10) }), nil
	case "IntegerDeserializer":
		return number(4, func(b []byte) string { return strconv.Itoa(int(int32(binary.BigEndian.Uint32(b)))) }), nil
	case "ShortDeserializer":
		return number(2, func(b []byte) string { return strconv.Itoa(int(int16(binary.BigEndian.Uint16(b)))) }), nil
	case "DoubleDeserializer":
		return number(8, func(b []byte) string {
			return strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64)
		}), nil
	case "FloatDeserializer":
		return number(4, func(b []byte) string {
			return strconv.FormatFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(b))), 'g', -1, 32)
		}), nil
	}
	return nil, &badArgument{"the deserializer " + class + " is not known here"}
}
