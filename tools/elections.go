package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/options"
)

var leaderElectionOptions = []options.Option{
	{Name: "admin.config", Arity: options.One, Value: "String: config file", Doc: "Property file with settings of the client."},
	{Name: "all-topic-partitions", Doc: "Elect for all partitions that are eligible."},
	{Name: "bootstrap-server", Arity: options.One, Value: "String: host:port", Doc: "Brokers to connect to, as host:port, separated by commas. Required."},
	{Name: "election-type", Arity: options.One, Value: "[PREFERRED,UNCLEAN]: election type", Doc: "preferred: the first replica becomes leader where it is in sync; unclean: where no replica in sync is alive, another becomes leader, and what it lacks is lost. Required."},
	{Name: "help", Doc: "Print this text."},
	{Name: "partition", Arity: options.One, Value: "Integer: partition id", Doc: "The partition, with --topic."},
	{Name: "path-to-json-file", Arity: options.One, Value: "String: Path to JSON file", Doc: `The partitions: {"partitions": [{"topic": "foo", "partition": 1}, {"topic": "foobar", "partition": 2}]}.`},
	{Name: "topic", Arity: options.One, Value: "String: topic name", Doc: "The topic, with --partition."},
	{Name: "version", Doc: "Print the version."},
}

// LeaderElection is kafka-leader-election.
func LeaderElection(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	f := face{class: "kafka.admin.LeaderElectionCommand", options: leaderElectionOptions, misread: exception, stdout: stdout, stderr: stderr,
		intro: "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are preferred replicas and unclean replicas."}
	set, code, over := f.parse(args)
	if over {
		return code
	}
	if err := leaderElection(f, set); err != nil {
		return f.uncaught(err)
	}
	return 0
}

func leaderElection(f face, set *options.Set) error {
	if err := wrongElectionCall(set); err != nil {
		return err
	}
	text, err := set.Value("election-type")
	if err != nil {
		return err
	}
	kind := cluster.ElectPreferred
	switch strings.ToLower(text) {
	case "preferred":
	case "unclean":
		kind = cluster.ElectUnclean
	default:
		return &badArgument{fmt.Sprintf("Cannot parse argument '%s' of option election-type", text)}
	}
	var partitions []plan.Partition
	switch {
	case set.Has("path-to-json-file"):
		if partitions, err = readElectionFile(set, "Replica"); err != nil {
			return err
		}
	case set.Has("topic"):
		topic, err := set.Value("topic")
		if err != nil {
			return err
		}
		number, err := set.Value("partition")
		if err != nil {
			return err
		}
		id, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return &badArgument{fmt.Sprintf("Cannot parse argument '%s' of option partition", number)}
		}
		partitions = []plan.Partition{{Topic: topic, ID: int32(id)}}
	}
	client, err := electionClient.connect(set)
	if err != nil {
		return err
	}
	defer client.Close()
	results, err := cluster.New(client).Elect(context.Background(), kind, partitions)
	if err != nil {
		return electionRefused(f, err)
	}
	return printElection(f, results, electionWords{
		done:  fmt.Sprintf("Successfully completed leader election (%s) for partitions", kind),
		noop:  "Valid replica already elected for partitions",
		fault: fmt.Sprintf("Error completing leader election (%s) for partition:", kind),
		sum:   "replica(s) could not be elected",
	})
}

// wrongElectionCall says what options lack, all of them at once.
func wrongElectionCall(set *options.Set) error {
	var missing []string
	for _, option := range []string{"election-type", "bootstrap-server"} {
		if !set.Has(option) {
			missing = append(missing, option)
		}
	}
	if missing != nil {
		return &commandFailed{"Missing required option(s): " + strings.Join(missing, ", ")}
	}
	ways := 0
	for _, option := range []string{"topic", "all-topic-partitions", "path-to-json-file"} {
		if set.Has(option) {
			ways++
		}
	}
	switch {
	case ways != 1:
		return &commandFailed{"One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"}
	case set.Has("topic") && !set.Has("partition"):
		return &commandFailed{"Missing required option(s): partition"}
	case set.Has("partition") && !set.Has("topic"):
		return &commandFailed{"Option partition is only allowed if topic is used"}
	}
	return nil
}

// readElectionFile reads which partitions an election is for; what names them in errors.
func readElectionFile(set *options.Set, what string) ([]plan.Partition, error) {
	file, err := readFileOption(set, "path-to-json-file")
	if err != nil {
		return nil, err
	}
	field, there, err := file.field("partitions")
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, &operationFailed{what + ` election data is missing "partitions" field`}
	}
	list, err := field.list()
	if err != nil {
		return nil, err
	}
	partitions := make([]plan.Partition, 0, len(list))
	for _, item := range list {
		p, err := readPartition(item)
		if err != nil {
			return nil, err
		}
		partitions = append(partitions, p)
	}
	if twice := duplicates(partitions); len(twice) > 0 {
		return nil, &operationFailed{fmt.Sprintf("%s election data contains duplicate partitions: %s", what, joinPartitions(twice, ","))}
	}
	return partitions, nil
}

// electionRefused says what the originals say when an election is refused as a whole.
func electionRefused(f face, err error) error {
	for code, text := range map[*kerr.Error]string{kerr.RequestTimedOut: "Timeout waiting for election results", kerr.ClusterAuthorizationFailed: "Not authorized to perform leader election"} {
		if errors.Is(err, code) {
			fmt.Fprintln(f.stdout, text)
			return &commandFailed{text}
		}
	}
	return err
}

// electionWords are what the two election tools say.
type electionWords struct{ done, noop, fault, sum string }

func printElection(f face, results map[plan.Partition]error, words electionWords) error {
	all := plan.Assignment{}
	for p := range results {
		all[p] = nil
	}
	var done, noop []plan.Partition
	var failed []error
	for _, p := range all.Partitions() {
		switch err := results[p]; {
		case err == nil:
			done = append(done, p)
		case errors.Is(err, kerr.ElectionNotNeeded):
			noop = append(noop, p)
		}
	}
	if done != nil {
		fmt.Fprintf(f.stdout, "%s %s\n", words.done, joinPartitions(done, ", "))
	}
	if noop != nil {
		fmt.Fprintf(f.stdout, "%s %s\n", words.noop, joinPartitions(noop, ", "))
	}
	for _, p := range all.Partitions() {
		if err := results[p]; err != nil && !errors.Is(err, kerr.ElectionNotNeeded) {
			fmt.Fprintf(f.stdout, "%s %v: %s: %s\n", words.fault, p, exceptionClass(err), err)
			failed = append(failed, err)
		}
	}
	if failed == nil {
		return nil
	}
	return &suppressing{commandFailed{fmt.Sprintf("%d %s", len(failed), words.sum)}, failed}
}

// suppressing is a failure that sums up others; its trace lists them.
type suppressing struct {
	commandFailed
	others []error
}

func (e *suppressing) Unwrap() error { return &e.commandFailed }
