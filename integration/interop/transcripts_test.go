package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// The transcripts were recorded on Apache Kafka: three brokers, its own tools. Here the same commands run with our tools on our brokers; what they print, their exit codes and the tree that
// they leave in ZooKeeper must be the same, but for what transcripts_text_test.go explains.

func TestStepsOfTheTranscriptsReplay(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		t.Run(version, func(t *testing.T) { newScene(t, version).play() })
	}
}

// scene is one replay.
type scene struct {
	t       *testing.T
	version string
	dir     string // of the transcripts
	zk      string
	c       *cluster.Cluster
	live    *exec.Cmd // a consumer of the group, while it runs
}

func newScene(t *testing.T, version string) *scene {
	zk := zktest.Real(t)
	settings := map[string]string{"auto.leader.rebalance.enable": "false", "default.replication.factor": "1",
		"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
	if version == "2.8.2" {
		settings["inter.broker.protocol.version"] = "2.8"
	}
	dir, err := filepath.Abs(filepath.Join("testdata", "transcripts", version))
	require.NoError(t, err)
	s := &scene{t: t, version: version, dir: dir, zk: zk.Addr()}
	s.c = cluster.StartEach(t, s.zk, 3, settings, func(id int) map[string]string {
		return map[string]string{"broker.rack": string(rune('a' + id - 1))}
	})
	return s
}

// scenarioTools are the commands behind the names of the scenario, and their doors: ZooKeeper where the older release was recorded so.
var scenarioTools = map[string]struct {
	command        string
	zk28, zkAlways bool
}{
	"topics":    {"kafka-topics", true, false},
	"topicsb":   {"kafka-topics", false, false},
	"configs":   {"kafka-configs", false, false},
	"configsz":  {"kafka-configs", true, true},
	"reassign":  {"kafka-reassign-partitions", true, false},
	"reassignb": {"kafka-reassign-partitions", false, false},
	"prefer":    {"kafka-preferred-replica-election", true, false},
	"electl":    {"kafka-leader-election", false, false},
	"getoff":    {"kafka-get-offsets", false, false},
	"delrec":    {"kafka-delete-records", false, false},
	"logdirs":   {"kafka-log-dirs", false, false},
	"groups":    {"kafka-consumer-groups", false, false},
	"ccons":     {"kafka-console-consumer", false, false},
}

func (s *scene) play() {
	files, err := filepath.Glob(filepath.Join(s.dir, "*.txt"))
	require.NoError(s.t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return number(f) == 0 })
	sort.Slice(files, func(i, j int) bool {
		return number(files[i]) < number(files[j]) || number(files[i]) == number(files[j]) && files[i] < files[j]
	})
	played := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		_, step, _ := strings.Cut(name, "-")
		s.before(step)
		if s.step(name, step, file) {
			played++
		}
		s.after(step)
	}
	assert.Greater(s.t, played, len(files)*4/5)
}

func number(file string) int {
	digits, _, _ := strings.Cut(filepath.Base(file), "-")
	n, _ := strconv.Atoi(digits)
	return n
}

// before does what the scenario does between its steps.
func (s *scene) before(step string) {
	switch step {
	case "console-produce":
		in, err := os.ReadFile(filepath.Join(s.dir, "in.txt"))
		require.NoError(s.t, err)
		_, stderr, exit := s.run(in, "kafka-console-producer", "--bootstrap-server", s.c.Brokers[0].Addr, "--topic", "orders", "--property", "parse.key=true", "--property", "key.separator=:")
		require.Equal(s.t, "0", exit, stderr)
	case "groups-describe-live":
		s.live = exec.Command(cluster.Binary(s.t), "kafka-console-consumer", "--bootstrap-server", s.c.Brokers[0].Addr, "--topic", "orders", "--group", "g1")
		require.NoError(s.t, s.live.Start())
		s.t.Cleanup(s.endLive)
	case "groups-reset-dry":
		s.endLive()
		require.Eventually(s.t, func() bool {
			out, _, _ := s.run(nil, "kafka-consumer-groups", "--bootstrap-server", s.c.Brokers[0].Addr, "--describe", "--group", "g1", "--state")
			return strings.Contains(out, "Empty")
		}, settle, 100*time.Millisecond)
	case "topics-describe-broker-down":
		s.c.Brokers[1].Stop(s.t)
	case "topics-describe-before-preferred":
		s.c.Brokers[1].Start(s.t)
		s.c.Brokers[1].WaitReady(s.t)
	}
}

// endLive ends the consumer of the group as an operator does.
func (s *scene) endLive() {
	if s.live != nil {
		_ = s.live.Process.Signal(os.Interrupt)
		_ = s.live.Wait()
		s.live = nil
	}
}

// after takes chance out of the replay: topics whose replicas the tool has placed from a random broker on are made again where the recorded ones were.
func (s *scene) after(step string) {
	topic := map[string]string{"topics-create": "orders", "topics-create-config": "clicks", "topics-create-collide": "a.b"}[step]
	if topic == "" {
		return
	}
	recorded, err := os.ReadFile(filepath.Join(s.dir, "29-znodes-topics.txt"))
	require.NoError(s.t, err)
	var node struct {
		Partitions map[string][]int32 `json:"partitions"`
	}
	for _, line := range strings.Split(string(recorded), "\n") {
		if fields := strings.Split(line, "\t"); fields[0] == zkstate.TopicPath(topic) {
			require.NoError(s.t, json.Unmarshal([]byte(fields[3]), &node))
		}
	}
	require.NotEmpty(s.t, node.Partitions)
	var lists []string
	for id := range s.partitions(topic) { // others are added by a later step
		lists = append(lists, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(node.Partitions[strconv.Itoa(id)])), ":"), "[]"))
	}
	door := s.door("topics")
	_, stderr, exit := s.run(nil, "kafka-topics", append(slices.Clone(door), "--delete", "--topic", topic)...)
	require.Equal(s.t, "0", exit, stderr)
	require.Eventually(s.t, func() bool { return s.partitions(topic) == 0 }, settle, 20*time.Millisecond)
	create := append(slices.Clone(door), "--create", "--topic", topic, "--replica-assignment", strings.Join(lists, ","))
	if topic == "clicks" {
		create = append(create, "--config", "cleanup.policy=compact", "--config", "segment.bytes=1048576")
	}
	_, stderr, exit = s.run(nil, "kafka-topics", create...)
	require.Equal(s.t, "0", exit, stderr)
}

// partitions counts the partitions that the tree has of a topic.
func (s *scene) partitions(topic string) int {
	zk := connect(s.t, s.zk)
	defer zk.Close()
	r, err := zk.One(lane.Patience(s.t), zkstate.Get(zkstate.TopicPath(topic)))
	if errors.Is(err, zkstate.ErrNoNode) {
		return 0
	}
	require.NoError(s.t, err)
	assigned, err := zkstate.DecodeTopicAssignment(r.Data)
	require.NoError(s.t, err)
	return len(assigned.Partitions)
}

func (s *scene) door(tool string) []string {
	if known := scenarioTools[tool]; known.zk28 && s.version == "2.8.2" || known.zkAlways {
		return []string{"--zookeeper", s.zk}
	}
	return []string{"--bootstrap-server", s.c.Brokers[0].Addr}
}

// settle is for how long what only looks may differ from what was recorded: replicas fall out of sync and come back, and the controller works, while the next command runs already.
const settle = patience

// step replays one step and tells whether there was anything to replay.
func (s *scene) step(name, step, file string) bool {
	recorded, err := os.ReadFile(file)
	require.NoError(s.t, err)
	if strings.Contains(step, "znodes") {
		want := explainedTree(string(recorded))
		s.eventually(name, func() []string { return treeDifferences(step, want, explainedTree(tree(s.t, s.zk))) })
		return true
	}
	first, rest, _ := strings.Cut(string(recorded), "\n")
	words := strings.Fields(strings.TrimPrefix(first, "$ "))
	known, ok := scenarioTools[words[0]]
	if !ok {
		return false
	}
	wantOut, wantErr, wantExit := split(rest)
	args := append(s.door(words[0]), words[1:]...)
	look := func() []string {
		out, errs, exit := s.run(nil, known.command, args...)
		diff := differences(s.explainedOutput(step, wantOut), s.explainedOutput(step, out))
		diff = append(diff, differences(explainedError(wantErr), explainedError(errs))...)
		if exit != wantExit {
			diff = append(diff, fmt.Sprintf("exit code %s, recorded was %s", exit, wantExit))
		}
		return diff
	}
	if changes(words) {
		assert.Empty(s.t, look(), name)
	} else {
		s.eventually(name, look)
	}
	return true
}

// changes tells whether a command changes anything, so that it must not be tried twice.
func changes(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains([]string{"--create", "--alter", "--delete", "--execute", "delrec", "prefer", "electl", "ccons", "--delete-offsets"}, word)
	})
}

func (s *scene) eventually(name string, look func() []string) {
	var diff []string
	for deadline := time.Now().Add(settle); time.Now().Before(deadline); {
		if diff = look(); len(diff) == 0 {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	assert.Empty(s.t, diff, name)
}

// run runs one of our commands in the folder of the transcripts, where the files that it names are.
func (s *scene) run(stdin []byte, command string, args ...string) (stdout, stderr, exit string) {
	s.t.Helper()
	cmd := exec.Command(cluster.Binary(s.t), append([]string{command}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stdin = append(os.Environ(), "BARNABAS_COMPAT="+s.version), s.dir, bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil {
		require.ErrorAs(s.t, err, &failed)
	}
	return out.String(), errs.String(), fmt.Sprint(cmd.ProcessState.ExitCode())
}

// differences lists the lines that only one of two texts has.
func differences(want, got string) []string {
	count := map[string]int{}
	for _, line := range strings.Split(want, "\n") {
		count[line]++
	}
	for _, line := range strings.Split(got, "\n") {
		count[line]--
	}
	var diff []string
	for line, n := range count {
		if n > 0 {
			diff = append(diff, "missing: "+line)
		} else if n < 0 {
			diff = append(diff, "surplus: "+line)
		}
	}
	sort.Strings(diff)
	return diff
}

// split takes a transcript apart into what went to standard output and standard error, and the exit code.
func split(text string) (stdout, stderr, exit string) {
	at := strings.LastIndex(text, "[exit ")
	exit = strings.Trim(text[at:], "[]exit \n")
	stdout = text[:at]
	if before, after, ok := strings.Cut(stdout, "[stderr]\n"); ok {
		stdout, stderr = before, after
	}
	return stdout, stderr, exit
}

// tree is the whole of ZooKeeper but for its own nodes, in the transcripts' form: path, kind, data version, data.
func tree(t *testing.T, addr string) string {
	t.Helper()
	zk := connect(t, addr)
	defer zk.Close()
	var lines []string
	var walk func(string)
	walk = func(node string) {
		r, err := zk.One(lane.Patience(t), zkstate.Get(node))
		if errors.Is(err, zkstate.ErrNoNode) {
			return
		}
		require.NoError(t, err)
		if node != "/" {
			kind, data := "persistent", string(r.Data)
			if r.Stat.EphemeralOwner != 0 {
				kind = "ephemeral"
			}
			if r.Data == nil {
				data = "null"
			}
			lines = append(lines, fmt.Sprintf("%s\t%s\tv%d\t%s", node, kind, r.Stat.Version, data))
		}
		listed, err := zk.One(lane.Patience(t), zkstate.Children(node))
		if errors.Is(err, zkstate.ErrNoNode) {
			return
		}
		require.NoError(t, err)
		sort.Strings(listed.Children)
		for _, child := range listed.Children {
			if child != "zookeeper" {
				walk(path.Join(node, child))
			}
		}
	}
	walk("/")
	return strings.Join(lines, "\n")
}
