package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/config"
	"barnabas/tools/subcommands"
)

var verifiableProducerCommand = subcommands.Command{
	Name: "verifiable-producer", Doc: "This tool produces increasing integers to the specified topic and prints JSON metadata to stdout on each \"send\" request, making externally visible which messages have been acked and which have not.",
	Arguments: []subcommands.Argument{
		{Name: "topic", Value: "TOPIC", Required: true, Doc: "the topic"},
		{Name: "max-messages", Value: "MAX-MESSAGES", Number: subcommands.Integer, Default: "-1", Doc: "how many messages to produce; -1 is until the process is ended"},
		{Name: "throughput", Value: "THROUGHPUT", Number: subcommands.Integer, Default: "-1", Doc: "about how many messages a second at most, when it is not negative"},
		{Name: "acks", Value: "ACKS", Number: subcommands.Integer, Default: "-1", Doc: "acknowledgements to wait for: 0, 1 or -1 (all)"},
		{Name: "producer.config", Value: "CONFIG_FILE", Doc: "property file with settings of the producer"},
		{Name: "message-create-time", Value: "CREATETIME", Number: subcommands.Long, Default: "-1", Doc: "time of the first message in milliseconds; later ones are as much later as they are sent later"},
		{Name: "value-prefix", Value: "VALUE-PREFIX", Number: subcommands.Integer, Doc: "a number that each value begins with, before a dot"},
		{Name: "repeating-keys", Value: "REPEATING-KEYS", Number: subcommands.Integer, Doc: "messages get keys from 0 up to this number, exclusive, over and over"},
		{Name: "bootstrap-server", Value: "HOST1:PORT1[,HOST2:PORT2[...]]", Doc: "brokers to connect to"},
		{Name: "broker-list", Value: "HOST1:PORT1[,HOST2:PORT2[...]]", Doc: "old name of --bootstrap-server"},
	},
}

// VerifiableProducer is kafka-verifiable-producer.
func VerifiableProducer(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	stderr = &inTurn{w: stderr}
	if len(args) == 0 {
		_, err := verifiableProducerCommand.Parse([]string{"--help"})
		_ = subcommands.Report(err, stdout, stderr)
		return 0
	}
	call, err := verifiableProducerCommand.Parse(args)
	if err != nil {
		return subcommands.Report(err, stdout, stderr)
	}
	p, err := newVerifiable(face{stdout: stdout, stderr: stderr}, call)
	if err != nil {
		fmt.Fprintf(stderr, "verifiable-producer: error: %s\n", err)
		return 1
	}
	ctx, restore := untilStopped()
	defer restore()
	p.run(ctx)
	if strict() && p.acked.Load() < p.sent.Load() {
		return 1
	}
	return stopCode(ctx)
}

// verifiable produces numbers and tells of each what became of it.
type verifiable struct {
	eventLog
	client               *kgo.Client
	topic                string
	messages, throughput int64
	prefix               string
	keys                 int64 // 0: none
	created              int64 // -1: now
	sent, acked          atomic.Int64
}

type totalEvent struct {
	event
	Sent       int64       `json:"sent"`
	Acked      int64       `json:"acked"`
	Target     int64       `json:"target_throughput"`
	Throughput json.Number `json:"avg_throughput"`
}

type sendEvent struct {
	event
	Key       *string `json:"key"`
	Value     string  `json:"value"`
	Offset    int64   `json:"offset"`
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
}

type failureEvent struct {
	event
	Exception string  `json:"exception"`
	Key       *string `json:"key"`
	Message   string  `json:"message"`
	Topic     string  `json:"topic"`
	Value     string  `json:"value"`
}

func newVerifiable(f face, call *subcommands.Call) (*verifiable, error) {
	v := &verifiable{eventLog: eventLog{out: f.stdout}, topic: call.Value("topic"), messages: call.Int("max-messages"), throughput: call.Int("throughput"), created: call.Int("message-create-time"),
		keys: call.Int("repeating-keys")}
	if call.Has("value-prefix") {
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
	nameClient(settings, "producer-1")
	opts, err := producerOptions(settings, false)
	if err != nil {
		return nil, err
	}
	v.client, err = f.connect(settings, append(opts, kgo.DefaultProduceTopic(v.topic))...)
	return v, err
}

func (v *verifiable) run(ctx context.Context) {
	began := time.Now()
	v.tell(event{began.UnixMilli(), "startup_complete"})
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
	v.tell(now("shutdown_complete"))
	sent, acked := v.sent.Load(), v.acked.Load()
	average := 1000 * float64(acked) / float64(max(time.Since(began).Milliseconds(), 1))
	v.tell(totalEvent{now("tool_data"), sent, acked, v.throughput, json.Number(config.FormatDouble(average))})
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
	v.sent.Add(1)
	v.client.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		if err != nil {
			v.tell(failureEvent{now("producer_send_error"), "class " + exceptionClass(err), key, err.Error(), v.topic, value})
			return
		}
		v.acked.Add(1)
		v.tell(sendEvent{now("producer_send_success"), key, value, r.Offset, r.Topic, r.Partition})
	})
}
