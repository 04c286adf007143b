package interop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/embedded"
)

// apacheBroker is one Apache Kafka broker and the tools of its release.
type apacheBroker struct {
	t                  *testing.T
	java, jars, config string
	addr, logFile      string
	process            *exec.Cmd
	tools              map[string]string // name → main class
}

// The classes of the tools moved between the releases.
var toolClasses = map[string]map[string]string{
	"3.9.1": {"topics": "org.apache.kafka.tools.TopicCommand", "producer": "kafka.tools.ConsoleProducer", "consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer"},
	"2.8.2": {"topics": "kafka.admin.TopicCommand", "producer": "kafka.tools.ConsoleProducer", "consumer": "kafka.tools.ConsoleConsumer"},
}

func newApacheBroker(t *testing.T, version, zookeeper string) *apacheBroker {
	dir := t.TempDir()
	b := &apacheBroker{
		t: t, java: lane.Java(t), jars: lane.KafkaJars(t, version), config: filepath.Join(dir, "server.properties"),
		addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(cluster.Port(t))), logFile: filepath.Join(dir, "broker.log"), tools: toolClasses[version],
	}
	require.NoError(t, os.WriteFile(b.config, fmt.Appendf(nil, "broker.id=1\nlisteners=PLAINTEXT://%s\nlog.dirs=%s\nzookeeper.connect=%s\n"+
		"offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\ngroup.initial.rebalance.delay.ms=0\n", b.addr, filepath.Join(dir, "logs"), zookeeper), 0o600))
	t.Cleanup(b.kill)
	return b
}

func (b *apacheBroker) command(ctx context.Context, class string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, b.java, append([]string{"-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", filepath.Join(b.jars, "*"), class}, args...)...)
}

// start returns when the broker takes connections: its own tools wait for the rest.
func (b *apacheBroker) start() {
	log, err := os.OpenFile(b.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(b.t, err)
	defer log.Close()
	b.process = b.command(context.Background(), "kafka.Kafka", b.config)
	b.process.Stdout, b.process.Stderr = log, log
	require.NoError(b.t, b.process.Start())
	require.Eventually(b.t, func() bool {
		conn, err := net.Dial("tcp", b.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, patience, 100*time.Millisecond)
}

// stop asks the broker to leave in good order.
func (b *apacheBroker) stop() {
	require.NoError(b.t, b.process.Process.Signal(syscall.SIGTERM))
	_ = b.process.Wait()
	b.process = nil
}

func (b *apacheBroker) kill() {
	if b.process != nil {
		_ = b.process.Process.Kill()
		_ = b.process.Wait()
	}
	if b.t.Failed() {
		text, _ := os.ReadFile(b.logFile)
		b.t.Logf("the broker's log ends:\n%s", text[max(0, len(text)-8000):])
	}
}

// tool runs one of the release's tools to its end.
func (b *apacheBroker) tool(stdin, name string, args ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := b.command(ctx, b.tools[name], append([]string{"--bootstrap-server", b.addr}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(b.t, cmd.Run(), "%s %v: %s %s", name, args, &out, &errs)
	return out.String()
}

// An unmodified Apache Kafka broker lives on the embedded ZooKeeper: it starts, becomes controller, creates a topic, serves its own
// console clients, and comes back after both it and ZooKeeper were restarted.
func TestApacheKafkaRunsOnTheEmbeddedZooKeeper(t *testing.T) {
	for _, version := range []string{"3.9.1", "2.8.2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			log := logrus.New()
			log.SetOutput(io.Discard)
			cfg := embedded.Config{Addr: "127.0.0.1:0", DataDir: t.TempDir(), Log: logrus.NewEntry(log)}
			zk, err := embedded.Start(cfg)
			require.NoError(t, err)
			cfg.Addr = zk.Addr()
			b := newApacheBroker(t, version, zk.Addr()+"/kafka")
			b.start()
			b.tool("", "topics", "--create", "--topic", "greetings", "--partitions", "2", "--replication-factor", "1")
			b.tool("hello\nworld\n", "producer", "--topic", "greetings")

			require.NoError(t, zk.Close()) // under the running broker: its session is taken up again
			zk, err = embedded.Start(cfg)
			require.NoError(t, err)
			defer func() { require.NoError(t, zk.Close()) }()
			b.tool("", "topics", "--create", "--topic", "afterwards", "--partitions", "1", "--replication-factor", "1") // a broker that stops without its session leaves its registration behind
			b.stop()
			b.start()

			got := strings.Fields(b.tool("", "consumer", "--topic", "greetings", "--from-beginning", "--max-messages", "2", "--timeout-ms", "120000"))
			require.ElementsMatch(t, []string{"hello", "world"}, got)
			require.Contains(t, b.tool("", "topics", "--describe", "--topic", "greetings"), "Leader: 1")
			b.stop()
		})
	}
}
