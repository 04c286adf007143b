package ecosystem

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
)

// pipeline is a file whose lines a source connector sends to a topic, and a sink connector writes to another file. Both run in two Connect workers.
type pipeline struct {
	t        *testing.T
	cluster  *cluster.Cluster
	admin    *kadm.Client
	workers  []*worker
	from, to string

	writer  sync.WaitGroup
	stop    chan struct{}
	mu      sync.Mutex
	written int // lines of the file
	size    int // of the file, in bytes

	topic *kgo.Client
	lines []string // of the topic
}

const (
	linesAtOnce = 10
	linesPause  = 50 * time.Millisecond
)

// Two Connect workers of one group carry lines from a file to a topic, exactly once, and from there to another file, while the connector is restarted, the worker that reads is killed, and another
// comes in its place. Its offsets are altered and reset. What the workers keep in topics is compacted all the while, and the worker that comes reads that.
func TestConnectWorkersCarryEachLineOnce(t *testing.T) {
	p := startPipeline(t)
	first, second := p.workers[0], p.workers[1]
	source := map[string]string{
		"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1", "file": p.from, "topic": "lines", "exactly.once.support": "required",
		"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "3",
		"batch.size": "1000000", // all that is there at once: what follows a full batch in the source's buffer is left there until the file grows
	}
	sink := map[string]string{"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "1", "file": p.to, "topics": "lines"}
	first.must(t, http.MethodPut, "/connectors/source/config", source, nil)
	second.must(t, http.MethodPut, "/connectors/sink/config", sink, nil)
	first.awaitState(t, "source", "RUNNING", 1)
	first.awaitState(t, "sink", "RUNNING", 1)
	p.awaitCarriedNow("the connectors run")
	p.requireGroup()

	first.must(t, http.MethodPost, "/connectors/source/restart?includeTasks=true", nil, nil)
	p.awaitCarriedNow("the source was restarted")

	reader, other := first, second
	if first.awaitState(t, "source", "RUNNING", 1).Tasks[0].WorkerID == second.addr {
		reader, other = second, first
	}
	reader.kill()
	p.awaitMoved(other, "source")
	p.awaitMoved(other, "sink")
	p.awaitCarriedNow("the worker that reads was killed")
	p.awaitCompacted("connect-offsets")

	reader.start(t)
	p.awaitSpread(other)
	p.awaitCarriedNow("a worker came back")
	p.endWriting()
	p.awaitCarriedNow("all is written")
	p.requireSunk()

	p.alterSource(other)
	p.resetSource(other)
	p.alterSink(other)
	p.requireTopics()
}

func startPipeline(t *testing.T) *pipeline {
	dir := t.TempDir()
	classpath := jars(t)
	c := threeBrokers(t)
	p := &pipeline{t: t, cluster: c, admin: kadm.NewClient(client(t, c)), from: filepath.Join(dir, "from"), to: filepath.Join(dir, "to"), stop: make(chan struct{})}
	p.topic = client(t, c, kgo.ConsumeTopics("lines"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	p.writer.Go(p.write)
	t.Cleanup(p.endWriting)
	for range 2 { // at once, so that both want to make the group's topics
		w := &worker{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(lane.Port(t)))}
		w.program = launch(t, "the worker at "+w.addr, classpath, "org.apache.kafka.connect.cli.ConnectDistributed", properties(t, p.settings(w.addr)))
		p.workers = append(p.workers, w)
	}
	return p
}

func (p *pipeline) settings(addr string) map[string]string {
	settings := map[string]string{
		"bootstrap.servers": p.cluster.Bootstrap(), "group.id": "connect", "listeners": "http://" + addr, "exactly.once.source.support": "enabled", "plugin.discovery": "service_load",
		"key.converter": "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter",
		"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000", "scheduled.rebalance.max.delay.ms": "1000", "offset.flush.interval.ms": "1000",
		"consumer.isolation.level": "read_committed", "consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "1000", "offset.storage.partitions": "5", "status.storage.partitions": "5",
	}
	for kind, topic := range map[string]string{"config": "connect-configs", "offset": "connect-offsets", "status": "connect-status"} {
		settings[kind+".storage.topic"] = topic
		settings[kind+".storage.replication.factor"] = "3"
		settings[kind+".storage.segment.ms"] = "2000"
		settings[kind+".storage.min.cleanable.dirty.ratio"] = "0.01"
	}
	return settings
}

// write appends lines to the file until it is told to stop.
func (p *pipeline) write() {
	file, err := os.Create(p.from)
	if !assert.NoError(p.t, err) {
		return
	}
	defer file.Close()
	for {
		var lines bytes.Buffer
		for i := range linesAtOnce {
			fmt.Fprintln(&lines, line(p.written+i))
		}
		n, err := file.Write(lines.Bytes())
		if !assert.NoError(p.t, err) {
			return
		}
		p.mu.Lock()
		p.written += linesAtOnce
		p.size += n
		p.mu.Unlock()
		select {
		case <-p.stop:
			return
		case <-time.After(linesPause):
		}
	}
}

func line(i int) string { return fmt.Sprintf("line %d", i) }

func (p *pipeline) endWriting() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.writer.Wait()
}

// now is how many lines and bytes there are.
func (p *pipeline) now() (lines, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written, p.size
}

// awaitCarriedNow waits until what is written by now has come to the topic, each line once and in order.
func (p *pipeline) awaitCarriedNow(after string) {
	p.t.Helper()
	written, _ := p.now()
	p.awaitLines(after, func(i int) string { return line(i) }, written)
}

// awaitLines waits until there are n lines in the topic, all of them as they are to be.
func (p *pipeline) awaitLines(after string, want func(i int) string, n int) {
	p.t.Helper()
	await(p.t, func() string {
		ctx, cancel := context.WithTimeout(p.t.Context(), 100*time.Millisecond)
		defer cancel()
		p.topic.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			require.Equal(p.t, want(len(p.lines)), string(r.Value), "at offset %d", r.Offset)
			p.lines = append(p.lines, string(r.Value))
		})
		if len(p.lines) >= n {
			return ""
		}
		return fmt.Sprintf("%s: of %d lines %d are in the topic", after, n, len(p.lines))
	}, p.running()...)
}

func (p *pipeline) running() (programs []*program) {
	for _, w := range p.workers {
		if w.running() {
			programs = append(programs, w.program)
		}
	}
	return programs
}

// awaitMoved waits until all of a connector is at one worker.
func (p *pipeline) awaitMoved(to *worker, connector string) {
	p.t.Helper()
	await(p.t, func() string {
		status := to.awaitState(p.t, connector, "RUNNING", 1)
		if status.Connector.WorkerID == to.addr && status.Tasks[0].WorkerID == to.addr {
			return ""
		}
		return fmt.Sprintf("not all of %s has moved to %s: %+v", connector, to.addr, status)
	}, to.program)
}

// awaitSpread waits until each of the two workers has half of the connectors and tasks, as they are given back and given out anew.
func (p *pipeline) awaitSpread(asked *worker) {
	p.t.Helper()
	await(p.t, func() string {
		have := map[string]int{}
		for _, connector := range []string{"source", "sink"} {
			status := asked.awaitState(p.t, connector, "RUNNING", 1)
			have[status.Connector.WorkerID]++
			have[status.Tasks[0].WorkerID]++
		}
		for _, w := range p.workers {
			if have[w.addr] != 2 {
				return fmt.Sprintf("connectors and tasks are not spread: %v", have)
			}
		}
		return ""
	}, asked.program)
}

// awaitCompacted waits until the first record of a partition is gone, and not by deletion: the log still starts at 0.
func (p *pipeline) awaitCompacted(topic string) {
	p.t.Helper()
	await(p.t, func() string {
		reader := client(p.t, p.cluster, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		defer reader.Close()
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Second)
		defer cancel()
		begins := map[int32]int64{}
		for ctx.Err() == nil {
			reader.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				if _, seen := begins[r.Partition]; !seen {
					begins[r.Partition] = r.Offset
				}
			})
		}
		for _, first := range begins {
			if first > 0 {
				return ""
			}
		}
		return fmt.Sprintf("%s is not compacted: its partitions begin at %v", topic, begins)
	}, p.running()...)
	starts, err := p.admin.ListStartOffsets(lane.Patience(p.t), topic)
	require.NoError(p.t, err)
	starts.Each(func(o kadm.ListedOffset) { assert.Zero(p.t, o.Offset, "log start of partition %d", o.Partition) })
}

// requireSunk waits until the other file has every line. What a killed worker had written and not committed is there twice.
func (p *pipeline) requireSunk() {
	p.t.Helper()
	written, _ := p.now()
	await(p.t, func() string {
		text, err := os.ReadFile(p.to)
		require.NoError(p.t, err)
		seen := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			seen[strings.TrimSuffix(line, "\n")] = true
		}
		for i := range written {
			if !seen[line(i)] {
				return fmt.Sprintf("line %d of %d is not in the file of the sink", i, written)
			}
		}
		require.Len(p.t, seen, written)
		return ""
	}, p.running()...)
}

// requireGroup waits until both workers share the work by the protocol in which they also agree on keys for what they ask each other (KIP-507).
func (p *pipeline) requireGroup() {
	p.t.Helper()
	await(p.t, func() string {
		described, err := p.admin.DescribeGroups(lane.Patience(p.t), "connect")
		require.NoError(p.t, err)
		group := described["connect"]
		require.NoError(p.t, group.Err)
		if group.State == "Stable" && group.ProtocolType == "connect" && group.Protocol == "sessioned" && len(group.Members) == 2 {
			return ""
		}
		return fmt.Sprintf("the group is %s, of type %q by %q, with %d members", group.State, group.ProtocolType, group.Protocol, len(group.Members))
	}, p.running()...)
}

// alterSource makes the source go back by some lines.
func (p *pipeline) alterSource(w *worker) {
	p.t.Helper()
	const again = 10
	lines, size := p.now()
	back := 0
	for i := lines - again; i < lines; i++ {
		back += len(line(i)) + len("\n")
	}
	at := func(position int) []connectorOffset {
		return []connectorOffset{{Partition: map[string]any{"filename": p.from}, Offset: map[string]any{"position": float64(position)}}}
	}
	w.must(p.t, http.MethodPut, "/connectors/source/stop", nil, nil)
	w.awaitState(p.t, "source", "STOPPED", 0)
	require.Equal(p.t, at(size), w.offsets(p.t, "source"))
	w.must(p.t, http.MethodPatch, "/connectors/source/offsets", connectorOffsets{at(size - back)}, nil)
	require.Equal(p.t, at(size-back), w.offsets(p.t, "source"))
	w.must(p.t, http.MethodPut, "/connectors/source/resume", nil, nil)
	p.awaitLines("the offset was altered", func(i int) string { return line(i - again) }, lines+again)
}

// resetSource makes the source begin anew.
func (p *pipeline) resetSource(w *worker) {
	p.t.Helper()
	lines, _ := p.now()
	before := len(p.lines)
	w.must(p.t, http.MethodPut, "/connectors/source/stop", nil, nil)
	w.awaitState(p.t, "source", "STOPPED", 0)
	w.must(p.t, http.MethodDelete, "/connectors/source/offsets", nil, nil)
	require.Empty(p.t, w.offsets(p.t, "source"))
	w.must(p.t, http.MethodPut, "/connectors/source/resume", nil, nil)
	p.awaitLines("the offset was reset", func(i int) string { return line(i - before) }, before+lines)
}

// alterSink alters the offset of the sink's group, and then has it deleted, so that the sink writes all that is in the topic once more.
func (p *pipeline) alterSink(w *worker) {
	p.t.Helper()
	w.must(p.t, http.MethodPut, "/connectors/sink/stop", nil, nil)
	w.awaitState(p.t, "sink", "STOPPED", 0)
	before := p.sunk()
	middle := []connectorOffset{{Partition: map[string]any{"kafka_topic": "lines", "kafka_partition": float64(0)}, Offset: map[string]any{"kafka_offset": float64(len(p.lines) / 2)}}}
	require.Len(p.t, w.offsets(p.t, "sink"), 1)
	w.must(p.t, http.MethodPatch, "/connectors/sink/offsets", connectorOffsets{middle}, nil)
	require.Equal(p.t, middle, w.offsets(p.t, "sink"))
	w.must(p.t, http.MethodDelete, "/connectors/sink/offsets", nil, nil)
	require.Empty(p.t, w.offsets(p.t, "sink"))
	w.must(p.t, http.MethodPut, "/connectors/sink/resume", nil, nil)
	await(p.t, func() string {
		if more := p.sunk() - before; more != len(p.lines) {
			return fmt.Sprintf("of %d lines %d are written again", len(p.lines), more)
		}
		return ""
	}, p.running()...)
}

// sunk is how many lines the sink's file has.
func (p *pipeline) sunk() int {
	text, err := os.ReadFile(p.to)
	require.NoError(p.t, err)
	return bytes.Count(text, []byte("\n"))
}

// requireTopics looks at the topics that the workers have made.
func (p *pipeline) requireTopics() {
	p.t.Helper()
	listed, err := p.admin.ListTopics(lane.Patience(p.t))
	require.NoError(p.t, err)
	for topic, partitions := range map[string]int{"connect-configs": 1, "connect-offsets": 5, "connect-status": 5, "lines": 1} {
		assert.Len(p.t, listed[topic].Partitions, partitions, topic)
		for _, of := range listed[topic].Partitions {
			assert.Len(p.t, of.Replicas, 3, topic)
		}
		want := map[string]string{}
		if topic != "lines" {
			want = map[string]string{"cleanup.policy": "compact", "segment.ms": "2000", "min.cleanable.dirty.ratio": "0.01"}
		}
		assert.Equal(p.t, want, settingsOf(p.t, p.admin, topic), topic)
	}
}
