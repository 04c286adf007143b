package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// Replicas are moved between the log directories of a broker with Apache Kafka's own tools of two releases: begun, watched
// under a throttle, ended by asking for the old place, refused. What the tools print was recorded on a broker of Apache Kafka
// 3.9.1 (testdata/logdirs, written anew with BARNABAS_UPDATE=1, which runs that broker in our place).
func TestKafkasToolsMoveReplicasBetweenDirectories(t *testing.T) {
	for _, version := range []string{"3.9.1", "2.8.2"} {
		t.Run(version, func(t *testing.T) {
			file := filepath.Join("testdata", "logdirs", version+".txt")
			if os.Getenv("BARNABAS_UPDATE") == "1" {
				got := newDirScene(t, version, cluster.Kafka("3.9.1")).play()
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), newDirScene(t, version, cluster.Barnabas).play())
		})
	}
}

// dirScene is one broker with three log directories, and the tools of one release.
type dirScene struct {
	t       *testing.T
	version string
	java    string
	dirs    []string
	broker  *cluster.Broker
	admin   *kadm.Client
	plan    string
	out     strings.Builder
}

func newDirScene(t *testing.T, version string, program cluster.Program) *dirScene {
	s := &dirScene{t: t, version: version, java: lane.Java(t), plan: filepath.Join(t.TempDir(), "plan.json")}
	lane.KafkaJars(t, version)
	root := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		s.dirs = append(s.dirs, filepath.Join(root, name))
	}
	c := cluster.StartProgram(t, program, zktest.Embedded(t).Addr(), 1, map[string]string{"log.dirs": strings.Join(s.dirs, ",")}, func(int) map[string]string { return nil })
	s.broker = c.Brokers[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(s.broker.Addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(256<<10))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	s.admin = kadm.NewClient(client)
	_, err = s.admin.CreateTopic(lane.Patience(t), 3, 1, nil, "moved")
	require.NoError(t, err)
	for p, records := range []int{300, 3, 0} {
		for range records {
			require.NoError(t, client.ProduceSync(lane.Patience(t), &kgo.Record{Topic: "moved", Partition: int32(p), Value: make([]byte, 10_000)}).FirstErr())
		}
	}
	return s
}

// play is the whole script.
func (s *dirScene) play() string {
	const begin, fast, slow = "--execute", "10000000", "1000"
	s.reassign("everything has its place", begin, [3]string{"a", "b", "any"}, "--replica-alter-log-dirs-throttle", fast)
	s.settled()
	s.reassign("and is there", "--verify", [3]string{"a", "b", "any"})
	s.describe("seen")
	s.reassign("slowly elsewhere", begin, [3]string{"b", "b", "any"}, "--replica-alter-log-dirs-throttle", slow)
	s.reassign("under way", "--verify", [3]string{"b", "b", "any"})
	s.describe("seen on its way")
	s.reassign("back again", begin, [3]string{"a", "b", "any"})
	s.settled()
	s.reassign("as if nothing had been", "--verify", [3]string{"a", "b", "any"})
	s.reassign("nowhere", "--verify", [3]string{"a", "nowhere", "any"})
	return s.out.String()
}

// reassign runs the tool with a plan that gives each partition a directory.
func (s *dirScene) reassign(what, action string, places [3]string, more ...string) {
	var parts []string
	for p, place := range places {
		if place != "any" {
			place = filepath.Join(filepath.Dir(s.dirs[0]), place)
		}
		parts = append(parts, fmt.Sprintf(`{"topic":"moved","partition":%d,"replicas":[1],"log_dirs":[%q]}`, p, place))
	}
	require.NoError(s.t, os.WriteFile(s.plan, []byte(`{"version":1,"partitions":[`+strings.Join(parts, ",")+`]}`), 0o600))
	class := "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
	if s.version == "2.8.2" {
		class = "kafka.admin.ReassignPartitionsCommand"
	}
	s.tool(what, class, append([]string{action, "--reassignment-json-file", s.plan}, more...)...)
}

func (s *dirScene) describe(what string) {
	class := "org.apache.kafka.tools.LogDirsCommand"
	if s.version == "2.8.2" {
		class = "kafka.admin.LogDirsCommand"
	}
	s.tool(what, class, "--describe", "--topic-list", "moved")
}

func (s *dirScene) tool(what, class string, args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lib := lane.KafkaJars(s.t, s.version)
	cmd := exec.CommandContext(ctx, s.java, append([]string{"-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", filepath.Join(lib, "*"), class, "--bootstrap-server", s.broker.Addr}, args...)...)
	text, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(s.t, err)
	}
	fmt.Fprintf(&s.out, "== %s\n%s[exit %d]\n", what, s.plainly(string(text)), cmd.ProcessState.ExitCode())
}

var (
	onItsWay  = regexp.MustCompile(`"size":\d+,"offsetLag":[1-9]\d*,"isFuture":true`)
	inJSON    = regexp.MustCompile(`\{"partition":"moved-\d","size":\d+,"offsetLag":\d+,"isFuture":(true|false)\}|\{"partition":"moved-\d","size":N,"offsetLag":N,"isFuture":true\}`)
	inDirs    = regexp.MustCompile(`"logDir":"[^"]*"`)
	noise     = regexp.MustCompile(`(?m)^(SLF4J|log4j).*\n`)
	anyOfThem = regexp.MustCompile(`\{"partition":"moved-2"[^}]*\},?`)
)

// plainly takes out what differs from run to run: where the directories are, how far a copy is, where an empty partition
// was put, and the order of what comes in none.
func (s *dirScene) plainly(text string) string {
	text = noise.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, filepath.Dir(s.dirs[0]), "")
	text = onItsWay.ReplaceAllString(text, `"size":N,"offsetLag":N,"isFuture":true`)
	text = anyOfThem.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, ",]", "]")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, `{"version":1,"brokers"`) || strings.HasPrefix(line, `{"brokers"`) {
			parts := inJSON.FindAllString(line, -1)
			sort.Strings(parts)
			dirs := inDirs.FindAllString(line, -1)
			sort.Strings(dirs)
			lines[i] = strings.Join(parts, "\n") + "\n" + strings.Join(dirs, " ")
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// settled waits until nothing is on its way.
func (s *dirScene) settled() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		all, err := s.admin.DescribeAllLogDirs(lane.Patience(s.t), kadm.TopicsSet{"moved": {0: {}, 1: {}, 2: {}}})
		if err != nil {
			return false
		}
		moving := false
		all.Each(func(d kadm.DescribedLogDir) {
			for _, topic := range d.Topics {
				for _, p := range topic {
					moving = moving || p.IsFuture
				}
			}
		})
		return !moving
	}, patience, 20*time.Millisecond)
}
