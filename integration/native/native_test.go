package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

var record = flag.Bool("record", false, "write what Barnabas prints into testdata")

const (
	settle = 2 * time.Minute
	pace   = 50 * time.Millisecond
)

// ran is what a tool did.
type ran struct {
	code           int
	stdout, stderr string
}

func run(t *testing.T, server string, args ...string) ran {
	t.Helper()
	return runWith(t, "", server, args...)
}

func runWith(t *testing.T, input, server string, args ...string) ran {
	t.Helper()
	cmd := exec.CommandContext(lane.Patience(t), cluster.Binary(t), args...)
	cmd.Env = append(os.Environ(), "BARNABAS_BOOTSTRAP="+server)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// scene is a broker with two topics and a group.
type scene struct {
	t      *testing.T
	c      *cluster.Cluster
	server string
}

func newScene(t *testing.T, program cluster.Program, more ...string) *scene {
	settings := map[string]string{"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "0", "num.partitions": "1", "zookeeper.session.timeout.ms": "30000"}
	for _, setting := range more {
		name, value, _ := strings.Cut(setting, "=")
		settings[name] = value
	}
	c := cluster.StartProgram(t, program, zktest.Embedded(t).Addr(), 1, settings, func(int) map[string]string { return nil })
	return &scene{t, c, c.Bootstrap()}
}

// furnish puts records into orders, of which a group without members has read some.
func (s *scene) furnish() {
	ctx := lane.Patience(s.t)
	client, err := kgo.NewClient(kgo.SeedBrokers(s.server), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MetadataMinAge(10*time.Millisecond))
	require.NoError(s.t, err)
	defer client.Close()
	for i := range 10 {
		r := &kgo.Record{Topic: "orders", Partition: int32(i % 2), Key: []byte("k"), Value: fmt.Append(nil, "value ", i), Timestamp: time.Now()}
		require.NoError(s.t, client.ProduceSync(ctx, r).FirstErr())
	}
	var offsets kadm.Offsets
	offsets.AddOffset("orders", 0, 2, -1)
	require.Eventually(s.t, func() bool { // the coordinator's topic is made meanwhile
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		resp, err := kadm.NewClient(client).CommitOffsets(ctx, "billing", offsets)
		return err == nil && resp.Error() == nil
	}, settle, pace)
}

var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST:PORT"},
	{regexp.MustCompile(`("?port"?): \d+`), "$1: PORT"},
	{regexp.MustCompile(`("?topic_id"?): "?[A-Za-z0-9_-]{22}"?`), "$1: TOPIC-ID"},
	{regexp.MustCompile(`  id [A-Za-z0-9_-]{22}  `), "  id TOPIC-ID  "},
	// How full this machine's disk is.
	{regexp.MustCompile(`\[warning\] disk_nearly_full: .*\n(?:    .*\n)+\n`), ""},
	{regexp.MustCompile(`    \{\n      "rule": "disk_nearly_full",\n(?:      .*\n)+    \},\n`), ""},
	{regexp.MustCompile(`  - rule: disk_nearly_full\n(?:    .*\n)+`), ""},
}

// plain is what a tool printed, without what differs from run to run.
func plain(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.with)
	}
	return text
}

// showing is a call whose output is compared with files.
type showing struct {
	name, call string
	code       int
	once       bool   // it acts: it is called once, and shown as a table
	input      string // standard input
}

var shown = []showing{
	{"create", "topic create orders --partitions 2 --replication-factor 1 --config retention.bytes=1000000", 0, true, ""},
	{name: "create-dry", call: "topic create payments --dry-run"},
	{name: "create-again", call: "topic create orders", code: 1},
	{call: "FURNISH"},
	{name: "list", call: "topic list --match orders"},
	{name: "describe", call: "topic describe orders"},
	{name: "describe-nothing", call: "topic describe nope", code: 3},
	{name: "alter-dry", call: "topic alter orders --partitions 3 --config retention.bytes=2000000 --delete-config retention.bytes --dry-run", code: 1},
	{name: "alter", call: "topic alter orders --config retention.ms=30000 --dry-run"},
	{name: "delete-dry", call: "topic delete orders --dry-run"},
	{name: "groups", call: "group list"},
	{name: "group", call: "group describe billing"},
	{name: "group-nothing", call: "group describe billing nope", code: 3},
	{name: "reset-dry", call: "group reset billing --topic orders --to-offset 4 --dry-run"},
	{"reset", "group reset billing --all-topics --shift-by -9", 0, true, ""},
	{name: "disk", call: "disk --by topic --topic orders"},
	{name: "health", call: "health"},
	{name: "doctor", call: "doctor"},
	{"group-delete", "group delete billing nope --yes", 3, true, ""},
}

func (s *scene) play(list []showing, write bool) {
	for _, c := range list {
		if c.call == "FURNISH" {
			s.furnish()
			continue
		}
		formats := []string{"table", "json", "yaml"}
		if c.once {
			formats = formats[:1]
		}
		for _, format := range formats {
			got := runWith(s.t, c.input, s.server, append(strings.Fields(c.call), "-o", format)...)
			assert.Equal(s.t, c.code, got.code, "%s: %s%s", c.call, got.stdout, got.stderr)
			text := plain(got.stdout + got.stderr)
			if format == "json" && c.code == 0 {
				assert.True(s.t, json.Valid([]byte(got.stdout)), "%s", got.stdout)
			}
			file := filepath.Join("testdata", c.name+"."+format)
			if write {
				require.NoError(s.t, os.WriteFile(file, []byte(text), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(s.t, err)
			assert.Equal(s.t, string(want), text, "%s -o %s", c.call, format)
		}
	}
}

func TestWhatIsPrintedStaysTheSame(t *testing.T) {
	s := newScene(t, cluster.Barnabas)
	s.play(shown, *record)
	s.records()
	s.settings()
}

func TestTheSameIsPrintedOfApacheKafka(t *testing.T) {
	lane.Java(t)
	s := newScene(t, cluster.Kafka("3.9.1"))
	s.play(shown, false)
	s.records()
	s.settings()
}
