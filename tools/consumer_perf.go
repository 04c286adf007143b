package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/tools/options"
)

var consumerPerfOptions = []options.Option{
	{Name: "bootstrap-server", Arity: options.One, Value: "String: server to connect to", Doc: "Brokers to connect to, as host:port, separated by commas. Required unless --broker-list is given."},
	{Name: "broker-list", Arity: options.One, Value: "String: broker-list", Doc: "Old name of --bootstrap-server."},
	{Name: "consumer.config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the consumer; options count before them."},
	{Name: "date-format", Arity: options.One, Value: "String: date format", Doc: "How times are printed, in the letters of java.text.SimpleDateFormat. (default: " + perfDateFormat + ")"},
	{Name: "fetch-size", Arity: options.One, Value: "Integer: size", Doc: "Bytes of a partition that one request fetches. (default: 1048576)"},
	{Name: "from-latest", Doc: "Begin at the end of the topic where the group has no committed offset."},
	{Name: "group", Arity: options.One, Value: "String: gid", Doc: "The group; one of its own without this."},
	{Name: "help", Doc: "Print this text."},
	{Name: "hide-header", Doc: "Leave the heading out."},
	{Name: "messages", Arity: options.One, Value: "Long: count", Doc: "How many messages to consume. Required."},
	{Name: "num-fetch-threads", Arity: options.One, Value: "Integer: count", Doc: "Accepted for old scripts; has no effect."},
	{Name: "print-metrics", Doc: "Print figures of the consumer at the end."},
	{Name: "reporting-interval", Arity: options.One, Value: "Long: interval_ms", Doc: "Milliseconds between lines of --show-detailed-stats. (default: 5000)"},
	{Name: "show-detailed-stats", Doc: "Print a line each interval, in place of one at the end."},
	{Name: "socket-buffer-size", Arity: options.One, Value: "Integer: size", Doc: "Accepted; the system chooses."},
	{Name: "threads", Arity: options.One, Value: "Integer: count", Doc: "Accepted for old scripts; has no effect."},
	{Name: "timeout", Arity: options.Maybe, Value: "Long: milliseconds", Doc: "Give up when no message came for so long. (default: 10000)"},
	{Name: "topic", Arity: options.One, Value: "String: topic", Doc: "The topic. Required."},
	{Name: "version", Doc: "Print the version."},
}

const perfDateFormat = "yyyy-MM-dd HH:mm:ss:SSS"

// ConsumerPerf is kafka-consumer-perf-test.
func ConsumerPerf(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	stderr = &inTurn{w: stderr}
	f := face{class: "kafka.tools.ConsumerPerformance$", intro: "This tool helps in performance test for the full zookeeper consumer", options: consumerPerfOptions, stdout: stdout, stderr: stderr}
	if compat39() {
		f.class, f.intro = "org.apache.kafka.tools.ConsumerPerformance", "This tool is used to verify the consumer performance."
	}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if set.Has("threads") || set.Has("num-fetch-threads") {
		fmt.Fprintln(stdout, "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be ignored by the test")
	}
	if !set.Has("bootstrap-server") && !set.Has("broker-list") {
		return f.usage("Missing required option(s) [bootstrap-server]")
	}
	for _, needed := range []string{"topic", "messages"} {
		if !set.Has(needed) {
			return f.usage(missing(needed))
		}
	}
	complete, err := consumerPerf(f, set)
	switch {
	case err != nil:
		return f.uncaught(err)
	case !complete && strict():
		return 1
	}
	return 0
}

// consumerPerfAsked is what a measurement is to do.
type consumerPerfAsked struct {
	topic            string
	messages         int64
	timeout, every   time.Duration
	detailed, header bool
	metrics          bool
	clock            func(time.Time) string
	settings         map[string]string
}

func readConsumerPerfCall(set *options.Set) (a consumerPerfAsked, err error) {
	a = consumerPerfAsked{detailed: set.Has("show-detailed-stats"), header: !set.Has("hide-header"), metrics: set.Has("print-metrics")}
	var timeout, every, fetchSize int64
	for _, option := range []struct {
		name   string
		target *int64
		def    int64
	}{{"messages", &a.messages, 0}, {"timeout", &timeout, 10_000}, {"reporting-interval", &every, 5000}, {"fetch-size", &fetchSize, 1 << 20}, {"socket-buffer-size", new(int64), 0}} {
		if *option.target = option.def; len(set.Values(option.name)) > 0 {
			if *option.target, err = set.Int(option.name, option.def); err != nil {
				return a, &badArgument{err.Error()}
			}
		}
	}
	a.timeout, a.every = time.Duration(timeout)*time.Millisecond, time.Duration(every)*time.Millisecond
	if every <= 0 {
		return a, &badArgument{"Reporting interval must be greater than 0."}
	}
	format, err := set.Value("date-format")
	if err != nil {
		return a, err
	}
	if format == "" {
		format = perfDateFormat
	}
	if a.clock, err = javaDateFormat(format); err != nil {
		return a, err
	}
	if a.topic, err = set.Value("topic"); err != nil {
		return a, err
	}
	if a.settings, err = (clientOptions{[]string{"bootstrap-server", "broker-list"}, "consumer.config", ""}).settings(set); err != nil {
		return a, err
	}
	group, err := set.Value("group")
	if err != nil {
		return a, err
	}
	if group == "" {
		const groups = 100_000
		group = fmt.Sprintf("perf-consumer-%d", rand.IntN(groups))
	}
	a.settings["group.id"], a.settings["max.partition.fetch.bytes"], a.settings["check.crcs"], a.settings["auto.offset.reset"] = group, fmt.Sprint(fetchSize), "false", "earliest"
	if set.Has("from-latest") {
		a.settings["auto.offset.reset"] = "latest"
	}
	nameClient(a.settings, "perf-consumer-client")
	return a, nil
}

// consumerPerf measures; complete tells that all the messages that were asked for came.
func consumerPerf(f face, set *options.Set) (complete bool, err error) {
	a, err := readConsumerPerfCall(set)
	if err != nil {
		return false, err
	}
	opts, err := consumerOptions(a.settings)
	if err != nil {
		return false, err
	}
	perPoll, err := recordsPerPoll(a.settings)
	if err != nil {
		return false, err
	}
	if a.header {
		fmt.Fprintln(f.stdout, consumerPerfHeader(a.detailed))
	}
	joins := &joinTimes{began: time.Now()}
	opts = append(opts, kgo.ConsumeTopics(a.topic), kgo.OnPartitionsAssigned(joins.assigned), kgo.OnPartitionsRevoked(joins.revoked))
	client, err := f.connect(a.settings, opts...)
	if err != nil {
		return false, err
	}
	defer client.Close()
	m := consumerMeasurement{f: f, asked: a, joins: joins, began: time.Now()}
	if err := m.consume(client, perPoll); err != nil {
		return false, err
	}
	ended := time.Now()
	if m.all.messages < a.messages {
		if m.all.messages == 0 && m.fault != nil {
			fmt.Fprintf(f.stderr, "%s%s (%s)\n", f.logLine("WARN"), m.fault, f.class)
		}
		fmt.Fprintf(f.stdout, "WARNING: Exiting before consuming the expected number of messages: timeout (%d ms) exceeded. You can use the --timeout option to increase the timeout.\n", a.timeout.Milliseconds())
	}
	if !a.detailed {
		fmt.Fprintln(f.stdout, m.totalLine(ended))
	}
	if a.metrics {
		m.printMetrics(ended)
	}
	return m.all.messages >= a.messages, nil
}

func consumerPerfHeader(detailed bool) string {
	first := "start.time, end.time"
	if detailed {
		first = "time, threadId"
	}
	return first + ", data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
}

// consumerMeasurement counts what was consumed, altogether and up to the last line.
type consumerMeasurement struct {
	f             face
	asked         consumerPerfAsked
	joins         *joinTimes
	began         time.Time
	all, reported consumed
	polls         int64
	fault         error // what went wrong last, and may have mended since
}

type consumed struct{ messages, bytes int64 }

func (c consumed) megabytes() float64 { return float64(c.bytes) / (1 << 20) }

func (m *consumerMeasurement) consume(client *kgo.Client, perPoll int) error {
	lastLine, lastMessage := m.began, m.began
	for m.all.messages < m.asked.messages {
		ctx, cancel := context.WithDeadline(context.Background(), lastMessage.Add(m.asked.timeout))
		fetches := client.PollRecords(ctx, perPoll)
		late := ctx.Err() != nil
		cancel()
		if err := hopeless(fetches); err != nil {
			return err
		}
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.DeadlineExceeded) {
				m.fault = e.Err
			}
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if n := len(p.Records); n > 0 {
				client.MarkCommitRecords(p.Records[n-1])
			}
		})
		now := time.Now()
		if fetches.NumRecords() > 0 {
			lastMessage = now
			m.polls++
		} else if late {
			return nil
		}
		for records := fetches.RecordIter(); !records.Done(); {
			r := records.Next()
			m.all.messages++
			m.all.bytes += int64(len(r.Key) + len(r.Value))
			if now.Sub(lastLine) < m.asked.every {
				continue
			}
			joining := m.joins.since()
			if m.asked.detailed {
				fmt.Fprintln(m.f.stdout, m.line(lastLine, now, joining))
			}
			lastLine, m.reported = now, m.all
		}
	}
	return nil
}

// line is one line of --show-detailed-stats: totals, and rates since the line before.
func (m *consumerMeasurement) line(from, to time.Time, joining time.Duration) string {
	part := consumed{m.all.messages - m.reported.messages, m.all.bytes - m.reported.bytes}
	elapsed := perMillis(to.Sub(from).Milliseconds())
	fetching := to.Sub(from).Milliseconds() - joining.Milliseconds()
	var megabytes, messages float64
	if fetching > 0 {
		megabytes, messages = part.megabytes()*perMillis(fetching), float64(part.messages)*perMillis(fetching)
	}
	return fmt.Sprintf("%s, %d, %.4f, %.4f, %d, %.4f, %d, %d, %.4f, %.4f", m.asked.clock(to), 0, m.all.megabytes(), part.megabytes()*elapsed, m.all.messages, float64(part.messages)*elapsed,
		joining.Milliseconds(), fetching, megabytes, messages)
}

// totalLine is the line at the end.
func (m *consumerMeasurement) totalLine(ended time.Time) string {
	elapsed, joining := ended.Sub(m.began).Milliseconds(), m.joins.total().Milliseconds()
	fetching := elapsed - joining
	return fmt.Sprintf("%s, %s, %.4f, %.4f, %d, %.4f, %d, %d, %.4f, %.4f", m.asked.clock(m.began), m.asked.clock(ended), m.all.megabytes(), m.all.megabytes()*perMillis(elapsed), m.all.messages,
		float64(m.all.messages)*perMillis(elapsed), joining, fetching, m.all.megabytes()*perMillis(fetching), float64(m.all.messages)*perMillis(fetching))
}

// perMillis turns an amount in so many milliseconds into one a second.
func perMillis(ms int64) float64 { return 1000 / float64(max(ms, 1)) }

// printMetrics prints what this consumer can say of itself under the names of the original's metrics.
func (m *consumerMeasurement) printMetrics(ended time.Time) {
	elapsed := perMillis(ended.Sub(m.began).Milliseconds())
	m.f.printMetrics(m.asked.settings["client.id"], []metric{
		{"consumer-coordinator-metrics:rebalance-latency-total", float64(m.joins.total().Milliseconds())},
		{"consumer-coordinator-metrics:rebalance-total", float64(m.joins.rounds())},
		{"consumer-fetch-manager-metrics:bytes-consumed-rate", float64(m.all.bytes) * elapsed},
		{"consumer-fetch-manager-metrics:bytes-consumed-total", float64(m.all.bytes)},
		{"consumer-fetch-manager-metrics:records-consumed-rate", float64(m.all.messages) * elapsed},
		{"consumer-fetch-manager-metrics:records-consumed-total", float64(m.all.messages)},
		{"consumer-metrics:poll-total", float64(m.polls)},
	})
}
