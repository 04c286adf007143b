package neighbours

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/lane"
	"barnabas/zkstate"
)

// patience is longer than any program takes on a busy machine; pace is how often something that must come is looked for.
const (
	patience = 3 * time.Minute
	pace     = 100 * time.Millisecond
)

// line is what was taken down at one place of a scene.
type line struct{ what, text string }

// scene is one program's visit to one side.
type scene struct {
	*testing.T
	*side
	bin   string // where the programs are
	dir   string
	env   []string
	since time.Time
	said  []line
}

// programs is the folder of the foreign programs that no system package has: $BARNABAS_NEIGHBOURS, or barnabas-neighbours in the folder for temporary files.
func programs(t testing.TB) string {
	t.Helper()
	root := os.Getenv("BARNABAS_NEIGHBOURS")
	if root == "" {
		root = filepath.Join(os.TempDir(), "barnabas-neighbours")
	}
	_, err := os.Stat(root)
	lane.Need(t, err == nil, "the operators' programs in "+root+" (.ci/neighbours brings them)")
	return root
}

func newScene(t *testing.T, s *side) *scene {
	return &scene{T: t, side: s, bin: programs(t), dir: t.TempDir(), since: time.Now().Add(-time.Hour)}
}

// program is the path of one of them.
func (s *scene) program(name string) string {
	s.Helper()
	path := filepath.Join(s.bin, name)
	_, err := os.Stat(path)
	lane.Need(s, err == nil, path)
	return path
}

// file writes a file into the scene's folder.
func (s *scene) file(name, text string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// try runs a program to its end and returns what it printed and its exit code; stdin are its user's answers.
func (s *scene) try(stdin, program string, args ...string) (string, int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, append(os.Environ(), s.env...), strings.NewReader(stdin)
	lane.Bind(cmd)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatalf("%s %v: %v", program, args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// run is try for a program that has to succeed.
func (s *scene) run(stdin, program string, args ...string) string {
	s.Helper()
	out, code := s.try(stdin, program, args...)
	require.Zero(s, code, "%s %v:\n%s", program, args, out)
	return out
}

// say takes something down.
func (s *scene) say(what, text string) { s.said = append(s.said, line{what, s.mask(text)}) }

// serve starts a program that goes on until the scene ends.
func (s *scene) serve(program string, args ...string) {
	s.Helper()
	var out bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, append(os.Environ(), s.env...), &out, &out
	lane.Bind(cmd)
	require.NoError(s, cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		overdue := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		overdue.Stop()
		if s.Failed() {
			s.Logf("end of what %s said:\n%s", filepath.Base(program), out.Bytes()[max(0, out.Len()-6000):])
		}
	})
}

// await asks over HTTP until the answer is as it has to be, and returns it.
func (s *scene) await(url string, is func(body string) bool) string {
	s.Helper()
	client := &http.Client{Timeout: time.Minute}
	last := ""
	for deadline := time.Now().Add(patience); ; time.Sleep(pace) {
		if resp, err := client.Get(url); err != nil {
			last = err.Error()
		} else {
			body, err := io.ReadAll(resp.Body)
			require.NoError(s, errors.Join(err, resp.Body.Close()))
			if last = string(body); resp.StatusCode == http.StatusOK && is(last) {
				return last
			}
		}
		require.False(s, time.Now().After(deadline), "%s does not become what it should be:\n%s", url, last)
	}
}

// allOf is for await: whether the answer has lines that match each of these.
func allOf(patterns ...string) func(string) bool {
	return func(body string) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool { return !regexp.MustCompile(`(?m)` + p).MatchString(body) })
	}
}

// until waits for a condition on the cluster.
func (s *scene) until(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(pace) {
		require.False(s, time.Now().After(deadline), "waiting until %s", what)
	}
}

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	dates   = regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?(Z| ?[+-]\d\d:?\d\d)?`)
	numbers = regexp.MustCompile(`\d+`) // whole ones: a port may stand within a longer one
	millis  = regexp.MustCompile(`\b\d{13}\b`)
	ids     = regexp.MustCompile(`[A-Za-z0-9_+/-]+`) // of clusters and topics, if they have 22 characters: a dash may come first
)

// mask makes the same of what differs between two clusters, or two runs: addresses, folders, random ids and times of now. Fixed times of records stay.
func (s *scene) mask(text string) string {
	text = s.places.Replace(strings.ReplaceAll(text, s.dir, "HERE"))
	text = numbers.ReplaceAllStringFunc(text, func(n string) string { return cmp.Or(s.ports[n], n) })
	text = uuids.ReplaceAllString(text, "UUID")
	text = ids.ReplaceAllStringFunc(text, func(id string) string {
		if len(id) != 22 || strings.ToLower(id) == id { // a name
			return id
		}
		return "A-RANDOM-ID-OF-22-CHAR"
	})
	text = dates.ReplaceAllStringFunc(text, func(at string) string {
		if strings.HasPrefix(at, strconv.Itoa(began.Year())) {
			return at
		}
		return "WHEN"
	})
	return millis.ReplaceAllStringFunc(text, func(at string) string {
		if n, err := strconv.ParseInt(at, 10, 64); err != nil || n < s.since.UnixMilli() {
			return at
		}
		return "MILLIS"
	})
}

// sorted is a text with its lines in order, without those that match none of the patterns.
func sorted(text string, patterns ...string) string {
	var kept []string
	for l := range strings.Lines(text) {
		if slices.ContainsFunc(patterns, func(p string) bool { return regexp.MustCompile(p).MatchString(l) }) {
			kept = append(kept, strings.TrimSpace(l))
		}
	}
	sort.Strings(kept)
	return strings.Join(kept, "\n")
}

// canonical is a document of JSON with what has no order in order; numbers stay where they are, as the order of replicas means something. What is no JSON is left as it is.
func canonical(text string) string {
	var document any
	if json.Unmarshal([]byte(text), &document) != nil {
		return text
	}
	var order func(x any) any
	order = func(x any) any {
		switch x := x.(type) {
		case map[string]any:
			for k, v := range x {
				x[k] = order(v)
			}
		case []any:
			numbers := true
			for i := range x {
				x[i] = order(x[i])
				_, is := x[i].(float64)
				numbers = numbers && is
			}
			if !numbers {
				slices.SortFunc(x, func(a, b any) int { return strings.Compare(marshalled(a), marshalled(b)) })
			}
		}
		return x
	}
	indented, err := json.MarshalIndent(order(document), "", " ")
	if err != nil {
		return err.Error()
	}
	return string(indented)
}

func marshalled(x any) string {
	text, err := json.Marshal(x)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// node is what stands in a znode, with the keys of JSON in order; "none" if it is not there.
func (s *scene) node(path string) string {
	s.Helper()
	results, err := s.tree.Do(lane.Patience(s), []zkstate.Op{zkstate.Get(path)})
	require.NoError(s, err)
	if errors.Is(results[0].Err, zkstate.ErrNoNode) {
		return "none"
	}
	require.NoError(s, results[0].Err)
	var fields map[string]any
	if json.Unmarshal(results[0].Data, &fields) != nil {
		return string(results[0].Data)
	}
	for _, random := range []string{"topic_id", "leader_epoch", "controller_epoch", "timestamp"} { // how often there was an election depends on what happened first
		if _, is := fields[random]; is {
			fields[random] = "SOME"
		}
	}
	if isr, is := fields["isr"].([]any); is { // the order in which replicas caught up
		slices.SortFunc(isr, func(a, b any) int { return int(a.(float64) - b.(float64)) })
	}
	return marshalled(fields)
}

func (s *scene) children(path string) []string {
	s.Helper()
	results, err := s.tree.Do(lane.Patience(s), []zkstate.Op{zkstate.Children(path)})
	require.NoError(s, err)
	require.NoError(s, results[0].Err)
	names := slices.Clone(results[0].Children)
	slices.Sort(names)
	return names
}

// put makes a znode with those above it.
func (s *scene) put(path, data string) {
	s.Helper()
	var ops []zkstate.Op
	for i, c := range path[1:] {
		if c == '/' {
			ops = append(ops, zkstate.Create(path[:i+1], nil))
		}
	}
	results, err := s.tree.Do(lane.Patience(s), append(ops, zkstate.Create(path, []byte(data))))
	require.NoError(s, err)
	require.NoError(s, results[len(results)-1].Err)
}

// settled waits until the controller has nothing to do for administrators.
func (s *scene) settled() {
	s.Helper()
	s.until("the controller has carried out what was asked of it", func() bool {
		if s.node(zkstate.ReassignPartitionsPath) != "none" || s.node(zkstate.PreferredReplicaElectionPath) != "none" || len(s.children(zkstate.DeleteTopicsPath)) > 0 {
			return false
		}
		moving, err := kmsg.NewPtrListPartitionReassignmentsRequest().RequestWith(lane.Patience(s), s.client)
		require.NoError(s, err)
		return len(moving.Topics) == 0
	})
}

// topic takes down all that ZooKeeper holds of a topic, when nothing moves any more and all replicas are in sync.
func (s *scene) topic(name string, partitions, replicas int) {
	s.Helper()
	s.settled()
	s.WaitWhole(s.T, name, partitions, replicas)
	text := s.node("/brokers/topics/"+name) + "\n" + s.node("/config/topics/"+name) + "\n"
	for p := range partitions {
		text += s.node("/brokers/topics/"+name+"/partitions/"+strconv.Itoa(p)+"/state") + "\n"
	}
	s.say("the tree of "+name, text)
}

// delete removes a topic and waits until ZooKeeper has forgotten it.
func (s *scene) delete(topic string) {
	s.Helper()
	_, err := s.admin.DeleteTopics(lane.Patience(s), topic)
	require.NoError(s, err)
	s.until(topic+" is gone", func() bool { return s.node("/brokers/topics/"+topic) == "none" })
}
