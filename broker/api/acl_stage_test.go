package api

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/admin"
	"barnabas/broker/acl"
	"barnabas/broker/commitlog"
	"barnabas/broker/wire"
	"barnabas/config"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// aclStage is where the play of the access lists is performed, with its transcript.
// It is performed by Apache Kafka, whose answers are the golden, by a Dispatcher over
// an embedded ZooKeeper, and by a whole broker of this project.
type aclStage struct {
	t    *testing.T
	on   func(who string, req kmsg.Request) kmsg.Response // nil: the connection was closed
	text strings.Builder
	ids  map[string][16]byte // of topics
}

// aclTopics are the topics of the play, by how many partitions they have; the play
// also needs those of the coordinators.
var aclTopics = map[string]int{"one": 1, "two": 2, offsetsTopic: 50, transactionsTopic: 50}

const aclPlayFolder = "testdata/acls"

func aclPlayFile(name string) string { return filepath.Join(aclPlayFolder, name+".txt") }

func (p *aclStage) say(what string) { p.text.WriteString("\n# " + what + "\n") }

func (p *aclStage) topicID(topic string) [16]byte { return p.ids[topic] }

// ask asks, and notes what was asked and answered. What differs in every run, and an
// order that comes from a hash table, are made equal.
func (p *aclStage) ask(who string, version int16, req kmsg.Request) kmsg.Response {
	req.SetVersion(version)
	resp := p.on(who, req)
	answer := "closed"
	if resp != nil {
		answer = neutralText(p.t, resp)
	}
	fmt.Fprintf(&p.text, "%s asks %s v%d\n  %s\n", who, kmsg.NameForKey(req.Key()), version, answer)
	return resp
}

// neutralText is an answer as JSON without what belongs to one cluster alone.
func neutralText(t *testing.T, resp kmsg.Response) string {
	b, err := json.Marshal(resp)
	require.NoError(t, err)
	var tree any
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	require.NoError(t, d.Decode(&tree))
	b, err = json.Marshal(neutralTree("", tree))
	require.NoError(t, err)
	return string(b)
}

// unnamedRefusal is a message with a request of Java's in it.
var unnamedRefusal = regexp.MustCompile(`^Request .* is not authorized\.$`)

func neutralTree(key string, node any) any {
	switch n := node.(type) {
	case map[string]any:
		sinceIssue(n)
		for k, child := range n {
			switch {
			case k == "UnknownTags", k == "ThrottleMillis", k == "Version", k == "ClusterID", k == "ControllerID", k == "Brokers", k == "Port", k == "Host" && key == "Coordinators":
				delete(n, k)
			default:
				n[k] = neutralTree(k, child)
			}
		}
	case []any:
		if key == "TopicID" {
			return !slices.Equal(n, slices.Repeat([]any{json.Number("0")}, 16))
		}
		for i := range n {
			n[i] = neutralTree(key, n[i])
		}
		if key != "Results" { // they are in line with what was asked
			slices.SortStableFunc(n, func(a, b any) int { return strings.Compare(treeText(a), treeText(b)) })
		}
		if len(n) == 0 {
			return nil // to a reader null and empty are the same here
		}
	case json.Number:
		if at, _ := n.Int64(); key == "ProducerID" && at >= 0 {
			return json.Number("1")
		}
	case string:
		switch {
		case key == "ErrorMessage" && unnamedRefusal.MatchString(n):
			return "Request ... is not authorized."
		case (key == "TokenID" || key == "HMAC") && n != "":
			return "..."
		}
	}
	return node
}

// sinceIssue makes the times of a delegation token count from when it was made; one that
// stands alone is only there or not.
func sinceIssue(answer map[string]any) {
	at := func(key string) int64 {
		number, _ := answer[key].(json.Number)
		n, _ := number.Int64()
		return n
	}
	issued := at("IssueTimestamp")
	for _, key := range []string{"IssueTimestamp", "ExpiryTimestamp", "MaxTimestamp"} {
		if at(key) <= 0 {
			continue
		}
		answer[key] = json.Number(fmt.Sprint(at(key) - issued))
		if issued <= 0 {
			answer[key] = "..."
		}
	}
}

func treeText(node any) string {
	b, _ := json.Marshal(node)
	return string(b)
}

// TestRecordACLPlays has the plays performed by Apache Kafka 3.9.1. By hand, all or
// one:
//
//	go test ./broker/api -run TestRecordACLPlays/tokens -record
func TestRecordACLPlays(t *testing.T) {
	if !*record391 {
		t.Skip("only with -record")
	}
	require.NoError(t, os.MkdirAll(aclPlayFolder, 0o755))
	for name, script := range aclPlays {
		t.Run(name, func(t *testing.T) {
			text := performOnBroker(t, script, func(dir, properties string) { startKafka(t, dir, properties) })
			header := "# Performed by Apache Kafka 3.9.1 (ZooKeeper mode). Written by TestRecordACLPlays.\n"
			require.NoError(t, os.WriteFile(aclPlayFile(name), []byte(header+text), 0o644))
		})
	}
}

// TestACLsDecideAsInKafka performs the plays here, over access lists in an embedded
// ZooKeeper.
func TestACLsDecideAsInKafka(t *testing.T) {
	for name, script := range aclPlays {
		t.Run(name, func(t *testing.T) {
			w := newACLWorld(t, script)
			p := &aclStage{t: t, ids: map[string][16]byte{}, on: w.askAs}
			for topic := range aclTopics {
				p.ids[topic] = w.cache.Load().Topic(topic).ID
			}
			script.play(p)
			compareACLPlay(t, name, p.text.String())
		})
	}
}

// TestALiveBrokerDecidesAsKafkaDoes has the plays performed by a whole broker of this
// project, whose clients authenticate. Which program to start is told by the
// environment.
func TestALiveBrokerDecidesAsKafkaDoes(t *testing.T) {
	program := os.Getenv("BARNABAS_PROGRAM")
	lane.Need(t, program != "", "the built program, named by BARNABAS_PROGRAM")
	for name, script := range aclPlays {
		t.Run(name, func(t *testing.T) {
			text := performOnBroker(t, script, func(dir, properties string) { start(t, dir, program, "broker", properties) })
			compareACLPlay(t, name, text)
		})
	}
}

func compareACLPlay(t *testing.T, name, text string) {
	golden, err := os.ReadFile(aclPlayFile(name))
	require.NoError(t, err)
	_, want, _ := strings.Cut(string(golden), "\n")
	theirs, own := scenes(want), scenes(text)
	for i := range min(len(theirs), len(own)) {
		if theirs[i] != own[i] && !deniedOtherwise[theirs[i]] {
			t.Errorf("Kafka: %s\nhere: %s", theirs[i], own[i])
		}
	}
	require.Len(t, own, len(theirs))
}

// deniedOtherwise are answers of Kafka 3.9 that are others here on purpose: who may not
// describe a group gets no word of that in version 1 of OffsetFetch. Here, as in 2.8, each
// partition says it.
var deniedOtherwise = map[string]bool{"alice asks OffsetFetch v1\n  {\"ErrorCode\":0,\"Groups\":null,\"Topics\":null}\n": true}

// performOnBroker starts ZooKeeper and one broker, and has a play performed by it.
// Root comes by a listener without authentication, the others by one with SASL.
func performOnBroker(t *testing.T, script aclScript, startBroker func(dir, properties string)) string {
	dir := t.TempDir()
	java, classPath := lane.Java(t), filepath.Join(lane.KafkaJars(t, "3.9.1"), "*")
	zk, plain, sasl := freePort(t), freePort(t), freePort(t)
	_, zkPort, _ := net.SplitHostPort(zk)
	zooCfg, file := filepath.Join(dir, "zoo.cfg"), filepath.Join(dir, "broker.properties")
	require.NoError(t, os.WriteFile(zooCfg, []byte("dataDir="+dir+"/zk\nclientPort="+zkPort+"\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"), 0o644))
	start(t, dir, java, "-Xmx128m", "-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", zooCfg)
	waitDoor(t, zk)
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `broker.id=1
listeners=PLAINTEXT://%s,SASL_PLAINTEXT://%s
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="secret" user_carol="secret";
%s
log.dirs=%s/data
zookeeper.connect=%s
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
num.io.threads=2
num.network.threads=2
log.cleaner.enable=false
log.retention.ms=-1
`, plain, sasl, strings.Join(script.settings, "\n"), dir, zk), 0o644))
	startBroker(dir, file)
	waitDoor(t, plain)
	n := &saslNetwork{t: t, plain: plain, sasl: sasl, conns: map[string]net.Conn{}}
	p := &aclStage{t: t, ids: map[string][16]byte{}, on: n.ask}
	n.prepare(p.ids)
	script.play(p)
	return p.text.String()
}

// saslNetwork is a broker that each client reaches by a connection of its own.
type saslNetwork struct {
	t           *testing.T
	plain, sasl string
	conns       map[string]net.Conn
}

func (n *saslNetwork) ask(who string, req kmsg.Request) kmsg.Response {
	conn := n.conns[who]
	if conn == nil {
		conn = n.connect(who)
		n.conns[who] = conn
	}
	resp := n.exchange(conn, who, req)
	if resp == nil {
		delete(n.conns, who)
	}
	return resp
}

func (n *saslNetwork) connect(who string) net.Conn {
	addr := n.sasl
	if who == "root" {
		addr = n.plain
	}
	conn, err := net.Dial("tcp", addr)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { conn.Close() })
	if who != "root" {
		shake := kmsg.NewPtrSASLHandshakeRequest()
		shake.Version, shake.Mechanism = 1, "PLAIN"
		require.Zero(n.t, n.exchange(conn, who, shake).(*kmsg.SASLHandshakeResponse).ErrorCode)
		prove := kmsg.NewPtrSASLAuthenticateRequest()
		prove.Version, prove.SASLAuthBytes = 1, []byte("\x00"+who+"\x00secret")
		require.Zero(n.t, n.exchange(conn, who, prove).(*kmsg.SASLAuthenticateResponse).ErrorCode)
	}
	return conn
}

func (n *saslNetwork) exchange(conn net.Conn, who string, req kmsg.Request) kmsg.Response {
	require.NoError(n.t, conn.SetDeadline(time.Now().Add(90*time.Second)))
	_, err := conn.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID(who)).AppendRequest(nil, req, goldenCorrelation))
	require.NoError(n.t, err)
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil
	}
	response := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(conn, response)
	require.NoError(n.t, err)
	return decodeAnswer(n.t, req.Key(), req.GetVersion(), response)
}

// prepare makes the topics and waits until the coordinators have loaded theirs.
func (n *saslNetwork) prepare(ids map[string][16]byte) {
	require.Eventually(n.t, func() bool {
		m := kmsg.NewPtrMetadataRequest()
		m.Version = 9
		return len(n.ask("root", m).(*kmsg.MetadataResponse).Brokers) == 1
	}, 60*time.Second, 200*time.Millisecond)
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 7, 60000
	for topic, partitions := range aclTopics {
		create.Topics = append(create.Topics, createTopic(topic, -1, -1, slices.Repeat([][]int32{{1}}, partitions)))
	}
	for _, topic := range n.ask("root", create).(*kmsg.CreateTopicsResponse).Topics {
		require.Zero(n.t, topic.ErrorCode, topic.Topic)
		ids[topic.Topic] = topic.TopicID
	}
	require.Eventually(n.t, func() bool {
		list := kmsg.NewPtrListTransactionsRequest()
		groups := n.ask("root", kmsg.NewPtrListGroupsRequest()).(*kmsg.ListGroupsResponse)
		ids := n.ask("root", kmsg.NewPtrInitProducerIDRequest()).(*kmsg.InitProducerIDResponse)
		return groups.ErrorCode == 0 && ids.ErrorCode == 0 && n.ask("root", list).(*kmsg.ListTransactionsResponse).ErrorCode == 0
	}, 60*time.Second, 200*time.Millisecond)
}

// aclWorld is a world whose administration and access lists are real, over an embedded
// ZooKeeper.
type aclWorld struct {
	*world
	clients map[string]*wire.Conn
}

func newACLWorld(t *testing.T, script aclScript) *aclWorld {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	zk, err := zkstate.Connect(zkstate.Config{Servers: zktest.Embedded(t).Addr(), SessionTimeout: 10 * time.Second, ConnectTimeout: 10 * time.Second, Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(zk.Close)
	require.NoError(t, zk.MakePersistentPaths(ctx))
	registration := zkstate.Broker{ID: 1, Version: 5, Endpoints: []zkstate.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "localhost", Port: 1}}, JMXPort: -1}
	_, err = zk.RegisterEphemeral(ctx, zkstate.BrokerIDPath(1), registration.Encode())
	require.NoError(t, err)
	values, err := config.New(map[string]string{"broker.id": "1", "zookeeper.connect": "unused", "log.retention.ms": "-1"})
	require.NoError(t, err)

	w := &aclWorld{world: openWorld(t, 1, readCluster(t).clusterID, func(string) commitlog.Config { return commitlog.DefaultConfig() }), clients: map[string]*wire.Conn{}}
	adm := admin.New(admin.Config{BrokerID: 1, DefaultPartitions: 1, DefaultReplicationFactor: 1, TopicIDs: true, DeleteTopics: true, Table: admin.NewConfigTable(values), Log: quiet()}, zk)
	w.controller.do = func(req kmsg.Request) kmsg.Response { return req.ResponseKind() }
	var specs []admin.TopicSpec
	for topic, partitions := range aclTopics {
		w.leads(topic, partitions)
		spec := admin.TopicSpec{Name: topic, Partitions: -1, ReplicationFactor: -1, Assignment: map[int32][]int32{}}
		for id := range int32(partitions) {
			spec.Assignment[id] = []int32{1}
		}
		specs = append(specs, spec)
	}
	for _, r := range adm.CreateTopics(ctx, specs, false) {
		require.NoError(t, r.Err, r.Name)
	}
	w.d.deps.Admin = adm
	if slices.Contains(script.settings, tokensOn) {
		w.d.deps.Tokens = &fakeTokens{}
	}
	if slices.Contains(script.settings, authorizerOn) {
		policy := acl.Policy{SuperUsers: map[acl.Principal]bool{{Type: "User", Name: "ANONYMOUS"}: true}}
		policy.AllowUnlisted = slices.Contains(script.settings, "allow.everyone.if.no.acl.found=true")
		lists := admin.NewACLs(zk, policy)
		require.NoError(t, lists.Load(ctx))
		w.d.deps.Authorizer = lists
	}
	return w
}

func (w *aclWorld) askAs(who string, req kmsg.Request) kmsg.Response {
	conn := w.clients[who]
	if conn == nil {
		conn = &wire.Conn{Listener: "PLAINTEXT", SecurityProtocol: "PLAINTEXT", Remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}}
		if who != "root" {
			conn.SecurityProtocol, conn.Principal = "SASL_PLAINTEXT", wire.Principal{Type: "User", Name: who}
		}
		w.clients[who] = conn
	}
	sink := &caught{t: w.t, done: make(chan outcome, 1)}
	w.d.Handle(wire.NewRequest(conn, kmsg.NewRequestFormatter(kmsg.FormatterClientID(who)).AppendRequest(nil, req, goldenCorrelation)[4:], time.Now(), sink))
	o := await(w.t, sink.done)
	if o.closed != nil {
		return nil
	}
	return decodeAnswer(w.t, req.Key(), req.GetVersion(), o.response)
}
