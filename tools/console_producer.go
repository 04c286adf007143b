package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/tools/options"
)

var consoleProducerOptions = []options.Option{
	{Name: "batch-size", Arity: options.One, Value: "Integer: size", Doc: "Bytes of a batch. (default: 16384)"},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas. Required unless --broker-list is given."},
	{Name: "broker-list", Arity: options.One, Value: "String: broker-list", Doc: "Old name of --bootstrap-server."},
	{Name: "compression-codec", Arity: options.Maybe, Value: "String: compression-codec", Doc: "none, gzip, snappy, lz4 or zstd; gzip when no value follows."},
	{Name: "help", Doc: "Print this text."},
	{Name: "line-reader", Arity: options.One, Value: "String: reader_class", Doc: "Only the original's own reader of lines is known here."},
	{Name: "max-block-ms", Arity: options.One, Value: "Long: max block on send", Doc: "How long sending may wait for metadata and memory. (default: 60000)"},
	{Name: "max-memory-bytes", Arity: options.One, Value: "Long: total memory in bytes", Doc: "Memory for records that wait. (default: 33554432)"},
	{Name: "max-partition-memory-bytes", Arity: options.One, Value: "Long: memory in bytes per partition", Doc: "Accepted; --batch-size decides."},
	{Name: "message-send-max-retries", Arity: options.One, Value: "Integer", Doc: "How often a failed send is tried again. (default: 3)"},
	{Name: "metadata-expiry-ms", Arity: options.One, Value: "Long: metadata expiration interval", Doc: "Age at which metadata is fetched again. (default: 300000)"},
	{Name: "producer-property", Arity: options.Many, Value: "String: producer_prop", Doc: "A setting of the producer, as name=value."},
	{Name: "producer.config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the producer."},
	{Name: "property", Arity: options.Many, Value: "String: prop", Doc: "A setting of the reader, as name=value: parse.key, key.separator, ignore.error, parse.headers, headers.delimiter, headers.separator, headers.key.separator, null.marker."},
	{Name: "reader-config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the reader."},
	{Name: "request-required-acks", Arity: options.One, Value: "String: request required acks", Doc: "Acknowledgements to wait for: 0, 1 or -1 (all). (default: -1)"},
	{Name: "request-timeout-ms", Arity: options.One, Value: "Integer: request timeout ms", Doc: "How long the broker may take for its acknowledgement. (default: 1500)"},
	{Name: "retry-backoff-ms", Arity: options.One, Value: "Long", Doc: "Pause before a send is tried again. (default: 100)"},
	{Name: "socket-buffer-size", Arity: options.One, Value: "Integer: size", Doc: "Accepted; the system chooses."},
	{Name: "sync", Doc: "Send one record at a time."},
	{Name: "timeout", Arity: options.One, Value: "Long: timeout_ms", Doc: "How long records are gathered before they are sent. (default: 1000)"},
	{Name: "topic", Arity: options.One, Value: "String: topic", Doc: "The topic. Required."},
	{Name: "version", Doc: "Print the version."},
}

// ConsoleProducer is kafka-console-producer: lines of standard input become records.
func ConsoleProducer(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = &inTurn{w: stderr}
	f := face{class: "kafka.tools.ConsoleProducer$", intro: "This tool helps to read data from standard input and publish it to Kafka.", options: consoleProducerOptions, needs: []string{"topic"}, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if !set.Has("bootstrap-server") && !set.Has("broker-list") {
		return f.usage(missing("bootstrap-server"))
	}
	switch err := consoleProduce(f, set, stdin); {
	case errors.Is(err, errUnfinished) && strict():
		return 1
	case err != nil && !errors.Is(err, errUnfinished):
		fmt.Fprintf(stderr, "%s: %s\n", "org.apache.kafka.common.KafkaException", err)
		return 1
	}
	return 0
}

func consoleProduce(f face, set *options.Set, stdin io.Reader) error {
	reader, err := newLineReader(set)
	if err != nil {
		return err
	}
	client, err := producerClient(f, set)
	if err != nil {
		return err
	}
	defer client.Close()

	prompt := ""
	if file, ok := stdin.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			prompt = ">"
		}
	}
	var failures sendFailures
	lines := bufio.NewReaderSize(stdin, 1<<16)
	fmt.Fprint(f.stdout, prompt)
	for number := 1; ; number++ {
		line, readErr := lines.ReadString('\n')
		if line == "" && readErr != nil {
			break
		}
		r, err := reader.record(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), number)
		if err != nil {
			_ = client.Flush(context.Background()) // earlier lines are sent, as by the original
			return err
		}
		if number == 1 {
			awaitTopic(client, r.Topic)
		}
		if set.Has("sync") {
			if err := client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
				failures.report(f, r, err)
			}
		} else {
			client.Produce(context.Background(), r, func(r *kgo.Record, err error) {
				if err != nil {
					failures.report(f, r, err)
				}
			})
		}
		fmt.Fprint(f.stdout, prompt)
		if readErr != nil {
			break
		}
	}
	if err := client.Flush(context.Background()); err != nil {
		return err
	}
	if failures.some { // all promises are kept by now
		return errUnfinished
	}
	return nil
}

// awaitTopic waits while a topic, which asking for it may just have made, is not there yet. The library counts its looks at the metadata as tries to send, of which there are few; the
// original's tries begin when it knows where to send.
func awaitTopic(client *kgo.Client, topic string) {
	const asLongAsTheOriginal, pause = 60 * time.Second, 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), asLongAsTheOriginal)
	defer cancel()
	for isBeingMade(ctx, client, topic) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// isBeingMade asks the first broker that answers. Whatever else is wrong is told by the first record.
func isBeingMade(ctx context.Context, client *kgo.Client, topic string) bool {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = true
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
	for _, seed := range client.SeedBrokers() {
		if resp, err := seed.Request(ctx, req); err == nil {
			return slices.ContainsFunc(resp.(*kmsg.MetadataResponse).Topics, func(t kmsg.MetadataResponseTopic) bool { return t.ErrorCode == kerr.LeaderNotAvailable.Code })
		}
	}
	return false
}

// sendFailures reports records that could not be sent; the original goes on and exits with 0.
type sendFailures struct {
	mu   sync.Mutex
	some bool
}

func (s *sendFailures) report(f face, r *kgo.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.some = true
	key := "null"
	if r.Key != nil {
		key = fmt.Sprintf("%d bytes", len(r.Key))
	}
	fmt.Fprintf(f.stderr, "%sError when sending message to topic %s with key: %s, value: %d bytes with error: (org.apache.kafka.clients.producer.internals.ErrorLoggingCallback)\n%s: %s\n",
		f.logLine("ERROR"), r.Topic, key, len(r.Value), exceptionClass(err), err)
}

// consoleProducerSettings are the settings that have options of their own, which count before those of the file, and their defaults, which are not the producer's.
var consoleProducerSettings = []struct{ option, setting, def string }{
	{"timeout", "linger.ms", "1000"},
	{"batch-size", "batch.size", "16384"},
	{"request-timeout-ms", "request.timeout.ms", "1500"},
	{"message-send-max-retries", "retries", "3"},
	{"max-memory-bytes", "buffer.memory", "33554432"},
	{"request-required-acks", "acks", "-1"},
}

func producerClient(f face, set *options.Set) (*kgo.Client, error) {
	settings, err := clientOptions{[]string{"bootstrap-server", "broker-list"}, "producer.config", "producer-property"}.settings(set)
	if err != nil {
		return nil, err
	}
	for _, s := range consoleProducerSettings {
		value, err := set.Value(s.option)
		switch {
		case err != nil:
			return nil, err
		case value != "":
			settings[s.setting] = value
		case settings[s.setting] == "":
			settings[s.setting] = s.def
		}
	}
	if set.Has("compression-codec") {
		if settings["compression.type"], err = set.Value("compression-codec"); err != nil {
			return nil, err
		}
		if settings["compression.type"] == "" {
			settings["compression.type"] = "gzip"
		}
	}
	nameClient(settings, "console-producer")
	opts, err := producerOptions(settings, true)
	if err != nil {
		return nil, err
	}
	return f.connect(settings, append(opts, kgo.UnknownTopicRetries(10))...)
}

// lineReader turns lines into records, by the rules of the original's reader.
type lineReader struct {
	topic                                               string
	parseKey, parseHeaders, ignoreError                 bool
	keySeparator, nullMarker                            string
	headersDelimiter, headersSeparator, headersKeyValue string
}

func newLineReader(set *options.Set) (*lineReader, error) {
	props, err := readConsoleProperties(set, "reader-config")
	if err != nil {
		return nil, err
	}
	r := &lineReader{parseKey: props.truth("parse.key", false), parseHeaders: props.truth("parse.headers", false), ignoreError: props.truth("ignore.error", false),
		keySeparator: props.get("key.separator", "\t"), nullMarker: props["null.marker"],
		headersDelimiter: props.get("headers.delimiter", "\t"), headersSeparator: props.get("headers.separator", ","), headersKeyValue: props.get("headers.key.separator", ":")}
	if r.topic, err = set.Value("topic"); err != nil {
		return nil, err
	}
	if r.parseHeaders && (r.headersDelimiter == r.headersSeparator || r.headersSeparator == r.headersKeyValue || r.headersDelimiter == r.headersKeyValue) {
		return nil, errors.New("headers.delimiter, headers.separator and headers.key.separator must be different")
	}
	return r, nil
}

func (r *lineReader) record(line string, number int) (*kgo.Record, error) {
	rec := &kgo.Record{Topic: r.topic}
	rest := line
	if r.parseHeaders {
		headers, after, ok := strings.Cut(rest, r.headersDelimiter)
		switch {
		case ok:
			rest = after
			if headers == r.nullMarker && r.nullMarker != "" {
				break
			}
			for _, pair := range strings.Split(headers, r.headersSeparator) {
				key, value, ok := strings.Cut(pair, r.headersKeyValue)
				if !ok && !r.ignoreError {
					return nil, fmt.Errorf("No header key separator found in pair '%s' on line number %d", pair, number)
				}
				h := kgo.RecordHeader{Key: key, Value: []byte(value)}
				if r.nullMarker != "" && value == r.nullMarker {
					h.Value = nil
				}
				rec.Headers = append(rec.Headers, h)
			}
		case !r.ignoreError:
			return nil, fmt.Errorf("No header delimiter found on line number %d: '%s'", number, line)
		}
	}
	if r.parseKey {
		key, value, ok := strings.Cut(rest, r.keySeparator)
		switch {
		case ok:
			rec.Key, rest = r.bytes(key), value
		case !r.ignoreError && compat39():
			return nil, fmt.Errorf("No key separator found on line number %d: '%s'", number, line)
		case !r.ignoreError:
			return nil, fmt.Errorf("No key found on line %d: %s", number, line)
		}
	}
	rec.Value = r.bytes(rest)
	return rec, nil
}

// bytes is a key or value as it is sent: the null marker stands for null.
func (r *lineReader) bytes(text string) []byte {
	if r.nullMarker != "" && text == r.nullMarker {
		return nil
	}
	return []byte(text)
}
