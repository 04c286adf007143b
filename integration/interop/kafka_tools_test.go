package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// Apache Kafka 3.9.1's own tools of administration, one after the other; DIR has the files that they read. Each must end well and say what is wanted.
var kafkaToolSteps = []struct{ class, args, want string }{
	{"org.apache.kafka.tools.TopicCommand", "--create --topic t --partitions 3 --replication-factor 3 --config retention.ms=3600000", `^Created topic t\.`},
	{"org.apache.kafka.tools.TopicCommand", "--describe --topic t", `PartitionCount: 3\s+ReplicationFactor: 3\s+Configs: retention.ms=3600000`},
	{"kafka.admin.ConfigCommand", "--alter --entity-type clients --entity-name app --add-config producer_byte_rate=1000000,request_percentage=50", `Completed updating config for client app\.`},
	{"kafka.admin.ConfigCommand", "--describe --entity-type clients --entity-name app", `Quota configs for client-id 'app' are .*producer_byte_rate=1000000\.0`},
	{"kafka.admin.ConfigCommand", "--alter --entity-type users --entity-name alice --entity-type clients --entity-default --add-config consumer_byte_rate=7", `Completed updating config for user alice\.`},
	{"kafka.admin.ConfigCommand", "--describe --entity-type users --entity-type clients", `Quota configs for user-principal 'alice', the default client-id are consumer_byte_rate=7\.0`},
	{"kafka.admin.ConfigCommand", "--alter --entity-type users --entity-name alice --add-config SCRAM-SHA-256=[iterations=8192,password=secret]", `Completed updating config for user alice\.`},
	{"kafka.admin.ConfigCommand", "--describe --entity-type users", `SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=8192`},
	{"kafka.admin.ConfigCommand", "--alter --entity-type users --entity-name alice --delete-config SCRAM-SHA-256", `Completed updating config for user alice\.`},
	{"kafka.admin.ConfigCommand", "--alter --entity-type ips --entity-name 127.0.0.1 --add-config connection_creation_rate=100", `Completed updating config for ip 127\.0\.0\.1\.`},
	{"org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--execute --reassignment-json-file DIR/move.json", `Successfully started partition reassignment for t-0`},
	{"org.apache.kafka.tools.LeaderElectionCommand", "--election-type PREFERRED --all-topic-partitions", ``},
	{"org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--verify --reassignment-json-file DIR/move.json", `Reassignment of partition t-0 is completed`},
	{"org.apache.kafka.tools.TopicCommand", "--delete --topic t", ``},
}

func TestKafkasToolsAdministerThreeBrokers(t *testing.T) {
	lib, java := lane.KafkaJars(t, "3.9.1"), lane.Java(t)
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 3, nil)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "move.json"), []byte(`{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,3]}]}`), 0o600))
	for i, step := range kafkaToolSteps {
		t.Run(fmt.Sprintf("%d %s", i, step.args), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			args := []string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp", lib + "/*", step.class, "--bootstrap-server", c.Bootstrap()}
			out, err := exec.CommandContext(ctx, java, append(args, strings.Fields(strings.ReplaceAll(step.args, "DIR", dir))...)...).CombinedOutput()
			assert.NoError(t, err, "%s", out)
			assert.Regexp(t, regexp.MustCompile("(?m)"+step.want), string(out))
			assert.NotRegexp(t, `(?m)^(Exception in|Error)`, string(out))
		})
	}
}
