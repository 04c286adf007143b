package api

import (
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/lane"
)

var record391 = flag.Bool("record", false, "ask a real Apache Kafka 3.9.1 and rewrite testdata/golden")

// TestRecordGoldens starts ZooKeeper and two brokers of Apache Kafka 3.9.1, of
// which the first is the controller and alone has the listener OUT, asks them
// everything in goldenCases, and writes the answers down. By hand:
//
//	go test ./broker/api -run TestRecordGoldens -record
func TestRecordGoldens(t *testing.T) {
	if !*record391 {
		t.Skip("only with -record")
	}
	dir := t.TempDir()
	k := startCluster(t, dir, func(properties string) { startKafka(t, dir, properties) })
	r := &recorder{t: t, kafka: k, cluster: recordedCluster{topicIDs: make(map[string][16]byte), doors: k.doors}}
	r.prepare()
	goldenCases(r)
	r.finish()
}

// TestALiveBrokerAnswersAsKafkaDoes asks two whole brokers of this project, over
// the network and with Apache's ZooKeeper behind them, what the goldens hold.
// Which program to start is told by the environment.
func TestALiveBrokerAnswersAsKafkaDoes(t *testing.T) {
	program := os.Getenv("BARNABAS_PROGRAM")
	lane.Need(t, program != "", "the built program, named by BARNABAS_PROGRAM")
	dir := t.TempDir()
	k := startCluster(t, dir, func(properties string) { start(t, dir, program, "broker", properties) })
	r := &recorder{t: t, kafka: k, cluster: recordedCluster{topicIDs: make(map[string][16]byte), doors: k.doors}, patience: time.Minute}
	r.prepare()
	goldenCases(r)
	compareLive(t, r)
}

func startKafka(t *testing.T, dir, properties string) {
	lib := filepath.Join(lane.KafkaJars(t, "3.9.1"), "*")
	start(t, dir, lane.Java(t), "-Xmx300m", "-Dlog4j.configuration=file:"+log4j(t, dir), "-cp", lib, "kafka.Kafka", properties)
}

// liveCluster is a running pair of brokers.
type liveCluster struct {
	doors map[string]string // address by door
}

// startCluster starts ZooKeeper and two brokers, each with its configuration.
func startCluster(t *testing.T, dir string, startBroker func(properties string)) *liveCluster {
	java, classPath := lane.Java(t), filepath.Join(lane.KafkaJars(t, "3.9.1"), "*")
	zk := freePort(t)
	k := &liveCluster{doors: map[string]string{"PLAINTEXT": freePort(t), "OUT": freePort(t), "B2": freePort(t)}}
	_, zkPort, _ := net.SplitHostPort(zk)
	zooCfg := filepath.Join(dir, "zoo.cfg")
	require.NoError(t, os.WriteFile(zooCfg, []byte("tickTime=500\ndataDir="+dir+"/zk\nclientPort="+zkPort+
		"\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"), 0o644))
	start(t, dir, java, "-Xmx128m", "-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", zooCfg)
	waitDoor(t, zk)
	startBroker(properties(t, dir, zk, 1, "PLAINTEXT://"+k.doors["PLAINTEXT"]+",OUT://"+k.doors["OUT"],
		"PLAINTEXT://"+k.doors["PLAINTEXT"]+",OUT://out.example:19201"))
	waitDoor(t, k.doors["PLAINTEXT"])
	startBroker(properties(t, dir, zk, 2, "PLAINTEXT://"+k.doors["B2"], "PLAINTEXT://"+k.doors["B2"]))
	waitDoor(t, k.doors["B2"])
	return k
}

// properties writes a broker's configuration and returns its file.
func properties(t *testing.T, dir, zk string, id int, listeners, advertised string) string {
	text := fmt.Sprintf(`broker.id=%d
broker.rack=rack%d
listeners=%s
advertised.listeners=%s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OUT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=%s/data%d
zookeeper.connect=%s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
num.partitions=2
num.io.threads=2
num.network.threads=2
log.cleaner.dedupe.buffer.size=10000000
log.retention.ms=-1
`, id, id, listeners, advertised, dir, id, zk)
	file := filepath.Join(dir, fmt.Sprintf("broker%d.properties", id))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

// log4j makes the brokers tell of errors alone.
func log4j(t *testing.T, dir string) string {
	file := filepath.Join(dir, "log4j.properties")
	require.NoError(t, os.WriteFile(file, []byte("log4j.rootLogger=ERROR, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"+
		"log4j.appender.out.layout=org.apache.log4j.PatternLayout\nlog4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n\n"), 0o644))
	return file
}

func start(t *testing.T, dir, program string, args ...string) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

func freePort(t *testing.T) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(lane.Port(t)))
}

func waitDoor(t *testing.T, addr string) {
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		c.Close()
		return true
	}, 3*time.Minute, 200*time.Millisecond, addr)
}

// recorder asks and notes.
type recorder struct {
	t       *testing.T
	kafka   *liveCluster
	cluster recordedCluster
	files   map[string][]exchange
	order   []string
	// patience is how long an answer may take; it is short by default, since Kafka never answers one of the questions.
	patience time.Duration
}

const goldenCorrelation = 7

// frame encodes a request, at the version set in it.
func frame(req kmsg.Request) []byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("golden"))
	return f.AppendRequest(nil, req, goldenCorrelation)[4:]
}

func (r *recorder) raw(door string, request []byte) []byte {
	conn, err := net.Dial("tcp", r.kafka.doors[door])
	require.NoError(r.t, err)
	defer conn.Close()
	require.NoError(r.t, conn.SetDeadline(time.Now().Add(cmp.Or(r.patience, 8*time.Second))))
	_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...))
	require.NoError(r.t, err)
	var size [4]byte
	if _, err = io.ReadFull(conn, size[:]); err != nil {
		return nil // closed
	}
	response := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(conn, response)
	require.NoError(r.t, err)
	return response
}

// note asks and writes down.
func (r *recorder) note(file, name, door string, request []byte) []byte {
	response := r.raw(door, request)
	if r.files == nil {
		r.files = make(map[string][]exchange)
	}
	if r.files[file] == nil {
		r.order = append(r.order, file)
	}
	r.files[file] = append(r.files[file], exchange{name: name, door: door, request: request, response: response})
	return response
}

// at asks one question in each version of a range.
func (r *recorder) at(file, name, door string, from, to int16, build func(version int16) kmsg.Request) {
	for version := from; version <= to; version++ {
		req := build(version)
		req.SetVersion(version)
		r.note(file, fmt.Sprintf("%s v%d", name, version), door, frame(req))
	}
}

// ask asks without writing down.
func (r *recorder) ask(door string, req kmsg.Request) kmsg.Response {
	return decodeAnswer(r.t, req.Key(), req.GetVersion(), r.raw(door, frame(req)))
}

// decodeAnswer strips the response header and decodes strictly.
func decodeAnswer(t *testing.T, key, version int16, response []byte) kmsg.Response {
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	resp := req.ResponseKind()
	require.GreaterOrEqual(t, len(response), 4)
	require.Equal(t, uint32(goldenCorrelation), binary.BigEndian.Uint32(response))
	body := response[4:]
	if resp.IsFlexible() && key != 18 {
		require.Equal(t, byte(0), body[0])
		body = body[1:]
	}
	require.NoError(t, resp.ReadFrom(body), "%s v%d", kmsg.NameForKey(key), version)
	return resp
}

// prepare makes the topics that the questions are about, and learns their ids.
func (r *recorder) prepare() {
	require.Eventually(r.t, func() bool {
		m := kmsg.NewPtrMetadataRequest()
		m.Version = 12
		resp := r.ask("PLAINTEXT", m).(*kmsg.MetadataResponse)
		r.cluster.clusterID = stringOrEmpty(resp.ClusterID)
		return len(resp.Brokers) == 2 && resp.ControllerID == 1
	}, 3*time.Minute, 500*time.Millisecond)
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 7, 60_000
	for _, topic := range goldenTopics {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = topic.name, -1, -1
		for i, replicas := range topic.replicas {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Partition, a.Replicas = int32(i), replicas
			t.ReplicaAssignment = append(t.ReplicaAssignment, a)
		}
		if topic.compacted {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = "cleanup.policy", kmsg.StringPtr("compact")
			t.Configs = append(t.Configs, c)
		}
		create.Topics = append(create.Topics, t)
	}
	for _, t := range r.ask("PLAINTEXT", create).(*kmsg.CreateTopicsResponse).Topics {
		require.Zero(r.t, t.ErrorCode, t.Topic)
		r.cluster.topicIDs[t.Topic] = t.TopicID
	}
	r.settle()
	require.Eventually(r.t, func() bool { // the first block of ids is fetched in the background
		req := kmsg.NewPtrInitProducerIDRequest()
		return r.ask("PLAINTEXT", req).(*kmsg.InitProducerIDResponse).ErrorCode == 0
	}, time.Minute, 500*time.Millisecond)
}

// settle waits until both brokers know every topic and all replicas are in sync.
func (r *recorder) settle() {
	for _, door := range []string{"PLAINTEXT", "B2"} {
		require.Eventually(r.t, func() bool {
			m := kmsg.NewPtrMetadataRequest()
			m.Version = 12
			resp := r.ask(door, m).(*kmsg.MetadataResponse)
			for _, t := range resp.Topics {
				for _, p := range t.Partitions {
					if p.ErrorCode != 0 || len(p.ISR) != len(p.Replicas) {
						return false
					}
				}
			}
			return len(resp.Topics) == len(goldenTopics)
		}, time.Minute, 200*time.Millisecond)
	}
}

func (r *recorder) finish() {
	require.NoError(r.t, os.MkdirAll(goldenFolder, 0o755))
	r.cluster.write(r.t)
	for _, file := range r.order {
		writeGolden(r.t, file, r.files[file])
	}
	r.t.Log("recorded " + strings.Join(r.order, ", "))
}
