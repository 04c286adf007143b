package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// The transcripts were recorded on Apache Kafka: three brokers, its own tools. Here the same commands run with our tools on our brokers; what they print, their exit codes and the tree that
// they leave in ZooKeeper must be the same, but for what is random (topic ids, where replicas begin) or of the moment (times, ports).

var (
	topicIDs  = regexp.MustCompile(`(TopicId: |"topic_id":"|"id":")[A-Za-z0-9_-]{22}`)
	moments   = regexp.MustCompile(`"timestamp":"[0-9]+"`)
	endpoints = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
	ports     = regexp.MustCompile(`"port":[0-9]+`)
	arrays    = regexp.MustCompile(`\[I@[0-9a-f]+|\[3\]$`) // a Java array's address in 2.8.2's message
)

// plain takes out what differs from run to run.
func plain(text string) string {
	text = topicIDs.ReplaceAllString(text, "${1}ID")
	text = moments.ReplaceAllString(text, `"timestamp":"T"`)
	text = endpoints.ReplaceAllString(text, "127.0.0.1:PORT")
	text = ports.ReplaceAllString(text, `"port":PORT`)
	return arrays.ReplaceAllString(text, "ARRAY")
}

var (
	describedPartition = regexp.MustCompile(`^(\tTopic: (\S+)\tPartition: \d+)\tLeader: (\d+)\tReplicas: ([\d,]+)\tIsr: ([\d,]+)`)
	assignedNode       = regexp.MustCompile(`"partitions":\{[^}]*\}`)
	stateNode          = regexp.MustCompile(`"leader":\d+(.*)"isr":\[[\d,]+\]`)
	ids                = regexp.MustCompile(`\d+`)
)

// placed takes out which brokers a topic got where that was left to chance, and keeps how many.
func placed(line string) string {
	random := func(topic string) bool { return topic != "manual" && topic != "badc" }
	if m := describedPartition.FindStringSubmatch(line); m != nil && random(m[2]) {
		return m[1] + "\tLeader: B\tReplicas: " + ids.ReplaceAllString(m[4], "B") + "\tIsr: " + ids.ReplaceAllString(m[5], "B") + line[len(m[0]):]
	}
	node, _, _ := strings.Cut(line, "\t")
	if parts := strings.Split(node, "/"); strings.HasPrefix(node, "/brokers/topics/") && random(parts[3]) {
		line = assignedNode.ReplaceAllStringFunc(line, func(s string) string {
			return regexp.MustCompile(`\[[\d,]*\]`).ReplaceAllStringFunc(s, func(list string) string { return ids.ReplaceAllString(list, "B") })
		})
		line = stateNode.ReplaceAllStringFunc(line, func(s string) string {
			s = regexp.MustCompile(`"leader":\d+`).ReplaceAllString(s, `"leader":B`)
			return regexp.MustCompile(`\[[\d,]*\]`).ReplaceAllStringFunc(s, func(list string) string { return ids.ReplaceAllString(list, "B") })
		})
	}
	if node == "/controller" {
		line = regexp.MustCompile(`"brokerid":\d+`).ReplaceAllString(line, `"brokerid":B`)
	}
	return line
}

// comparable brings a text into a form that two runs share. The order of topics in a description through brokers is that of a Java map, so whole topics are sorted.
func comparableText(text string) string {
	var blocks []string
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		line = placed(plain(line))
		if strings.HasPrefix(line, "\t") && len(blocks) > 0 {
			blocks[len(blocks)-1] += "\n" + line
		} else {
			blocks = append(blocks, line)
		}
	}
	sort.Strings(blocks)
	return strings.Join(blocks, "\n")
}

func TestTopicStepsOfTheTranscriptsReplay(t *testing.T) {
	for _, version := range []string{"2.8.2", "3.9.1"} {
		t.Run(version, func(t *testing.T) { replay(t, version) })
	}
}

func replay(t *testing.T, version string) {
	zk := zktest.Real(t)
	settings := map[string]string{"auto.leader.rebalance.enable": "false", "default.replication.factor": "1"}
	if version == "2.8.2" {
		settings["inter.broker.protocol.version"] = "2.8"
	}
	c := cluster.StartEach(t, zk.Addr(), 3, settings, func(id int) map[string]string {
		return map[string]string{"broker.rack": string(rune('a' + id - 1))}
	})
	door := []string{"--bootstrap-server", c.Bootstrap()}
	if version == "2.8.2" {
		door = []string{"--zookeeper", zk.Addr()}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "transcripts", version, "*.txt"))
	require.NoError(t, err)
	steps := 0
	for _, file := range files { // names begin with two digits: their order is the scenario's
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := filepath.Base(file)
		if strings.Contains(name, "znodes") {
			diff := differences(comparableText(explained(string(text))), comparableText(explained(tree(t, zk.Addr()))))
			if strings.Contains(name, "fresh") { // recorded while those clusters were still starting
				diff = slices.DeleteFunc(diff, func(d string) bool {
					return regexp.MustCompile(`^surplus: /(controller|controller_epoch|feature|brokers/ids/\d)\t`).MatchString(d)
				})
			}
			assert.Empty(t, diff, name)
			steps++
			continue
		}
		first, rest, _ := strings.Cut(string(text), "\n")
		args, ok := strings.CutPrefix(first, "$ topics ")
		if !ok {
			continue
		}
		wantOut, wantErr, wantExit := split(rest)
		gotOut, gotErr, gotExit := runTopics(t, version, append(append([]string{}, door...), strings.Fields(args)...))
		assert.Empty(t, differences(comparableText(wantOut), comparableText(gotOut)), name)
		assert.Equal(t, wantExit, gotExit, name)
		if wantErr != "" {
			assert.Equal(t, firstLine(wantErr), firstLine(gotErr), name)
		}
		steps++
	}
	assert.GreaterOrEqual(t, steps, 28)
}

// explained takes out differences of the tree that are meant.
func explained(text string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		switch node, _, _ := strings.Cut(line, "\t"); node {
		case "/controller": // whatever the protocol version between brokers, we write what Kafka 3.9 writes
			line = strings.Replace(strings.Replace(line, `"version":2`, `"version":1`, 1), `,"kraftControllerEpoch":-1`, "", 1)
		case "/latest_producer_id_block": // Kafka 2.8 takes a block at each start, we do when the first producer asks
			line = node
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
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

func firstLine(text string) string { line, _, _ := strings.Cut(text, "\n"); return line }

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

func runTopics(t *testing.T, version string, args []string) (stdout, stderr, exit string) {
	t.Helper()
	cmd := exec.Command(cluster.Binary(t), append([]string{"kafka-topics"}, args...)...)
	cmd.Env = append(os.Environ(), "BARNABAS_COMPAT="+version)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &failed)
	}
	return out.String(), errs.String(), fmt.Sprint(cmd.ProcessState.ExitCode())
}

// tree is the whole of ZooKeeper but for its own nodes, in the transcripts' form: path, kind, data version, data.
func tree(t *testing.T, addr string) string {
	t.Helper()
	zk := connect(t, addr)
	defer zk.Close()
	var lines []string
	var walk func(string)
	walk = func(node string) {
		r, err := zk.One(context.Background(), zkstate.Get(node))
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
		listed, err := zk.One(context.Background(), zkstate.Children(node))
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
