package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/tools/options"
)

// kafka-mirror-maker copies topics from one cluster into another. Some consumers of one group, the streams, share one producer. A stream's offsets are committed only when all that was read
// before has been taken by the target, so records may be copied twice, but none is left out.

var mirrorMakerOptions = []options.Option{
	{Name: "abort.on.send.failure", Arity: options.One, Value: "String: Stop the entire mirror maker when a send failure occurs", Doc: "Stop when the target does not take a record; false leaves the record out. (default: true)"},
	{Name: "consumer.config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the consumers, which read from the source. Required."},
	{Name: "consumer.rebalance.listener", Arity: options.One, Value: "String: A custom rebalance listener of type ConsumerRebalanceListener", Doc: "A Java class, which is refused here."},
	{Name: "help", Doc: "Print this text."},
	{Name: "include", Arity: options.One, Value: "String: Java regex (String)", Doc: "A regular expression for the topics that are copied."},
	{Name: "message.handler", Arity: options.One, Value: "String: A custom message handler of type MirrorMakerMessageHandler", Doc: "A Java class, which is refused here."},
	{Name: "message.handler.args", Arity: options.One, Value: "String: Arguments passed to message handler constructor.", Doc: "Arguments of that class."},
	{Name: "new.consumer", Doc: "Accepted for old scripts."},
	{Name: "num.streams", Arity: options.One, Value: "Integer: Number of threads", Doc: "How many consumers share the partitions. (default: 1)"},
	{Name: "offset.commit.interval.ms", Arity: options.One, Value: "Integer: offset commit interval in millisecond", Doc: "Milliseconds between two commits of offsets. (default: 60000)"},
	{Name: "producer.config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the producer, which writes to the target. Required."},
	{Name: "rebalance.listener.args", Arity: options.One, Value: "String: Arguments passed to custom rebalance listener constructor as a string.", Doc: "Arguments of that class."},
	{Name: "version", Doc: "Print the version."},
	{Name: "whitelist", Arity: options.One, Value: "String: Java regex (String)", Doc: "Old name of --include, which counts where both are given."},
}

// abnormalExit is the exit code of a mirror maker that could not go on.
const abnormalExit = 255

// MirrorMaker is kafka-mirror-maker. It runs until it is stopped.
func MirrorMaker(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	stderr = &inTurn{w: stderr}
	f := face{class: "kafka.tools.MirrorMaker$", intro: "This tool helps to copy data from one Kafka cluster to another as it comes in.", options: mirrorMakerOptions, stdout: stdout, stderr: stderr}
	if compat39() {
		fmt.Fprintf(stderr, "%sThis tool is deprecated and may be removed in a future major release. (%s)\n", f.logLine("WARN"), f.class)
	}
	if _, err := options.Parse(f.options, args); err != nil {
		f.notStarted(&thrown{"joptsimple.OptionException", err.Error()})
		return 1
	}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	for _, needed := range []string{"consumer.config", "producer.config"} {
		if !set.Has(needed) {
			return f.usage(missing(needed))
		}
	}
	if !set.Has("include") && !set.Has("whitelist") {
		what := "whitelist"
		if compat39() {
			what = "include list"
		}
		fmt.Fprintf(stderr, "%s%s must be specified (%s)\n", f.logLine("ERROR"), what, f.class)
		return 1
	}
	m, err := newMirror(f, set)
	if err != nil {
		f.notStarted(err)
		return 1
	}
	stop, restore := untilStopped()
	defer restore()
	if err := m.run(stop); err != nil {
		fmt.Fprintf(stderr, "%sMirror maker thread failure due to  (%s)\n%s", f.logLine("ERROR"), f.class, stackTrace(err))
		return abnormalExit
	}
	return stopCode(stop)
}

// notStarted says why nothing is copied.
func (f face) notStarted(err error) {
	fmt.Fprintf(f.stderr, "%sException when starting mirror maker. (%s)\n%s", f.logLine("ERROR"), f.class, stackTrace(err))
}

// mirror copies records.
type mirror struct {
	f        face
	target   *kgo.Client
	limits   *batchLimits
	streams  []*mirrorStream
	interval time.Duration               // between two commits
	abort    bool                        // on the first record that the target does not take
	oneByOne bool                        // each record waits for the one before it to be taken
	patience time.Duration               // of a record with the target; 0 is for ever
	failed   atomic.Pointer[sendFailure] // nil while there is none, or none that counts

	// sending ends when records that the target has not taken are given up.
	sending context.Context
	giveUp  context.CancelFunc
}

// sendFailure is the first record that the target did not take.
type sendFailure struct{ err error }

func newMirror(f face, set *options.Set) (*mirror, error) {
	for option, what := range map[string]string{"message.handler": "would be handed each record", "consumer.rebalance.listener": "would be told of each rebalance"} {
		if set.Has(option) {
			return nil, &badArgument{fmt.Sprintf("--%s names a Java class that %s, and there is no Java here to load it.", option, what)}
		}
	}
	m := &mirror{f: f, abort: true}
	m.sending, m.giveUp = context.WithCancel(context.Background())
	streams, err := m.read(set)
	if err == nil {
		err = m.connectTarget(set)
	}
	if err == nil {
		err = m.connectSource(set, streams)
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// read reads the options that are not about one of the clusters.
func (m *mirror) read(set *options.Set) (streams int, err error) {
	const most = 1000
	abort, err := set.Value("abort.on.send.failure")
	if err != nil {
		return 0, err
	}
	if set.Has("abort.on.send.failure") {
		if m.abort, err = strconv.ParseBool(abort); err != nil {
			return 0, &badArgument{fmt.Sprintf("For input string: \"%s\"", abort)}
		}
	}
	millis, err := set.Int("offset.commit.interval.ms", 60_000)
	if err != nil {
		return 0, err
	}
	m.interval = time.Duration(millis) * time.Millisecond
	n, err := set.Int("num.streams", 1)
	if err == nil && (n < 1 || n > most) {
		err = &badArgument{fmt.Sprintf("--num.streams must be between 1 and %d", most)}
	}
	return int(n), err
}

// connectTarget makes the producer. Unless the file says otherwise it waits for as long as it takes, so that nothing is lost, and has one request under way, so that the order is kept.
func (m *mirror) connectTarget(set *options.Set) error {
	settings, err := clientOptions{nil, "producer.config", ""}.settings(set)
	if err != nil {
		return err
	}
	m.oneByOne = settings["producer.type"] == "sync"
	if settings["max.in.flight.requests.per.connection"] == "" {
		settings["max.in.flight.requests.per.connection"] = "1"
	}
	s := &clientSettings{of: settings}
	m.limits = newBatchLimits(batchLimit(s))
	if m.patience = s.millis("delivery.timeout.ms", 0); m.patience >= math.MaxInt32*time.Millisecond {
		m.patience = 0
	}
	if s.fault != nil {
		return s.fault
	}
	nameClient(settings, "producer-1")
	opts, err := producerOptions(settings, compat39())
	if err != nil {
		return err
	}
	// The client counts a record's time from its timestamp, and these are as old as they are in the source. So the time is counted here.
	opts = append(opts, kgo.RecordDeliveryTimeout(0), kgo.UnknownTopicRetries(-1), kgo.ProducerBatchMaxBytesFn(m.limits.of))
	m.target, err = m.f.connect(settings, opts...)
	return err
}

// connectSource makes the consumers.
func (m *mirror) connectSource(set *options.Set, streams int) error {
	settings, err := clientOptions{nil, "consumer.config", ""}.settings(set)
	if err != nil {
		return err
	}
	if settings["partition.assignment.strategy"] == "" {
		fmt.Fprintln(m.f.stderr, "WARNING: The default partition assignment strategy of the mirror maker will change from 'range' to 'roundrobin' in an upcoming release (so that better load balancing can be achieved). If you prefer to make this switch in advance of that release add the following to the corresponding config: 'partition.assignment.strategy=org.apache.kafka.clients.consumer.RoundRobinAssignor'")
	}
	group := settings["group.id"]
	if group == "" {
		return &thrown{"org.apache.kafka.common.errors.InvalidGroupIdException", "To use the group management or offset commit APIs, you must provide a valid group.id in the consumer configuration."}
	}
	option := "include"
	if !set.Has(option) {
		option = "whitelist"
	}
	pattern, err := set.Value(option)
	if err != nil {
		return err
	}
	topics, err := consumedTopics(pattern)
	if err != nil {
		return err
	}
	settings["enable.auto.commit"] = "false"
	for i := range streams {
		settings["client.id"] = fmt.Sprintf("%s-%d", group, i)
		s, err := newMirrorStream(m, settings, topics)
		if err != nil {
			return err
		}
		m.streams = append(m.streams, s)
	}
	return nil
}

// run copies until it is to stop, or one of the streams cannot go on, which stops all of them.
func (m *mirror) run(stop context.Context) error {
	defer m.close()
	ctx, cancel := context.WithCancelCause(stop)
	defer cancel(nil)
	const farewell = 30 * time.Second // for what was read when the stop came
	defer context.AfterFunc(ctx, func() { time.AfterFunc(farewell, m.giveUp) })()
	var streams sync.WaitGroup
	faults := make([]error, len(m.streams))
	for i, s := range m.streams {
		streams.Go(func() {
			if faults[i] = s.run(ctx); faults[i] != nil {
				cancel(faults[i])
			}
		})
	}
	streams.Wait()
	return m.outcome(faults)
}

// outcome is the fault that ended the streams, if one did. What had to be given up is a consequence: of that fault, or of a stop.
func (m *mirror) outcome(faults []error) error {
	givenUp := false
	for _, fault := range faults {
		if fault != nil && !errors.Is(fault, errGivenUp) {
			return fault
		}
		givenUp = givenUp || fault != nil
	}
	if givenUp {
		fmt.Fprintf(m.f.stderr, "%s%s (%s)\n", m.f.logLine("WARN"), errGivenUp, m.f.class)
	}
	return nil
}

func (m *mirror) close() {
	m.giveUp()
	for _, s := range m.streams {
		s.source.CloseAllowingRebalance()
	}
	if m.target != nil {
		m.target.Close()
	}
}

// send copies a record into the topic of the same name; which partition it goes to is decided anew, by its key. done is called when the target has it, or it failed.
func (m *mirror) send(ctx context.Context, r *kgo.Record, done func()) {
	record := &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}
	if r.Attrs.TimestampType() >= 0 { // else it has none, and gets that of now
		record.Timestamp = r.Timestamp
	}
	m.limits.learn(ctx, m.target, r.Topic)
	m.target.Produce(ctx, record, func(r *kgo.Record, err error) {
		defer done()
		switch {
		case err == nil:
			return
		case m.sending.Err() != nil: // no commit must follow, whatever is to become of failures
			m.failed.CompareAndSwap(nil, &sendFailure{errGivenUp})
			return
		}
		fmt.Fprintf(m.f.stderr, "%sError when sending message to topic %s with key: %d bytes, value: %d bytes (%s)\n%s: %s\n", m.f.logLine("ERROR"), r.Topic, len(r.Key), len(r.Value), m.f.class,
			exceptionClass(err), described(err))
		if m.abort {
			m.failed.CompareAndSwap(nil, &sendFailure{err})
		}
	})
	if m.oneByOne {
		_ = m.target.Flush(m.sending) // what failed was noted
	}
}

// limit is the context of records that are sent now: it ends when they have taken as long as they may.
func (m *mirror) limit() (context.Context, context.CancelFunc) {
	if m.patience == 0 {
		return m.sending, func() {}
	}
	return context.WithTimeout(m.sending, m.patience)
}

// taken waits until the target has everything that was sent. It fails when something is not taken.
func (m *mirror) taken() error {
	const pace = time.Minute
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(m.sending, pace)
		err := m.target.Flush(ctx)
		cancel()
		switch {
		case m.aborted() != nil:
			return m.aborted()
		case err == nil:
			return nil
		case m.sending.Err() != nil:
			return errGivenUp
		}
		fmt.Fprintf(m.f.stderr, "%s%d records have been waiting for %d s to be taken by the target (%s)\n", m.f.logLine("WARN"), m.target.BufferedProduceRecords(), int(time.Since(began).Seconds()), m.f.class)
	}
}

var errGivenUp = errors.New("the target did not take what was read before the stop: it will be read again")

// aborted is why nothing more is to be sent, nil while nothing went wrong.
func (m *mirror) aborted() error {
	if f := m.failed.Load(); f != nil {
		return f.err
	}
	return nil
}
