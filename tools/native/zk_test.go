package native

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// aTree is a ZooKeeper with some of Kafka's nodes below a chroot; ask runs a command on it.
func aTree(t *testing.T) (ask func(args ...string) (Exit, string, string), server string) {
	t.Helper()
	server = zktest.Embedded(t).Addr()
	addr := server + "/kafka"
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	zk, err := zkstate.Connect(zkstate.Config{Servers: addr, Log: logrus.NewEntry(quiet)})
	require.NoError(t, err)
	t.Cleanup(zk.Close)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, node := range []struct{ path, data string }{
		{"/brokers/topics/orders", `{"partitions":{"0":[3,2],"10":[2],"9":[1]},"topic_id":"Q4HgZECPSKKPg-sEGu3Ojw","adding_replicas":{"0":[2]},"removing_replicas":{},"version":3}`},
		{"/brokers/topics/orders/partitions/10/state", `{"controller_epoch":2,"leader":2,"version":1,"leader_epoch":4,"isr":[2]}`},
		{"/brokers/topics/orders/partitions/9/state", `nonsense`},
		{"/config/users/alice", `{"version":1,"config":{"SCRAM-SHA-256":"salt=c2FsdA==,stored_key=a2V5,server_key=a2V5,iterations=4096","producer_byte_rate":"10"}}`},
		{"/own", "\xff\x00"},
	} {
		require.NoError(t, zk.CreateRecursive(ctx, node.path, []byte(node.data)))
	}
	return func(args ...string) (Exit, string, string) {
		return run(append([]string{"zk"}, append(args, "--zookeeper", addr)...)...)
	}, server
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)

func TestANodeIsShownDecoded(t *testing.T) {
	ask, _ := aTree(t)
	code, out, _ := ask("get", "/brokers/topics/orders/")
	assert.Zero(t, code)
	assert.Equal(t, "PATH                          /brokers/topics/orders\nFAMILY                        topic\nversion                       3\ntopic_id                      Q4HgZECPSKKPg-sEGu3Ojw\n"+
		"partitions.0.partition        0\npartitions.0.replicas         3,2\npartitions.0.adding_replicas  2\n"+
		"partitions.1.partition        9\npartitions.1.replicas         1\npartitions.2.partition        10\npartitions.2.replicas         2\n"+
		"data_version                  0\nchildren                      1\nmodified_at                   TIME\n", times.ReplaceAllString(out, "TIME"))
	code, out, _ = ask("get", "/config/users/alice", "-o", "json")
	assert.Zero(t, code)
	assert.Contains(t, out, `"SCRAM-SHA-256": "iterations=4096 (hidden)"`)
	assert.NotContains(t, out, "c2FsdA")
	code, out, _ = ask("get", "/config/users/alice", "--raw")
	assert.Zero(t, code)
	assert.Contains(t, out, "salt=c2FsdA==")
	code, out, _ = ask("get", "/own", "-o", "yaml")
	assert.Zero(t, code)
	assert.Contains(t, out, "family: null\ncontent: null\ntext: null\ntext_base64: /wA=\n")
}

func TestANodeThatCannotBeReadOrIsMissingHasItsExitCode(t *testing.T) {
	ask, _ := aTree(t)
	code, out, _ := ask("get", "/brokers/topics/orders/partitions/9/state")
	assert.Equal(t, Failed, code)
	assert.Contains(t, out, "PROBLEM")
	assert.Contains(t, out, "nonsense", "it is shown as it is")
	code, _, stderr := ask("get", "/nope")
	assert.Equal(t, NotFound, code)
	assert.Equal(t, "barnabas: znode /nope does not exist\n", stderr)
	code, _, stderr = ask("stat", "nope")
	assert.Equal(t, WrongUsage, code)
	assert.Contains(t, stderr, "the path nope does not begin with /")
	code, _, stderr = run("zk", "ls", "/", "--zookeeper", "127.0.0.1:1", "--timeout", "300ms")
	assert.Equal(t, Unreachable, code)
	assert.Contains(t, stderr, "no answer from ZooKeeper at 127.0.0.1:1: no ZooKeeper session within 300ms")
	code, _, stderr = run("zk", "ls", "/", "--zk-tls-config-file", "/no/such/file")
	assert.Equal(t, Failed, code)
	assert.Contains(t, stderr, "zk-tls-config-file: ")
}

func TestNamesAreListedByNumberAndAChrootIsNotMade(t *testing.T) {
	ask, server := aTree(t)
	code, out, _ := ask("ls", "/brokers/topics/orders/partitions")
	assert.Zero(t, code)
	assert.Equal(t, "9\n10\n", out)
	code, out, _ = ask("tree", "/brokers/topics")
	assert.Zero(t, code)
	assert.Equal(t, "NODE             VERSION  BYTES  FAMILY\n/brokers/topics  0        0      -\n  orders         0        142    topic\n    partitions   0        0      -\n      9          0        0      -\n        state    0        8      partition state\n"+
		"      10         0        0      -\n        state    0        72     partition state\n", out)
	_, out, _ = ask("tree", "--max", "3")
	assert.Equal(t, 5, strings.Count(out, "\n"), "%s", out)
	assert.Contains(t, out, "... and more")
	_, out, _ = ask("tree", "/", "--depth", "1", "-o", "json")
	assert.Contains(t, out, `"path": "/own"`)
	assert.NotContains(t, out, "orders")
	assert.Contains(t, out, `"truncated": false`)
	code, out, _ = ask("stat", "/own")
	assert.Zero(t, code)
	assert.Regexp(t, `(?m)^bytes +2$`, out)
	code, _, _ = run("zk", "ls", "/", "--zookeeper", server+"/missing")
	assert.Equal(t, NotFound, code)
	_, out, _ = run("zk", "ls", "/", "--zookeeper", server)
	assert.Equal(t, "kafka\nzookeeper\n", out)
}
