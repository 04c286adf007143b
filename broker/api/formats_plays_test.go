package api

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/commitlog"
	"barnabas/broker/record"
	"barnabas/integration/lane"
)

// formatStage is what a play is performed on: a release, how it is configured, and the topics with their settings. Stages
// with the same file play the same.
type formatStage struct {
	file       string
	kafka      string
	properties string
	topics     map[string]map[string]string
	play       func(*formatPlay)
}

// Brokers of inter.broker.protocol.version 3.0 and later keep batches whatever message.format.version says.
var formatStages = map[string]formatStage{
	"3.9.1": {file: "batches.txt", kafka: "3.9.1", topics: map[string]map[string]string{
		"plain":     nil,
		"gzip":      {"compression.type": "gzip"},
		"zstd":      {"compression.type": "zstd"},
		"unpacked":  {"compression.type": "uncompressed"},
		"stamped":   {"message.timestamp.type": "LogAppendTime"},
		"keyed":     {"cleanup.policy": "compact"},
		"bounded":   {"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "3600000"},
		"small":     {"max.message.bytes": "120"},
		"as-it-is":  nil,
		"format0":   {"message.format.version": "0.9.0"},
		"unchanged": {"message.downconversion.enable": "false"},
	}, play: newLogsPlay},
	"3.9.1 at 2.8": {file: "messages.txt", kafka: "3.9.1", properties: "inter.broker.protocol.version=2.8\nlog.message.format.version=2.8\n", topics: oldTopics, play: oldLogsPlay},
	"2.8.2":        {file: "messages.txt", kafka: "2.8.2", topics: oldTopics, play: oldLogsPlay},
}

var oldTopics = map[string]map[string]string{
	"format0":   {"message.format.version": "0.9.0"},
	"format1":   {"message.format.version": "0.10.2"},
	"format2":   {"message.format.version": "0.11.0"},
	"gzip0":     {"message.format.version": "0.9.0", "compression.type": "gzip"},
	"gzip1":     {"message.format.version": "0.10.2", "compression.type": "gzip"},
	"unpacked1": {"message.format.version": "0.10.2", "compression.type": "uncompressed"},
	"stamped0":  {"message.format.version": "0.9.0", "message.timestamp.type": "LogAppendTime"},
	"stamped1":  {"message.format.version": "0.10.2", "message.timestamp.type": "LogAppendTime"},
	"keyed1":    {"message.format.version": "0.10.2", "cleanup.policy": "compact"},
	"unchanged": {"message.format.version": "0.10.2", "message.downconversion.enable": "false"},
}

const enough = 1 << 20

// newLogsPlay is performed on logs that keep batches.
func newLogsPlay(p *formatPlay) {
	for magic := int8(0); magic <= 1; magic++ {
		names, sets := sentSets(magic)
		for i := range names {
			at := p.produce(2*int16(magic), "plain", names[i], sets[i])
			if at >= 0 {
				for _, version := range []int16{1, 3, 4} {
					p.fetch(version, "plain", at, enough)
				}
			}
		}
	}
	p.produce(0, "plain", "v1 in a version of v0", messages(1, record.None, 1))
	p.produce(2, "plain", "v0 in a version of v1", messages(0, record.Gzip, 2))
	p.produce(1, "plain", "a batch in a version of v0", batchOf(record.None, 2, nil))
	p.produce(2, "plain", "two batches in a version of v1", joined(batchOf(record.None, 1, nil), batchOf(record.None, 1, nil)))
	p.produce(3, "plain", "v1 in a version of batches", messages(1, record.None, 1))
	p.offsets(0, "plain", -1, -2, 0, goldenTime*2, -3)
	p.offsets(1, "plain", -1, -2, 0, goldenTime, goldenTime+1, goldenTime+2, goldenTime+3)
	p.settings()
	p.batches()
}

// settings are those of topics that change what comes.
func (p *formatPlay) settings() {
	stamped := record.AppendMessage(nil, 1, record.None, true, 0, goldenTime, []byte("k"), []byte("v"))
	late := record.AppendMessage(nil, 1, record.None, false, 0, time.Now().UnixMilli(), []byte("k"), []byte("v"))
	for _, topic := range []string{"gzip", "zstd", "unpacked", "stamped", "keyed", "bounded", "small", "format0", "unchanged"} {
		for magic := int8(0); magic <= 1; magic++ {
			version := 2 * int16(magic)
			p.produce(version, topic, fmt.Sprintf("v%d three", magic), messages(magic, record.None, 3))
			p.produce(version, topic, fmt.Sprintf("v%d snappy", magic), messages(magic, record.Snappy, 3))
			p.produce(version, topic, fmt.Sprintf("v%d without a key", magic), record.AppendMessage(nil, magic, record.None, false, 0, goldenTime, nil, []byte("v")))
			p.produce(version, topic, fmt.Sprintf("v%d of 100 bytes more", magic), record.AppendMessage(nil, magic, record.None, false, 0, goldenTime, nil, make([]byte, 100)))
		}
		p.produce(2, topic, "v1 stamped by its producer", stamped)
		p.produce(2, topic, "v1 of now", late)
		for _, version := range []int16{0, 2, 3, 4, 10} {
			p.fetch(version, topic, 0, enough)
		}
		p.offsets(1, topic, goldenTime+1)
	}
}

// batches are asked for in other formats than their own, from every offset, with and without room.
func (p *formatPlay) batches() {
	const topic = "as-it-is"
	p.exact = true
	p.produce(3, topic, "a batch", batchOf(record.None, 4, nil))
	p.produce(3, topic, "a batch", batchOf(record.None, 3, nil))
	for _, version := range []int16{0, 1, 2, 3} {
		for _, at := range []int64{0, 2, 5, 7} {
			p.fetch(version, topic, at, enough)
		}
		for _, room := range []int32{10, 60, 100, 150, 200, 300} {
			p.fetch(version, topic, 0, room)
		}
	}
	p.exact = false
	for _, c := range oldCodecs {
		p.produce(8, topic, c.String(), batchOf(c, 3, nil))
	}
	p.produce(8, topic, "an idempotent one", batchOf(record.Gzip, 2, &record.Producer{ID: 4}))
	p.first = true
	for at := int64(6); at < 22; at++ {
		p.fetch(1, topic, at, enough)
		p.fetch(2, topic, at, enough)
	}
	p.first = false
	at := p.produce(8, topic, "zstd", batchOf(record.Zstd, 2, nil))
	for _, version := range []int16{1, 3, 4, 10} {
		p.fetch(version, topic, at-1, enough)
		p.fetch(version, topic, at, enough)
	}
	p.marker(topic)
	at = p.produce(8, topic, "a batch behind a marker", batchOf(record.None, 2, nil))
	p.fetch(3, topic, at, enough)
	p.fetch(4, topic, at-1, enough)
	p.offsets(0, topic, -1, -2)
	p.offsets(1, topic, -1, goldenTime+1, goldenTime+3)
}

// oldLogsPlay is performed on logs that keep messages.
func oldLogsPlay(p *formatPlay) {
	for _, topic := range []string{"format0", "format1"} {
		for magic := int8(0); magic <= 1; magic++ {
			names, sets := sentSets(magic)
			for i := range names {
				if at := p.produce(2*int16(magic), topic, names[i], sets[i]); at >= 0 {
					p.fetch(4, topic, at, enough)
				}
			}
		}
	}
	for _, topic := range []string{"format0", "format1", "format2", "gzip0", "gzip1", "unpacked1", "stamped0", "stamped1", "keyed1", "unchanged"} {
		at := p.produce(8, topic, "a batch", batchWith(record.None, 3, nil))
		for _, c := range oldCodecs[1:] {
			p.produce(8, topic, c.String(), batchWith(c, 3, nil))
		}
		p.produce(2, topic, "v1 gzip", messages(1, record.Gzip, 3))
		p.produce(0, topic, "v0 three", messages(0, record.None, 3))
		p.produce(2, topic, "v1 without a key", record.AppendMessage(nil, 1, record.None, false, 0, goldenTime, nil, []byte("v")))
		p.produce(8, topic, "an idempotent one", batchWith(record.None, 2, &record.Producer{ID: 4}))
		p.produce(8, topic, "one with headers", batchOf(record.None, 2, nil))
		if strings.HasSuffix(topic, "1") { // in a log of batches it would end the answers to old clients
			p.produce(8, topic, "zstd", batchWith(record.Zstd, 2, nil))
		}
		for _, version := range []int16{0, 2, 4, 10} {
			p.first = version < 4 && (topic == "format2" || strings.HasPrefix(topic, "gzip"))
			p.fetch(version, topic, at, enough)
			p.fetch(version, topic, at+1, enough)
			p.fetch(version, topic, at+4, enough)
		}
		p.offsets(0, topic, -1, -2)
		p.offsets(1, topic, -1, -2, goldenTime, goldenTime+1, goldenTime+2)
	}
	p.exact = true
	at := p.produce(8, "unpacked1", "a batch", batchWith(record.None, 5, nil))
	for _, room := range []int32{10, 40, 100, 150} {
		if room > 10 { // 2.8.2 tells the cut end of a message here, 3.9.1 nothing
			p.fetch(1, "unpacked1", at, room)
		}
		p.fetch(2, "unpacked1", at, room)
		p.fetch(3, "unpacked1", at, room)
	}
}

func (s formatStage) path() string { return filepath.Join("testdata", "formats", s.file) }

// TestRecordFormatPlays has the plays performed by Apache Kafka. By hand:
//
//	go test ./broker/api -run TestRecordFormatPlays -record
func TestRecordFormatPlays(t *testing.T) {
	if !*record391 {
		t.Skip("only with -record")
	}
	recorded := map[string]string{}
	for name, stage := range formatStages {
		t.Run(name, func(t *testing.T) {
			text := performOnKafka(t, stage)
			if before, twice := recorded[stage.file]; twice {
				requireSamePlay(t, before, text)
			}
			recorded[stage.file] = text
			require.NoError(t, os.MkdirAll(filepath.Dir(stage.path()), 0o755))
			require.NoError(t, os.WriteFile(stage.path(), []byte(text), 0o644))
		})
	}
}

func performOnKafka(t *testing.T, stage formatStage) string {
	ask := oneKafkaIn(t, t.TempDir(), stage.kafka, stage.properties)
	createFormatTopics(t, stage, ask)
	p := &formatPlay{t: t, ask: ask}
	stage.play(p)
	return p.text.String()
}

// oneKafkaIn starts ZooKeeper and one broker of Apache Kafka in a folder; properties are more lines of its configuration.
func oneKafkaIn(t *testing.T, dir, version, properties string) (ask func(kmsg.Request) kmsg.Response) {
	java, classPath := lane.Java(t), filepath.Join(lane.KafkaJars(t, version), "*")
	zk, door := freePort(t), freePort(t)
	_, zkPort, _ := net.SplitHostPort(zk)
	zooCfg, file := filepath.Join(dir, "zoo.cfg"), filepath.Join(dir, "broker.properties")
	require.NoError(t, os.WriteFile(zooCfg, []byte("dataDir="+dir+"/zk\nclientPort="+zkPort+"\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"), 0o644))
	start(t, dir, java, "-Xmx128m", "-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", zooCfg)
	waitDoor(t, zk)
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "broker.id=1\nlisteners=PLAINTEXT://%s\nlog.dirs=%s/data\nzookeeper.connect=%s\n"+
		"offsets.topic.replication.factor=1\nnum.io.threads=2\nnum.network.threads=2\nlog.cleaner.enable=false\nlog.retention.ms=-1\n%s", door, dir, zk, properties), 0o644))
	start(t, dir, java, "-Xmx300m", "-Dlog4j.configuration=file:"+log4j(t, dir), "-cp", classPath, "kafka.Kafka", file)
	waitDoor(t, door)
	r := &recorder{t: t, kafka: &liveCluster{doors: map[string]string{"PLAINTEXT": door}}, patience: time.Minute}
	return func(req kmsg.Request) kmsg.Response { return r.ask("PLAINTEXT", req) }
}

func createFormatTopics(t *testing.T, stage formatStage, ask func(kmsg.Request) kmsg.Response) {
	m := kmsg.NewPtrMetadataRequest()
	m.Version = 4
	for len(ask(m).(*kmsg.MetadataResponse).Brokers) == 0 {
		time.Sleep(100 * time.Millisecond) // Kafka is given the time it takes
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version, create.TimeoutMillis = 4, 30000
	for name, settings := range stage.topics {
		to := kmsg.NewCreateTopicsRequestTopic()
		to.Topic, to.NumPartitions, to.ReplicationFactor = name, 1, 1
		for key, value := range settings {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = key, &value
			to.Configs = append(to.Configs, c)
		}
		create.Topics = append(create.Topics, to)
	}
	for _, made := range ask(create).(*kmsg.CreateTopicsResponse).Topics {
		require.Zero(t, made.ErrorCode, made.Topic)
	}
	for name := range stage.topics {
		ask := func() bool {
			req := fetchAsk{epoch: -1, replica: -1, topics: []fetchAskTopic{{name: name, maxBytes: 1, leader: -1, fetched: -1}}}.request(10)
			req.MaxWaitMillis = 0
			return ask(req).(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode == 0
		}
		for !ask() {
			time.Sleep(100 * time.Millisecond) // the pace of trying again
		}
	}
}

func TestFormatPlays(t *testing.T) {
	for name, stage := range formatStages {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(stage.path())
			require.NoError(t, err)
			w := newFormatWorld(t, stage)
			p := &formatPlay{t: t, ask: w.ask}
			stage.play(p)
			requireSamePlay(t, string(want), p.text.String())
		})
	}
}

// requireSamePlay compares scene by scene: a line that is not indented and those below it.
func requireSamePlay(t *testing.T, kafka, other string) {
	theirs, own := scenes(kafka), scenes(other)
	for i := range min(len(theirs), len(own)) {
		if theirs[i] != own[i] && !differsOnPurpose(theirs[i], own[i]) {
			t.Errorf("Kafka: %s\nother: %s", theirs[i], own[i])
		}
	}
	require.Len(t, own, len(theirs))
}

func scenes(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, " ") && len(out) > 0 {
			out[len(out)-1] += line
		} else {
			out = append(out, line)
		}
	}
	return out
}

// newFormatWorld is one broker that leads the stage's topics.
func newFormatWorld(t *testing.T, stage formatStage) *world {
	w := openWorld(t, 1, "", func(topic string) commitlog.Config { return formatConfig(stage, topic) })
	w.leadFormatTopics(stage)
	return w
}

func (w *world) leadFormatTopics(stage formatStage) {
	update, order := kmsg.NewPtrUpdateMetadataRequest(), kmsg.NewPtrLeaderAndISRRequest()
	update.Version, update.ControllerID, update.ControllerEpoch, update.BrokerEpoch = 8, 1, 1, -1
	order.Version, order.ControllerID, order.ControllerEpoch, order.BrokerEpoch = 7, 1, 1, -1
	b := kmsg.NewUpdateMetadataRequestLiveBroker()
	b.ID, b.Endpoints = 1, []kmsg.UpdateMetadataRequestLiveBrokerEndpoint{endpoint(w.t, "PLAINTEXT", "127.0.0.1:9")}
	update.LiveBrokers = append(update.LiveBrokers, b)
	id := byte(0)
	for name := range stage.topics {
		id++
		to := kmsg.NewLeaderAndISRRequestTopicState()
		to.Topic, to.TopicID = name, [16]byte{id}
		p := kmsg.NewLeaderAndISRRequestTopicPartition()
		p.ControllerEpoch, p.Leader, p.ISR, p.Replicas, p.IsNew = 1, 1, []int32{1}, []int32{1}, true
		to.PartitionStates = append(to.PartitionStates, p)
		order.TopicStates = append(order.TopicStates, to)
		update.TopicStates = append(update.TopicStates, topicState(name, [16]byte{id}, [][]int32{{1}}))
	}
	require.Zero(w.t, w.ask(order).(*kmsg.LeaderAndISRResponse).ErrorCode)
	require.Zero(w.t, w.ask(update).(*kmsg.UpdateMetadataResponse).ErrorCode)
}

// formatConfig is what the settings of a topic mean to its log.
func formatConfig(stage formatStage, topic string) commitlog.Config {
	c := commitlog.DefaultConfig()
	for key, value := range stage.topics[topic] {
		switch key {
		case "message.format.version":
			if stage.properties != "" || stage.kafka == "2.8.2" { // not from inter.broker.protocol.version 3.0 on
				c.Format = map[string]commitlog.Format{"0.9.0": commitlog.FormatV0, "0.10.2": commitlog.FormatV1}[value]
			}
		case "compression.type":
			c.Compression = commitlog.Compression{Codec: map[string]record.Codec{"gzip": record.Gzip, "zstd": record.Zstd}[value]}
		case "message.timestamp.type":
			c.LogAppendTime = true
		case "cleanup.policy":
			c.CleanupDelete, c.CleanupCompact = false, true
		case "message.timestamp.before.max.ms":
			c.TimestampBefore = 3600000
		case "message.timestamp.after.max.ms":
			c.TimestampAfter = 3600000
		case "max.message.bytes":
			c.MaxMessageBytes = 120
		case "message.downconversion.enable":
			c.DownConversion = false
		}
	}
	return c
}

// differsOnPurpose lists what is answered otherwise than Kafka does, which stumbles over what a client may well send.
func differsOnPurpose(kafka, ours string) bool {
	code := func(scene string) string {
		_, answer, _ := strings.Cut(scene, "\n  ")
		name, _, _ := strings.Cut(answer, ",")
		return name
	}
	want := map[string]string{
		": v1 lz4, header checksum of the other format\n": "INVALID_RECORD",
		": one with headers\n":                            "UNSUPPORTED_FOR_MESSAGE_FORMAT",
		": zstd\n":                                        "UNSUPPORTED_COMPRESSION_TYPE",
	}
	for what, here := range want {
		if strings.Contains(kafka, what) && code(kafka) == "UNKNOWN_SERVER_ERROR" {
			return strings.Contains(ours, what) && code(ours) == here
		}
	}
	return false
}
