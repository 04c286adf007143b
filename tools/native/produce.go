package native

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/urfave/cli/v2"

	"barnabas/tools"
)

type producedDocument struct {
	Version    int              `json:"version"`
	Topic      string           `json:"topic"`
	DryRun     bool             `json:"dry_run"`
	Records    int              `json:"records"` // that brokers have acknowledged
	Partitions map[string]int64 `json:"partitions"`
	Failed     int              `json:"failed"`
	Error      *string          `json:"error"` // the first
}

func (d *producedDocument) show(w io.Writer) {
	verb := "Produced"
	if d.DryRun {
		verb = "Would produce"
	}
	fmt.Fprintf(w, "%s %s to %s", verb, count(d.Records, "record"), d.Topic)
	if d.Failed > 0 {
		fmt.Fprintf(w, "; %d failed, the first: %s", d.Failed, *d.Error)
	}
	fmt.Fprintln(w, ".")
}

func produceCommand() *cli.Command {
	c := command{
		name: "produce", usage: "send lines or rows to a topic", arguments: "TOPIC", least: 1, most: 1, alters: true, lasts: true,
		help: `Reads standard input to its end and sends a record a line, with acks=all. What cannot be read ends it with 1 and the number of the line; the lines before it have been sent then. The topic has to be there.

With --input json-rows a line is a row as 'barnabas consume -o json-rows' prints it: key, value, headers and timestamp are sent as they are, null as null, to the topic that is named here. The partition is chosen by the key, or with --keep-partition is that of the row. With --dry-run lines are read and nothing is sent.

Fields: topic, dry_run, records, partitions (how many went to each), failed, error.

    echo 'k1:hello' | barnabas produce orders --key-separator : --header source=shell
    barnabas consume orders -o json-rows | barnabas produce orders-copy --input json-rows`,
		flags: []cli.Flag{
			&cli.StringFlag{Name: "input", Value: "lines", Usage: "what a line is: lines (a value) or json-rows"},
			&cli.StringFlag{Name: "key-separator", Usage: "what stands between key and value of a line, such as : or \\t"},
			many("header", "`NAME=VALUE` of a header that every record gets; any number of times"),
			&cli.IntFlag{Name: "partition", Value: -1, DefaultText: "by the key", Usage: "send all to the partition with this `NUMBER`"},
			&cli.BoolFlag{Name: "keep-partition", Usage: "send rows to the partitions that they name"},
		},
		run: produce,
	}.build()
	c.Category = category
	return c
}

func produce(c *call) (document, error) {
	topic := c.Args().First()
	parse, err := readInput(c)
	if err != nil {
		return nil, err
	}
	if err := c.needTopics([]string{topic}); err != nil {
		return nil, err
	}
	opts := []kgo.Opt{kgo.DefaultProduceTopic(topic)}
	if c.IsSet("partition") || c.Bool("keep-partition") {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	client, err := tools.Connect(c.String("bootstrap-server"), c.String("command-config"), "barnabas", opts...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, giveUp := context.WithCancelCause(c.ctx)
	defer giveUp(nil)
	s := newSending(&producedDocument{Version: documentVersion, Topic: topic, DryRun: c.Bool("dry-run"), Partitions: map[string]int64{}}, func() { giveUp(errUntaken) })
	defer s.idle.Stop()
	bad := lines(ctx, c.App.Reader, func(number int, line []byte) error {
		r, err := parse(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if s.said.DryRun {
			s.said.Records++
			return nil
		}
		s.send()
		client.Produce(ctx, r, s.done)
		return s.failure()
	})
	if err := client.Flush(ctx); err != nil {
		bad = errors.Join(bad, err)
	}
	return s.end(context.Cause(ctx), bad)
}

// untaken is for how long no broker may take a record before the rest is given up. The library's own delivery timeout would begin at the record's time, which may be long ago.
const untaken = time.Minute

var errUntaken = fmt.Errorf("for %v no broker has taken a record", untaken)

// sending counts what became of records.
type sending struct {
	mu   sync.Mutex
	said *producedDocument
	err  error
	open int         // sent and not answered for
	idle *time.Timer // since a broker took a record, while some are open
}

func newSending(said *producedDocument, giveUp func()) *sending {
	s := &sending{said: said, idle: time.AfterFunc(untaken, giveUp)}
	s.idle.Stop()
	return s
}

func (s *sending) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open++; s.open == 1 {
		s.idle.Reset(untaken)
	}
}

func (s *sending) done(r *kgo.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.open > 0 {
		s.idle.Reset(untaken)
	} else {
		s.idle.Stop()
	}
	if err == nil {
		s.said.Records++
		s.said.Partitions[strconv.Itoa(int(r.Partition))]++
		return
	}
	if s.said.Failed++; s.err == nil {
		s.err, s.said.Error = err, words("%v", err)
	}
}

func (s *sending) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end says what came of all: ended is why sending was given up, if it was, and bad what ended the reading.
func (s *sending) end(ended, bad error) (document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := *s.said // answers may still come
	said.Partitions = maps.Clone(said.Partitions)
	switch {
	case ended != nil:
		said.Failed += s.open
		said.Error = words("%v", ended)
		if errors.Is(ended, errUntaken) {
			return &said, Unreachable
		}
		return &said, Failed
	case s.err != nil && (bad == nil || errors.Is(bad, s.err)):
		return &said, exitOf(s.err)
	}
	return &said, bad
}

// readInput makes records of lines, as the options say.
func readInput(c *call) (func([]byte) (*kgo.Record, error), error) {
	headers, err := readHeaders(c.values("header"))
	if err != nil {
		return nil, err
	}
	input, separator, partition := c.String("input"), strings.ReplaceAll(c.String("key-separator"), `\t`, "\t"), c.Int("partition")
	switch {
	case input != "lines" && input != "json-rows":
		return nil, wrongUsage("--input %s is neither lines nor json-rows", input)
	case input == "json-rows" && separator != "":
		return nil, wrongUsage("--key-separator goes with --input lines")
	case input == "lines" && c.Bool("keep-partition"):
		return nil, wrongUsage("--keep-partition goes with --input json-rows")
	case c.IsSet("partition") && (partition < 0 || partition > math.MaxInt32 || c.Bool("keep-partition")):
		return nil, wrongUsage("--partition is a number from 0 on, and goes without --keep-partition")
	}
	finish := func(r *kgo.Record) *kgo.Record {
		if !c.Bool("keep-partition") {
			r.Partition = int32(max(partition, 0))
		}
		r.Headers = append(r.Headers, headers...)
		return r
	}
	if input == "lines" {
		return func(line []byte) (*kgo.Record, error) {
			r, err := lineRecord(line, separator)
			if err != nil {
				return nil, err
			}
			return finish(r), nil
		}, nil
	}
	return func(line []byte) (*kgo.Record, error) {
		parsed, err := parseRow(line)
		if err != nil {
			return nil, err
		}
		if c.Bool("keep-partition") && parsed.Partition < 0 {
			return nil, errors.New("it names no partition")
		}
		r, err := parsed.record()
		if err != nil {
			return nil, err
		}
		return finish(r), nil
	}, nil
}

// lineRecord makes a record of a line.
func lineRecord(line []byte, separator string) (*kgo.Record, error) {
	if separator == "" {
		return &kgo.Record{Value: line}, nil
	}
	key, value, found := bytes.Cut(line, []byte(separator))
	if !found {
		return nil, fmt.Errorf("there is no %q in it", separator)
	}
	return &kgo.Record{Key: key, Value: value}, nil
}

func readHeaders(given []string) ([]kgo.RecordHeader, error) {
	var list []kgo.RecordHeader
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, wrongUsage("--header %s is not of the form NAME=VALUE", text)
		}
		list = append(list, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return list, nil
}

// lines gives lines that are bounded, each with its number, until the context ends. What reads them may then still wait for the next, which nothing but the end of the process ends.
func lines(ctx context.Context, from io.Reader, each func(number int, line []byte) error) error {
	const longest = 64 << 20
	scanner := bufio.NewScanner(from)
	scanner.Buffer(make([]byte, 64<<10), longest)
	read := make(chan []byte)
	go func() {
		defer close(read)
		for scanner.Scan() {
			select {
			case read <- bytes.Clone(scanner.Bytes()):
			case <-ctx.Done():
				return
			}
		}
	}()
	for number := 1; ; number++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line, more := <-read:
			if !more {
				if err := scanner.Err(); err != nil {
					return fmt.Errorf("line %d: %w", number, err)
				}
				return nil
			}
			if err := each(number, line); err != nil {
				return err
			}
		}
	}
}
