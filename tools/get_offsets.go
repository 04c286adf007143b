package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin/cluster"
	"barnabas/tools/options"
)

var getOffsetsOptions = []options.Option{
	{Name: "bootstrap-server", Arity: options.One, Value: "String: HOST1:PORT1,...,HOST3:PORT3", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "broker-list", Arity: options.One, Value: "String: HOST1:PORT1,...,HOST3:PORT3", Doc: "Old name of --bootstrap-server."},
	{Name: "command-config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the client."},
	{Name: "exclude-internal-topics", Doc: "Leave internal topics out."},
	{Name: "help", Doc: "Print this text."},
	{Name: "max-wait-ms", Arity: options.One, Value: "Integer: ms", Doc: "Accepted for old scripts; has no effect."},
	{Name: "offsets", Arity: options.One, Value: "Integer: count", Doc: "Accepted for old scripts; has no effect."},
	{Name: "partitions", Arity: options.One, Value: "String: partition ids", Doc: "Partitions to ask for, separated by commas; all without it."},
	{Name: "time", Arity: options.One, Value: "String: <timestamp> / -1 or latest / -2 or earliest / -3 or max-timestamp", Doc: "The offset at that time, by default the latest."},
	{Name: "topic", Arity: options.One, Value: "String: topic", Doc: "A regular expression for the topics; all without it."},
	{Name: "topic-partitions", Arity: options.One, Value: "String: topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3", Doc: "Topics by regular expression, each with a partition or a range of them whose end is left out."},
	{Name: "version", Doc: "Print the version."},
}

// GetOffsets is kafka-get-offsets, known as kafka.tools.GetOffsetShell before it had a script.
func GetOffsets(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.tools.GetOffsetShell", intro: "An interactive shell for getting topic-partition offsets.", options: getOffsetsOptions, stdout: stdout, stderr: stderr}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if !set.Has("bootstrap-server") && !set.Has("broker-list") {
		return f.usage(missing("bootstrap-server"))
	}
	if set.Has("topic-partitions") && (set.Has("topic") || set.Has("partitions")) {
		fmt.Fprintln(stderr, "Error occurred: --topic-partitions cannot be used with --topic or --partitions")
		return 1
	}
	if err := getOffsets(f, set); err != nil {
		prefix := ""
		if compat39() {
			prefix = "Error occurred: "
		}
		fmt.Fprintf(stderr, "%s%s\n", prefix, err)
		return 1
	}
	return 0
}

// listTime reads --time: a word or a number of milliseconds.
func listTime(text string) (int64, error) {
	switch text {
	case "", "latest":
		return -1, nil
	case "earliest":
		return -2, nil
	case "max-timestamp":
		return -3, nil
	case "earliest-local":
		return -4, nil
	case "latest-tiered":
		return -5, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if !compat39() {
			return 0, &badArgument{fmt.Sprintf("Exception in thread \"main\" joptsimple.OptionArgumentConversionException: Cannot parse argument '%s' of option time", text)}
		}
		return 0, &badArgument{fmt.Sprintf("Malformed time argument %s. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered, or a specified long format timestamp", text)}
	}
	return n, nil
}

// partitionFilter chooses partitions: by topic, and by range.
type partitionFilter struct {
	topic     *regexp.Regexp
	low, high int32 // high is exclusive
	only      []int32
}

func (p partitionFilter) matches(topic string, partition int32) bool {
	if p.topic != nil && !p.topic.MatchString(topic) {
		return false
	}
	return partition >= p.low && partition < p.high && (p.only == nil || slices.Contains(p.only, partition))
}

const everyPartition = int32(1<<31 - 1)

// readFilters reads which partitions are asked for; a partition is when any filter matches.
func readFilters(set *options.Set) ([]partitionFilter, error) {
	compile := func(text string) (*regexp.Regexp, error) {
		if text == "" {
			return nil, nil
		}
		return regexp.Compile("^(?:" + text + ")$")
	}
	if set.Has("topic-partitions") {
		text, err := set.Value("topic-partitions")
		if err != nil {
			return nil, err
		}
		var filters []partitionFilter
		for _, rule := range strings.Split(text, ",") {
			topic, span, given := strings.Cut(strings.TrimSpace(rule), ":")
			p := partitionFilter{high: everyPartition}
			if p.topic, err = compile(topic); err != nil {
				return nil, err
			}
			if given {
				if p.low, p.high, err = partitionSpan(span, rule); err != nil {
					return nil, err
				}
			}
			filters = append(filters, p)
		}
		return filters, nil
	}
	p := partitionFilter{high: everyPartition}
	topic, err := set.Value("topic")
	if err != nil {
		return nil, err
	}
	if p.topic, err = compile(topic); err != nil {
		return nil, err
	}
	list, err := set.Value("partitions")
	if err != nil {
		return nil, err
	}
	for _, id := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.ParseInt(strings.TrimSpace(id), 10, 32)
		if err != nil {
			return nil, &badArgument{fmt.Sprintf("--partitions expects a comma separated list of numeric partition ids, but received: %s", list)}
		}
		p.only = append(p.only, int32(n))
	}
	return []partitionFilter{p}, nil
}

// partitionSpan reads 3, 0-2 (without 2), 5- and -3.
func partitionSpan(span, rule string) (low, high int32, err error) {
	bad := &badArgument{fmt.Sprintf("Invalid rule: %s", rule)}
	from, to, ranged := strings.Cut(span, "-")
	number := func(text string, missing int32) int32 {
		if text == "" {
			return missing
		}
		n, e := strconv.ParseInt(text, 10, 32)
		if e != nil {
			err = bad
		}
		return int32(n)
	}
	low, high = number(from, 0), everyPartition
	switch {
	case !ranged:
		high = low + 1
	case from == "" && to == "":
		err = bad
	default:
		high = number(to, everyPartition)
	}
	return low, high, err
}

func getOffsets(f face, set *options.Set) error {
	text, err := set.Value("time")
	if err != nil {
		return err
	}
	at, err := listTime(text)
	if err != nil {
		return err
	}
	filters, err := readFilters(set)
	if err != nil {
		return err
	}
	client, err := clientOptions{[]string{"bootstrap-server", "broker-list"}, "command-config", ""}.connect(set)
	if err != nil {
		return err
	}
	defer client.Close()

	asked, err := askedPartitions(client, filters, set.Has("exclude-internal-topics"))
	if err != nil {
		return err
	}
	if topic, _ := set.Value("topic"); len(asked) == 0 && topic != "" && !compat39() {
		return fmt.Errorf("Topic %s does not exist", topic)
	}
	if len(asked) == 0 {
		return errors.New("Could not match any topic-partitions with the specified filters")
	}
	return printOffsets(f, client, asked, at)
}

func askedPartitions(client *kgo.Client, filters []partitionFilter, excludeInternal bool) (map[string][]int32, error) {
	meta, err := kmsg.NewPtrMetadataRequest().RequestWith(context.Background(), client)
	if err != nil {
		return nil, err
	}
	asked := map[string][]int32{}
	for _, t := range meta.Topics {
		if t.Topic == nil || excludeInternal && (t.IsInternal || cluster.IsInternal(*t.Topic)) {
			continue
		}
		for _, p := range t.Partitions {
			if slices.ContainsFunc(filters, func(f partitionFilter) bool { return f.matches(*t.Topic, p.Partition) }) {
				asked[*t.Topic] = append(asked[*t.Topic], p.Partition)
			}
		}
	}
	return asked, nil
}

// printOffsets prints topic:partition:offset lines in order. A partition without an offset at that time is left out; one that fails is reported on stderr.
func printOffsets(f face, client *kgo.Client, asked map[string][]int32, at int64) error {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	for topic, partitions := range asked {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, id := range partitions {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp = id, at
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	type line struct {
		topic     string
		partition int32
		offset    int64
	}
	var lines []line
	for _, shard := range client.RequestSharded(context.Background(), req) {
		if shard.Err != nil {
			return shard.Err
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				if err := answered(p.ErrorCode, nil); err != nil {
					fmt.Fprintf(f.stderr, "Skip getting offsets for topic-partition %s-%d due to error: %s\n", t.Topic, p.Partition, err)
					continue
				}
				if p.Offset >= 0 {
					lines = append(lines, line{t.Topic, p.Partition, p.Offset})
				}
			}
		}
	}
	sort.Slice(lines, func(i, j int) bool {
		if lines[i].topic != lines[j].topic {
			return lines[i].topic < lines[j].topic
		}
		return lines[i].partition < lines[j].partition
	})
	for _, l := range lines {
		fmt.Fprintf(f.stdout, "%s:%d:%d\n", l.topic, l.partition, l.offset)
	}
	return nil
}
