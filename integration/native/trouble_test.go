package native

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// judged is what -o json says of a verdict, as far as these tests look at it.
type judged struct {
	Healthy  bool
	Findings []struct {
		Rule     string
		Subjects []string
		Commands []string
	}
}

func judge(t *testing.T, server, command string) (ran, judged) {
	t.Helper()
	got := run(t, server, command, "-o", "json")
	var v judged
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &v), "%s%s", got.stdout, got.stderr)
	return got, v
}

func (v judged) rules() (names []string) {
	for _, f := range v.Findings {
		if f.Rule != "disk_nearly_full" { // of this machine
			names = append(names, f.Rule)
		}
	}
	return names
}

// Sessions are long and nobody ends them, so that after its death a broker is still registered when the others are asked.
func TestTroubleIsSeenAndMended(t *testing.T) {
	settings := map[string]string{"zookeeper.session.timeout.ms": "60000", "barnabas.last.will.enable": "false", "default.replication.factor": "1", "offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}
	c := cluster.StartMixed(t, zktest.Embedded(t).Addr(), []cluster.Program{cluster.Barnabas, cluster.Barnabas}, settings)
	server := c.Brokers[0].Addr
	require.Zero(t, run(t, server, "topic", "create", "orders", "--replication-factor", "1", "--partitions", "2", "--config", "min.insync.replicas=2").code)
	c.WaitWhole(t, "orders", 2, 1)

	got, v := judge(t, server, "doctor")
	assert.Equal(t, 5, got.code)
	assert.Equal(t, []string{"under_min_isr_partitions", "single_replica"}, v.rules())
	mend := ""
	for _, f := range v.Findings {
		for _, command := range f.Commands {
			if strings.Contains(command, "--replication-factor 2") {
				mend = command
			}
		}
	}
	require.NotEmpty(t, mend, "%v", v)
	mended := run(t, server, strings.Fields(mend)[1:]...) // as the doctor says it, without the program's name
	require.Zero(t, mended.code, mended.stdout+mended.stderr)
	c.WaitWhole(t, "orders", 2, 2)
	require.Eventually(t, func() bool { // the reassignment is over some time after the replicas are in sync
		got, v = judge(t, server, "health")
		return got.code == 0 && len(v.Findings) == 0
	}, settle, pace, "%+v", v)

	c.Brokers[1].Kill(t)
	got, v = judge(t, server, "health")
	assert.Equal(t, 5, got.code)
	assert.False(t, v.Healthy)
	assert.Contains(t, v.rules(), "broker_not_answering", "long before its session ends")
	list := run(t, server, "broker", "list")
	assert.Zero(t, list.code)
	assert.Contains(t, list.stdout, "does not answer: ")
}

func TestAGroupWithMembersIsLeftAloneAndItsMembersAreNamed(t *testing.T) {
	s := newScene(t, cluster.Barnabas)
	require.Zero(t, run(t, s.server, "topic", "create", "orders", "--partitions", "2").code)
	s.furnish()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.server), kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.ClientID("till"), kgo.DisableAutoCommit())
	require.NoError(t, err)
	defer client.Close()
	require.NotEmpty(t, client.PollFetches(lane.Patience(t)).Records())
	for _, call := range []string{"group reset billing --all-topics --to-earliest", "group delete billing --yes"} {
		got := run(t, s.server, strings.Fields(call)...)
		assert.Equal(t, 1, got.code, call)
		assert.Contains(t, got.stdout+got.stderr, "stop its members first: ", call)
		assert.Contains(t, got.stdout+got.stderr, "(till, /127.0.0.1)", call)
	}
	got := run(t, s.server, "group", "describe", "billing")
	assert.Zero(t, got.code)
	assert.Regexp(t, `(?m)^orders +0 +2 +5 +3 +till-`, got.stdout, "the commit of before counts, the member has the partition")
	assert.Regexp(t, `(?m)^orders +1 +- +5 +- \(no_commit\) +till-`, got.stdout)
}

func TestAWatchedCommandSaysItAgainUntilItIsInterrupted(t *testing.T) {
	s := newScene(t, cluster.Barnabas)
	cmd := exec.CommandContext(lane.Patience(t), cluster.Binary(t), "health", "--watch", "20ms", "-o", "json", "--bootstrap-server", s.server)
	lane.Bind(cmd)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for range 3 {
		require.True(t, lines.Scan())
		var v judged
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v), "one document a line: %s", lines.Text())
		assert.True(t, v.Healthy)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	rest := time.AfterFunc(settle, func() { _ = cmd.Process.Kill() })
	defer rest.Stop()
	for lines.Scan() {
	}
	require.NoError(t, cmd.Wait(), "what it said last was healthy, and so is its exit code")
}
