package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/config"
)

// E2ELatency is kafka-e2e-latency, known as kafka.tools.EndToEndLatency before it had a script: how long a record takes from a producer to a consumer, one at a time.
func E2ELatency(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	stderr = &inTurn{w: stderr}
	f := face{class: "kafka.tools.EndToEndLatency$", stdout: stdout, stderr: stderr}
	if compat39() {
		f.class = "org.apache.kafka.tools.EndToEndLatency"
	}
	const needed, most = 5, 6
	if len(args) != needed && len(args) != most {
		fmt.Fprintf(stderr, "USAGE: java %s broker_list topic num_messages producer_acks message_size_bytes [optional] properties_file\n", f.class)
		return 1
	}
	e, err := readE2ECall(f, args)
	if err == nil {
		err = e.run(context.Background())
	}
	if err != nil {
		return f.uncaught(err)
	}
	return 0
}

// endToEnd measures how long records take.
type endToEnd struct {
	face
	topic          string
	messages, size int
	settings       map[string]string
}

func readE2ECall(f face, args []string) (endToEnd, error) {
	e := endToEnd{face: f, topic: args[1]}
	const most = 1 << 30
	for target, text := range map[*int]string{&e.messages: args[2], &e.size: args[4]} {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 || n > most {
			return e, &badArgument{fmt.Sprintf("For input string: %q", text)}
		}
		*target = int(n)
	}
	file := ""
	if len(args) > 5 {
		file = args[5]
	}
	var err error
	if e.settings, err = readProperties(file); err != nil {
		return e, err
	}
	e.settings["bootstrap.servers"], e.settings["acks"], e.settings["linger.ms"], e.settings["fetch.max.wait.ms"] = args[0], args[3], "0", "0"
	if args[3] != "1" && args[3] != "all" {
		return e, &badArgument{"Latency testing requires synchronous acknowledgement. Please use 1 or all"}
	}
	return e, nil
}

func (e endToEnd) run(ctx context.Context) error {
	opts, err := producerOptions(e.settings, compat39())
	if err != nil {
		return err
	}
	producer, err := e.connect(e.settings, append(opts, kgo.DefaultProduceTopic(e.topic))...)
	if err != nil {
		return err
	}
	defer producer.Close()
	ends, err := e.prepareTopic(ctx, kadm.NewClient(producer))
	if err != nil {
		return err
	}
	delete(e.settings, "group.id") // partitions are read without a group
	if opts, err = consumerOptions(e.settings); err != nil {
		return err
	}
	consumer, err := e.connect(e.settings, append(opts, kgo.ConsumePartitions(ends))...)
	if err != nil {
		return err
	}
	defer consumer.Close()
	chance := rand.New(rand.NewPCG(0, 0))
	took := make([]time.Duration, 0, e.messages)
	const reportEvery = 1000
	for n := range e.messages {
		one, err := roundTrip(ctx, producer, consumer, bytes.Repeat([]byte{byte('A' + chance.IntN(26))}, e.size))
		if err != nil {
			return err
		}
		if n%reportEvery == 0 {
			fmt.Fprintf(e.stdout, "%d\t%s\n", n, config.FormatDouble(float64(one.Nanoseconds())/1e6))
		}
		took = append(took, one)
	}
	fmt.Fprint(e.stdout, latencyLines(took))
	return nil
}

// prepareTopic creates the topic where it is missing, and tells where its partitions end.
func (e endToEnd) prepareTopic(ctx context.Context, adm *kadm.Client) (map[string]map[int32]kgo.Offset, error) {
	topics, err := adm.ListTopicsWithInternal(ctx) // all of them: to ask for one creates it on some brokers
	if err != nil {
		return nil, err
	}
	if !topics.Has(e.topic) {
		fmt.Fprintf(e.stdout, "Topic \"%s\" does not exist. Will create topic with %d partition(s) and replication factor = %d\n", e.topic, 1, 1)
		if _, err := adm.CreateTopic(ctx, 1, 1, nil, e.topic); err != nil {
			fmt.Fprintf(e.stdout, "Creation of topic %s failed\n", e.topic)
			return nil, err
		}
	}
	return endsOf(ctx, adm, e.topic)
}

// endsOf tells where partitions end, once all of them have leaders: those of a new topic are elected after it was created.
func endsOf(ctx context.Context, adm *kadm.Client, topic string) (map[string]map[int32]kgo.Offset, error) {
	const patience, pause = 30 * time.Second, 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ends, err := adm.ListEndOffsets(ctx, topic)
		offsets := map[int32]kgo.Offset{}
		for id, end := range ends[topic] {
			err = errors.Join(err, end.Err)
			offsets[id] = kgo.NewOffset().At(end.Offset)
		}
		switch {
		case err == nil && len(offsets) > 0:
			return map[string]map[int32]kgo.Offset{topic: offsets}, nil
		case err != nil && !kerr.IsRetriable(err):
			return nil, err
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil, errors.Join(fmt.Errorf("no leader of every partition of %s", topic), err)
		case <-again.C:
		}
	}
}

// roundTrip sends a message and waits until it comes back.
func roundTrip(ctx context.Context, producer, consumer *kgo.Client, message []byte) (time.Duration, error) {
	const patience = 60 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	if err := producer.ProduceSync(ctx, &kgo.Record{Value: message}).FirstErr(); err != nil {
		return 0, err
	}
	fetches := consumer.PollFetches(ctx)
	took := time.Since(began)
	records := fetches.Records()
	switch {
	case len(records) == 0 && ctx.Err() != nil:
		return 0, fmt.Errorf("poll() timed out before finding a result (timeout:[%d])", patience.Milliseconds())
	case len(records) == 0:
		return 0, errors.Join(errors.New("nothing was read"), fetches.Err())
	case !bytes.Equal(records[0].Value, message):
		return 0, fmt.Errorf("The message read [%s] did not match the message sent [%s]", records[0].Value, message)
	case len(records) != 1:
		return 0, fmt.Errorf("Only one result was expected during this test. We found [%d]", len(records))
	}
	return took, nil
}

// latencyLines sum up. Percentiles are whole milliseconds, as the original's.
func latencyLines(took []time.Duration) string {
	var sum time.Duration
	for _, one := range took {
		sum += one
	}
	sorted := slices.Sorted(slices.Values(took))
	at := func(share float64) int64 { return sorted[int(float64(len(sorted))*share)].Milliseconds() }
	gap := "\n" // an empty line that 3.9 left out
	if compat39() {
		gap = ""
	}
	return fmt.Sprintf("Avg latency: %.4f ms\n%sPercentiles: 50th = %d, 99th = %d, 99.9th = %d\n", float64(sum.Nanoseconds())/float64(len(took))/1e6, gap, at(0.5), at(0.99), at(0.999))
}
