package tools

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/admin/plan"
)

func runTransactions(args ...string) ran {
	return runCommand(func(args []string, out, errs *bytes.Buffer) int { return Transactions(args, nil, out, errs) }, args...)
}

func TestTransactionCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "kafka-transactions.sh: error: too few arguments"},
		{"list", "kafka-transactions.sh: error: argument --bootstrap-server is required"},
		{"--bootstrap-server b", "kafka-transactions.sh: error: too few arguments"},
		{"--bootstrap-server", "kafka-transactions.sh: error: argument --bootstrap-server: expected one argument"},
		{"--foo b list", "kafka-transactions.sh: error: unrecognized arguments: '--foo'"},
		{"list --bootstrap-server b", "kafka-transactions.sh: error: unrecognized arguments: '--bootstrap-server'"},
		{"--bootstrap-server b list extra", "kafka-transactions.sh: error: unrecognized arguments: 'extra'"},
		{"--bootstrap-server b describe", "kafka-transactions.sh: error: argument --transactional-id is required"},
		{"--bootstrap b describe-producers --topic t --partition z", `kafka-transactions.sh: error: argument --partition: could not convert 'z' to Integer (For input string: "z")`},
		{"--command-config /nosuch --bootstrap-server b list", "Failed to load admin client properties: open /nosuch: no such file or directory. Enable debug logging for additional detail."},
		{"--bootstrap-server b find-hanging", "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"},
		{"--bootstrap-server b find-hanging --partition 0 --broker-id 1", "The --partition argument requires --topic to be provided"},
		{"--bootstrap-server b abort --topic t --partition 0", "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"},
		{"--bootstrap-server b abort --topic t --partition 0 --producer-id 1", "Missing required argument --producer-epoch"},
		{"--bootstrap-server b abort --topic t --partition 0 --producer-id 1 --producer-epoch 0", "Missing required argument --coordinator-epoch"},
	} {
		got := runTransactions(strings.Fields(c.args)...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Contains(t, got.stderr, c.want+"\n", c.args)
		assert.Empty(t, got.stdout, c.args)
	}
}

func TestTheVersionIsAskedForWithoutBrokers(t *testing.T) {
	for _, args := range []string{"-v", "--version", "--version list"} {
		assert.Equal(t, ran{0, "3.9.1 (Commit:f745dfdcee2b9851)\n", ""}, runTransactions(strings.Fields(args)...), args)
	}
}

func TestCellsOfTransactionsEndInTabs(t *testing.T) {
	var out bytes.Buffer
	transactionTool{out: &out}.table([][]string{{"Id", "State"}, {"longer", "x"}})
	assert.Equal(t, "Id    \tState\t\nlonger\tx    \t\n", out.String())
}

func TestARefusedAbortSaysWhy(t *testing.T) {
	a := abortAsked{plan.Partition{Topic: "t", ID: 1}, 7, 2, 3}
	assert.EqualError(t, abortRefused(a, kerr.InvalidProducerEpoch), "WriteTxnMarkers request with AbortTransactionSpec(topicPartition=t-1, producerId=7, producerEpoch=2, coordinatorEpoch=3) failed due an invalid producer epoch")
	assert.ErrorContains(t, abortRefused(a, kerr.NotLeaderForPartition), " failed due to unexpected error: This server is not the leader ")
}
