package native

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// mover is a cluster whose replicas are moved.
type mover struct {
	t      *testing.T
	c      *cluster.Cluster
	server string
	dir    string
}

// newMover makes a topic of four partitions with some data, each with so many replicas that one broker can go.
func newMover(t *testing.T, program cluster.Program, brokers int) *mover {
	settings := map[string]string{"offsets.topic.num.partitions": "2", "auto.leader.rebalance.enable": "false", "zookeeper.session.timeout.ms": "30000", "replica.fetch.max.bytes": "1000", "replica.fetch.response.max.bytes": "1000"}
	c := cluster.StartProgram(t, program, zktest.Embedded(t).Addr(), brokers, settings, func(int) map[string]string { return nil })
	m := &mover{t, c, c.Bootstrap(), t.TempDir()}
	m.ok("topic create orders --partitions 4 --replication-factor " + strconv.Itoa(brokers-1))
	c.WaitWhole(t, "orders", 4, brokers-1)
	const batch = 60_000 // bytes, of one record: a throttled follower gets a batch now and then
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(batch), kgo.MetadataMinAge(10*time.Millisecond), kgo.RecordDeliveryTimeout(settle))
	require.NoError(t, err)
	defer client.Close()
	var records []*kgo.Record
	for i := range 40 {
		records = append(records, &kgo.Record{Topic: "orders", Partition: int32(i % 4), Value: make([]byte, 50_000)})
	}
	require.NoError(t, client.ProduceSync(lane.Patience(t), records...).FirstErr())
	return m
}

func (m *mover) run(call string) ran { return run(m.t, m.server, strings.Fields(call)...) }

func (m *mover) ok(call string) ran {
	m.t.Helper()
	got := m.run(call)
	require.Zero(m.t, got.code, "%s: %s%s", call, got.stdout, got.stderr)
	return got
}

// replicas are those of orders.
func (m *mover) replicas() (list [][]int32, leaders []int32) {
	var d struct {
		Topics []struct {
			Partitions []struct {
				Replicas []int32
				Leader   int32
			}
		}
	}
	require.NoError(m.t, json.Unmarshal([]byte(m.ok("topic describe orders -o json").stdout), &d))
	for _, p := range d.Topics[0].Partitions {
		list, leaders = append(list, p.Replicas), append(leaders, p.Leader)
	}
	return list, leaders
}

// eventually waits until the replicas are as they should be: brokers hear of the end of a move after the controller.
func (m *mover) eventually(as func(replicas [][]int32, leaders []int32) bool, why string) {
	m.t.Helper()
	require.Eventually(m.t, func() bool { return as(m.replicas()) }, settle, pace, why)
}

func (m *mover) asBefore(before [][]int32) {
	m.t.Helper()
	m.eventually(func(now [][]int32, _ []int32) bool { return reflect.DeepEqual(before, now) }, "as before")
}

func sorted(lists [][]int32) (out [][]int32) {
	for _, l := range lists {
		out = append(out, slices.Sorted(slices.Values(l)))
	}
	return out
}

// each is a condition on all partitions.
func each(as func(replicas []int32, leader int32) bool) func([][]int32, []int32) bool {
	return func(list [][]int32, leaders []int32) bool {
		for i, replicas := range list {
			if !as(replicas, leaders[i]) {
				return false
			}
		}
		return true
	}
}

// throttles counts what holds replication back.
func (m *mover) throttles() int {
	var d struct{ Changes []any }
	require.NoError(m.t, json.Unmarshal([]byte(m.ok("reassign throttle off --dry-run -o json").stdout), &d))
	return len(d.Changes)
}

// emptied drains the last broker and takes that back.
func (m *mover) emptied(brokers int) {
	before, _ := m.replicas()
	last := strconv.Itoa(brokers)
	back := filepath.Join(m.dir, "back.json")
	dry := m.ok("broker drain " + last + " --dry-run -o json")
	var d struct {
		Partitions []any
		Moved      int `json:"replicas_moved"`
		Warnings   []string
	}
	require.NoError(m.t, json.Unmarshal([]byte(dry.stdout), &d))
	assert.NotZero(m.t, d.Moved)
	assert.Empty(m.t, d.Warnings)
	now, _ := m.replicas()
	assert.Equal(m.t, before, now, "a dry run changes nothing")

	got := m.ok("broker drain " + last + " --throttle 50MB/s --rollback " + back)
	assert.Contains(m.t, got.stderr, "Broker "+last+" has no replicas any more: it can be stopped.")
	m.eventually(each(func(replicas []int32, leader int32) bool {
		return !slices.Contains(replicas, int32(brokers)) && len(replicas) == brokers-1 && leader == replicas[0]
	}), "the broker is empty, and who is to lead does, though nobody evens leaders out")
	assert.Zero(m.t, m.throttles(), "the throttle does not outlive the move")
	assert.Contains(m.t, m.ok("broker drain "+last+" --dry-run").stdout, "nothing has to change")

	assert.Equal(m.t, 1, m.run("reassign verify "+back).code)
	m.ok("reassign run " + back + " --wait")
	m.ok("reassign verify " + back)
	m.asBefore(before)
}

// hurried starts a move that would take minutes, and lets it go faster; then one that is cancelled.
func (m *mover) hurried(brokers int) {
	plan, back := filepath.Join(m.dir, "plan.json"), filepath.Join(m.dir, "slow-back.json")
	m.ok("plan drain " + strconv.Itoa(brokers) + " --topic orders --save " + plan + " --rollback " + back)
	ended := make(chan ran, 1)
	go func() { ended <- run(m.t, m.server, "reassign", "run", plan, "--throttle", "2kB/s") }()
	var d struct {
		Moves     []struct{ Topic string }
		Left      int64 `json:"bytes_left"`
		Throttles []any
	}
	require.Eventually(m.t, func() bool {
		return json.Unmarshal([]byte(m.run("reassign list -o json").stdout), &d) == nil && len(d.Moves) > 0 && d.Left > 0
	}, settle, pace)
	assert.NotEmpty(m.t, d.Throttles)
	assert.Equal(m.t, 1, m.run("reassign run "+back).code, "others run")
	m.ok("reassign throttle 100MB/s")
	select {
	case got := <-ended:
		require.Zero(m.t, got.code, "%s%s", got.stdout, got.stderr)
		assert.Contains(m.t, got.stderr, " moving")
	case <-time.After(2 * settle):
		require.Fail(m.t, "the throttle was not changed in flight")
	}
	assert.Zero(m.t, m.throttles())

	before, _ := m.replicas()
	go func() { ended <- run(m.t, m.server, "reassign", "run", back, "--throttle", "2kB/s") }()
	require.Eventually(m.t, func() bool {
		return json.Unmarshal([]byte(m.run("reassign list -o json").stdout), &d) == nil && len(d.Moves) > 0
	}, settle, pace)
	m.ok("reassign cancel --all")
	select {
	case got := <-ended:
		assert.Equal(m.t, 1, got.code)
		assert.Contains(m.t, got.stderr, "ended by somebody else")
	case <-time.After(settle):
		require.Fail(m.t, "nobody told that the move was cancelled")
	}
	// A cancel takes away what was added; in which order the others stand, and so who is preferred, stays as the move had it.
	m.eventually(func(now [][]int32, _ []int32) bool { return reflect.DeepEqual(sorted(before), sorted(now)) }, "on the brokers of before")
	assert.Zero(m.t, m.throttles())
	m.ok("reassign watch")
}

func TestABrokerIsDrainedAndFilledAgain(t *testing.T) {
	const brokers = 3
	m := newMover(t, cluster.Barnabas, brokers)
	m.emptied(brokers)
	m.hurried(brokers)

	piped := m.ok("plan rf 3 --topic orders -o json")
	file := filepath.Join(m.dir, "rf.json")
	require.NoError(t, os.WriteFile(file, []byte(piped.stdout), 0o600))
	m.ok("reassign run " + file + " --wait")
	m.eventually(each(func(replicas []int32, _ int32) bool { return len(replicas) == 3 }), "three replicas")
	m.ok("topic rf orders 1")
	m.ok("reassign watch -o json")
	m.eventually(each(func(replicas []int32, leader int32) bool { return slices.Equal([]int32{leader}, replicas) }), "one replica")
	for _, goal := range []string{"spread", "leaders", "bytes", "racks", "fill 1", "replace 1 2"} {
		m.ok("plan " + goal)
	}
	elsewhere := filepath.Join(m.dir, "elsewhere.json")
	require.NoError(t, os.WriteFile(elsewhere, []byte(`{"version":1,"partitions":[{"topic":"orders","partition":99,"replicas":[1]}]}`), 0o600))
	assert.Equal(t, 3, m.run("reassign run "+elsewhere+" --dry-run").code)
	assert.Equal(t, 3, m.run("plan drain 9").code)
	assert.Equal(t, 3, m.run("plan fill 9").code)
	assert.Equal(t, 3, m.run("plan rf 2 --topic nope").code)

	m.ok("topic rf orders 2")
	m.ok("reassign watch")
	m.eventually(each(func(replicas []int32, _ int32) bool { return len(replicas) == 2 }), "two replicas")
	m.c.Brokers[brokers-1].Kill(t)
	got := m.ok("broker drain 3 --wait")
	assert.Contains(t, got.stderr, "Broker 3 has no replicas any more")
	m.eventually(each(func(replicas []int32, _ int32) bool { return len(replicas) == 2 && !slices.Contains(replicas, 3) }), "all are on the other two")
}

func TestABrokerOfApacheKafkaIsDrained(t *testing.T) {
	lane.Java(t)
	const brokers = 2
	m := newMover(t, cluster.Kafka("3.9.1"), brokers)
	m.emptied(brokers)
}
