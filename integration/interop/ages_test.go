package interop

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// Clients of every age, from those that know messages of format v0 and keep their offsets in ZooKeeper to those of Kafka 4, share one topic: each sends in each codec that it knows, and each reads
// what all have sent. zstd, which the old ones cannot read, has a topic of its own.

var (
	oldCodecs  = []string{"none", "gzip", "snappy", "lz4"}
	javaOfOld  = []string{"0.10.2.2", "1.1.1", "2.4.1"}
	javaOfNow  = []string{"2.8.2", "3.9.1", "4.1.0"}
	pythonAges = []string{"0.9", "0.10"}
)

const sentPerAge = 25 // of each client in each codec: what is looked at are formats, not amounts

// ageWriter sends sentPerAge records in each codec to partition 0: with the key NAME-CODEC-i and the value "value i".
type ageWriter struct {
	name   string
	codecs []string
	send   func(t *testing.T, bootstrap, topic string, codecs []string)
}

// ageReader prints the first n records of partition 0 as key, tab, value.
type ageReader struct {
	name string
	zstd bool
	read func(t *testing.T, bootstrap, topic string, n int) io.Reader
}

func needAges(t *testing.T) {
	t.Helper()
	lane.Java(t)
	lane.Program(t, "javac")
	for _, version := range append(append([]string{}, javaOfOld...), javaOfNow...) {
		lane.KafkaJars(t, version)
	}
	needPython(t, "kafka")
}

func ageWriters(t *testing.T) []ageWriter {
	classes := t.TempDir()
	// Compiled with the oldest: the rest have what it has.
	run(t, "", "javac", "-nowarn", "-d", classes, "-cp", lane.KafkaJars(t, "0.10.2.2")+"/*", filepath.Join("testdata", "Ages.java"))
	all := []ageWriter{
		{name: "java of 0.8", codecs: oldCodecs, send: oldJavaProduce},
		{name: "sarama 0.9", codecs: []string{"none", "gzip", "snappy"}, send: saramaAge(sarama.V0_9_0_1)},
		{name: "sarama 0.10", codecs: oldCodecs, send: saramaAge(sarama.V0_10_2_0)},
		{name: "sarama", codecs: codecs, send: saramaAge(sarama.V2_1_0_0)},
	}
	for _, version := range append(append([]string{}, javaOfOld...), javaOfNow...) {
		w := ageWriter{name: "java " + version, codecs: oldCodecs, send: func(t *testing.T, bootstrap, topic string, codecs []string) {
			javaWith(t, version, classes, "Ages", append([]string{bootstrap, topic, "java " + version, fmt.Sprint(sentPerAge)}, codecs...)...)
		}}
		if version[0] >= '2' {
			w.codecs = codecs
		}
		all = append(all, w)
	}
	for _, api := range pythonAges {
		all = append(all, ageWriter{name: "python " + api, codecs: oldCodecs, send: func(t *testing.T, bootstrap, topic string, codecs []string) {
			run(t, "", "python3", append([]string{"testdata/kafka_python_ages.py", "produce", bootstrap, topic, api, "python " + api, fmt.Sprint(sentPerAge)}, codecs...)...)
		}})
	}
	return all
}

// javaWith runs a class that stands beside the jars of a release.
func javaWith(t *testing.T, version, classes, class string, args ...string) {
	t.Helper()
	run(t, "", "java", append([]string{"-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classes + ":" + lane.KafkaJars(t, version) + "/*", class}, args...)...)
}

// oldJavaProduce is the Scala producer of Kafka 0.8, which 0.10.2 still had: Produce version 0.
func oldJavaProduce(t *testing.T, bootstrap, topic string, codecs []string) {
	for _, codec := range codecs {
		var lines bytes.Buffer
		for i := range sentPerAge {
			fmt.Fprintf(&lines, "java of 0.8-%s-%d\tvalue %d\n", codec, i, i)
		}
		file := filepath.Join(t.TempDir(), "lines")
		require.NoError(t, os.WriteFile(file, lines.Bytes(), 0o644))
		javaTool(t, "0.10.2.2", file, "kafka.tools.ConsoleProducer", "--old-producer", "--broker-list", bootstrap, "--topic", topic, "--compression-codec", codec, "--sync",
			"--property", "parse.key=true", "--request-required-acks", "-1")
	}
}

func saramaAge(version sarama.KafkaVersion) func(*testing.T, string, string, []string) {
	return func(t *testing.T, bootstrap, topic string, codecs []string) {
		name := map[sarama.KafkaVersion]string{sarama.V0_9_0_1: "sarama 0.9", sarama.V0_10_2_0: "sarama 0.10", sarama.V2_1_0_0: "sarama"}[version]
		for _, codec := range codecs {
			cfg := sarama.NewConfig()
			cfg.Version, cfg.ApiVersionsRequest = version, false
			require.NoError(t, cfg.Producer.Compression.UnmarshalText([]byte(codec)))
			cfg.Producer.Return.Successes, cfg.Producer.RequiredAcks = true, sarama.WaitForAll
			cfg.Producer.Partitioner = sarama.NewManualPartitioner
			cfg.Producer.Flush.Frequency, cfg.Producer.Flush.Messages = 5*time.Millisecond, sentPerAge
			p, err := sarama.NewSyncProducer(strings.Split(bootstrap, ","), cfg)
			require.NoError(t, err)
			var list []*sarama.ProducerMessage
			for i := range sentPerAge {
				list = append(list, &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(fmt.Sprintf("%s-%s-%d", name, codec, i)), Value: sarama.StringEncoder(fmt.Sprint("value ", i))})
			}
			require.NoError(t, p.SendMessages(list))
			require.NoError(t, p.Close())
		}
	}
}

// sarama of 0.9 is none of them: it does not know the LZ4 frames of format v0.
func ageReaders(zookeeper string) []ageReader {
	all := []ageReader{
		{name: "java of 0.8, by ZooKeeper", read: func(t *testing.T, _, topic string, n int) io.Reader {
			return oldJavaConsume(t, zookeeper, topic, "readers", n, "--from-beginning")
		}},
		{name: "sarama 0.10", read: saramaRead(sarama.V0_10_2_0)},
		{name: "sarama", zstd: true, read: saramaRead(sarama.V2_1_0_0)},
	}
	for _, version := range append(append([]string{}, javaOfOld...), javaOfNow...) {
		class := "kafka.tools.ConsoleConsumer"
		if version[0] >= '3' {
			class = "org.apache.kafka.tools.consumer.ConsoleConsumer"
		}
		all = append(all, ageReader{name: "java " + version, zstd: version[0] >= '2', read: func(t *testing.T, bootstrap, topic string, n int) io.Reader {
			return javaTool(t, version, "", class, "--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", fmt.Sprint(n),
				"--property", "print.key=true", "--timeout-ms", "120000")
		}})
	}
	for _, api := range pythonAges {
		all = append(all, ageReader{name: "python " + api, read: func(t *testing.T, bootstrap, topic string, n int) io.Reader {
			return run(t, "", "python3", "testdata/kafka_python_ages.py", "consume", bootstrap, topic, api, fmt.Sprint(n))
		}})
	}
	return all
}

// oldJavaConsume is the Scala consumer of before Kafka 0.9, a member of a group in ZooKeeper. It begins where the group's offsets say, and leaves its own there.
func oldJavaConsume(t *testing.T, zookeeper, topic, group string, n int, more ...string) io.Reader {
	t.Helper()
	settings := filepath.Join(t.TempDir(), "consumer.properties")
	require.NoError(t, os.WriteFile(settings, fmt.Appendf(nil, "group.id=%s\nconsumer.timeout.ms=120000\n", group), 0o644))
	return javaTool(t, "0.10.2.2", "", "kafka.tools.ConsoleConsumer", append([]string{"--zookeeper", zookeeper, "--topic", topic, "--consumer.config", settings, "--max-messages", fmt.Sprint(n),
		"--property", "print.key=true"}, more...)...)
}

func saramaRead(version sarama.KafkaVersion) func(*testing.T, string, string, int) io.Reader {
	return func(t *testing.T, bootstrap, topic string, n int) io.Reader {
		cfg := sarama.NewConfig()
		cfg.Version, cfg.ApiVersionsRequest = version, false
		c, err := sarama.NewConsumer(strings.Split(bootstrap, ","), cfg)
		require.NoError(t, err)
		p, err := c.ConsumePartition(topic, 0, 0)
		require.NoError(t, err)
		var out bytes.Buffer
		for i := range n {
			select {
			case m := <-p.Messages():
				fmt.Fprintf(&out, "%s\t%s\n", m.Key, m.Value)
			case <-time.After(patience):
				t.Fatalf("%d records came of %d", i, n)
			}
		}
		require.NoError(t, p.Close())
		require.NoError(t, c.Close())
		return &out
	}
}

func TestClientsOfEveryAgeShareATopic(t *testing.T) {
	needAges(t)
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"auto.create.topics.enable": "true"})
	const shared, ofNow = "shared", "of-now"
	want := map[string]string{}
	n := map[string]int{}
	sendTo := func(w ageWriter, topic string, codecs []string) {
		w.send(t, c.Bootstrap(), topic, codecs)
		for _, codec := range codecs {
			for i := range sentPerAge {
				want[topic] += fmt.Sprintf("%s-%s-%d\tvalue %d\n", w.name, codec, i, i)
				n[topic]++
			}
		}
	}
	for _, w := range ageWriters(t) {
		t.Run("writes "+w.name, func(t *testing.T) {
			old := w.codecs[:min(len(w.codecs), len(oldCodecs))]
			sendTo(w, shared, old)
			if len(w.codecs) > len(old) {
				sendTo(w, ofNow, w.codecs)
			}
		})
	}
	for _, r := range ageReaders(zk.Addr()) {
		t.Run("reads "+r.name, func(t *testing.T) {
			requireRead(t, want[shared], r.read(t, c.Bootstrap(), shared, n[shared]))
			if r.zstd {
				requireRead(t, want[ofNow], r.read(t, c.Bootstrap(), ofNow, n[ofNow]))
			}
		})
	}
	t.Run("offsets in ZooKeeper", func(t *testing.T) { testOffsetsInZooKeeper(t, c, zk.Addr(), shared, want[shared], n[shared]) })
}

func requireRead(t *testing.T, want string, r io.Reader) {
	t.Helper()
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	if want == string(got) {
		return
	}
	theirs, ours := strings.SplitAfter(string(got), "\n"), strings.SplitAfter(want, "\n")
	for i := range min(len(theirs), len(ours)) {
		require.Equal(t, ours[i], theirs[i], "record %d", i)
	}
	require.Len(t, theirs, len(ours))
}

// What the old consumer leaves in ZooKeeper OffsetFetch version 0 tells, and where OffsetCommit version 0 puts a group the old consumer goes on.
func testOffsetsInZooKeeper(t *testing.T, c *cluster.Cluster, zookeeper, topic, want string, n int) {
	zk := connect(t, zookeeper)
	defer zk.Close()
	old := kversion.Stable()
	old.SetMaxKeyVersion(8, 0)
	old.SetMaxKeyVersion(9, 0)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()), kgo.MaxVersions(old))
	require.NoError(t, err)
	defer client.Close()
	require.Equal(t, int64(n), oldOffset(t, client, "readers", topic))

	half := int64(n / 2)
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group = "half"
	to, p := kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetCommitRequestTopicPartition()
	p.Offset = half
	to.Topic, to.Partitions = topic, append(to.Partitions, p)
	commit.Topics = append(commit.Topics, to)
	answer, err := client.SeedBrokers()[0].Request(lane.Patience(t), commit)
	require.NoError(t, err)
	require.Zero(t, answer.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode)
	r, err := zk.One(lane.Patience(t), zkstate.Get(zkstate.ConsumerOffsetPath("half", topic, 0)))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(half), string(r.Data))

	lines := strings.SplitAfter(want, "\n")
	requireRead(t, strings.Join(lines[half:half+10], ""), oldJavaConsume(t, zookeeper, topic, "half", 10))
	require.Equal(t, half+10, oldOffset(t, client, "half", topic))
}

func oldOffset(t *testing.T, client *kgo.Client, group, topic string) int64 {
	t.Helper()
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Group = group
	to := kmsg.NewOffsetFetchRequestTopic()
	to.Topic, to.Partitions = topic, []int32{0}
	fetch.Topics = append(fetch.Topics, to)
	answer, err := client.SeedBrokers()[0].Request(lane.Patience(t), fetch)
	require.NoError(t, err)
	p := answer.(*kmsg.OffsetFetchResponse).Topics[0].Partitions[0]
	require.Zero(t, p.ErrorCode)
	return p.Offset
}
