package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// mirrors is a source, a target, and the files by which mirror makers find them.
type mirrors struct {
	t              *testing.T
	source, target *kgo.Client
	files          []string
	group          string
	sent           int
}

func startMirrors(t *testing.T, group string) *mirrors {
	settings := map[string]string{"log.retention.ms": "-1", "group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1"}
	source := cluster.Start(t, zktest.Embedded(t).Addr(), 1, settings)
	target := cluster.Start(t, zktest.Embedded(t).Addr(), 1, settings)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	consumer := write("consumer.properties", fmt.Sprintf("bootstrap.servers=%s\ngroup.id=%s\nauto.offset.reset=earliest\nmetadata.max.age.ms=1000\nsession.timeout.ms=6000\nheartbeat.interval.ms=1000\n", source.Bootstrap(), group))
	producer := write("producer.properties", fmt.Sprintf("bootstrap.servers=%s\n", target.Bootstrap()))
	return &mirrors{t: t, source: franz(t, source), target: franz(t, target), files: []string{"--consumer.config", consumer, "--producer.config", producer}, group: group}
}

// produce writes records that differ in all that a copy has to keep.
func (m *mirrors) produce(n int) {
	m.t.Helper()
	var records []*kgo.Record
	for range n {
		r := &kgo.Record{Topic: []string{"orders", "clicks"}[m.sent%2], Value: fmt.Appendf(nil, "value %d", m.sent), Timestamp: time.UnixMilli(1_500_000_000_000 + int64(m.sent))}
		if m.sent%3 > 0 {
			r.Key = fmt.Appendf(nil, "key %d", m.sent)
		}
		if m.sent%5 == 0 {
			r.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte{0, 255}}, {Key: "h"}}
		}
		if m.sent%7 == 0 && r.Key != nil {
			r.Value = nil
		}
		records = append(records, r)
		m.sent++
	}
	require.NoError(m.t, m.source.ProduceSync(lane.Patience(m.t), records...).FirstErr())
}

// run starts a mirror maker. It is ended with the test.
func (m *mirrors) run(name string, args ...string) *exec.Cmd {
	m.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "BARNABAS_COMPAT=3.9.1")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(m.t, cmd.Start())
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if m.t.Failed() {
			m.t.Logf("%s said:\n%s", name, said.String())
		}
	})
	return cmd
}

func (m *mirrors) ours(args ...string) *exec.Cmd {
	return m.run(cluster.Binary(m.t), slices.Concat([]string{"kafka-mirror-maker"}, m.files, args)...)
}

func (m *mirrors) theirs(args ...string) *exec.Cmd {
	lib := lane.KafkaJars(m.t, "3.9.1")
	return m.run(lane.Java(m.t), slices.Concat([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", lib + "/*", "kafka.tools.MirrorMaker"}, m.files, args)...)
}

// copied counts the records that the target has of topics.
func (m *mirrors) copied(topics ...string) (n int64) {
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	ends, err := kadm.NewClient(m.target).ListEndOffsets(ctx, topics...)
	if err != nil {
		return 0
	}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err == nil {
			n += o.Offset
		}
	})
	return n
}

func (m *mirrors) waitCopied(n int64, topics ...string) {
	m.t.Helper()
	require.Eventually(m.t, func() bool { return m.copied(topics...) >= n }, patience, 50*time.Millisecond, "%d records are copied", n)
}

// exit waits for a process and tells how it ended.
func exit(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	err := cmd.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		require.NoError(t, err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

func (m *mirrors) stop(cmd *exec.Cmd) {
	m.t.Helper()
	require.NoError(m.t, cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(m.t, 128+int(syscall.SIGTERM), exit(m.t, cmd))
}

// behind is how many records of topics the group has not committed; -1 where that is not told.
func (m *mirrors) behind(topics ...string) (lag int64) {
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	admin := kadm.NewClient(m.source)
	ends, err := admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return -1
	}
	committed, err := admin.FetchOffsets(ctx, m.group)
	if err != nil {
		return -1
	}
	ends.Each(func(end kadm.ListedOffset) {
		lag += end.Offset
		if at, there := committed.Lookup(end.Topic, end.Partition); there {
			lag -= max(at.At, 0)
		}
	})
	return lag
}

// contents are the records that a cluster has of topics, each as a line, in order; what is there twice is there once.
func contents(t *testing.T, client *kgo.Client, n int64, topics ...string) []string {
	t.Helper()
	reader, err := kgo.NewClient(append(slices.Clone(client.Opts()), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	require.NoError(t, err)
	defer reader.Close()
	var lines []string
	for read := int64(0); read < n; {
		fetches := reader.PollFetches(lane.Patience(t))
		require.NoError(t, fetches.Err0())
		fetches.EachRecord(func(r *kgo.Record) {
			read++
			lines = append(lines, fmt.Sprintf("%s %q %v %q %v %v %d", r.Topic, r.Key, r.Key == nil, r.Value, r.Value == nil, r.Headers, r.Timestamp.UnixMilli()))
		})
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func TestAMirrorIsKeptByOurMirrorMakerAndByKafkasInTurn(t *testing.T) {
	lane.Java(t)
	m := startMirrors(t, "mirror")
	for topic, partitions := range map[string]int32{"orders": 3, "clicks": 1, "other": 1} {
		makeTopic(t, m.source, topic, partitions)
	}
	makeTopic(t, m.target, "orders", 5)
	require.NoError(t, m.source.ProduceSync(lane.Patience(t), &kgo.Record{Topic: "other", Value: []byte("is not copied")}).FirstErr())

	m.produce(500)
	ours := m.ours("--include", "orders,cl.*s", "--num.streams", "2", "--offset.commit.interval.ms", "300")
	m.waitCopied(500, "orders", "clicks")
	m.stop(ours)
	assert.Zero(t, m.behind("orders", "clicks"), "a stop commits what was copied")

	m.produce(500)
	theirs := m.theirs("--include", "orders,cl.*s")
	m.waitCopied(1000, "orders", "clicks")
	m.stop(theirs)
	assert.Zero(t, m.behind("orders", "clicks"))

	m.produce(2000)
	killed := m.ours("--whitelist", "orders|clicks")
	m.waitCopied(1001, "orders", "clicks")
	require.NoError(t, killed.Process.Kill())
	exit(t, killed)
	last := m.ours("--whitelist", "orders|clicks", "--num.streams", "3", "--offset.commit.interval.ms", "100")
	require.Eventually(t, func() bool { return m.behind("orders", "clicks") == 0 }, patience, 100*time.Millisecond, "it catches up, and says so while it runs")
	m.stop(last)

	want := contents(t, m.source, 3000, "orders", "clicks")
	assert.Len(t, want, 3000)
	assert.Equal(t, want, contents(t, m.target, m.copied("orders", "clicks"), "orders", "clicks"))
	assert.Zero(t, m.copied("other"))
}

func TestAMirrorStopsAtARecordThatTheTargetDoesNotTake(t *testing.T) {
	m := startMirrors(t, "strict")
	makeTopic(t, m.source, "t", 1)
	small := "100"
	_, err := kadm.NewClient(m.target).CreateTopic(lane.Patience(t), 1, 1, map[string]*string{"max.message.bytes": &small}, "t")
	require.NoError(t, err)
	for _, value := range []string{"small", strings.Repeat("large", 100), "small too"} {
		require.NoError(t, m.source.ProduceSync(lane.Patience(t), &kgo.Record{Topic: "t", Value: []byte(value)}).FirstErr())
	}
	assert.Equal(t, 255, exit(t, m.ours("--whitelist", "t", "--offset.commit.interval.ms", "100")))
	assert.EqualValues(t, 3, m.behind("t"), "nothing is committed past a record that is not copied")

	lenient := m.ours("--whitelist", "t", "--offset.commit.interval.ms", "100", "--abort.on.send.failure", "false")
	require.Eventually(t, func() bool { return m.behind("t") == 0 }, patience, 50*time.Millisecond)
	m.stop(lenient)
	assert.Contains(t, strings.Join(contents(t, m.target, m.copied("t"), "t"), "\n"), `"small too"`)
}
