// Package cluster runs Barnabas as processes for black-box tests: a ZooKeeper, and brokers that can be killed, stopped and started again.
package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/lane"
)

// Longer than a start or a stop takes, also a Java process's on a busy machine.
const (
	startTimeout = 3 * time.Minute
	stopTimeout  = 2 * time.Minute
)

// Port returns a port of 127.0.0.1 for a program, see lane.
func Port(t testing.TB) int { return lane.Port(t) }

// Program makes the command that runs a broker with a server.properties file.
type Program func(t testing.TB, properties string) *exec.Cmd

// Barnabas is the broker under test.
func Barnabas(t testing.TB, properties string) *exec.Cmd {
	return exec.Command(Binary(t), "broker", "--config", properties)
}

// Kafka is Apache Kafka's own broker.
func Kafka(version string) Program {
	return func(t testing.TB, properties string) *exec.Cmd {
		lib, home := lane.KafkaJars(t, version), filepath.Dir(properties)
		log4j := filepath.Join(home, "log4j.properties")
		require.NoError(t, os.WriteFile(log4j, []byte("log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\nlog4j.appender.out.layout=org.apache.log4j.PatternLayout\nlog4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"), 0o600))
		return exec.Command(lane.Java(t), "-Xmx512m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
			"-Djava.io.tmpdir="+home, // a JVM that is killed leaves its codecs there
			"-Dlog4j.configuration=file:"+log4j, "-cp", lib+"/*", "kafka.Kafka", properties)
	}
}

// Broker is one broker process of a cluster.
type Broker struct {
	ID       int
	Addr     string // host:port
	Dir      string // log.dirs
	settings map[string]string
	program  Program
	logFile  string
	uid      int // 0: the user of the test

	cmd  *exec.Cmd
	gone chan struct{} // closed when the process has ended
}

// Cluster is some brokers on one ZooKeeper.
type Cluster struct {
	ZooKeeper string
	Brokers   []*Broker
}

// Start starts n brokers with ids from 1 on a ZooKeeper that is there already; settings are keys of server.properties for all of them. They are stopped when the test ends, and the
// ends of their logs are printed when it failed.
func Start(t testing.TB, zookeeper string, n int, settings map[string]string) *Cluster {
	t.Helper()
	return StartEach(t, zookeeper, n, settings, func(int) map[string]string { return nil })
}

// StartMixed starts one broker of each program. The first is the controller: it is ready before the others start.
func StartMixed(t testing.TB, zookeeper string, programs []Program, settings map[string]string) *Cluster {
	t.Helper()
	c := &Cluster{ZooKeeper: zookeeper}
	for i, p := range programs {
		b := c.add(t, i+1, len(programs), settings, nil)
		b.program = p
		b.Start(t)
		if i == 0 {
			b.WaitReady(t)
		}
	}
	c.WaitTogether(t)
	return c
}

// StartEach is Start with settings of each broker's own, by its id. In any setting, ${addr} and ${port} are those that the test reaches the broker at.
func StartEach(t testing.TB, zookeeper string, n int, settings map[string]string, own func(id int) map[string]string) *Cluster {
	t.Helper()
	return StartProgram(t, Barnabas, zookeeper, n, settings, own)
}

// StartProgram is StartEach with another broker than Barnabas, so that a test can ask both the same questions.
func StartProgram(t testing.TB, program Program, zookeeper string, n int, settings map[string]string, own func(id int) map[string]string) *Cluster {
	t.Helper()
	c := Prepare(t, zookeeper, n, settings, own)
	for _, b := range c.Brokers {
		b.program = program
		b.Start(t)
	}
	c.WaitTogether(t)
	return c
}

// Prepare makes n brokers that are not started.
func Prepare(t testing.TB, zookeeper string, n int, settings map[string]string, own func(id int) map[string]string) *Cluster {
	t.Helper()
	c := &Cluster{ZooKeeper: zookeeper}
	for id := 1; id <= n; id++ {
		c.add(t, id, n, settings, own(id))
	}
	return c
}

// add makes a broker that is not started yet.
func (c *Cluster) add(t testing.TB, id, n int, settings, own map[string]string) *Broker {
	t.Helper()
	dir := t.TempDir()
	b := &Broker{ID: id, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(Port(t))), Dir: filepath.Join(dir, "logs"), program: Barnabas, logFile: filepath.Join(dir, "broker.log")}
	b.settings = map[string]string{
		"broker.id": strconv.Itoa(id), "listeners": "PLAINTEXT://" + b.Addr, "log.dirs": b.Dir, "zookeeper.connect": c.ZooKeeper,
		"zookeeper.session.timeout.ms": "6000", "default.replication.factor": strconv.Itoa(min(n, 3)), "offsets.topic.replication.factor": strconv.Itoa(min(n, 3)),
	}
	_, port, _ := net.SplitHostPort(b.Addr)
	here := strings.NewReplacer("${addr}", b.Addr, "${port}", port)
	for _, more := range []map[string]string{settings, own} {
		for name, value := range more {
			b.settings[name] = here.Replace(value)
		}
	}
	b.Dir = b.settings["log.dirs"]
	c.Brokers = append(c.Brokers, b)
	t.Cleanup(func() {
		if b.cmd == nil {
			return
		}
		b.Kill(t)
		if t.Failed() {
			t.Logf("end of the log of broker %d:\n%s", b.ID, b.LogTail(4000))
		}
	})
	return b
}

// Bootstrap lists the brokers' addresses.
func (c *Cluster) Bootstrap() string { return strings.Join(c.Seeds(), ",") }

// Seeds lists the brokers' addresses.
func (c *Cluster) Seeds() []string {
	var all []string
	for _, b := range c.Brokers {
		all = append(all, b.Addr)
	}
	return all
}

// Start starts the process without waiting for it to be ready.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	var file strings.Builder
	for name, value := range b.settings {
		fmt.Fprintf(&file, "%s=%s\n", name, value)
	}
	properties := filepath.Join(filepath.Dir(b.logFile), "server.properties")
	require.NoError(t, os.WriteFile(properties, []byte(file.String()), 0o600))
	out, err := os.OpenFile(b.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer out.Close()
	b.cmd = b.program(t, properties)
	b.cmd.Stdout, b.cmd.Stderr = out, out
	b.cmd.SysProcAttr = &syscall.SysProcAttr{}
	if b.uid != 0 {
		b.giveAway(t)
		b.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(b.uid), Gid: uint32(b.uid)}
	}
	lane.Bind(b.cmd)
	require.NoError(t, b.cmd.Start())
	gone := make(chan struct{})
	b.gone = gone
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(gone)
	}(b.cmd)
}

// WaitReady waits until the broker answers, is registered, and knows a controller.
func (b *Broker) WaitReady(t testing.TB) {
	t.Helper()
	b.waitToKnow(t, b.ID)
}

// WaitTogether waits until every broker is ready and knows of all: a topic of so many replicas can be made through any of them.
func (c *Cluster) WaitTogether(t testing.TB) {
	t.Helper()
	var all []int
	for _, b := range c.Brokers {
		all = append(all, b.ID)
	}
	for _, b := range c.Brokers {
		b.waitToKnow(t, all...)
	}
}

// waitToKnow waits until the broker answers and knows a controller and certain brokers.
func (b *Broker) waitToKnow(t testing.TB, ids ...int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
	require.NoError(t, err)
	defer client.Close()
	deadline := time.Now().Add(startTimeout)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{}
		answer, err := client.SeedBrokers()[0].Request(ctx, req) // it alone, not whoever else the client has heard of
		cancel()
		if resp, ok := answer.(*kmsg.MetadataResponse); err == nil && ok && resp.ControllerID >= 0 {
			known := map[int]bool{}
			for _, of := range resp.Brokers {
				known[int(of.NodeID)] = true
			}
			if !slices.ContainsFunc(ids, func(id int) bool { return !known[id] }) {
				return
			}
		}
		select {
		case <-b.gone:
			t.Fatalf("broker %d ended while starting:\n%s", b.ID, b.LogTail(4000))
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("broker %d does not know of brokers %v after %s (last error %v):\n%s", b.ID, ids, startTimeout, err, b.LogTail(4000))
		}
	}
}

// Set changes a key of server.properties, for the next start.
func (b *Broker) Set(name, value string) { b.settings[name] = value }

// Become makes another program run this broker from its next start on: the same id, address and directories.
func (b *Broker) Become(p Program) { b.program = p }

// RunAs makes the process run as another user, whom a firewall can tell from the rest, from its next start on. Only root can do that.
func (b *Broker) RunAs(uid int) { b.uid = uid }

// giveAway makes the broker's files its user's, and the way to them open to all.
func (b *Broker) giveAway(t testing.TB) {
	t.Helper()
	home := filepath.Dir(b.logFile)
	for _, root := range []string{home, b.Dir} {
		for dir := filepath.Dir(root); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			require.NoError(t, os.Chmod(dir, 0o755))
		}
		require.NoError(t, os.MkdirAll(root, 0o755))
		require.NoError(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, b.uid, b.uid)
		}))
	}
}

// Running tells whether the process is there.
func (b *Broker) Running() bool {
	select {
	case <-b.gone:
		return false
	default:
		return true
	}
}

// ExitCode waits until the process ends by itself.
func (b *Broker) ExitCode(t testing.TB, within time.Duration) int {
	t.Helper()
	select {
	case <-b.gone:
	case <-time.After(within):
		t.Fatalf("broker %d still runs after %s:\n%s", b.ID, within, b.LogTail(4000))
	}
	return b.cmd.ProcessState.ExitCode()
}

// Kill ends the process as a crash would (SIGKILL), if it runs.
func (b *Broker) Kill(t testing.TB) {
	t.Helper()
	_ = b.cmd.Process.Kill()
	<-b.gone
}

// Stop ends the process cleanly.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, b.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-b.gone:
	case <-time.After(stopTimeout):
		t.Fatalf("broker %d did not stop:\n%s", b.ID, b.LogTail(4000))
	}
}

// WaitWhole waits until every broker, asked by itself, knows of as many partitions of a topic as there are, each with a leader and that many replicas in sync.
func (c *Cluster) WaitWhole(t testing.TB, topic string, partitions, inSync int) {
	t.Helper()
	for _, b := range c.Brokers {
		client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.MetadataMinAge(10*time.Millisecond))
		require.NoError(t, err)
		deadline := time.Now().Add(startTimeout)
		for whole, seen := b.knowsWhole(client, topic, partitions, inSync); !whole; whole, seen = b.knowsWhole(client, topic, partitions, inSync) {
			require.False(t, time.Now().After(deadline), "broker %d does not see %d partitions of %s with %d replicas in sync, but %s:\n%s", b.ID, partitions, topic, inSync, seen, b.LogTail(2000))
			time.Sleep(50 * time.Millisecond) // the pace of looking
		}
		client.Close()
	}
}

// knowsWhole asks a broker, and also returns what it sees instead.
func (b *Broker) knowsWhole(client *kgo.Client, topic string, partitions, inSync int) (is bool, seen string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = kmsg.StringPtr(topic)
	req.Topics = append(req.Topics, asked)
	resp, err := client.SeedBrokers()[0].RetriableRequest(ctx, req)
	if err != nil {
		return false, err.Error()
	}
	whole := 0
	for _, known := range resp.(*kmsg.MetadataResponse).Topics {
		for _, p := range known.Partitions {
			if p.ErrorCode == 0 && p.Leader >= 0 && len(p.ISR) == inSync {
				whole++
			} else {
				seen += fmt.Sprintf("partition %d led by %d with %v in sync (error %d), ", p.Partition, p.Leader, p.ISR, p.ErrorCode)
			}
		}
	}
	return whole == partitions, fmt.Sprintf("%s%d whole", seen, whole)
}

// Pause and Resume stop the process in its tracks and let it go on (SIGSTOP, SIGCONT).
func (b *Broker) Pause(t testing.TB)  { require.NoError(t, b.cmd.Process.Signal(syscall.SIGSTOP)) }
func (b *Broker) Resume(t testing.TB) { require.NoError(t, b.cmd.Process.Signal(syscall.SIGCONT)) }

// PID is the process's id.
func (b *Broker) PID() int { return b.cmd.Process.Pid }

// LogTail is the end of the process's output.
func (b *Broker) LogTail(n int) string {
	data, _ := os.ReadFile(b.logFile)
	return string(bytes.TrimSpace(data[max(0, len(data)-n):]))
}
