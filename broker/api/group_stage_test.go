package api

import (
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

	"barnabas/broker/metadata"
	"barnabas/broker/wire"
)

// What groups do depends on what several clients ask, in which order, and on ids
// that the coordinator makes up. So their goldens are plays: a script asks, and
// what is asked and answered is written down with made up ids replaced by names.
// TestRecordGroupPlays has them performed by Apache Kafka 3.9.1, the other tests
// by this broker, and the transcripts must be equal.

// theatre is where a play is performed.
type theatre interface {
	// ask sends a request, by a connection of a client's own; the answer comes when
	// it comes.
	ask(client string, req kmsg.Request) <-chan kmsg.Response
}

// parked is for how long a live broker must leave a request unanswered to be believed to have parked it.
const parked = 500 * time.Millisecond

// play is one performance, with its transcript.
type groupPlay struct {
	t       *testing.T
	on      theatre
	settle  time.Duration // until a request that is not answered has surely arrived
	text    strings.Builder
	names   map[string]string // by made up id
	waiting map[string]<-chan kmsg.Response
}

func newGroupPlay(t *testing.T, on theatre, settle time.Duration) *groupPlay {
	return &groupPlay{t: t, on: on, settle: settle, names: map[string]string{}, waiting: map[string]<-chan kmsg.Response{}}
}

// ask asks and waits for the answer.
func (p *groupPlay) ask(client string, version int16, req kmsg.Request) kmsg.Response {
	p.send(client, version, req)
	return p.await(client)
}

// send asks something that is answered later: await.
func (p *groupPlay) send(client string, version int16, req kmsg.Request) {
	req.SetVersion(version)
	p.note("> "+client, req.Key(), version, req)
	answer := p.on.ask(client, req)
	p.waiting[client] = answer
	if p.settle == 0 {
		return
	}
	select {
	case resp := <-answer:
		kept := make(chan kmsg.Response, 1)
		kept <- resp
		p.waiting[client] = kept
	case <-time.After(p.settle):
	}
}

func (p *groupPlay) await(client string) kmsg.Response {
	select {
	case resp := <-p.waiting[client]:
		delete(p.waiting, client)
		if resp == nil {
			p.text.WriteString("< " + client + " closed\n")
			return nil
		}
		p.note("< "+client, resp.Key(), resp.GetVersion(), ordered(resp))
		return resp
	case <-time.After(time.Minute):
		p.t.Fatalf("%s gets no answer after\n%s", client, p.text.String())
		return nil
	}
}

var madeUp = regexp.MustCompile(`[a-zA-Z0-9._]+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

var port = regexp.MustCompile(`"Port":[1-9][0-9]*`)

func (p *groupPlay) note(who string, key, version int16, message any) {
	b, err := json.Marshal(message)
	require.NoError(p.t, err)
	text := madeUp.ReplaceAllStringFunc(string(b), func(id string) string {
		if p.names[id] == "" {
			p.names[id] = fmt.Sprintf("<id %d of %s>", len(p.names)+1, id[:len(id)-37])
		}
		return p.names[id]
	})
	text = port.ReplaceAllString(text, `"Port":1`)
	fmt.Fprintf(&p.text, "%s %s v%d %s\n", who, kmsg.NameForKey(key), version, text)
}

// say puts a line between the scenes.
func (p *groupPlay) say(what string) { p.text.WriteString("\n# " + what + "\n") }

// ordered is an answer without the order in which a hash table gave it.
func ordered(resp kmsg.Response) kmsg.Response {
	switch r := resp.(type) {
	case *kmsg.OffsetCommitResponse:
		sortBy(r.Topics, func(t kmsg.OffsetCommitResponseTopic) string { return t.Topic })
		for i := range r.Topics {
			sortBy(r.Topics[i].Partitions, func(p kmsg.OffsetCommitResponseTopicPartition) int32 { return p.Partition })
		}
	case *kmsg.OffsetFetchResponse:
		sortBy(r.Topics, func(t kmsg.OffsetFetchResponseTopic) string { return t.Topic })
		for i := range r.Topics {
			sortBy(r.Topics[i].Partitions, func(p kmsg.OffsetFetchResponseTopicPartition) int32 { return p.Partition })
		}
		for _, g := range r.Groups {
			sortBy(g.Topics, func(t kmsg.OffsetFetchResponseGroupTopic) string { return t.Topic })
			for i := range g.Topics {
				sortBy(g.Topics[i].Partitions, func(p kmsg.OffsetFetchResponseGroupTopicPartition) int32 { return p.Partition })
			}
		}
	case *kmsg.OffsetDeleteResponse:
		sortBy(r.Topics, func(t kmsg.OffsetDeleteResponseTopic) string { return t.Topic })
		for i := range r.Topics {
			sortBy(r.Topics[i].Partitions, func(p kmsg.OffsetDeleteResponseTopicPartition) int32 { return p.Partition })
		}
	case *kmsg.ListGroupsResponse:
		// Groups of other plays are no part of this one.
		r.Groups = slices.DeleteFunc(r.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return !strings.HasPrefix(g.Group, "listed") })
		sortBy(r.Groups, func(g kmsg.ListGroupsResponseGroup) string { return g.Group })
	case *kmsg.JoinGroupResponse:
		sortBy(r.Members, func(m kmsg.JoinGroupResponseMember) string { return string(m.ProtocolMetadata) })
	case *kmsg.DescribeGroupsResponse:
		for i := range r.Groups {
			sortBy(r.Groups[i].Members, func(m kmsg.DescribeGroupsResponseGroupMember) string { return m.ClientID })
		}
	case *kmsg.DeleteGroupsResponse:
		sortBy(r.Groups, func(g kmsg.DeleteGroupsResponseGroup) string { return g.Group })
	}
	return resp
}

// network is a broker that is reached by TCP; each client has its connection.
type network struct {
	t     *testing.T
	addr  string
	conns map[string]net.Conn
}

func (n *network) ask(client string, req kmsg.Request) <-chan kmsg.Response {
	answer := make(chan kmsg.Response, 1)
	conn := n.conns[client]
	if conn == nil {
		var err error
		conn, err = net.Dial("tcp", n.addr)
		require.NoError(n.t, err)
		n.conns[client] = conn
		n.t.Cleanup(func() { conn.Close() })
	}
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(client))
	_, err := conn.Write(f.AppendRequest(nil, req, goldenCorrelation))
	require.NoError(n.t, err)
	go func() {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			delete(n.conns, client) // the player waits for the answer meanwhile
			answer <- nil
			return
		}
		response := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(conn, response); err != nil {
			answer <- nil
			return
		}
		answer <- decodeAnswer(n.t, req.Key(), req.GetVersion(), response)
	}()
	return answer
}

// indoors is the Dispatcher of a world.
type indoors struct{ w *world }

func (i indoors) ask(client string, req kmsg.Request) <-chan kmsg.Response {
	answer := make(chan kmsg.Response, 1)
	sink := &caught{t: i.w.t, done: make(chan outcome, 1)}
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(client))
	i.w.d.Handle(wire.NewRequest(i.w.conns["PLAINTEXT"], f.AppendRequest(nil, req, goldenCorrelation)[4:], time.Now(), sink))
	go func() {
		o := <-sink.done
		if o.closed != nil {
			answer <- nil
			return
		}
		answer <- decodeAnswer(i.w.t, req.Key(), req.GetVersion(), o.response)
	}()
	return answer
}

const playFolder = "testdata/groups"

func playFile(name string) string { return filepath.Join(playFolder, name+".txt") }

// TestRecordGroupPlays has the plays performed by Apache Kafka 3.9.1. By hand:
//
//	go test ./broker/api -run TestRecordGroupPlays -record
func TestRecordGroupPlays(t *testing.T) {
	if !*record391 {
		t.Skip("only with -record")
	}
	addr := oneKafka(t)
	require.NoError(t, os.MkdirAll(playFolder, 0o755))
	for _, name := range groupPlayNames() {
		p := newGroupPlay(t, &network{t: t, addr: addr, conns: map[string]net.Conn{}}, parked)
		groupPlays[name](p)
		text := "# Performed by Apache Kafka 3.9.1 (ZooKeeper mode). Written by TestRecordGroupPlays.\n" + p.text.String()
		require.NoError(t, os.WriteFile(playFile(name), []byte(text), 0o644))
	}
}

// TestGroupsAnswerAsKafkaDoes performs the plays here.
func TestGroupsAnswerAsKafkaDoes(t *testing.T) {
	for _, name := range groupPlayNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1, readCluster(t))
			w.createsOffsetsTopic()
			p := newGroupPlay(t, indoors{w}, 0)
			groupPlays[name](p)
			comparePlay(t, name, p)
		})
	}
}

func comparePlay(t *testing.T, name string, p *groupPlay) {
	b, err := os.ReadFile(playFile(name))
	require.NoError(t, err)
	_, want, _ := strings.Cut(string(b), "\n")
	wants, gots := strings.Split(want, "\n"), strings.Split(p.text.String(), "\n")
	for i := range min(len(wants), len(gots)) {
		before := strings.Join(wants[max(i-3, 0):i], "\n")
		if onPurpose(wants[i], gots[i]) {
			continue
		}
		if wants[i] != gots[i] {
			t.Fatalf("after\n%s\nKafka: %s\nhere:  %s", before, wants[i], gots[i])
		}
	}
	require.Len(t, gots, len(wants))
}

// createsOffsetsTopic tells of an offsets topic with 50 partitions.
func (w *world) createsOffsetsTopic() {
	partitions := make([][]int32, 50)
	for i := range partitions {
		partitions[i] = []int32{1}
	}
	w.tell(readCluster(w.t), topicState(offsetsTopic, [16]byte{9}, partitions))
	require.Len(w.t, w.cache.Load().Topic(offsetsTopic).Partitions, 50)
}

func oneKafka(t *testing.T) string {
	return oneBroker(t, func(dir, properties string) { startKafka(t, dir, properties) })
}

// oneBroker starts ZooKeeper and two brokers, of which the first has the topics of
// the plays.
func oneBroker(t *testing.T, startBroker func(dir, properties string)) string {
	dir := t.TempDir()
	k := startCluster(t, dir, func(properties string) { startBroker(dir, properties) })
	r := &recorder{t: t, kafka: k, cluster: recordedCluster{topicIDs: make(map[string][16]byte), doors: k.doors}, patience: time.Minute}
	require.Eventually(t, func() bool {
		m := kmsg.NewPtrMetadataRequest()
		m.Version = 12
		resp := r.ask("PLAINTEXT", m).(*kmsg.MetadataResponse)
		return len(resp.Brokers) == 2 && resp.ControllerID != metadata.NoController
	}, 3*time.Minute, 500*time.Millisecond)
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 7, 60_000
	for name, count := range map[string]int{"one": 1, "two": 2, offsetsTopic: 50} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1
		for id := range int32(count) {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Partition, a.Replicas = id, []int32{1}
			topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
		}
		create.Topics = append(create.Topics, topic)
	}
	for _, topic := range r.ask("PLAINTEXT", create).(*kmsg.CreateTopicsResponse).Topics {
		require.Zero(t, topic.ErrorCode, topic.Topic)
	}
	d := kmsg.NewPtrDescribeGroupsRequest()
	for i := range 1000 { // in all 50 partitions, as sure as may be
		d.Groups = append(d.Groups, fmt.Sprint("probe-", i))
	}
	require.Eventually(t, func() bool { // until all are led and loaded
		return !slices.ContainsFunc(r.ask("PLAINTEXT", d).(*kmsg.DescribeGroupsResponse).Groups, func(g kmsg.DescribeGroupsResponseGroup) bool { return g.ErrorCode != 0 })
	}, time.Minute, 100*time.Millisecond)
	return k.doors["PLAINTEXT"]
}
