package interop

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// client sends and reads the sequence through one foreign client library or program.
type client struct {
	name    string
	needs   func(t *testing.T)
	produce func(t *testing.T, bootstrap, topic, codec string, n int)
	consume func(t *testing.T, bootstrap, topic string, n int)
}

func clients() []client {
	all := []client{
		{name: "franz-go", produce: franzProduce, consume: franzConsume},
		{name: "ibm-sarama", produce: ibmSaramaProduce, consume: ibmSaramaConsume},
		{name: "shopify-sarama", produce: shopifySaramaProduce, consume: shopifySaramaConsume},
		{name: "kafka-go", produce: kafkaGoProduce, consume: kafkaGoConsume},
		{name: "kcat", needs: func(t *testing.T) { lane.Program(t, "kcat") }, produce: kcatProduce, consume: kcatConsume},
		{name: "kafka-python", needs: func(t *testing.T) { needPython(t, "kafka") }, produce: pythonProduce("kafka_python_client.py"), consume: pythonConsume("kafka_python_client.py")},
		{name: "confluent-kafka", needs: func(t *testing.T) { needPython(t, "confluent_kafka") }, produce: pythonProduce("confluent_kafka_client.py"), consume: pythonConsume("confluent_kafka_client.py")},
	}
	for _, version := range []string{"2.4.1", "2.8.2", "3.9.1"} {
		all = append(all, client{name: "java-" + version, needs: func(t *testing.T) { lane.Java(t); lane.KafkaJars(t, version) }, produce: javaProduce(version), consume: javaConsume(version)})
	}
	return all
}

func TestEveryClientReadsBackWhatItSentInOrderWithEachCodec(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, map[string]string{"auto.create.topics.enable": "true"})
	for _, cl := range clients() {
		t.Run(cl.name, func(t *testing.T) {
			t.Parallel() // most of the time is the clients' own
			if cl.needs != nil {
				cl.needs(t)
			}
			n := recordsPerClient() / len(codecs)
			for _, codec := range codecs {
				topic := cl.name + "-" + codec
				began := time.Now()
				cl.produce(t, c.Bootstrap(), topic, codec, n)
				sent := time.Now()
				cl.consume(t, c.Bootstrap(), topic, n)
				t.Logf("%s: %d records sent in %.1f s, read in %.1f s", topic, n, sent.Sub(began).Seconds(), time.Since(sent).Seconds())
			}
		})
	}
}

// What one client sends in each codec, every other kind of decoder must read: one topic per codec, written by one client and read by all.
func TestClientsReadWhatOthersSent(t *testing.T) {
	zk := zktest.Embedded(t)
	c := cluster.Start(t, zk.Addr(), 1, nil)
	const n = 5000
	for _, writer := range clients() {
		t.Run(writer.name, func(t *testing.T) {
			t.Parallel()
			if writer.needs != nil {
				writer.needs(t)
			}
			for _, codec := range codecs {
				topic := "from-" + writer.name + "-" + codec
				writer.produce(t, c.Bootstrap(), topic, codec, n)
				franzConsume(t, c.Bootstrap(), topic, n)
				ibmSaramaConsume(t, c.Bootstrap(), topic, n)
				kafkaGoConsume(t, c.Bootstrap(), topic, n)
			}
		})
	}
}

func franzProduce(t *testing.T, bootstrap, topic, codec string, n int) {
	kinds := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.AllowAutoTopicCreation(), kgo.MetadataMinAge(20*time.Millisecond), kgo.ProducerBatchCompression(kinds[codec]), kgo.DefaultProduceTopic(topic))
	require.NoError(t, err)
	defer cl.Close()
	failed, ctx := make(chan error, 1), lane.Patience(t)
	for i := range n {
		cl.Produce(ctx, &kgo.Record{Key: keyOf(i), Value: valueOf(i), Partition: 0}, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	require.NoError(t, cl.Flush(ctx))
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
}

func franzConsume(t *testing.T, bootstrap, topic string, n int) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	require.NoError(t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seen := checker{topic: topic}
	for seen.next < n {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err(), "after %d records", seen.next)
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			require.NoError(t, seen.saw(r.Key, r.Value))
		}
	}
}

// run runs a program to its end with a file as its input; its output is returned as a file.
func run(t *testing.T, input string, name string, args ...string) *os.File {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	if input != "" {
		in, err := os.Open(input)
		require.NoError(t, err)
		defer in.Close()
		cmd.Stdin = in
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = out.Close() })
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = out, &stderr
	require.NoError(t, cmd.Run(), "%s %v: %s", name, args, stderr.String())
	_, err = out.Seek(0, 0)
	require.NoError(t, err)
	return out
}

func kcatProduce(t *testing.T, bootstrap, topic, codec string, n int) {
	run(t, lines(t, n), "kcat", "-P", "-b", bootstrap, "-t", topic, "-p", "0", "-K", "\t", "-z", codec, "-X", "allow.auto.create.topics=true")
}

func kcatConsume(t *testing.T, bootstrap, topic string, n int) {
	out := run(t, "", "kcat", "-C", "-b", bootstrap, "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%k\t%s\n")
	require.NoError(t, checkLines(topic, out, n))
}

func needPython(t *testing.T, module string) {
	t.Helper()
	python := lane.Program(t, "python3")
	lane.Need(t, exec.Command(python, "-c", "import "+module).Run() == nil, "Python's package "+module)
}

func pythonProduce(script string) func(*testing.T, string, string, string, int) {
	return func(t *testing.T, bootstrap, topic, codec string, n int) {
		run(t, lines(t, n), "python3", filepath.Join("testdata", script), "produce", bootstrap, topic, codec)
	}
}

func pythonConsume(script string) func(*testing.T, string, string, int) {
	return func(t *testing.T, bootstrap, topic string, n int) {
		require.NoError(t, checkLines(topic, run(t, "", "python3", filepath.Join("testdata", script), "consume", bootstrap, topic, fmt.Sprint(n)), n))
	}
}

// javaTool runs a main class of one Kafka version.
func javaTool(t *testing.T, version, input, class string, args ...string) *os.File {
	t.Helper()
	lib := lane.KafkaJars(t, version)
	return run(t, input, "java", append([]string{"-Xmx512m", "-cp", lib + "/*", class}, args...)...)
}

func javaProduce(version string) func(*testing.T, string, string, string, int) {
	return func(t *testing.T, bootstrap, topic, codec string, n int) {
		javaTool(t, version, lines(t, n), "kafka.tools.ConsoleProducer", "--broker-list", bootstrap, "--topic", topic, "--compression-codec", codec,
			"--property", "parse.key=true", "--request-timeout-ms", "30000", "--producer-property", "max.in.flight.requests.per.connection=1")
	}
}

func javaConsume(version string) func(*testing.T, string, string, int) {
	class := "kafka.tools.ConsoleConsumer"
	if strings.HasPrefix(version, "3.") {
		class = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	}
	return func(t *testing.T, bootstrap, topic string, n int) {
		out := javaTool(t, version, "", class, "--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", fmt.Sprint(n),
			"--property", "print.key=true", "--timeout-ms", "120000")
		require.NoError(t, checkLines(topic, out, n))
	}
}

// The perf tools of each release run as people run them to size a cluster: a million records through a group.
func TestJavasPerfToolsRun(t *testing.T) {
	for _, version := range []string{"2.4.1", "2.8.2", "3.9.1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			lane.Java(t)
			lane.KafkaJars(t, version)
			c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, map[string]string{"group.initial.rebalance.delay.ms": "0"})
			n := fmt.Sprint(recordsPerClient())
			text, err := io.ReadAll(javaTool(t, version, "", "org.apache.kafka.tools.ProducerPerformance", "--topic", "perf", "--num-records", n, "--record-size", "100", "--throughput", "-1",
				"--producer-props", "bootstrap.servers="+c.Bootstrap()))
			require.NoError(t, err)
			require.Contains(t, string(text), n+" records sent, ")
			class := "kafka.tools.ConsumerPerformance"
			if strings.HasPrefix(version, "3.") {
				class = "org.apache.kafka.tools.ConsumerPerformance"
			}
			text, err = io.ReadAll(javaTool(t, version, "", class, "--broker-list", c.Bootstrap(), "--topic", "perf", "--messages", n, "--timeout", "60000"))
			require.NoError(t, err)
			require.Contains(t, string(text), ", "+n+", ", "all of them were read: %s", text)
		})
	}
}
