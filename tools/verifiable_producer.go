package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin"
	"barnabas/tools/subcommands"
)

var verifiableProducerCommand = subcommands.Command{
	Name: "verifiable-producer", Doc: "This tool produces increasing integers to the specified topic and prints JSON metadata to stdout on each \"send\" request, making externally visible which messages have been acked and which have not.",
	Arguments: []subcommands.Argument{
		{Name: "topic", Value: "TOPIC", Required: true, Doc: "the topic"},
		{Name: "max-messages", Value: "MAX-MESSAGES", Default: "-1", Doc: "how many messages to produce; -1 is until the process is ended"},
		{Name: "throughput", Value: "THROUGHPUT", Default: "-1", Doc: "about how many messages a second at most, when it is not negative"},
		{Name: "acks", Value: "ACKS", Default: "-1", Doc: "acknowledgements to wait for: 0, 1 or -1 (all)"},
		{Name: "producer.config", Value: "CONFIG_FILE", Doc: "property file with settings of the producer"},
		{Name: "message-create-time", Value: "CREATETIME", Default: "-1", Doc: "time of the first message in milliseconds; later ones are as much later as they are sent later"},
		{Name: "value-prefix", Value: "VALUE-PREFIX", Doc: "a number that each value begins with, before a dot"},
		{Name: "repeating-keys", Value: "REPEATING-KEYS", Doc: "messages get keys from 0 up to this number, exclusive, over and over"},
		{Name: "bootstrap-server", Value: "HOST1:PORT1[,HOST2:PORT2[...]]", Doc: "brokers to connect to"},
		{Name: "broker-list", Value: "HOST1:PORT1[,HOST2:PORT2[...]]", Doc: "old name of --bootstrap-server"},
	},
}

// VerifiableProducer is kafka-verifiable-producer.
func VerifiableProducer(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		_, err := verifiableProducerCommand.Parse([]string{"--help"})
		_ = subcommands.Report(err, stdout, stderr)
		return 0
	}
	call, err := verifiableProducerCommand.Parse(args)
	if err != nil {
		return subcommands.Report(err, stdout, stderr)
	}
	p, err := newVerifiable(stdout, call)
	if err != nil {
		fmt.Fprintf(stderr, "verifiable-producer: error: %s\n", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p.run(ctx)
	return 0
}

// verifiable produces numbers and tells of each what became of it, one JSON object a line.
type verifiable struct {
	client               *kgo.Client
	topic                string
	messages, throughput int64
	prefix               string
	keys                 int64 // 0: none
	created              int64 // -1: now
	mu                   sync.Mutex
	out                  io.Writer
	sent, acked          int64
}

// event is one line. Its fields are in the order of the original's.
type event struct {
	Timestamp  int64       `json:"timestamp"`
	Name       string      `json:"name"`
	Sent       *int64      `json:"sent,omitempty"`
	Acked      *int64      `json:"acked,omitempty"`
	Target     *int64      `json:"target_throughput,omitempty"`
	Throughput json.Number `json:"avg_throughput,omitempty"`
}

type sendEvent struct {
	Timestamp int64   `json:"timestamp"`
	Name      string  `json:"name"`
	Key       *string `json:"key"`
	Value     string  `json:"value"`
	Offset    int64   `json:"offset"`
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
}

type failureEvent struct {
	Timestamp int64   `json:"timestamp"`
	Name      string  `json:"name"`
	Exception string  `json:"exception"`
	Key       *string `json:"key"`
	Message   string  `json:"message"`
	Topic     string  `json:"topic"`
	Value     string  `json:"value"`
}

func newVerifiable(out io.Writer, call *subcommands.Call) (*verifiable, error) {
	v := &verifiable{out: out, topic: call.Value("topic")}
	for name, target := range map[string]*int64{"max-messages": &v.messages, "throughput": &v.throughput, "message-create-time": &v.created, "repeating-keys": &v.keys} {
		if !call.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(call.Value(name), 10, 64)
		if err != nil {
			return nil, &badArgument{fmt.Sprintf("argument --%s: could not convert '%s' to a number", name, call.Value(name))}
		}
		*target = n
	}
	if call.Has("value-prefix") {
		if _, err := strconv.ParseInt(call.Value("value-prefix"), 10, 32); err != nil {
			return nil, &badArgument{fmt.Sprintf("argument --value-prefix: could not convert '%s' to a number", call.Value("value-prefix"))}
		}
		v.prefix = call.Value("value-prefix") + "."
	}
	settings, err := clientOptions{[]string{"bootstrap-server", "broker-list"}, "producer.config", ""}.settings(callArguments{call})
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"acks": call.Value("acks"), "retries": "0"} {
		if _, given := settings[name]; !given {
			settings[name] = value
		}
	}
	opts, err := producerOptions(settings, false)
	if err != nil {
		return nil, err
	}
	v.client, err = connect(settings, append(opts, kgo.DefaultProduceTopic(v.topic))...)
	return v, err
}

func (v *verifiable) run(ctx context.Context) {
	began := time.Now()
	v.tell(event{Timestamp: began.UnixMilli(), Name: "startup_complete"})
	pace := pace{began, v.throughput}
	if v.throughput == 0 {
		pace.perSecond = -1 // a throughput of 0 holds nothing back here
	}
	for n := int64(0); v.messages < 0 || n < v.messages; n++ {
		if pace.wait(ctx, n) != nil {
			break
		}
		v.send(n, began)
	}
	_ = v.client.Flush(context.Background()) // what fails is told where it fails
	v.client.Close()
	v.tell(event{Timestamp: time.Now().UnixMilli(), Name: "shutdown_complete"})
	v.mu.Lock()
	sent, acked := v.sent, v.acked
	v.mu.Unlock()
	average := 1000 * float64(acked) / float64(max(time.Since(began).Milliseconds(), 1))
	v.tell(event{time.Now().UnixMilli(), "tool_data", &sent, &acked, &v.throughput, json.Number(admin.JavaDouble(average))})
}

func (v *verifiable) send(n int64, began time.Time) {
	value := v.prefix + strconv.FormatInt(n, 10)
	r := &kgo.Record{Value: []byte(value)}
	var key *string
	if v.keys > 0 {
		text := strconv.FormatInt(n%v.keys, 10)
		key, r.Key = &text, []byte(text)
	}
	if v.created >= 0 {
		r.Timestamp = time.UnixMilli(v.created)
		v.created += time.Since(began).Milliseconds()
	}
	v.mu.Lock()
	v.sent++
	v.mu.Unlock()
	v.client.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		if err != nil {
			v.tell(failureEvent{time.Now().UnixMilli(), "producer_send_error", "class " + exceptionClass(err), key, err.Error(), v.topic, value})
			return
		}
		v.mu.Lock()
		v.acked++
		v.mu.Unlock()
		v.tell(sendEvent{time.Now().UnixMilli(), "producer_send_success", key, value, r.Offset, r.Topic, r.Partition})
	})
}

func (v *verifiable) tell(what any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintf(v.out, "%s\n", plainJSON(what))
}
