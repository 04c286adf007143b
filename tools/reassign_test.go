package tools

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"barnabas/admin/cluster"
	"barnabas/admin/plan"
)

func firstLine(text string) string { line, _, _ := strings.Cut(text, "\n"); return line }

func runReassign(args ...string) ran {
	return runCommand(func(args []string, out, errs *bytes.Buffer) int { return ReassignPartitions(args, nil, out, errs) }, args...)
}

func TestReassignRefusesCallsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--bootstrap-server", "b"}, "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"},
		{[]string{"--bootstrap-server", "b", "--list", "--verify"}, "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"},
		{[]string{"--list"}, "Please specify --bootstrap-server"},
		{[]string{"--bootstrap-server", "b", "--verify"}, `Missing required argument "[reassignment-json-file]"`},
		{[]string{"--bootstrap-server", "b", "--generate", "--topics-to-move-json-file", "f"}, `Missing required argument "[broker-list]"`},
		{[]string{"--bootstrap-server", "b", "--list", "--throttle", "5"}, `Option "[throttle]" can't be used with action "[list]"`},
		{[]string{"--zookeeper", "z", "--list"}, `Option "[zookeeper]" can't be used with action "[list]"`},
		{[]string{"--zookeeper", "z", "--execute", "--reassignment-json-file", "f", "--additional"}, `Exception in thread "main" java.lang.RuntimeException: You must specify --bootstrap-server when using "[additional]"`},
		{[]string{"--nosuch"}, `Exception in thread "main" joptsimple.UnrecognizedOptionException: nosuch is not a recognized option`},
	} {
		got := runReassign(c.args...)
		assert.Equal(t, 1, got.code, c.args)
		assert.Equal(t, c.want, firstLine(got.stderr), c.args)
	}
	t.Setenv("BARNABAS_COMPAT", "3.9")
	assert.Contains(t, runReassign("--zookeeper", "z", "--list").stderr, "zookeeper is not a recognized option")
}

// BR-044: what has the wrong type or shape is refused with a line that names it, before anything is written.
func TestMalformedReassignmentsAreRefusedByName(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"partition as text", `{"version":1,"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}`, `Expected a whole number at partitions[0].partition, but it is the text "0"`},
		{"replicas as texts", `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":["1","2"]}]}`, `Expected a whole number at partitions[0].replicas[0], but it is the text "1"`},
		{"no replicas", `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[]}]}`, "Partition replica list cannot be empty: t-0"},
		{"replica twice", `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}`, "Partition replica lists may not contain duplicate entries: t-0 contains multiple entries for 1"},
		{"partition twice", `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]},{"topic":"t","partition":0,"replicas":[2]}]}`, "Partition reassignment contains duplicate topic partitions: t-0"},
		{"version 2", `{"version":2,"partitions":[]}`, "Not supported version field value 2"},
		{"version as text", `{"version":"1","partitions":[]}`, `Expected a whole number at version, but it is the text "1"`},
		{"nothing to do", `{"version":1,"partitions":[]}`, "Partition reassignment list cannot be empty"},
		{"no partitions", `{"version":1}`, "Partition reassignment list cannot be empty"},
		{"no topic", `{"version":1,"partitions":[{"partition":0,"replicas":[1]}]}`, "No such field exists: `topic` at partitions[0]"},
		{"topic as number", `{"version":1,"partitions":[{"topic":1,"partition":0,"replicas":[1]}]}`, "Expected a text at partitions[0].topic, but it is 1"},
		{"negative partition", `{"version":1,"partitions":[{"topic":"t","partition":-1,"replicas":[1]}]}`, "Expected a whole number from 0 to 2147483647 at partitions[0].partition, but it is -1"},
		{"broken number", `{"version":1,"partitions":[{"topic":"t","partition":0.5,"replicas":[1]}]}`, "Expected a whole number from 0 to 2147483647 at partitions[0].partition, but it is 0.5"},
		{"large broker", `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2147483648]}]}`, "Expected a whole number from 0 to 2147483647 at partitions[0].replicas[0], but it is 2147483648"},
		{"trailing comma", `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1]},]}`, "The input string is not a valid JSON: invalid character ']' looking for beginning of value at line 1, column 71"},
		{"empty", ``, "The input string is not a valid JSON: it is empty"},
		{"cut off", `{"version":1,`, "The input string is not a valid JSON: it ends too early"},
		{"a list", `[]`, "Expected a JSON object, but it is a list"},
		{"more after it", `{} {}`, "The input string is not a valid JSON: more follows after its end at line 1, column 5"},
		{"directories of unequal length", `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any"]}]}`, "Size of replicas list Buffer(1, 2) is different from size of log dirs list Buffer(any) for partition t-0"},
		{"directory as number", `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":[5]}]}`, "Expected a text at partitions[0].log_dirs[0], but it is 5"},
	} {
		parsed, err := parseJSON([]byte(c.text))
		if err == nil {
			_, err = readReassignmentToExecute(parsed)
		}
		assert.EqualError(t, err, c.want, c.name)
	}
}

func TestUnknownFieldsAndAMissingVersionAreAccepted(t *testing.T) {
	v, err := parseJSON([]byte(`{"owner":"me","partitions":[{"topic":"t","partition":0,"replicas":[2,1],"log_dirs":["any","/d"],"note":[]}]}`))
	require.NoError(t, err)
	f, err := readReassignmentToExecute(v)
	require.NoError(t, err)
	assert.Equal(t, plan.Assignment{{Topic: "t", ID: 0}: {2, 1}}, f.targets())
	assert.Equal(t, map[cluster.Replica]string{{Partition: plan.Partition{Topic: "t", ID: 0}, Broker: 1}: "/d"}, f.dirs)
}

func TestWhatIsNoJSONAtAllIsRefusedInTheOriginalsWords(t *testing.T) {
	_, err := parseJSON([]byte("not json\n"))
	assert.EqualError(t, err, "Unrecognized token 'not': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')\n at [Source: (String)\"not json\n\"; line: 1, column: 4]")
	t.Setenv("BARNABAS_COMPAT", "3.9")
	_, err = parseJSON([]byte("{\n\"a\": nope}"))
	assert.EqualError(t, err, "Unrecognized token 'nope': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 2, column: 10]")
}

func FuzzReassignmentFile(f *testing.F) {
	for _, seed := range []string{`{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1],"log_dirs":["any","/d"]}]}`, `not json`, `{"a":`, `[]`, ``, "{\"partitions\":[{\"\xff\":1}]}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := parseJSON(data)
		if err != nil {
			return
		}
		asked, err := readReassignmentToExecute(v)
		if err != nil {
			return
		}
		again, err := parseJSON([]byte(reassignmentJSON(asked.targets())))
		require.NoError(t, err)
		back, err := readReassignmentToExecute(again)
		require.NoError(t, err)
		assert.Equal(t, asked.targets(), back.targets())
	})
}

func TestAChangedReplicationFactorIsRefusedOnRequest(t *testing.T) {
	p := plan.Partition{Topic: "t", ID: 1}
	assert.NoError(t, sameFactors(plan.Assignment{p: {1, 2}}, plan.Assignment{p: {3, 2, 1}}, cluster.Moves{p: {Adding: []int32{3}}}))
	assert.EqualError(t, sameFactors(plan.Assignment{p: {1, 2, 3}}, plan.Assignment{p: {2, 1}}, nil), "Error reassigning partition(s):\nt-1: The replication factor is changed from 2 to 3")
}

func TestProgressTellsRateAndEnd(t *testing.T) {
	var pace cluster.Pace
	for i := range 60 {
		pace.See(time.Unix(1000+int64(i), 0), int64(100_000_000-i*1_000_000))
	}
	assert.Equal(t, "2 partitions moving, 41.0 MB left, 1.0 MB/s, about 41s to go", remaining{2, 0, 41_000_000}.line(&pace))
	var none cluster.Pace
	assert.Equal(t, "1 partition moving, 3 between directories, 41 B left", remaining{1, 3, 41}.line(&none))
	assert.Equal(t, "1 partition moving", remaining{1, 0, -1}.line(&none))
}

func TestADirectoryMoveIsToldByItsState(t *testing.T) {
	r := cluster.Replica{Partition: plan.Partition{Topic: "big", ID: 0}, Broker: 1}
	for want, s := range map[string]dirState{
		"Reassignment of replica big-0-1 completed successfully.":                                                               {"/b", "/b", ""},
		"Reassignment of replica big-0-1 is still in progress.":                                                                 {"/b", "/a", "/b"},
		"Partition big-0 on broker 1 is being moved to log dir /c instead of /b.":                                               {"/b", "/a", "/c"},
		"Partition big-0 on broker 1 is not being moved from log dir /a to /b.":                                                 {"/b", "/a", ""},
		"Partition big-0 is not found in any live log dir on broker 1. There is likely an offline log directory on the broker.": {"/b", "", ""},
	} {
		assert.Equal(t, want, s.line(r))
	}
}

// fakeCluster is a door to a cluster that is only these fields.
type fakeCluster struct {
	alive     []plan.Broker
	at        plan.Assignment
	moves     cluster.Moves
	refuse    map[plan.Partition]error
	throttles map[string]cluster.ThrottledReplicas
	rates     map[int32]map[string]string
	steps     int // looks at what is active until all is done
}

func (c *fakeCluster) close()                          {}
func (c *fakeCluster) brokers() ([]plan.Broker, error) { return c.alive, nil }
func (c *fakeCluster) replicas(topics []string) (plan.Assignment, map[string]error, error) {
	return c.at, nil, nil
}
func (c *fakeCluster) active() (cluster.Moves, error) {
	if c.steps--; c.steps <= 0 {
		for p, m := range c.moves {
			c.at[p] = plan.Without(m.Replicas, m.Removing)
		}
		c.moves = nil
	}
	return c.moves, nil
}
func (c *fakeCluster) start(targets plan.Assignment) (map[plan.Partition]error, error) {
	if c.refuse != nil {
		return c.refuse, nil
	}
	c.moves = cluster.Moves{}
	for p, to := range targets {
		c.moves[p] = cluster.Move{Replicas: append(append([]int32{}, to...), plan.Without(c.at[p], to)...), Adding: plan.Without(to, c.at[p]), Removing: plan.Without(c.at[p], to)}
	}
	c.steps = 3
	return nil, nil
}
func (c *fakeCluster) setThrottledReplicas(throttles map[string]cluster.ThrottledReplicas) error {
	for topic, t := range throttles {
		if c.throttles[topic] = t; t == (cluster.ThrottledReplicas{}) {
			delete(c.throttles, topic)
		}
	}
	return nil
}
func (c *fakeCluster) setRates(brokers []int32, rates map[string]string) (unreachable []int32, err error) {
	for _, id := range brokers {
		if c.rates[id] == nil {
			c.rates[id] = map[string]string{}
		}
		for key, value := range rates {
			if c.rates[id][key] = value; value == "" {
				delete(c.rates[id], key)
			}
		}
	}
	return nil, nil
}

func newFakeCluster() *fakeCluster {
	return &fakeCluster{alive: []plan.Broker{{ID: 1}, {ID: 2}, {ID: 3}}, at: plan.Assignment{{Topic: "t", ID: 0}: {1, 2}}, throttles: map[string]cluster.ThrottledReplicas{}, rates: map[int32]map[string]string{}}
}

func (c *fakeCluster) throttled() bool {
	for _, rates := range c.rates {
		if len(rates) > 0 {
			return true
		}
	}
	return len(c.throttles) > 0
}

func TestAThrottleDoesNotOutliveAReassignmentThatIsWaitedFor(t *testing.T) {
	moves := file(t, `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,2]}]}`)
	for _, c := range []struct {
		name      string
		prepare   func(*fakeCluster)
		args      []string
		throttled bool
		err       string
	}{
		{"not waited for", func(*fakeCluster) {}, nil, true, ""},
		{"waited for", func(*fakeCluster) {}, []string{"--wait"}, false, ""},
		{"refused", func(c *fakeCluster) { c.refuse = map[plan.Partition]error{{Topic: "t", ID: 0}: errors.New("no")} }, []string{"--wait"}, false, "Error reassigning partition(s):\nt-0: no"},
	} {
		door := newFakeCluster()
		c.prepare(door)
		var out, errs bytes.Buffer
		r := reassigner{face{stdout: &out, stderr: &errs}, door}
		err := r.execute(parsed(t, reassignOptions, append([]string{"--bootstrap-server", "b", "--execute", "--reassignment-json-file", moves, "--throttle", "1000"}, c.args...)...))
		if c.err == "" {
			require.NoError(t, err, c.name)
		} else {
			require.EqualError(t, err, c.err, c.name)
		}
		assert.Equal(t, c.throttled, door.throttled(), c.name)
		assert.Contains(t, out.String(), "The inter-broker throttle limit was set to 1000 B/s\n", c.name)
	}
}

func TestThrottlesOfOthersAreLeftToThem(t *testing.T) {
	door := newFakeCluster()
	other := plan.Partition{Topic: "u", ID: 0}
	door.moves, door.steps = cluster.Moves{other: {Replicas: []int32{3, 2}, Adding: []int32{3}}}, 1000
	door.throttles["t"], door.throttles["u"] = cluster.ThrottledReplicas{Leaders: "0:1", Followers: "0:3"}, cluster.ThrottledReplicas{Leaders: "0:2", Followers: "0:3"}
	for id := int32(1); id <= 3; id++ {
		door.rates[id] = map[string]string{leaderThrottleRate: "5"}
	}
	var out, errs bytes.Buffer
	r := reassigner{face{stdout: &out, stderr: &errs}, door}
	set := parsed(t, reassignOptions, "--bootstrap-server", "b", "--verify", "--wait", "--reassignment-json-file", file(t, `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}`))
	require.NoError(t, r.verify(set))
	assert.Equal(t, map[string]cluster.ThrottledReplicas{"u": {Leaders: "0:2", Followers: "0:3"}}, door.throttles)
	assert.Equal(t, map[int32]map[string]string{1: {}, 2: {leaderThrottleRate: "5"}, 3: {leaderThrottleRate: "5"}}, door.rates)
	assert.Contains(t, errs.String(), "Other reassignments are still running")
}

func TestNothingStartsWhileOthersRunUnlessAsked(t *testing.T) {
	moves := file(t, `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,2]}]}`)
	for _, additional := range []bool{false, true} {
		door := newFakeCluster()
		door.moves, door.steps = cluster.Moves{{Topic: "u", ID: 0}: {Replicas: []int32{3, 2}, Adding: []int32{3}}}, 1000
		args := []string{"--bootstrap-server", "b", "--execute", "--reassignment-json-file", moves}
		if additional {
			args = append(args, "--additional")
		}
		var out, errs bytes.Buffer
		err := reassigner{face{stdout: &out, stderr: &errs}, door}.execute(parsed(t, reassignOptions, args...))
		if additional {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, alreadyReassigning)
			assert.Empty(t, out.String())
		}
	}
}

func TestGenerateSaysWhatMoves(t *testing.T) {
	door := newFakeCluster()
	var out, errs bytes.Buffer
	r := reassigner{face{stdout: &out, stderr: &errs}, door}
	topics := file(t, `{"topics":[{"topic":"t"}],"version":1}`)
	require.NoError(t, r.generate(parsed(t, reassignOptions, "--generate", "--topics-to-move-json-file", topics, "--broker-list", "2,3")))
	assert.Equal(t, `Current partition replica assignment
{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}

Proposed partition reassignment configuration
{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,3],"log_dirs":["any","any"]}]}
`, out.String())
	assert.Equal(t, "The proposal: 1 of 2 replicas move, 1 of 1 partitions get another preferred leader.\n", errs.String())

	for args, want := range map[string]string{
		"2,2":   "Broker list contains duplicate entries: 2",
		"2,x":   `For input string: "x"`,
		"3":     "Replication factor: 2 larger than available brokers: 1.",
		"2,3 s": `The strategy "s" is not known: it is least or kafka`,
	} {
		list, strategy, _ := strings.Cut(args, " ")
		more := []string{"--generate", "--topics-to-move-json-file", topics, "--broker-list", list}
		if strategy != "" {
			more = append(more, "--strategy", strategy)
		}
		assert.EqualError(t, r.generate(parsed(t, reassignOptions, more...)), want)
	}
	door.alive = []plan.Broker{{ID: 2, Rack: "a"}, {ID: 3}}
	assert.EqualError(t, r.generate(parsed(t, reassignOptions, "--generate", "--topics-to-move-json-file", topics, "--broker-list", "2,3")), noRacks)
}

func TestByteCountsHaveUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 1_550_000: "1.6 MB", 3_000_000_000: "3.0 GB"} {
		assert.Equal(t, want, cluster.ByteCount(n), fmt.Sprint(n))
	}
}

func TestAFileThatIsNotThereIsAnError(t *testing.T) {
	_, err := readJSONFile(file(t, "") + ".nosuch")
	assert.ErrorIs(t, err, os.ErrNotExist)
}
