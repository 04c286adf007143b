package interop

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/record"
	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// Each tool is run as it is ours and as it is Kafka's, on the same broker: exit code, standard output, and the reason that is given on standard error must be the same.

// toolCall is one call. BROKER stands for the broker's address, NOBODY for an address where nobody listens, SERVER for a broker's configuration.
type toolCall struct {
	command, args string
	only          string // the release that has it; "" is both
	said          string // what both have to say on standard output or error, whatever else stands there; "" compares all of it
}

// classesOf are the main classes of the commands, in 2.8.2 and in 3.9.1; "" where a release has none, or is not run because its tools are in a jar of their own.
var classesOf = map[string][2]string{
	"kafka-topics":               {"kafka.admin.TopicCommand", "org.apache.kafka.tools.TopicCommand"},
	"kafka-configs":              {"kafka.admin.ConfigCommand", "kafka.admin.ConfigCommand"},
	"kafka-consumer-groups":      {"kafka.admin.ConsumerGroupCommand", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"},
	"kafka-get-offsets":          {"kafka.tools.GetOffsetShell", "org.apache.kafka.tools.GetOffsetShell"},
	"kafka-delete-records":       {"kafka.admin.DeleteRecordsCommand", "org.apache.kafka.tools.DeleteRecordsCommand"},
	"kafka-log-dirs":             {"kafka.admin.LogDirsCommand", "org.apache.kafka.tools.LogDirsCommand"},
	"kafka-leader-election":      {"kafka.admin.LeaderElectionCommand", "org.apache.kafka.tools.LeaderElectionCommand"},
	"kafka-cluster":              {"kafka.tools.ClusterTool", "org.apache.kafka.tools.ClusterTool"},
	"kafka-broker-api-versions":  {"kafka.admin.BrokerApiVersionsCommand", "kafka.admin.BrokerApiVersionsCommand"},
	"kafka-reassign-partitions":  {"kafka.admin.ReassignPartitionsCommand", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"},
	"kafka-console-consumer":     {"kafka.tools.ConsoleConsumer", "org.apache.kafka.tools.consumer.ConsoleConsumer"},
	"kafka-console-producer":     {"kafka.tools.ConsoleProducer", "kafka.tools.ConsoleProducer"},
	"kafka-consumer-perf-test":   {"kafka.tools.ConsumerPerformance", "org.apache.kafka.tools.ConsumerPerformance"},
	"kafka-producer-perf-test":   {"", "org.apache.kafka.tools.ProducerPerformance"},
	"kafka-verifiable-consumer":  {"", "org.apache.kafka.tools.VerifiableConsumer"},
	"kafka-verifiable-producer":  {"", "org.apache.kafka.tools.VerifiableProducer"},
	"kafka-e2e-latency":          {"kafka.tools.EndToEndLatency", "org.apache.kafka.tools.EndToEndLatency"},
	"kafka-replica-verification": {"kafka.tools.ReplicaVerificationTool", "org.apache.kafka.tools.ReplicaVerificationTool"},
	"kafka-transactions":         {"", "org.apache.kafka.tools.TransactionsCommand"},
	"kafka-features":             {"kafka.admin.FeatureCommand", "org.apache.kafka.tools.FeatureCommand"},
	"kafka-mirror-maker":         {"kafka.tools.MirrorMaker", "kafka.tools.MirrorMaker"},
	"kafka-client-metrics":       {"", "org.apache.kafka.tools.ClientMetricsCommand"},
	"kafka-metadata-quorum":      {"", "org.apache.kafka.tools.MetadataQuorumCommand"},
	"kafka-storage":              {"kafka.tools.StorageTool", "kafka.tools.StorageTool"},

	"kafka-streams-application-reset": {"kafka.tools.StreamsResetter", "org.apache.kafka.tools.StreamsResetter"},
}

func toolCalls() []toolCall {
	calls := []toolCall{
		{command: "kafka-transactions", args: ""},
		{command: "kafka-transactions", args: "list"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER describe"},
		{command: "kafka-transactions", args: "--bootstrap BROKER list extra"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER list --duration-filter z"},
		{command: "kafka-transactions", args: "--version"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER list"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER list --duration-filter 10000000"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER describe --transactional-id done"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER describe --transactional-id open"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER describe --transactional-id nope"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER describe-producers --topic orders --partition 0"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER describe-producers --topic orders --partition 0 --broker-id 1"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER find-hanging"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER find-hanging --broker-id 1 --partition 0"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER find-hanging --topic nope"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER find-hanging --topic orders --max-transaction-timeout 0"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER find-hanging --topic hung --max-transaction-timeout 0"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER find-hanging --broker-id 1 --max-transaction-timeout 0"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER find-hanging --broker-id 1"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER abort --topic hung --partition 0"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER abort --topic hung --partition 0 --producer-id 4711"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER abort --topic hung --partition 0 --start-offset 77"},
		{command: "kafka-transactions", args: "--bootstrap-server BROKER abort --topic orders --partition 0 --producer-id 4711 --producer-epoch 0 --coordinator-epoch 0"},

		{command: "kafka-verifiable-consumer", args: "--topic readings"},
		{command: "kafka-verifiable-consumer", args: "--topic readings --group-id g"},
		{command: "kafka-verifiable-consumer", args: "--topic readings --group-id g --bootstrap-server BROKER --broker-list BROKER"},
		{command: "kafka-verifiable-consumer", args: "--topic readings --group-id g --bootstrap-server BROKER --max-messages z"},
		{command: "kafka-verifiable-consumer", args: "--topic readings --group-id vOURS --bootstrap-server BROKER --max-messages 3 --verbose"},
		{command: "kafka-verifiable-consumer", args: "--topic readings --group-id wOURS --broker-list BROKER --max-messages 2 --enable-autocommit --assignment-strategy org.apache.kafka.clients.consumer.RoundRobinAssignor"},
		{command: "kafka-verifiable-consumer", args: "--topic readings --group-id xOURS --bootstrap-server BROKER --max-messages 2 --reset-policy none", said: `"name":"shutdown_complete"`},
		{command: "kafka-verifiable-producer", args: "--topic orders --bootstrap-server BROKER --max-messages z"},

		{command: "kafka-consumer-perf-test", args: "--messages 10 --topic readings"},
		{command: "kafka-consumer-perf-test", args: "--messages 10 --bootstrap-server BROKER"},
		{command: "kafka-consumer-perf-test", args: "--topic readings --bootstrap-server BROKER"},
		{command: "kafka-consumer-perf-test", args: "--version"},
		{command: "kafka-consumer-perf-test", args: "--messages 5 --topic readings --bootstrap-server BROKER --threads 2 --date-format yyyy"},
		{command: "kafka-consumer-perf-test", args: "--messages 5 --topic readings --bootstrap-server BROKER --show-detailed-stats --hide-header"},
		{command: "kafka-consumer-perf-test", args: "--messages 500 --topic readings --broker-list BROKER --timeout 1500 --from-latest"},
		{command: "kafka-consumer-perf-test", args: "--messages 5 --topic readings --bootstrap-server BROKER --reporting-interval 0", said: "Reporting interval must be greater than 0."},
		{command: "kafka-consumer-perf-test", args: "--messages 5 --topic readings --bootstrap-server BROKER --date-format foo", said: "Illegal pattern character 'f'"},
		{command: "kafka-consumer-perf-test", args: "--messages z --topic readings --bootstrap-server BROKER", said: "Cannot parse argument 'z' of option messages"},
		{command: "kafka-consumer-perf-test", args: "--messages 5 --topic readings --bootstrap-server NOBODY --timeout 300", said: "WARNING: Exiting before consuming the expected number of messages: timeout (300 ms) exceeded."},

		{command: "kafka-e2e-latency", args: "BROKER"},
		{command: "kafka-e2e-latency", args: "BROKER e2eOURS 3 1 20"},
		{command: "kafka-e2e-latency", args: "BROKER e2e 3 0 20", said: "Latency testing requires synchronous acknowledgement. Please use 1 or all"},
		{command: "kafka-e2e-latency", args: "BROKER e2e three 1 20", said: `For input string: "three"`},
		{command: "kafka-replica-verification", args: "--topics-include orders", only: "3.9.1"},

		{command: "kafka-get-offsets", args: "--broker-list BROKER --topic orders"},
		{command: "kafka-get-offsets", args: "--bootstrap-server BROKER --topic orders --time earliest", only: "3.9.1"},
		{command: "kafka-get-offsets", args: "--broker-list BROKER --topic nosuch"},
		{command: "kafka-get-offsets", args: "--broker-list BROKER --topic orders --time x"},
		{command: "kafka-get-offsets", args: "--broker-list BROKER --topic orders --partitions x"},
		{command: "kafka-console-consumer", args: "--bootstrap-server BROKER --topic readings --partition 0 --offset x"},
		{command: "kafka-cluster", args: "cluster-id --bootstrap-server BROKER"},
		{command: "kafka-cluster", args: "cluster-id"},
		{command: "kafka-cluster", args: "cluster-it"},
		{command: "kafka-topics", args: "--bootstrap-server BROKER --describe --topic orders"},
		{command: "kafka-topics", args: "--bootstrap-server BROKER --list --describe"},
		{command: "kafka-topics", args: "--list"},
		{command: "kafka-topics", args: "--bootstrap-server BROKER --alter --topic orders --config retention.ms=1"},
		{command: "kafka-consumer-groups", args: "--bootstrap-server BROKER --list --state foo"},
		{command: "kafka-consumer-groups", args: "--bootstrap-server BROKER --list --state"},
		{command: "kafka-consumer-groups", args: "--bootstrap-server BROKER", said: "Command must include exactly one action"},
		{command: "kafka-consumer-groups", args: "--bootstrap-server BROKER --describe --group nope"},
		{command: "kafka-consumer-groups", args: "--bootstrap-server BROKER --reset-offsets --group a --topic nosuch --to-latest --dry-run", said: "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition."},
		{command: "kafka-consumer-groups", args: "--bootstrap-server BROKER --reset-offsets --group a --topic readings --by-duration x --dry-run"},
		{command: "kafka-consumer-groups", args: "--bootstrap-server BROKER --reset-offsets --group a --topic readings --to-datetime x --dry-run", only: "2.8.2"},
		{command: "kafka-consumer-groups", args: "--bootstrap-server BROKER --delete-offsets --group nosuch --topic readings", only: "2.8.2"},
		{command: "kafka-consumer-groups", args: "--bootstrap-server BROKER --delete-offsets --group nosuch --topic nosuch", only: "2.8.2"},
		{command: "kafka-leader-election", args: "--bootstrap-server BROKER --election-type preferred --topic orders --partition 0", said: "Valid replica already elected for partitions"},
		{command: "kafka-leader-election", args: "--bootstrap-server BROKER --election-type preferred --topic orders --partition 0 --admin.config nosuch.properties", said: "nosuch.properties"},
		{command: "kafka-leader-election", args: "--bootstrap-server BROKER --election-type dirty --all-topic-partitions", said: "dirty"},
		{command: "kafka-leader-election", args: "--election-type preferred --topic orders", said: "Missing required option(s)"},
		{command: "kafka-log-dirs", args: "--bootstrap-server BROKER --describe --broker-list 1 --topic-list nope"},

		{command: "kafka-features", args: "", only: "2.8.2", said: "Option "},
		{command: "kafka-features", args: "--bogus", only: "2.8.2", said: "bogus is not a recognized option"},
		{command: "kafka-features", args: "--bootstrap-server BROKER", only: "2.8.2", said: "Command must include exactly one action: --describe, --upgrade-all, --downgrade-all."},
		{command: "kafka-features", args: "--bootstrap-server BROKER --describe", only: "2.8.2"},
		{command: "kafka-features", args: "--bootstrap-server BROKER --upgrade-all", only: "2.8.2"},
		{command: "kafka-features", args: "--bootstrap-server BROKER --downgrade-all --dry-run", only: "2.8.2"},
		{command: "kafka-features", args: "", only: "3.9.1"},
		{command: "kafka-features", args: "describe", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER describe", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER upgrade", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER upgrade --metadata 3.3-IV3 --feature a=2", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER upgrade --metadata 3.3 --dry-run", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER upgrade --metadata 1.0", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER upgrade --feature a", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER upgrade --feature a=0", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER downgrade --feature a=x", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER downgrade --unsafe --feature a=3", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER disable --feature a --feature b", only: "3.9.1"},
		{command: "kafka-features", args: "--bootstrap-server BROKER disable --feature a --feature a", only: "3.9.1"},

		{command: "kafka-client-metrics", args: "--bootstrap-server BROKER --list", said: "Error while executing client metrics command : The node does not support LIST_CLIENT_METRICS_RESOURCES"},
		{command: "kafka-client-metrics", args: "--bootstrap-server BROKER --describe", said: "Error while executing client metrics command : The node does not support LIST_CLIENT_METRICS_RESOURCES"},
		{command: "kafka-client-metrics", args: "--bootstrap-server BROKER --describe --name m", said: "Client metrics configs for m are:\nError while executing client metrics command : Config type client-metrics is only supported on KRaft clusters"},
		{command: "kafka-client-metrics", args: "--bootstrap-server BROKER --alter --name m --interval 1000", said: "Error while executing client metrics command : AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"},
		{command: "kafka-client-metrics", args: "--bootstrap-server BROKER --delete --name m", said: "Error while executing client metrics command : Config type client-metrics is only supported on KRaft clusters"},
		{command: "kafka-client-metrics", args: "--bootstrap-server BROKER --alter"},
		{command: "kafka-client-metrics", args: "--bootstrap-server BROKER --list --name m", said: `Option "[list]" can't be used with option "[name]"`},

		{command: "kafka-metadata-quorum", args: ""},
		{command: "kafka-metadata-quorum", args: "describe --status"},
		{command: "kafka-metadata-quorum", args: "--bootstrap-server BROKER describe"},
		{command: "kafka-metadata-quorum", args: "--bootstrap-server BROKER describe --status"},
		{command: "kafka-metadata-quorum", args: "--bootstrap-server BROKER describe --replication"},
		{command: "kafka-metadata-quorum", args: "--bootstrap-server BROKER describe --status --replication"},
		{command: "kafka-metadata-quorum", args: "--bootstrap-server BROKER add-controller"},
		{command: "kafka-metadata-quorum", args: "--bootstrap-server BROKER remove-controller -i 1 -d AAAAAAAAAAAAAAAAAAAAAQ"},

		{command: "kafka-storage", args: ""},
		{command: "kafka-storage", args: "info"},
		{command: "kafka-storage", args: "info -c SERVER"},
		{command: "kafka-storage", args: "format -c SERVER -t MkU3OEVBNTcwNTJENDM2Qk", said: "Formatting is only supported for clusters in KRaft mode."},

		{command: "kafka-mirror-maker", args: "", said: "Option "},
		{command: "kafka-mirror-maker", args: "--consumer.config c", said: `Missing required argument "[producer.config]"`},
	}
	for command := range classesOf {
		switch command {
		case "kafka-e2e-latency", "kafka-transactions", "kafka-verifiable-consumer", "kafka-verifiable-producer", "kafka-producer-perf-test", "kafka-cluster", "kafka-metadata-quorum", "kafka-storage":
			calls = append(calls, toolCall{command: command, args: "--bogus"})
		case "kafka-features", "kafka-mirror-maker": // above
		default:
			calls = append(calls, toolCall{command: command, args: "--bogus", said: "bogus is not a recognized option"}, toolCall{command: command, args: "", said: "Option "})
		}
	}
	sort.SliceStable(calls, func(i, j int) bool { return calls[i].command < calls[j].command })
	return calls
}

func TestOurToolsSayWhatKafkasSay(t *testing.T) {
	lane.Java(t)
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, map[string]string{"group.initial.rebalance.delay.ms": "0", "transaction.partition.verification.enable": "false",
		"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1", "transaction.state.log.num.partitions": "1", "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"})
	furnish(t, c)
	server := storedServer(t)
	for at, version := range []string{"2.8.2", "3.9.1"} {
		t.Run(version, func(t *testing.T) {
			kafka := startEachTool(t, version)
			for _, call := range toolCalls() {
				class := classesOf[call.command][at]
				if class == "" || call.only != "" && call.only != version {
					continue
				}
				args := strings.Fields(strings.NewReplacer("BROKER", c.Brokers[0].Addr, "NOBODY", "127.0.0.1:1", "SERVER", server).Replace(call.args))
				own := strings.Fields(strings.ReplaceAll(strings.Join(args, " "), "OURS", "-ours-"+version))
				want := kafka.run(t, class, strings.Fields(strings.ReplaceAll(strings.Join(args, " "), "OURS", "-theirs-"+version)))
				got := runOwn(t, version, call.command, own)
				compareTools(t, call, want, got)
			}
			if version == "3.9.1" {
				hangingTransactionsAreAborted(t, kafka, c.Brokers[0].Addr)
			}
		})
	}
}

// Of two transactions that hang each tool aborts one, and finds that the other's is gone.
func hangingTransactionsAreAborted(t *testing.T, kafka *eachTool, broker string) {
	t.Helper()
	class := classesOf["kafka-transactions"][1]
	for partition, abort := range []func(args ...string) said{
		func(args ...string) said { return runOwn(t, "3.9.1", "kafka-transactions", args) },
		func(args ...string) said { return kafka.run(t, class, args) },
	} {
		got := abort("--bootstrap-server", broker, "abort", "--topic", "hung", "--partition", strconv.Itoa(partition), "--start-offset", "0")
		assert.Zero(t, got.exit, got.err)
		assert.Empty(t, got.out)
		call := toolCall{command: "kafka-transactions", args: "find-hanging, after an abort"}
		args := []string{"--bootstrap-server", broker, "find-hanging", "--topic", "hung", "--max-transaction-timeout", "0"}
		left := runOwn(t, "3.9.1", "kafka-transactions", args)
		compareTools(t, call, kafka.run(t, class, args), left)
		assert.Equal(t, 1-partition, strings.Count(left.out, "hung"), left.out)
	}
}

// said is what a tool said, and how it ended.
type said struct {
	exit     int
	out, err string
}

func compareTools(t *testing.T, call toolCall, want, got said) {
	t.Helper()
	name := call.command + " " + call.args
	assert.Equal(t, want.exit, got.exit, "%s: exit code; Kafka's says %s%s, ours %s%s", name, want.out, want.err, got.out, got.err)
	if call.said != "" {
		assert.Contains(t, want.out+want.err, call.said, name+": Kafka's")
		assert.Contains(t, got.out+got.err, call.said, name+": ours")
		return
	}
	assert.Equal(t, plainTool(want.out), plainTool(got.out), "%s: standard output", name)
	assert.Equal(t, reason(want.err), reason(got.err), "%s: the reason on standard error", name)
}

var (
	eventTimes   = regexp.MustCompile(`"timestamp":\d+`)
	polledCounts = regexp.MustCompile(`"records_consumed","count":\d+`)
	decimals     = regexp.MustCompile(`-?\d+\.\d+`)
	clocks       = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}`)
	millis       = regexp.MustCompile(`(, )\d+(, )\d+(, N, N)$`)
	startedAt    = regexp.MustCompile(`\t\d{13} +\t\d+ +\t`) // of a transaction, and for how long it has lasted
	percentiles  = regexp.MustCompile(`th = \d+`)
	runNames     = regexp.MustCompile(`e2e-(ours|theirs)-[0-9.]+`)
	minutesOpen  = regexp.MustCompile(`\t\d+ +\t$`)
)

// plainTool takes what differs from run to run out of standard output: times, rates, and the order of maps.
func plainTool(text string) string {
	var lines []string
	for _, line := range strings.Split(strings.Trim(text, "\n"), "\n") {
		line = eventTimes.ReplaceAllString(runNames.ReplaceAllString(line, "e2e"), `"timestamp":T`)
		line = polledCounts.ReplaceAllString(line, `"records_consumed","count":N`)
		line = clocks.ReplaceAllString(decimals.ReplaceAllString(line, "N"), "CLOCK")
		line = percentiles.ReplaceAllString(line, "th = N")
		line = millis.ReplaceAllString(line, "${1}MS${2}MS$3")
		if startedAt.MatchString(line) && strings.HasPrefix(line, "1 ") {
			cells := strings.Split(startedAt.ReplaceAllString(line, "\tAT\tFOR\t"), "\t")
			for i, cell := range cells {
				parts := strings.Split(strings.TrimSpace(cell), ",")
				sort.Strings(parts)
				cells[i] = strings.Join(parts, ",")
			}
			line = strings.Join(cells, "\t")
		}
		lines = append(lines, minutesOpen.ReplaceAllString(line, "\tMINUTES\t"))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

var javaLog = regexp.MustCompile(`^(SLF4J|log4j|\[\d{4}-).*`)

// reason is why a tool did not do what it was asked: after the usage line of one kind of parser, before the help of the other. Kafka breaks long lines of it.
func reason(text string) string {
	if _, after, ok := strings.Cut(text, ": error:"); ok {
		before, _, _ := strings.Cut(after, "\n\n")
		return strings.ReplaceAll(strings.Join(strings.Fields(before), " "), "- ", "-")
	}
	if _, after, ok := strings.Cut(text, ":  error:"); ok {
		return reason(": error:" + after)
	}
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !javaLog.MatchString(line) {
			return line
		}
	}
	return ""
}

func runOwn(t *testing.T, version, command string, args []string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, cluster.Binary(t), append([]string{command}, args...)...)
	cmd.Env = append(os.Environ(), "BARNABAS_COMPAT="+version)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		var failed *exec.ExitError
		require.ErrorAs(t, err, &failed)
	}
	return said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// eachTool is a JVM that runs main classes one after the other.
type eachTool struct {
	in  io.Writer
	out *bufio.Reader
}

func startEachTool(t *testing.T, version string) *eachTool {
	t.Helper()
	lib := lane.KafkaJars(t, version)
	lane.Need(t, exec.Command(lane.Java(t), "-Djava.security.manager=allow", "-version").Run() == nil, "a Java before 24, which can keep a tool from ending the process")
	cmd := exec.Command(lane.Java(t), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.security.manager=allow", "-cp", lib+"/*", filepath.Join("testdata", "tools", "EachTool.java"))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var faults strings.Builder
	cmd.Stderr = &faults
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(faults.String())
		}
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &eachTool{in, bufio.NewReader(out)}
}

func (e *eachTool) run(t *testing.T, class string, args []string) said {
	t.Helper()
	_, err := fmt.Fprintln(e.in, strings.Join(append([]string{class}, args...), "\x1f"))
	require.NoError(t, err)
	line, err := e.out.ReadString('\n')
	require.NoError(t, err, "%s %v", class, args)
	parts := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	require.Len(t, parts, 3, line)
	exit, err := strconv.Atoi(parts[0])
	require.NoError(t, err)
	var texts [2]string
	for i, part := range parts[1:] {
		text, err := base64.StdEncoding.DecodeString(part)
		require.NoError(t, err)
		texts[i] = string(text)
	}
	return said{exit, texts[0], texts[1]}
}

// storedServer is the configuration of a broker that has used one of its two log directories.
func storedServer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"used", "bare"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "used", "meta.properties"), []byte("#\nversion=0\nbroker.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"), 0o600))
	file := filepath.Join(dir, "server.properties")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "broker.id=1\nzookeeper.connect=127.0.0.1:1\nlog.dirs=%s/used,%s/bare\n", dir, dir), 0o600))
	return file
}

// furnish puts there what the tools are to tell of: records, of which those to be consumed have one partition and so one order, a transaction that was committed, one that is open, and one that hangs, of which no coordinator knows.
func furnish(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	client := franz(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for topic, partitions := range map[string]int32{"orders": 2, "hung": 2, "readings": 1} {
		req := kmsg.NewPtrCreateTopicsRequest()
		r := kmsg.NewCreateTopicsRequestTopic()
		r.Topic, r.NumPartitions, r.ReplicationFactor = topic, partitions, 1
		req.Topics = append(req.Topics, r)
		_, err := req.RequestWith(t.Context(), client)
		require.NoError(t, err)
	}
	for i := range 10 {
		for _, topic := range []string{"orders", "readings"} {
			require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: 0, Key: []byte("k"), Value: []byte(strconv.Itoa(i))}).FirstErr())
		}
	}
	for _, id := range []string{"done", "open"} {
		sender := franz(t, c, kgo.TransactionalID(id), kgo.TransactionTimeout(15*time.Minute), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		require.NoError(t, sender.BeginTransaction())
		for partition := range int32(2) {
			require.NoError(t, sender.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Partition: partition, Value: []byte(id)}).FirstErr())
		}
		if id == "done" {
			require.NoError(t, sender.EndTransaction(t.Context(), kgo.TryCommit))
		}
	}
	b := record.NewBuilder(record.BuilderOptions{Producer: &record.Producer{ID: 4711, Transactional: true}})
	b.Append(time.Now().UnixMilli(), nil, []byte("hangs"))
	batch, err := b.Build()
	require.NoError(t, err)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.TransactionID = -1, 10_000, kmsg.StringPtr("gone")
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = "hung"
	for partition := range int32(2) {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = partition, batch
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), client)
	require.NoError(t, err)
	for _, p := range resp.Topics[0].Partitions {
		require.Zero(t, p.ErrorCode)
	}
}
