package admin_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	. "barnabas/admin"
	"barnabas/config"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// The answers of Apache Kafka 3.9.1 in ZooKeeper mode, one broker with id 1 and otherwise defaults, to the exchanges below, in
// their order. They are recorded again with: go test ./admin -run Recorded -record 127.0.0.1:9092
const recorded = "testdata/kafka-3.9.1-answers.tsv"

var record = flag.String("record", "", "address of a fresh Kafka 3.9.1 broker (ZooKeeper mode, broker.id=1) to record answers from")

func TestRecordedAnswersOfKafkaAreGivenWordForWord(t *testing.T) {
	if *record != "" {
		recordAnswers(t)
		return
	}
	data, err := os.ReadFile(recorded)
	require.NoError(t, err)
	want := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	zktest.Each(t, func(t *testing.T, srv zktest.Server) {
		a, _ := newAdmin(t, srv.Addr(), map[string]string{})
		i := 0
		for _, x := range exchanges() {
			for _, got := range x.ask(a) {
				require.Less(t, i, len(want))
				assert.Equal(t, want[i], x.name+"\t"+got)
				i++
			}
		}
		assert.Len(t, want, i)
	})
}

func recordAnswers(t *testing.T) {
	c, err := kgo.NewClient(kgo.SeedBrokers(*record))
	require.NoError(t, err)
	defer c.Close()
	f, err := os.Create(recorded)
	require.NoError(t, err)
	defer f.Close()
	for _, x := range exchanges() {
		time.Sleep(x.wait) // recording only: nothing tells when a broker has taken over a setting
		resp, err := c.SeedBrokers()[0].Request(context.Background(), x.request)
		require.NoError(t, err, x.name)
		for _, row := range x.rows(resp) {
			fmt.Fprintf(f, "%s\t%s\n", x.name, row)
		}
	}
}

// newAdmin administers a tree with broker 1 in it.
func newAdmin(t *testing.T, addr string, static map[string]string) (*Admin, *zkstate.Client) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	zk, err := zkstate.Connect(zkstate.Config{Servers: addr, Log: logrus.NewEntry(log)})
	require.NoError(t, err)
	t.Cleanup(zk.Close)
	ctx := context.Background()
	require.NoError(t, zk.MakePersistentPaths(ctx))
	node := zkstate.Broker{ID: 1, Version: 5, JMXPort: -1, Endpoints: []zkstate.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h", Port: 1}}}
	_, err = zk.RegisterEphemeral(ctx, zkstate.BrokerIDPath(1), node.Encode())
	require.NoError(t, err)
	values, err := config.New(static)
	require.NoError(t, err)
	return New(Config{BrokerID: 1, DefaultPartitions: 1, DefaultReplicationFactor: 1, TopicIDs: true, DeleteTopics: true,
		Table: NewConfigTable(values), Intn: rand.IntN, Log: logrus.NewEntry(log)}, zk), zk
}

// exchange is a request in both forms, and its answer as text.
type exchange struct {
	name    string
	request kmsg.Request
	rows    func(kmsg.Response) []string
	ask     func(*Admin) []string
	wait    time.Duration // before a recorded broker is asked
}

func row(code int16, message *string) string {
	if message == nil || *message == "" { // nobody can see the difference
		return fmt.Sprintf("%d\tnull", code)
	}
	return fmt.Sprintf("%d\t%s", code, *message)
}

func rowOf(err error) string {
	if err == nil {
		return row(0, nil)
	}
	var coded *Error
	var code *kerr.Error
	switch {
	case asError(err, &coded):
		return row(coded.Code.Code, &coded.Message)
	case asError(err, &code):
		return row(code.Code, nil)
	}
	return "fault: " + err.Error()
}

func ptr(s string) *string { return &s }

type topicSpec = TopicSpec

func exchanges() []exchange {
	return append(append(createExchanges(), partitionExchanges()...), configExchanges()...)
}

func create(name string, validateOnly bool, spec topicSpec) exchange {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.ValidateOnly, req.TimeoutMillis = validateOnly, 15000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = spec.Name, spec.Partitions, spec.ReplicationFactor
	for p := int32(-1); p < 20; p++ {
		if replicas, ok := spec.Assignment[p]; ok {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Partition, a.Replicas = p, replicas
			topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
		}
	}
	for _, e := range spec.Configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = e.Name, e.Value
		topic.Configs = append(topic.Configs, c)
	}
	req.Topics = append(req.Topics, topic)
	layout := func(partitions int32, replicas int16, configs int) string {
		return fmt.Sprintf("\t%d x %d, configured %t", partitions, replicas, configs > 0)
	}
	return exchange{name: name, request: req, rows: func(r kmsg.Response) []string {
		topic := r.(*kmsg.CreateTopicsResponse).Topics[0]
		out := row(topic.ErrorCode, topic.ErrorMessage)
		if topic.ErrorCode == 0 {
			out += layout(topic.NumPartitions, topic.ReplicationFactor, len(topic.Configs))
		}
		return []string{out}
	}, ask: func(a *Admin) []string {
		r := a.CreateTopics(context.Background(), []TopicSpec{spec}, validateOnly)[0]
		out := rowOf(r.Err)
		if r.Err == nil {
			out += layout(r.NumPartitions, r.ReplicationFactor, len(r.Configs))
		}
		return []string{out}
	}}
}

func createExchanges() []exchange {
	spec := func(name string, partitions int32, replicas int16) topicSpec {
		return topicSpec{Name: name, Partitions: partitions, ReplicationFactor: replicas}
	}
	with := func(s topicSpec, pairs ...string) topicSpec {
		for i := 0; i < len(pairs); i += 2 {
			s.Configs = append(s.Configs, ConfigEntry{Name: pairs[i], Value: ptr(pairs[i+1])})
		}
		return s
	}
	null := func(s topicSpec, name string) topicSpec {
		s.Configs = append(s.Configs, ConfigEntry{Name: name})
		return s
	}
	assigned := func(s topicSpec, a map[int32][]int32) topicSpec { s.Assignment = a; return s }
	none := spec("none", -1, -1)
	return []exchange{
		create("validate only", true, spec("t", 3, 1)),
		create("create", false, spec("t", 3, 1)),
		create("exists", false, spec("t", 3, 1)),
		create("exists, validate only", true, spec("t", 3, 1)),
		create("exists wins over replication factor", false, spec("t", 3, 99)),
		create("exists wins over null values", false, null(spec("t", 3, 1), "retention.ms")),
		create("defaults", false, spec("d", -1, -1)),
		create("replication factor 0", false, spec("none", 1, 0)),
		create("replication factor -2", false, spec("none", 1, -2)),
		create("replication factor 5", false, spec("none", 1, 5)),
		create("no partitions", false, spec("none", 0, 1)),
		create("partitions before replication factor", false, spec("none", -2, 0)),
		create("counts and assignment", false, assigned(spec("none", 1, -1), map[int32][]int32{0: {1}})),
		create("null before counts and assignment", false, null(assigned(spec("none", 1, -1), map[int32][]int32{0: {1}}), "retention.ms")),
		create("assignment with a gap", false, assigned(none, map[int32][]int32{0: {1}, 2: {1}})),
		create("assignment without 0", false, assigned(none, map[int32][]int32{1: {1}})),
		create("duplicate replica", false, assigned(none, map[int32][]int32{0: {1, 1}})),
		create("unequal lengths", false, assigned(none, map[int32][]int32{0: {1}, 1: {1, 2}})),
		create("unequal lengths before duplicates", false, assigned(none, map[int32][]int32{0: {1}, 1: {1, 1}})),
		create("unknown broker", false, assigned(spec("unknown-broker", -1, -1), map[int32][]int32{0: {1, 9}})),
		create("empty name", false, spec("", 1, 1)),
		create("dot", false, spec(".", 1, 1)),
		create("dots", false, spec("..", 1, 1)),
		create("long name", false, spec(strings.Repeat("x", 250), 1, 1)),
		create("longest name", true, spec(strings.Repeat("x", 249), 1, 1)),
		create("blank in the name", false, spec("a b", 1, 1)),
		create("slash in the name", false, spec("a/b", 1, 1)),
		create("counts before name", false, spec("a/b", 0, 1)),
		create("name before configuration", false, with(spec("a/b", 1, 1), "foo", "bar")),
		create("dotted", false, spec("my.topic", 1, 1)),
		create("collision", false, spec("my_topic", 1, 1)),
		create("collision before assignment", false, assigned(spec("my_topic", -1, -1), map[int32][]int32{0: {1, 1}})),
		create("unknown key", false, with(spec("none", 1, 1), "foo", "bar")),
		create("bad value", false, with(spec("none", 1, 1), "retention.ms", "abc")),
		create("out of range", false, with(spec("none", 1, 1), "min.insync.replicas", "0")),
		create("bad list", false, with(spec("none", 1, 1), "cleanup.policy", "delete,foo")),
		create("bad boolean", false, with(spec("none", 1, 1), "preallocate", "yes")),
		create("bad double", false, with(spec("none", 1, 1), "min.cleanable.dirty.ratio", "2")),
		create("bad compression", false, with(spec("none", 1, 1), "compression.type", "rar")),
		create("throttled replicas", false, with(spec("none", 1, 1), "leader.replication.throttled.replicas", "x")),
		create("unknown key before bad value", false, with(spec("none", 1, 1), "retention.ms", "abc", "foo", "bar")),
		create("compaction lags", false, with(spec("none", 1, 1), "min.compaction.lag.ms", "10", "max.compaction.lag.ms", "5")),
		create("tiered storage", false, with(spec("none", 1, 1), "remote.storage.enable", "true")),
		create("null value", false, null(spec("none", 1, 1), "retention.ms")),
		create("two null values", false, null(null(spec("none", 1, 1), "retention.ms"), "foo")),
		create("configured", false, with(spec("configured", 1, 1), "cleanup.policy", "compact", "retention.ms", "1000")),
	}
}

func enlarge(name string, validateOnly bool, topic string, count int32, assignment [][]int32) exchange {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.ValidateOnly, req.TimeoutMillis = validateOnly, 15000
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = topic, count
	for _, a := range assignment {
		ra := kmsg.NewCreatePartitionsRequestTopicAssignment()
		ra.Replicas = a
		rt.Assignment = append(rt.Assignment, ra)
	}
	req.Topics = append(req.Topics, rt)
	return exchange{name: name, request: req, rows: func(r kmsg.Response) []string {
		t := r.(*kmsg.CreatePartitionsResponse).Topics[0]
		return []string{row(t.ErrorCode, t.ErrorMessage)}
	}, ask: func(a *Admin) []string {
		return []string{rowOf(a.CreatePartitions(context.Background(), []PartitionsSpec{{Name: topic, Count: count, Assignment: assignment}}, validateOnly)[0].Err)}
	}}
}

func partitionExchanges() []exchange {
	return []exchange{
		enlarge("enlarge, validate only", true, "t", 5, nil),
		enlarge("enlarge", false, "t", 5, nil),
		enlarge("fewer", false, "t", 2, nil),
		enlarge("as many", false, "t", 5, nil),
		enlarge("zero", false, "t", 0, nil),
		enlarge("missing topic", false, "missing", 5, nil),
		enlarge("assignment", false, "t", 6, [][]int32{{1}}),
		enlarge("too few assignments", false, "t", 8, [][]int32{{1}}),
		enlarge("too many assignments", false, "t", 7, [][]int32{{1}, {1}}),
		enlarge("unknown brokers", false, "t", 7, [][]int32{{9}}),
		enlarge("another replication factor", false, "t", 8, [][]int32{{1}, {}}),
		enlarge("duplicates", false, "t", 7, [][]int32{{1, 1}}),
		enlarge("unknown broker in a topic of two", false, "unknown-broker", 2, [][]int32{{1, 9}}),
		enlarge("too few brokers", false, "unknown-broker", 2, nil),
		enlarge("longer list", false, "unknown-broker", 3, [][]int32{{1}, {1}}),
	}
}

func alter(name string, validateOnly bool, r Resource, entries ...ConfigEntry) exchange {
	req := kmsg.NewPtrAlterConfigsRequest()
	req.ValidateOnly = validateOnly
	rr := kmsg.NewAlterConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceType(r.Type), r.Name
	for _, e := range entries {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		c.Name, c.Value = e.Name, e.Value
		rr.Configs = append(rr.Configs, c)
	}
	req.Resources = append(req.Resources, rr)
	return exchange{name: name, request: req, rows: func(r kmsg.Response) []string {
		res := r.(*kmsg.AlterConfigsResponse).Resources[0]
		return []string{row(res.ErrorCode, res.ErrorMessage)}
	}, ask: func(a *Admin) []string {
		return []string{rowOf(a.AlterConfigs(context.Background(), []AlterSpec{{Resource: r, Configs: entries}}, validateOnly)[0].Err)}
	}}
}

func edit(name string, validateOnly bool, r Resource, ops ...ConfigOp) exchange {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.ValidateOnly = validateOnly
	rr := kmsg.NewIncrementalAlterConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceType(r.Type), r.Name
	for _, op := range ops {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = op.Name, kmsg.IncrementalAlterConfigOp(op.Op), op.Value
		rr.Configs = append(rr.Configs, c)
	}
	req.Resources = append(req.Resources, rr)
	return exchange{name: name, request: req, rows: func(r kmsg.Response) []string {
		res := r.(*kmsg.IncrementalAlterConfigsResponse).Resources[0]
		return []string{row(res.ErrorCode, res.ErrorMessage)}
	}, ask: func(a *Admin) []string {
		return []string{rowOf(a.IncrementalAlterConfigs(context.Background(), []IncrementalSpec{{Resource: r, Ops: ops}}, validateOnly)[0].Err)}
	}}
}

// settle is how long a change of a broker's configuration takes to reach the broker that is recorded.
const settle = 3 * time.Second

func describe(name string, r Resource, synonyms bool, keys ...string) exchange {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.IncludeSynonyms, req.IncludeDocumentation = synonyms, false
	rr := kmsg.NewDescribeConfigsRequestResource()
	rr.ResourceType, rr.ResourceName, rr.ConfigNames = kmsg.ConfigResourceType(r.Type), r.Name, keys
	req.Resources = append(req.Resources, rr)
	show := func(v *string) string {
		if v == nil {
			return "null"
		}
		return *v
	}
	return exchange{name: name, request: req, rows: func(r kmsg.Response) []string {
		res := r.(*kmsg.DescribeConfigsResponse).Resources[0]
		var out []string
		for _, c := range res.Configs {
			line := fmt.Sprintf("%s=%s read-only %t source %d sensitive %t type %d", c.Name, show(c.Value), c.ReadOnly, c.Source, c.IsSensitive, c.ConfigType)
			for _, s := range c.ConfigSynonyms {
				line += fmt.Sprintf(" [%s=%s %d]", s.Name, show(s.Value), s.Source)
			}
			out = append(out, line)
		}
		return append([]string{row(res.ErrorCode, res.ErrorMessage)}, sortedLines(out)...)
	}, ask: func(a *Admin) []string {
		res := a.DescribeConfigs(context.Background(), []DescribeSpec{{Resource: r, Keys: keys}}, DescribeOptions{Synonyms: synonyms})[0]
		var out []string
		for _, c := range res.Configs {
			line := fmt.Sprintf("%s=%s read-only %t source %d sensitive %t type %d", c.Name, show(c.Value), c.ReadOnly, c.Source, c.Sensitive, c.Type)
			for _, s := range c.Synonyms {
				line += fmt.Sprintf(" [%s=%s %d]", s.Name, show(s.Value), s.Source)
			}
			out = append(out, line)
		}
		return append([]string{rowOf(res.Err)}, sortedLines(out)...)
	}}
}
