package interop

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// The clients' own test suites, as their authors run them against Apache Kafka, run against our brokers. Each runs the tests that testdata/suites names: those that need nothing that is not
// served yet. A suite that silently runs less fails: the number that must pass stands here.

// suite is the test suite of one client library.
type suite struct {
	module  string   // at the version of go.mod
	list    string   // in testdata/suites: the tests that are run, one a line
	pass    int      // tests and subtests that pass at least
	replace []string // in its test files, old and new by turns: addresses that are written into them
	skip    string   // of those, in the form of go test
	pkg     string
	tags    string
	env     []string
}

// sources copies the module so that its tests can be changed and run.
func (s suite) sources(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", s.module).Output()
	require.NoError(t, err)
	from := strings.TrimSpace(string(out))
	require.NotEmpty(t, from, "the sources of %s are in the module cache", s.module)
	to, here := t.TempDir(), strings.NewReplacer(s.replace...)
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	require.NoError(t, filepath.Walk(to, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if info.IsDir() {
			return os.Chmod(path, 0o755)
		}
		if err := os.Chmod(path, 0o644); err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(here.Replace(string(text))), 0o644)
	}))
	return to
}

// event is one line of go test -json.
type event struct{ Action, Test, Output string }

func (s suite) run(t *testing.T) {
	t.Helper()
	names, err := os.ReadFile(filepath.Join("testdata", "suites", s.list))
	require.NoError(t, err)
	dir := s.sources(t)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-mod=mod", "-json", "-count=1", "-timeout", "10m", "-tags", s.tags, "-run", "^("+strings.Join(strings.Fields(string(names)), "|")+")$", "-skip", cmp.Or(s.skip, "^$"), s.pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(s.env, "GOFLAGS=-buildvcs=false", "GOWORK=off")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	failed := cmd.Run()

	passed, output, open := 0, map[string]*strings.Builder{}, map[string]bool{}
	var failures, skipped []string
	for lines := bufio.NewReader(&stdout); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch e.Action {
		case "run":
			open[e.Test] = true
		case "pass", "fail", "skip":
			delete(open, e.Test)
		}
		switch e.Action {
		case "output":
			if output[e.Test] == nil {
				output[e.Test] = &strings.Builder{}
			}
			output[e.Test].WriteString(e.Output)
		case "pass":
			if e.Test != "" {
				passed++
			}
		case "fail":
			if e.Test != "" {
				failures = append(failures, e.Test)
			}
		case "skip":
			skipped = append(skipped, e.Test)
		}
	}
	for name := range open { // begun and never ended: a panic, or the time is over
		failures = append(failures, name)
	}
	sort.Strings(failures)
	t.Logf("%s: %d passed, %d failed, %d skipped %v", s.module, passed, len(failures), len(skipped), skipped)
	for _, name := range failures {
		t.Errorf("%s: %s failed:\n%s", s.module, name, ending(fmt.Sprint(output[name])))
	}
	if len(failures) == 0 {
		require.NoError(t, failed, "%s\n%s", ending(stderr.String()), ending(fmt.Sprint(output[""])))
	}
	assert.GreaterOrEqual(t, passed, s.pass, "tests of %s that passed", s.module)
}

// ending is the end of a long text.
func ending(text string) string { return text[max(0, len(text)-3000):] }

func needSuites(t *testing.T) {
	t.Helper()
	lane.Need(t, lane.Required(), "BARNABAS_REQUIRE=1: the suites of other projects bring modules of their own")
}

// Needs only what `quickstart` gives: one broker.
func TestTheSuiteOfFranzGo(t *testing.T) {
	needSuites(t)
	addr := quickstart(t)
	suite{
		module: "github.com/twmb/franz-go", list: "franz-go.txt", pass: 530, pkg: "./pkg/kgo",
		env: []string{"KGO_SEEDS=" + addr, "KGO_TEST_RF=1", "KGO_TEST_RECORDS=20000"},
	}.run(t)
}

// quickstart starts what a newcomer starts and returns the broker's address.
func quickstart(t *testing.T) string {
	t.Helper()
	port := cluster.Port(t)
	cmd := exec.Command(cluster.Binary(t), "quickstart", "--console-port", "0", "--data", filepath.Join(t.TempDir(), "data"), "--port", fmt.Sprint(port), "--zookeeper-port", fmt.Sprint(cluster.Port(t)))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.NoError(t, cmd.Wait())
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Barnabas is running") {
			go func() { _, _ = bufio.NewReader(out).WriteTo(&bytes.Buffer{}) }()
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Fatal("quickstart said nothing")
	return ""
}

func TestTheSuiteOfKafkaGo(t *testing.T) {
	needSuites(t)
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, map[string]string{"message.max.bytes": "200000000", "num.partitions": "1", "advertised.listeners": "PLAINTEXT://localhost:${port}"})
	_, port, err := net.SplitHostPort(c.Brokers[0].Addr)
	require.NoError(t, err)
	suite{
		module: "github.com/segmentio/kafka-go", list: "kafka-go.txt", pass: 440, skip: "^TestWriter$/SASL", pkg: ".", replace: []string{"9092", port, `TCP("localhost"))`, `TCP("localhost:` + port + `"))`},
		env: []string{"KAFKA_VERSION=3.9.1", "KAFKA_SKIP_NETTEST=1"},
	}.run(t)
}

func TestTheSuiteOfIBMSarama(t *testing.T) {
	saramaSuite(t, suite{module: "github.com/IBM/sarama", list: "ibm-sarama.txt", pass: 61})
}

// This older suite writes the message sets of before Kafka 0.11 too.
func TestTheSuiteOfShopifySarama(t *testing.T) {
	saramaSuite(t, suite{module: "github.com/Shopify/sarama", list: "shopify-sarama.txt", pass: 19})
}

// saramaSuite runs a suite against five brokers behind a proxy that the suite controls.
func saramaSuite(t *testing.T, s suite) {
	needSuites(t)
	base := lane.Ports(t, 6)
	listen, upstream := map[string]string{}, map[string]string{}
	inside := map[int]string{}
	cluster.StartEach(t, zktest.Embedded(t).Addr(), 5, map[string]string{
		"auto.create.topics.enable": "false", "default.replication.factor": "2", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT", "inter.broker.listener.name": "PLAINTEXT",
		"replica.lag.time.max.ms": "10000",
	}, func(id int) map[string]string {
		inside[id] = fmt.Sprintf("127.0.0.1:%d", cluster.Port(t))
		return map[string]string{
			"listeners":            "PLAINTEXT://${addr},OUTSIDE://" + inside[id],
			"advertised.listeners": fmt.Sprintf("PLAINTEXT://${addr},OUTSIDE://localhost:%d", base+id), "broker.rack": fmt.Sprint(id % 3),
		}
	})
	for id := 1; id <= 5; id++ {
		name := fmt.Sprintf("kafka%d", id)
		listen[name], upstream[name] = fmt.Sprintf("127.0.0.1:%d", base+id), inside[id]
	}
	x := startToxiproxy(t, listen, upstream)
	s.pkg, s.tags = ".", "functional"
	s.replace = []string{"29090+i", fmt.Sprintf("%d+i", base)}
	s.env = []string{"TOXIPROXY_ADDR=" + x.http.URL, "KAFKA_VERSION=3.9.1"}
	s.run(t)
}
