package native

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
)

// secured is what is shown of access lists, quotas and users.
var secured = []showing{
	{name: "acl-add-dry", call: "acl add User:billing topic:orders group:billing --consumer --dry-run"},
	{"acl-add", "acl add User:billing topic:orders group:billing --consumer", 0, true, ""},
	{"acl-add-host", "acl add User:billing topic:orders --op read,write --host 10.0.0.7", 0, true, ""},
	{"acl-add-again", "acl add User:billing topic:orders group:billing --consumer", 0, true, ""},
	{"acl-deny", "acl add User:* topic:ord --prefixed --op delete --deny", 0, true, ""},
	{name: "acl-list", call: "acl list"},
	{name: "acl-list-topic", call: "acl list topic:orders --permission deny"},
	{name: "acl-list-principal", call: "acl list --principal User:billing --exact group:billing"},
	{name: "acl-export", call: "acl export topic"},
	{name: "acl-check", call: "acl check User:billing describe topic:orders --super-user User:ANONYMOUS"},
	{name: "acl-check-denied", call: "acl check User:billing delete topic:orders --super-user User:ANONYMOUS", code: 1},
	{name: "acl-check-host", call: "acl check User:billing write topic:orders --host 10.0.0.7"},
	{name: "acl-check-elsewhere", call: "acl check User:billing write topic:orders --super-user User:ANONYMOUS", code: 1},
	{name: "acl-remove-dry", call: "acl remove User:billing topic:orders --op write --dry-run"},
	{"acl-remove", "acl remove any topic:orders group:billing --yes", 0, true, ""},
	{"acl-remove-again", "acl remove any topic:orders --yes", 3, true, ""},
	{name: "quota-set-dry", call: "quota set producer_byte_rate=10MB/s request_percentage=12.5 --user alice --client batch --dry-run"},
	{"quota-set", "quota set producer_byte_rate=10MB/s request_percentage=12.5 --user alice --client batch", 0, true, ""},
	{"quota-set-default", "quota set consumer_byte_rate=1MiB --user-default", 0, true, ""},
	{"quota-set-ip", "quota set connection_creation_rate=20 --ip 10.0.0.7", 0, true, ""},
	{"quota-set-wrong", "quota set no_such_rate=20 --user alice", 1, true, ""},
	{name: "quota-list", call: "quota list"},
	{name: "quota-list-user", call: "quota list --user alice"},
	{"quota-unset", "quota unset --all --user alice --client batch", 0, true, ""},
	{"quota-unset-again", "quota unset producer_byte_rate --user alice --client batch", 3, true, ""},
	{name: "user-add-dry", call: "user add alice --dry-run"},
	{"user-add", "user add alice --mechanism SCRAM-SHA-256 --mechanism SCRAM-SHA-512", 0, true, "alice-secret\n"},
	{"user-replace", "user add alice --mechanism SCRAM-SHA-256 --iterations 8192", 0, true, "alice-secret"},
	{name: "user-list", call: "user list"},
	{name: "user-list-nobody", call: "user list alice nobody", code: 3},
	{"user-add-nothing", "user add alice", 1, true, ""},
	{"user-remove", "user remove alice --mechanism SCRAM-SHA-256 --yes", 0, true, ""},
	{"user-remove-again", "user remove alice --mechanism SCRAM-SHA-256 --yes", 3, true, ""},
}

var guarded = []string{"authorizer.class.name=kafka.security.authorizer.AclAuthorizer", "super.users=User:ANONYMOUS"}

func TestWhatIsPrintedOfSecurityStaysTheSame(t *testing.T) {
	newScene(t, cluster.Barnabas, guarded...).secured(*record)
}

func TestTheSameIsPrintedOfApacheKafkasSecurity(t *testing.T) {
	lane.Java(t)
	newScene(t, cluster.Kafka("3.9.1"), guarded...).secured(false)
}

func (s *scene) secured(record bool) {
	s.play(secured, record)
	s.exported()
	assert.Equal(s.t, run(s.t, s.server, "acl", "check", "User:ANONYMOUS", "alter", "cluster").stdout, "DENIED: User:ANONYMOUS may not alter cluster:kafka-cluster from *\n    no list concerns it, and allow.everyone.if.no.acl.found decides\n    brokers do not tell super.users\n", "what brokers keep to themselves is said")
	s.looked()
}

// exported commands make the same access lists again.
func (s *scene) exported() {
	s.ok("acl add User:it's topic:odd.name --op alter-configs,read --host 10.0.0.9", "")
	want := s.ok("acl list -o json", "").stdout
	commands := s.ok("acl export", "").stdout
	s.ok("acl remove any topic:odd.name topic:ord --yes", "")
	s.ok("acl remove any topic:ord --prefixed --yes", "")
	require.Contains(s.t, s.ok("acl list -o json", "").stdout, `"acls": []`)
	dir := s.t.TempDir()
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, "kafka-acls.sh"), []byte("#!/bin/sh\nexec \"$BARNABAS\" kafka-acls \"$@\"\n"), 0o700))
	sh := exec.CommandContext(lane.Patience(s.t), "sh", "-ec", commands)
	sh.Env = append(os.Environ(), "BARNABAS="+cluster.Binary(s.t), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := sh.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
	assert.Equal(s.t, want, s.ok("acl list -o json", "").stdout)
}

// looked is what is seen in ZooKeeper, by top, of completion, and on the disk.
func (s *scene) looked() {
	s.ok("topic create orders --partitions 2", "")
	s.furnish()
	zk := func(call string) map[string]any {
		s.t.Helper()
		var d map[string]any
		require.NoError(s.t, json.Unmarshal([]byte(s.ok("zk "+call+" -o json --zookeeper "+s.c.ZooKeeper, "").stdout), &d), call)
		return d
	}
	assert.Equal(s.t, "partition state", zk("get /brokers/topics/orders/partitions/0/state")["family"])
	assert.EqualValues(s.t, 1, zk("get /controller")["content"].(map[string]any)["broker"])
	assert.Equal(s.t, "literal", zk("get /kafka-acl/Topic/odd.name")["content"].(map[string]any)["pattern"])
	assert.NotNil(s.t, zk("stat /brokers/ids/1")["session"])
	assert.Equal(s.t, []any{"1"}, zk("ls /brokers/ids")["children"])
	assert.Greater(s.t, len(zk("tree /")["nodes"].([]any)), 30)

	var top struct {
		Rows []struct {
			Topic, Group string
			Messages     *float64 `json:"messages_per_second"`
			Size         *int64   `json:"size_bytes"`
			Lag          *int64
		}
	}
	require.NoError(s.t, json.Unmarshal([]byte(s.ok("top --over 100ms --sort name -o json", "").stdout), &top))
	var sizes int64
	for _, r := range top.Rows {
		if r.Topic == "orders" {
			require.NotNil(s.t, r.Size)
			require.NotNil(s.t, r.Messages)
			sizes = *r.Size
		}
	}
	assert.Positive(s.t, sizes)
	require.NoError(s.t, json.Unmarshal([]byte(s.ok("top --by group --over 100ms -o json", "").stdout), &top))
	require.Len(s.t, top.Rows, 1)
	assert.Equal(s.t, []any{"billing", int64(3)}, []any{top.Rows[0].Group, *top.Rows[0].Lag})

	for line, want := range map[string]string{
		"topic describe or": "orders\n", "group reset ": "billing\n", "plan drain ": "1\n", "acl list topic:o": "topic:orders\n", "user remove ": "alice\n", "acl check U": "User:alice\n",
	} {
		assert.Equal(s.t, want, run(s.t, s.server, append([]string{"__complete"}, strings.Split(line, " ")...)...).stdout, line)
	}

	partition := filepath.Join(s.c.Brokers[0].Dir, "orders-1")
	used := run(s.t, s.server, "log", "verify", partition, "--no-start")
	assert.Contains(s.t, used.stdout, "is in use")
	s.c.Brokers[0].Stop(s.t)
	rows := s.ok("log dump "+partition+" --records -o json-rows --from 3", "").stdout
	assert.Equal(s.t, 2, strings.Count(rows, "\n"), rows)
	assert.Contains(s.t, rows, `"value":"value 9"`)
	sound := s.ok("log verify "+s.c.Brokers[0].Dir, "").stdout
	assert.Regexp(s.t, `(?m)^orders-1 +1 +\d+ +0 +5 +0 +use it as it is$`, sound)
}
