package controller

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/zkstate"
)

var update = flag.Bool("update", false, "write what the scripts in testdata/core print")

// Each script in testdata/core drives the core: a command, a line of dashes, and what the core wanted done, up to an
// empty line. A change of the output is a change of behaviour, and is seen as one in the diff.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/core/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := runScript(t, string(want))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			assert.Equal(t, string(want), got)
		})
	}
}

// runScript gives the script with the output that the core has now.
func runScript(t *testing.T, script string) string {
	var out strings.Builder
	s := newStage(t)
	defer func() { s.core.Stop(s.now) }()
	for block := range strings.SplitSeq(script, "\n\n") {
		head, _, _ := strings.Cut(block, "\n----")
		out.WriteString(strings.TrimRight(head, "\n"))
		s.printed.Reset()
		commands := 0
		for line := range strings.Lines(head) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				commands++
				s.command(strings.Fields(line))
			}
		}
		if commands > 0 {
			out.WriteString("\n----\n" + s.printed.String())
		} else {
			out.WriteString("\n")
		}
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// stage is a core with a ZooKeeper that answers at once and brokers that do as they are told, both in memory.
type stage struct {
	t       *testing.T
	core    *Core
	now     time.Time
	printed strings.Builder

	nodes   map[string]*stageNode
	watches map[string]bool
	zxid    int64
	session int64

	reads   bool // print reads too
	silent  map[int32]bool
	held    []Send           // what silent brokers have yet to answer
	faulty  map[string]int16 // "broker partition": the code that LeaderAndIsr and StopReplica answer
	lose    bool             // the answer of the next write is lost
	unclean bool
	nextID  uint64
	pending []Event
	log     LogLevel
}

type stageNode struct {
	data                []byte
	version             int32
	czxid, mzxid, owner int64
}

// evenBytes is a source of topic ids that differ and repeat from run to run.
type evenBytes struct{ n byte }

func (e *evenBytes) Read(p []byte) (int, error) {
	e.n++
	for i := range p {
		p[i] = e.n
	}
	return len(p), nil
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, now: time.Unix(1_700_000_000, 0), nodes: map[string]*stageNode{"/": {}}, watches: map[string]bool{}, silent: map[int32]bool{},
		faulty: map[string]int16{}, session: 100, log: LogWarn}
	for _, path := range []string{"/brokers", "/brokers/ids", "/brokers/topics", "/admin", "/admin/delete_topics", "/isr_change_notification",
		"/log_dir_event_notification", "/config", "/config/topics"} {
		s.nodes[path] = &stageNode{}
	}
	s.boot("3.9")
	return s
}

func (s *stage) boot(ibp string) {
	v, err := ParseIBP(ibp)
	require.NoError(s.t, err)
	s.core = NewCore(CoreConfig{BrokerID: 1, IBP: v, Listener: "PLAINTEXT", DeleteTopics: true, UncleanElection: func() bool { return s.unclean },
		AutoRebalance: true, RebalanceInterval: 300 * time.Second, RebalancePercent: 10, Random: &evenBytes{}})
}

func (s *stage) printf(format string, args ...any) { fmt.Fprintf(&s.printed, format+"\n", args...) }

// step gives the core an event and everything that follows from it.
func (s *stage) step(ev Event) {
	queue := append([]Event{ev}, s.pending...)
	s.pending = nil
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, e := range s.core.Step(s.now, next) {
			queue = append(queue, s.carryOut(e)...)
		}
		queue = append(queue, s.pending...)
		s.pending = nil
	}
}

func (s *stage) carryOut(e Effect) []Event {
	switch e := e.(type) {
	case ZKBatch:
		return []Event{s.runBatch(e)}
	case Connect:
		s.printf("connect %d@%d %s:%d", e.To.BrokerID, e.To.BrokerEpoch, e.To.Host, e.To.Port)
	case Disconnect:
		s.printf("disconnect %d@%d", e.BrokerID, e.BrokerEpoch)
	case Send:
		s.printf("to %d: %s", e.BrokerID, describe(e.Request))
		if s.silent[e.BrokerID] {
			s.held = append(s.held, e)
			return nil
		}
		return []Event{s.answered(e)}
	case Answer:
		s.printf("answer %d: %s", e.ID, describeAnswer(e.Response))
	case SetTimer:
		s.printf("timer %d in %v", e.ID, e.After)
	case StopTimers:
		s.printf("stop timers")
	case StatusChanged:
		s.printf("status: controller %d active %v epoch %d", e.ControllerID, e.Active, e.Epoch)
	case Log:
		if e.Level >= s.log {
			s.printf("log: %s", e.Message)
		}
	}
	return nil
}

func (s *stage) answered(e Send) Event {
	return BrokerAnswered{BrokerID: e.BrokerID, BrokerEpoch: e.BrokerEpoch, Request: e.Request, Response: s.brokerAnswer(e.BrokerID, e.Request)}
}

func (s *stage) brokerAnswer(id int32, req kmsg.Request) kmsg.Response {
	resp := healthyAnswer(req)
	code := func(topic string, partition int32) int16 {
		return s.faulty[fmt.Sprintf("%d %s-%d", id, topic, partition)]
	}
	switch r := resp.(type) {
	case *kmsg.LeaderAndISRResponse:
		for i, t := range req.(*kmsg.LeaderAndISRRequest).TopicStates {
			for j, p := range t.PartitionStates {
				r.Topics[i].Partitions[j].ErrorCode = code(t.Topic, p.Partition)
			}
		}
	case *kmsg.StopReplicaResponse:
		for i, p := range r.Partitions {
			r.Partitions[i].ErrorCode = code(p.Topic, p.Partition)
		}
	}
	return resp
}

// runBatch is the ZooKeeper of the stage.
func (s *stage) runBatch(b ZKBatch) Event {
	fenced := b.Fence >= 0 && (s.nodes["/controller_epoch"] == nil || s.nodes["/controller_epoch"].version != b.Fence)
	results := make([]zkstate.Result, len(b.Ops))
	s.zxid++
	for i, op := range b.Ops {
		if !op.Kind.Writes() {
			if s.reads && op.Kind != zkstate.OpSync {
				s.printf("zk: %s %s", op.Kind, op.Path)
			}
			results[i] = s.read(op)
			continue
		}
		if !b.Multi {
			s.zxid++
		}
		mark := "zk"
		if b.Multi {
			mark = "zk multi"
		}
		if fenced {
			s.printf("%s: %s %s: fenced", mark, op.Kind, op.Path)
			results[i] = zkstate.Result{Err: zkstate.ErrFenced}
			continue
		}
		results[i] = s.write(op)
		s.printf("%s: %s %s %s%s", mark, op.Kind, op.Path, op.Data, outcomeText(results[i].Err))
		if b.Multi && results[i].Err != nil {
			return ZKDone{Tag: b.Tag, Results: results, Err: results[i].Err}
		}
		if s.lose {
			s.lose = false
			s.printf("zk: the answer is lost")
			results[i] = zkstate.Result{Err: zkstate.ErrConnectionLoss}
		}
	}
	if b.Multi && fenced {
		return ZKDone{Tag: b.Tag, Results: results, Err: zkstate.ErrFenced}
	}
	return ZKDone{Tag: b.Tag, Results: results}
}

func outcomeText(err error) string {
	if err != nil {
		return ": " + strings.TrimPrefix(err.Error(), "zookeeper: ")
	}
	return ""
}

func (s *stage) children(path string) (names []string) {
	for p := range s.nodes {
		if rest, ok := strings.CutPrefix(p, path+"/"); ok && !strings.Contains(rest, "/") {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names
}

func (s *stage) read(op zkstate.Op) zkstate.Result {
	n := s.nodes[op.Path]
	if op.Watch && (n != nil || op.Kind == zkstate.OpExists) {
		s.watches[watchKey(op.Path, op.Kind == zkstate.OpChildren)] = true
	}
	if n == nil {
		if op.Kind == zkstate.OpSync {
			return zkstate.Result{}
		}
		return zkstate.Result{Err: zkstate.ErrNoNode}
	}
	return zkstate.Result{Data: n.data, Children: s.children(op.Path), Path: op.Path,
		Stat: zkstate.Stat{Czxid: n.czxid, Mzxid: n.mzxid, Version: n.version, EphemeralOwner: n.owner}}
}

func watchKey(path string, children bool) string { return path + " " + strconv.FormatBool(children) }

func (s *stage) fire(path string, children bool) {
	if s.watches[watchKey(path, children)] {
		delete(s.watches, watchKey(path, children))
		s.pending = append(s.pending, NodeChanged{Path: path})
	}
}

func (s *stage) write(op zkstate.Op) zkstate.Result {
	parent, n := filepath.Dir(op.Path), s.nodes[op.Path]
	switch {
	case op.Kind == zkstate.OpCreate || op.Kind == zkstate.OpCreateEphemeral:
		if n != nil {
			return zkstate.Result{Err: zkstate.ErrNodeExists}
		} else if s.nodes[parent] == nil {
			return zkstate.Result{Err: zkstate.ErrNoNode}
		}
		made := &stageNode{data: op.Data, czxid: s.zxid, mzxid: s.zxid}
		if op.Kind == zkstate.OpCreateEphemeral {
			made.owner = s.session
		}
		s.nodes[op.Path] = made
		s.fire(op.Path, false)
		s.fire(parent, true)
		return zkstate.Result{Path: op.Path}
	case n == nil:
		return zkstate.Result{Err: zkstate.ErrNoNode}
	case op.Version >= 0 && op.Version != n.version:
		return zkstate.Result{Err: zkstate.ErrBadVersion}
	case op.Kind == zkstate.OpDelete:
		if len(s.children(op.Path)) > 0 {
			return zkstate.Result{Err: zkstate.ErrNotEmpty}
		}
		delete(s.nodes, op.Path)
		s.fire(op.Path, false)
		s.fire(op.Path, true)
		s.fire(parent, true)
		return zkstate.Result{Path: op.Path}
	}
	n.data, n.mzxid = op.Data, s.zxid
	n.version++
	s.fire(op.Path, false)
	return zkstate.Result{Path: op.Path, Stat: zkstate.Stat{Czxid: n.czxid, Mzxid: n.mzxid, Version: n.version}}
}

// command runs one line of a script.
func (s *stage) command(words []string) {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	external := func(op zkstate.Op) {
		s.zxid++
		if r := s.write(op); r.Err != nil {
			s.printf("script: %v", r.Err)
		}
		s.flush()
	}
	switch words[0] {
	case "ibp":
		s.boot(arg(1))
	case "show":
		s.reads = slices.Contains(words, "reads")
		if slices.Contains(words, "info") {
			s.log = LogInfo
		}
	case "broker": // broker 2 [port]: registers
		id, port := s.number(arg(1)), 9090+s.number(arg(1))
		if arg(2) != "" {
			port = s.number(arg(2))
		}
		data := zkstate.Broker{ID: id, Version: 5, JMXPort: -1, Endpoints: []zkstate.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "b", Port: port}}}.Encode()
		if s.nodes[zkstate.BrokerIDPath(id)] != nil {
			external(zkstate.Set(zkstate.BrokerIDPath(id), data, -1))
		} else {
			external(zkstate.Create(zkstate.BrokerIDPath(id), data))
		}
	case "lost":
		external(zkstate.Delete(zkstate.BrokerIDPath(s.number(arg(1))), -1))
	case "bounce": // gone and back before anybody looks
		path := zkstate.BrokerIDPath(s.number(arg(1)))
		n := *s.nodes[path]
		s.zxid++
		n.czxid = s.zxid
		s.nodes[path] = &n
		s.fire(path, false)
		s.fire(zkstate.BrokerIDsPath, true)
		s.flush()
	case "topic": // topic t 1,2 2,1: its partitions' replicas
		node := zkstate.TopicAssignment{Version: 3, Partitions: map[int32]zkstate.ReplicaAssignment{}}
		for i, ids := range words[2:] {
			node.Partitions[int32(i)] = zkstate.ReplicaAssignment{Replicas: s.numbers(ids)}
		}
		if old := s.nodes[zkstate.TopicPath(arg(1))]; old != nil {
			before, err := zkstate.DecodeTopicAssignment(old.data)
			require.NoError(s.t, err)
			node.ID = before.ID
			external(zkstate.Set(zkstate.TopicPath(arg(1)), node.Encode(), -1))
		} else {
			external(zkstate.Create(zkstate.TopicPath(arg(1)), node.Encode()))
		}
	case "create":
		external(zkstate.Create(arg(1), []byte(strings.Join(words[2:], " "))))
	case "set":
		external(zkstate.Set(arg(1), []byte(strings.Join(words[2:], " ")), -1))
	case "delete":
		external(zkstate.Delete(arg(1), -1))
	case "session":
		s.session++
		s.step(SessionReady{Session: s.session, Generation: int(s.session)})
	case "expire":
		s.step(SessionExpired{Session: s.session})
	case "again": // the same session is ready again
		s.step(SessionReady{Session: s.session, Generation: int(s.session)})
	case "timer":
		s.step(TimerFired{ID: TimerID(s.number(arg(1)))})
	case "silent": // silent 2 [no]: answers nothing; then what it was asked meanwhile
		id := s.number(arg(1))
		s.silent[id] = arg(2) != "no"
		if held := s.held; !s.silent[id] {
			s.held = slices.DeleteFunc(slices.Clone(held), func(e Send) bool { return e.BrokerID == id })
			for _, e := range held {
				if e.BrokerID == id {
					s.step(s.answered(e))
				}
			}
		}
	case "faulty": // faulty 2 t-0 56
		s.faulty[arg(1)+" "+arg(2)] = int16(s.number(arg(3)))
	case "lose":
		s.lose = true
	case "unclean":
		s.unclean = true
		s.step(UncleanElectionEnabled{Topic: arg(1)})
	case "ask":
		s.nextID++
		s.step(Requested{ID: s.nextID, Request: s.request(words[1:])})
	case "counts":
		s.printf("%+v", s.core.Counts())
	default:
		require.Fail(s.t, "unknown command "+words[0])
	}
}

func (s *stage) flush() {
	for len(s.pending) > 0 {
		next := s.pending[0]
		s.pending = s.pending[1:]
		s.step(next)
	}
}

func (s *stage) number(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	require.NoError(s.t, err)
	return int32(n)
}

func (s *stage) numbers(text string) []int32 {
	ids := []int32{}
	for id := range strings.SplitSeq(text, ",") {
		if id != "" {
			ids = append(ids, s.number(id))
		}
	}
	return ids
}

// request builds a request from its words.
func (s *stage) request(words []string) kmsg.Request {
	var tp TopicPartition
	value := map[string]string{}
	for _, w := range words[1:] {
		if key, v, ok := strings.Cut(w, "="); ok {
			value[key] = v
		} else if i := strings.LastIndexByte(w, '-'); i > 0 {
			tp = TopicPartition{w[:i], s.number(w[i+1:])}
		}
	}
	has := func(key string) int32 {
		if value[key] == "" {
			return -1
		}
		return s.number(value[key])
	}
	epochOf := func(id int32) int64 {
		if value["brokerepoch"] != "" {
			return int64(has("brokerepoch"))
		}
		if n := s.nodes[zkstate.BrokerIDPath(id)]; n != nil {
			return n.czxid
		}
		return -1
	}
	switch words[0] {
	case "isr": // isr t-0 broker=1 epoch=0 version=0 to=1,2 [api=0]
		req := kmsg.NewPtrAlterPartitionRequest()
		req.Version, req.BrokerID, req.BrokerEpoch = 3, has("broker"), epochOf(has("broker"))
		if value["api"] != "" {
			req.Version = int16(has("api"))
		}
		p := kmsg.AlterPartitionRequestTopicPartition{Partition: tp.Partition, LeaderEpoch: has("epoch"), PartitionEpoch: has("version")}
		if value["recovering"] != "" {
			p.LeaderRecoveryState = 1
		}
		for _, id := range s.numbers(value["to"]) {
			member := kmsg.AlterPartitionRequestTopicPartitionNewEpochISR{BrokerID: id, BrokerEpoch: -1}
			if value["memberepoch"] != "" {
				member.BrokerEpoch = int64(has("memberepoch"))
			}
			p.NewEpochISR = append(p.NewEpochISR, member)
			p.NewISR = append(p.NewISR, id)
		}
		t := kmsg.AlterPartitionRequestTopic{Topic: tp.Topic, Partitions: []kmsg.AlterPartitionRequestTopicPartition{p}}
		if known := s.core.cluster.topics[tp.Topic]; known != nil {
			t.TopicID = known.id
		}
		req.Topics = append(req.Topics, t)
		return req
	case "shutdown":
		req := kmsg.NewPtrControlledShutdownRequest()
		req.Version, req.BrokerID, req.BrokerEpoch = 3, has("broker"), epochOf(has("broker"))
		return req
	case "elect": // elect t-0 type=0; without a partition: all
		req := kmsg.NewPtrElectLeadersRequest()
		req.Version, req.ElectionType = 2, int8(max(0, has("type")))
		if tp.Topic != "" {
			req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: tp.Topic, Partitions: []int32{tp.Partition}}}
		}
		return req
	case "reassign": // reassign t-0 to=2,3; without to: cancel
		req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		p := kmsg.AlterPartitionAssignmentsRequestTopicPartition{Partition: tp.Partition}
		if to, ok := value["to"]; ok {
			p.Replicas = s.numbers(to)
		}
		req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: tp.Topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{p}}}
		return req
	case "list":
		return kmsg.NewPtrListPartitionReassignmentsRequest()
	case "ids":
		req := kmsg.NewPtrAllocateProducerIDsRequest()
		req.BrokerID, req.BrokerEpoch = has("broker"), epochOf(has("broker"))
		return req
	}
	require.Fail(s.t, "unknown request "+words[0])
	return nil
}

func describe(req kmsg.Request) string {
	var b bytes.Buffer
	switch r := req.(type) {
	case *kmsg.LeaderAndISRRequest:
		fmt.Fprintf(&b, "LeaderAndIsr v%d epoch %d/%d", r.Version, r.ControllerEpoch, r.BrokerEpoch)
		for _, t := range r.TopicStates {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, "; %s-%d leader %d epoch %d isr %v version %d replicas %v", t.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.ZKVersion, p.Replicas)
				if len(p.AddingReplicas)+len(p.RemovingReplicas) > 0 {
					fmt.Fprintf(&b, " adding %v removing %v", p.AddingReplicas, p.RemovingReplicas)
				}
				if p.IsNew {
					b.WriteString(" new")
				}
				if p.LeaderRecoveryState != 0 {
					b.WriteString(" recovering")
				}
			}
		}
	case *kmsg.UpdateMetadataRequest:
		fmt.Fprintf(&b, "UpdateMetadata v%d epoch %d/%d brokers", r.Version, r.ControllerEpoch, r.BrokerEpoch)
		for _, live := range r.LiveBrokers {
			fmt.Fprintf(&b, " %d", live.ID)
		}
		for _, t := range r.TopicStates {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, "; %s-%d leader %d epoch %d isr %v replicas %v", t.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.Replicas)
				if len(p.OfflineReplicas) > 0 {
					fmt.Fprintf(&b, " offline %v", p.OfflineReplicas)
				}
			}
		}
	case *kmsg.StopReplicaRequest:
		fmt.Fprintf(&b, "StopReplica v%d epoch %d/%d delete %v", r.Version, r.ControllerEpoch, r.BrokerEpoch, r.DeletePartitions)
		for _, t := range r.Topics {
			for _, p := range t.PartitionStates {
				fmt.Fprintf(&b, "; %s-%d epoch %d delete %v", t.Topic, p.Partition, p.LeaderEpoch, p.Delete)
			}
		}
	}
	return b.String()
}

func codeText(code int16) string {
	if code == 0 {
		return "ok"
	}
	var e *kerr.Error
	if errors.As(kerr.ErrorForCode(code), &e) {
		return e.Message
	}
	return strconv.Itoa(int(code))
}

func describeAnswer(resp kmsg.Response) string {
	var b bytes.Buffer
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return " (" + *p + ")"
	}
	switch r := resp.(type) {
	case *kmsg.AlterPartitionResponse:
		b.WriteString(codeText(r.ErrorCode))
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, "; %d %s leader %d epoch %d isr %v version %d", p.Partition, codeText(p.ErrorCode), p.LeaderID, p.LeaderEpoch, p.ISR, p.PartitionEpoch)
			}
		}
	case *kmsg.ControlledShutdownResponse:
		b.WriteString(codeText(r.ErrorCode))
		for _, p := range r.PartitionsRemaining {
			fmt.Fprintf(&b, "; still leads %s-%d", p.Topic, p.Partition)
		}
	case *kmsg.ElectLeadersResponse:
		b.WriteString(codeText(r.ErrorCode))
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, "; %s-%d %s%s", t.Topic, p.Partition, codeText(p.ErrorCode), text(p.ErrorMessage))
			}
		}
	case *kmsg.AlterPartitionAssignmentsResponse:
		b.WriteString(codeText(r.ErrorCode))
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, "; %s-%d %s%s", t.Topic, p.Partition, codeText(p.ErrorCode), text(p.ErrorMessage))
			}
		}
	case *kmsg.ListPartitionReassignmentsResponse:
		b.WriteString(codeText(r.ErrorCode))
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&b, "; %s-%d %v adding %v removing %v", t.Topic, p.Partition, p.Replicas, p.AddingReplicas, p.RemovingReplicas)
			}
		}
	case *kmsg.AllocateProducerIDsResponse:
		fmt.Fprintf(&b, "%s from %d, %d", codeText(r.ErrorCode), r.ProducerIDStart, r.ProducerIDLen)
	}
	return b.String()
}
