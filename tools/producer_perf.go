package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/tools/subcommands"
)

var producerPerfCommand = subcommands.Command{
	Name: "producer-performance", Doc: "This tool is used to verify the producer performance.",
	OneOf: [][]string{{"record-size", "payload-file"}},
	Arguments: []subcommands.Argument{
		{Name: "topic", Value: "TOPIC", Required: true, Doc: "produce messages to this topic"},
		{Name: "num-records", Value: "NUM-RECORDS", Required: true, Doc: "how many messages to produce"},
		{Name: "payload-delimiter", Value: "PAYLOAD-DELIMITER", Default: `\n`, Doc: "what separates the payloads in --payload-file"},
		{Name: "throughput", Value: "THROUGHPUT", Required: true, Doc: "about how many messages a second at most; -1 is no limit"},
		{Name: "producer-props", Value: "PROP-NAME=PROP-VALUE", Many: true, Doc: "settings of the producer, such as bootstrap.servers; they count before those of --producer.config"},
		{Name: "producer.config", Value: "CONFIG-FILE", Doc: "property file with settings of the producer"},
		{Name: "print-metrics", Doc: "print figures of the producer at the end"},
		{Name: "transactional-id", Value: "TRANSACTIONAL-ID", Default: "performance-producer-default-transactional-id", Doc: "the transactional id, when --transaction-duration-ms is more than 0"},
		{Name: "transaction-duration-ms", Value: "TRANSACTION-DURATION", Default: "0", Doc: "after this time each transaction is committed; without it there are none"},
		{Name: "record-size", Value: "RECORD-SIZE", Doc: "size of a message in bytes; this or --payload-file"},
		{Name: "payload-file", Value: "PAYLOAD-FILE", Doc: "file with payloads as UTF-8 text, of which each message gets one by chance"},
		{Name: "payload-monotonic", Doc: "payloads are numbers that grow"},
	},
}

// ProducerPerf is kafka-producer-perf-test.
func ProducerPerf(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	stderr = &inTurn{w: stderr}
	if len(args) == 0 {
		_, err := producerPerfCommand.Parse([]string{"--help"})
		_ = subcommands.Report(err, stdout, stderr)
		return 0
	}
	call, err := producerPerfCommand.Parse(args)
	if err != nil {
		return subcommands.Report(err, stdout, stderr)
	}
	if !call.Has("producer-props") && !call.Has("producer.config") {
		fmt.Fprintln(stderr, "producer-performance: error: Either --producer-props or --producer.config must be specified.")
		return 1
	}
	f := face{class: "org.apache.kafka.tools.ProducerPerformance", stdout: stdout, stderr: stderr}
	failures, err := producerPerf(f, call)
	switch {
	case err != nil:
		return f.uncaught(err)
	case failures > 0 && strict():
		return 1
	}
	return 0
}

// perfAsked is what a measurement is to do.
type perfAsked struct {
	topic               string
	records, throughput int64
	payload             func(n int64) []byte
	transaction         time.Duration
	settings            map[string]string
}

func readPerfCall(stdout io.Writer, call *subcommands.Call) (perfAsked, error) {
	a := perfAsked{topic: call.Value("topic")}
	number := func(name string, low int64) (int64, error) {
		n, err := strconv.ParseInt(call.Value(name), 10, 64)
		if err != nil || n < low {
			return 0, &badArgument{fmt.Sprintf("argument --%s: could not convert '%s' to a number of at least %d", name, call.Value(name), low)}
		}
		return n, nil
	}
	var err error
	if a.records, err = number("num-records", 1); err != nil {
		return a, err
	}
	if a.throughput, err = number("throughput", -1<<31); err != nil {
		return a, err
	}
	duration, err := number("transaction-duration-ms", 0)
	if err != nil {
		return a, err
	}
	a.transaction = time.Duration(duration) * time.Millisecond
	if a.settings, err = readSettings(call.Value("producer.config"), call.Values("producer-props")); err != nil {
		return a, err
	}
	switch {
	case call.Has("payload-monotonic"):
		a.payload = func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	case call.Has("payload-file"):
		payloads, err := readPayloads(stdout, call.Value("payload-file"), strings.ReplaceAll(call.Value("payload-delimiter"), `\n`, "\n"))
		if err != nil {
			return a, err
		}
		chance := rand.New(rand.NewPCG(0, 0)) // the same payloads in every run
		a.payload = func(int64) []byte { return payloads[chance.IntN(len(payloads))] }
	default:
		size, err := number("record-size", 1)
		if err != nil {
			return a, err
		}
		const largest = 1 << 30
		if size > largest {
			return a, &badArgument{fmt.Sprintf("--record-size must be at most %d", largest)}
		}
		payload, chance := make([]byte, size), rand.New(rand.NewPCG(0, 0))
		for i := range payload {
			payload[i] = byte('A' + chance.IntN(26))
		}
		a.payload = func(int64) []byte { return payload }
	}
	return a, nil
}

func readPayloads(stdout io.Writer, path, delimiter string) ([][]byte, error) {
	if whole, err := filepath.Abs(path); err == nil {
		fmt.Fprintf(stdout, "Reading payloads from: %s\n", whole)
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return nil, &badArgument{"File does not exist or empty file provided."}
	}
	payloads := bytes.Split(bytes.TrimSuffix(data, []byte(delimiter)), []byte(delimiter))
	fmt.Fprintf(stdout, "Number of messages read: %d\n", len(payloads))
	return payloads, nil
}

func producerPerf(f face, call *subcommands.Call) (failures int64, err error) {
	a, err := readPerfCall(f.stdout, call)
	if err != nil {
		return 0, err
	}
	nameClient(a.settings, "perf-producer-client")
	opts, err := producerOptions(a.settings, compat39())
	if err != nil {
		return 0, err
	}
	if a.transaction > 0 {
		opts = append(opts, kgo.TransactionalID(call.Value("transactional-id")))
	}
	client, err := f.connect(a.settings, append(opts, kgo.DefaultProduceTopic(a.topic))...)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	stats := newPerfStats(f, a.records)
	if err := sendAll(client, a, stats); err != nil {
		return 0, err
	}
	stats.printTotal()
	if call.Has("print-metrics") {
		stats.printMetrics(a.settings["client.id"])
	}
	return stats.failures, nil
}

func sendAll(client *kgo.Client, a perfAsked, stats *perfStats) error {
	ctx := context.Background()
	pace := pace{time.Now(), a.throughput}
	var transactionBegan time.Time
	open := false
	for n := range a.records {
		if err := pace.wait(ctx, n); err != nil {
			return err
		}
		if a.transaction > 0 && !open {
			if err := client.BeginTransaction(); err != nil {
				return err
			}
			transactionBegan, open = time.Now(), true
		}
		began := time.Now()
		payload := a.payload(n)
		client.Produce(ctx, &kgo.Record{Value: payload}, func(_ *kgo.Record, err error) { stats.record(began, time.Now(), len(payload), err) })
		if open && began.Sub(transactionBegan) >= a.transaction {
			if err := commit(ctx, client); err != nil {
				return err
			}
			open = false
		}
	}
	if open {
		return commit(ctx, client)
	}
	return client.Flush(ctx)
}

func commit(ctx context.Context, client *kgo.Client) error {
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return client.EndTransaction(ctx, kgo.TryCommit)
}

const (
	perfReportEvery = 5 * time.Second
	perfSamples     = 500_000 // at most so many latencies are kept for percentiles
)

// perfStats counts what was acknowledged and when. Latencies are whole milliseconds, as the original's.
type perfStats struct {
	f         face
	mu        sync.Mutex
	began     time.Time
	every     int64 // one latency in so many is kept
	latencies []int64
	all       perfWindow
	window    perfWindow
	failures  int64
}

type perfWindow struct {
	began          time.Time
	count, bytes   int64
	latency, worst int64 // sum and maximum, milliseconds
}

func newPerfStats(f face, records int64) *perfStats {
	now := time.Now()
	return &perfStats{f: f, began: now, every: max(records/perfSamples, 1), all: perfWindow{began: now}, window: perfWindow{began: now}}
}

func (w *perfWindow) add(latency int64, size int) {
	w.count++
	w.bytes += int64(size)
	w.latency += latency
	w.worst = max(w.worst, latency)
}

func (w *perfWindow) rates(now time.Time) (records, megabytes float64) {
	seconds := max(now.Sub(w.began).Seconds(), 0.001)
	return float64(w.count) / seconds, float64(w.bytes) / seconds / (1 << 20)
}

func (w *perfWindow) average() float64 { return float64(w.latency) / float64(max(w.count, 1)) }

func (s *perfStats) record(began, now time.Time, size int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failures++
		fmt.Fprint(s.f.stderr, exceptionClass(err)+": "+err.Error()+"\n")
		return
	}
	latency := now.Sub(began).Milliseconds()
	if s.all.count%s.every == 0 {
		s.latencies = append(s.latencies, latency)
	}
	s.all.add(latency, size)
	s.window.add(latency, size)
	if now.Sub(s.window.began) >= perfReportEvery {
		fmt.Fprintln(s.f.stdout, s.window.line(now))
		s.window = perfWindow{began: now}
	}
}

func (w *perfWindow) line(now time.Time) string {
	records, megabytes := w.rates(now)
	return fmt.Sprintf("%d records sent, %.1f records/sec (%.2f MB/sec), %.1f ms avg latency, %.1f ms max latency.", w.count, records, megabytes, w.average(), float64(w.worst))
}

func (s *perfStats) printTotal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.f.stdout, totalLine(s.all, s.latencies, time.Now()))
}

func totalLine(all perfWindow, latencies []int64, now time.Time) string {
	records, megabytes := all.rates(now)
	sorted := slices.Sorted(slices.Values(latencies))
	at := func(share float64) int64 {
		if len(sorted) == 0 {
			return 0
		}
		return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
	}
	return fmt.Sprintf("%d records sent, %f records/sec (%.2f MB/sec), %.2f ms avg latency, %.2f ms max latency, %d ms 50th, %d ms 95th, %d ms 99th, %d ms 99.9th.",
		all.count, records, megabytes, all.average(), float64(all.worst), at(0.5), at(0.95), at(0.99), at(0.999))
}

// printMetrics prints what this producer can say of itself under the names of the original's metrics.
func (s *perfStats) printMetrics(client string) {
	records, _ := s.all.rates(time.Now())
	s.f.printMetrics(client, []metric{
		{"producer-metrics:record-error-total", float64(s.failures)}, {"producer-metrics:record-send-rate", records}, {"producer-metrics:record-send-total", float64(s.all.count)},
		{"producer-metrics:request-latency-avg", s.all.average()}, {"producer-metrics:request-latency-max", float64(s.all.worst)},
	})
}
