package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
	"barnabas/tools/subcommands"
)

var transactionsCommand = subcommands.Command{
	Name: "kafka-transactions.sh", Word: "COMMAND", Doc: "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect and recover from hanging transactions.",
	Arguments: []subcommands.Argument{
		{Name: "version", Short: "v", Alone: true, Doc: "print the version"},
		{Name: "command-config", Value: "FILE", Doc: "property file with settings of the client"},
		{Name: "bootstrap-server", Value: "host:port", Required: true, Doc: "brokers to connect to, as host:port, separated by commas"},
	},
	Commands: []subcommands.Command{
		{Name: "list", Doc: "list transactions", Arguments: []subcommands.Argument{
			{Name: "duration-filter", Value: "DURATION_FILTER", Number: subcommands.Long, Doc: "only transactions that run for longer than that many milliseconds; all when it is negative"}}},
		{Name: "describe", Doc: "describe the state of an active transactional-id", Arguments: []subcommands.Argument{
			{Name: "transactional-id", Value: "TRANSACTIONAL_ID", Required: true, Doc: "transactional id"}}},
		{Name: "describe-producers", Doc: "describe the states of active producers for a topic partition", Arguments: []subcommands.Argument{
			{Name: "broker-id", Value: "BROKER_ID", Number: subcommands.Integer, Doc: "the replica that is asked, in place of the leader"},
			{Name: "topic", Value: "TOPIC", Required: true, Doc: "topic name"},
			{Name: "partition", Value: "PARTITION", Number: subcommands.Integer, Required: true, Doc: "partition number"}}},
		{Name: "abort", Doc: "abort a hanging transaction (requires administrative privileges)", Arguments: []subcommands.Argument{
			{Name: "topic", Value: "TOPIC", Required: true, Doc: "topic name"},
			{Name: "partition", Value: "PARTITION", Number: subcommands.Integer, Required: true, Doc: "partition number"},
			{Name: "start-offset", Value: "START_OFFSET", Number: subcommands.Long, Doc: "first offset of the transaction; enough where brokers are of 3.0 or later"},
			{Name: "producer-id", Value: "PRODUCER_ID", Number: subcommands.Long, Doc: "producer id; in place of --start-offset, with the next two"},
			{Name: "producer-epoch", Value: "PRODUCER_EPOCH", Number: subcommands.Short, Doc: "producer epoch"},
			{Name: "coordinator-epoch", Value: "COORDINATOR_EPOCH", Number: subcommands.Integer, Doc: "coordinator epoch"}}},
		{Name: "find-hanging", Doc: "find hanging transactions", Arguments: []subcommands.Argument{
			{Name: "broker-id", Value: "BROKER_ID", Number: subcommands.Integer, Doc: "search the partitions of this broker"},
			{Name: "max-transaction-timeout", Value: "MAX_TRANSACTION_TIMEOUT", Number: subcommands.Integer, Default: "15", Doc: "transactions of at most so many minutes are not looked at"},
			{Name: "topic", Value: "TOPIC", Doc: "search this topic"},
			{Name: "partition", Value: "PARTITION", Number: subcommands.Integer, Doc: "search this partition of the topic"}}},
	},
}

// Transactions is kafka-transactions, which came with 3.0: there is one text.
func Transactions(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	call, err := transactionsCommand.Parse(args)
	if err != nil {
		return subcommands.Report(err, stdout, stderr)
	}
	if call.Has("version") {
		fmt.Fprintln(stdout, "3.9.1 (Commit:f745dfdcee2b9851)")
		return 0
	}
	if err := transactions(stdout, call); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// transactionsFailed says what could not be done and why, as the original does; its last sentence is there for those who look for it.
func transactionsFailed(what string, err error) error {
	text := err.Error()
	var answer *answerError
	if !errors.As(err, &answer) { // the client names a code before it says what it means
		text = described(err)
	}
	return fmt.Errorf("%s: %s. Enable debug logging for additional detail.", what, text)
}

func transactions(out io.Writer, call *subcommands.Call) error {
	settings, err := adminClient.settings(callArguments{call})
	if err != nil {
		return transactionsFailed("Failed to load admin client properties", err)
	}
	client, err := connect(settings)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	t := transactionTool{ctx, client, out, call}
	switch call.Command {
	case "list":
		return t.list()
	case "describe":
		return t.describe()
	case "describe-producers":
		return t.describeProducers()
	case "abort":
		return t.abort()
	}
	return t.findHanging()
}

// transactionTool is what all sub-commands need.
type transactionTool struct {
	ctx    context.Context
	client *kgo.Client
	out    io.Writer
	call   *subcommands.Call
}

// table prints rows, of which the first is the heading. Each cell is as wide as the widest of its column and ends in a tab.
func (t transactionTool) table(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(t.out, "%-*s\t", widths[i], cell)
		}
		fmt.Fprintln(t.out)
	}
}

func (t transactionTool) partition() plan.Partition {
	return plan.Partition{Topic: t.call.Value("topic"), ID: int32(t.call.Int("partition"))}
}

func (t transactionTool) list() error {
	longerThan := int64(-1)
	if t.call.Has("duration-filter") {
		longerThan = t.call.Int("duration-filter")
	}
	list, err := cluster.New(t.client).Transactions(t.ctx, nil, longerThan)
	if err != nil {
		return transactionsFailed("Failed to list transactions", err)
	}
	rows := [][]string{{"TransactionalId", "Coordinator", "ProducerId", "TransactionState"}}
	for _, l := range list {
		rows = append(rows, []string{l.ID, strconv.Itoa(int(l.Coordinator)), strconv.FormatInt(l.Producer, 10), l.State})
	}
	t.table(rows)
	return nil
}

func (t transactionTool) describe() error {
	id := t.call.Value("transactional-id")
	s, coordinator, err := cluster.New(t.client).Transaction(t.ctx, id)
	if err != nil {
		if errors.Is(err, kerr.TransactionalIDNotFound) {
			err = fmt.Errorf("DescribeTransactions request for transactionalId `%s` failed because the ID could not be found", id)
		}
		return transactionsFailed(fmt.Sprintf("Failed to describe transaction state of transactional-id `%s`", id), err)
	}
	began, lasts := "None", "None"
	if s.StartTimestamp >= 0 {
		began, lasts = strconv.FormatInt(s.StartTimestamp, 10), strconv.FormatInt(time.Now().UnixMilli()-s.StartTimestamp, 10)
	}
	t.table([][]string{
		{"CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"},
		{strconv.Itoa(int(coordinator)), id, strconv.FormatInt(s.ProducerID, 10), strconv.Itoa(int(s.ProducerEpoch)), s.State, strconv.Itoa(int(s.TimeoutMillis)), began, lasts,
			joinPartitions(cluster.PartitionsOfTransaction(s), ",")},
	})
	return nil
}

// broker is the one that --broker-id names, or nil.
func (t transactionTool) broker() *int32 {
	if !t.call.Has("broker-id") {
		return nil
	}
	id := int32(t.call.Int("broker-id"))
	return &id
}

func (t transactionTool) describeProducers() error {
	p, broker := t.partition(), t.broker()
	active, err := cluster.New(t.client).Producers(t.ctx, []plan.Partition{p}, broker)
	if err != nil {
		where := "leader"
		if broker != nil {
			where = fmt.Sprintf("broker %d", *broker)
		}
		return transactionsFailed(fmt.Sprintf("Failed to describe producers for partition %v on %s", p, where), err)
	}
	rows := [][]string{{"ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp", "CurrentTransactionStartOffset"}}
	for _, a := range active[p] {
		start := "None"
		if a.CurrentTxnStartOffset >= 0 {
			start = strconv.FormatInt(a.CurrentTxnStartOffset, 10)
		}
		rows = append(rows, []string{strconv.FormatInt(a.ProducerID, 10), strconv.Itoa(int(a.ProducerEpoch)), strconv.Itoa(int(a.CoordinatorEpoch)), strconv.Itoa(int(a.LastSequence)),
			strconv.FormatInt(a.LastTimestamp, 10), start})
	}
	t.table(rows)
	return nil
}
