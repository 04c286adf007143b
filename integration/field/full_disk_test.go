package field

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// H46, BR-073: the disk of a broker fills up. Appends are refused with the error that says so, its leaders move, and when there is room it is back in the ISRs without a restart, with every
// record that was acknowledged, also of partitions that nobody else has.
func TestAFullDiskIsWaitedFor(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T) *fullDisk{
		"the only directory": func(t *testing.T) *fullDisk { return newFullDisk(t, cluster.Barnabas, false) },
		"one of two":         func(t *testing.T) *fullDisk { return newFullDisk(t, cluster.Barnabas, true) },
		"an Apache controller": func(t *testing.T) *fullDisk {
			needApache(t)
			return newFullDisk(t, cluster.Kafka(apacheVersion), false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prepare(t).play()
		})
	}
}

const (
	sharedPartitions = 6
	smallDiskBytes   = 48 << 20
)

// fullDisk is three brokers. The first has a directory on a small disk, the second is the controller.
type fullDisk struct {
	t          *testing.T
	c          *cluster.Cluster
	dir        string // on the small disk
	filler     string
	controller *conn
}

func newFullDisk(t *testing.T, controller cluster.Program, spare bool) *fullDisk {
	disk := lane.SmallDisk(t, smallDiskBytes)
	lane.Need(t, disk != "", "a small disk, which root can mount")
	w := &fullDisk{t: t, dir: filepath.Join(disk, "logs"), filler: filepath.Join(disk, "filler")}
	settings := map[string]string{
		"log.segment.bytes": "1048576", "replica.lag.time.max.ms": "3000", "zookeeper.session.timeout.ms": "3000", "min.insync.replicas": "2",
		"controlled.shutdown.retry.backoff.ms": "100",
		// Upon this Apache Kafka's controller leads again what nobody else can lead; ours does so at once.
		"leader.imbalance.check.interval.seconds": "5",
	}
	w.c = cluster.Prepare(t, zktest.Embedded(t).Addr(), 3, settings, func(id int) map[string]string {
		dirs := w.dir
		if spare {
			dirs += "," + filepath.Join(t.TempDir(), "spare")
		}
		if id == 1 {
			return map[string]string{"log.dirs": dirs}
		}
		return nil
	})
	w.c.Brokers[1].Become(controller)
	for _, i := range []int{1, 0, 2} {
		w.c.Brokers[i].Start(t)
		w.c.Brokers[i].WaitReady(t)
	}
	w.controller = dialController(t, w.c.Brokers[0].Addr)
	w.create("alone", []int32{1}, []int32{1})
	w.create("shared", slices.Repeat([][]int32{{1, 2, 3}}, sharedPartitions)...)
	w.c.WaitWhole(t, "shared", sharedPartitions, 3)
	w.c.WaitWhole(t, "alone", 2, 1)
	return w
}

func (w *fullDisk) create(name string, replicas ...[]int32) {
	w.t.Helper()
	topic := creation(name, -1, -1)
	for p, ids := range replicas {
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, assignment(int32(p), ids...))
	}
	require.Zero(w.t, create(w.controller, 5, false, topic)[name].ErrorCode)
}

func (w *fullDisk) play() {
	t, b := w.t, w.c.Brokers[0]
	pid := b.PID()
	load := history.Start(t, history.Config{Seeds: w.c.Seeds(), Topic: "shared", Producers: 2, PerSecond: 500, MaxValue: 200})
	load.Progress(t, 200, "with room")
	direct := dial(t, b.Addr)
	alone := w.partitionIn(w.dir)
	acked := 0
	for ; acked < 20; acked++ {
		stored(direct, "alone", alone, w.batch(acked))
	}

	lane.Fill(t, w.filler)
	eventually(t, func() bool {
		refused := produce(direct, 9, "alone", alone, -1, w.batch(acked).encode(t))
		if refused.ErrorCode == 0 {
			acked++ // there was room behind what is there
			return false
		}
		return assert.Equal(t, kerr.KafkaStorageError.Code, refused.ErrorCode)
	}, "there is no room")
	eventually(t, func() bool {
		return w.leaders("shared") == strings.Repeat(" 2", w.sharedOn())+strings.Repeat(" 1", sharedPartitions-w.sharedOn())
	}, "others lead what was on the disk")
	eventually(t, func() bool { return strings.Contains(w.leaders("alone"), " -1") }, "nobody else can lead the rest")
	load.Progress(t, 200, "without the disk")
	require.Equal(t, kerr.KafkaStorageError.Code, produce(direct, 9, "alone", alone, -1, w.batch(acked).encode(t)).ErrorCode)
	assert.NotEqual(t, int16(0), w.describeDir().ErrorCode)

	require.NoError(t, os.Remove(w.filler))
	w.c.WaitWhole(t, "shared", sharedPartitions, 3)
	w.c.WaitWhole(t, "alone", 2, 1)
	require.Zero(t, w.describeDir().ErrorCode)
	require.Equal(t, pid, b.PID())
	require.True(t, b.Running(), "it was not started again")
	for last := acked + 20; acked < last; acked++ {
		stored(direct, "alone", alone, w.batch(acked))
	}
	load.Progress(t, 200, "with the disk again")
	assert.Empty(t, load.Finish(t, history.Promise{Idempotent: true}))
	assert.Empty(t, load.Refused())
	w.aloneHolds(alone, acked)
	w.compare()
}

func (w *fullDisk) batch(n int) batch {
	value := history.Name{Producer: 1, Number: uint64(n)}.AppendTo(nil)
	return batch{records: plainly(time.Now().UnixMilli(), string(append(value, make([]byte, 2000)...)))}
}

// aloneHolds reads the partition that nobody else has: what was acknowledged is there, in order and once.
func (w *fullDisk) aloneHolds(partition int32, acked int) {
	w.t.Helper()
	found := history.ReadAll(w.t, w.c.Seeds(), "alone")[partition]
	require.Len(w.t, found, acked)
	for n, read := range found {
		assert.EqualValues(w.t, n, read.Number)
	}
}

// compare stops the brokers and looks at what they have written.
func (w *fullDisk) compare() {
	for _, b := range w.c.Brokers {
		b.Stop(w.t)
	}
	for p := range sharedPartitions {
		name := fmt.Sprint("shared-", p)
		var dirs []string
		for _, b := range w.c.Brokers {
			for dir := range strings.SplitSeq(b.Dir, ",") {
				if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
					dirs = append(dirs, dir)
					assert.Empty(w.t, history.Verify(dir, name))
				}
			}
		}
		assert.Len(w.t, dirs, 3, name)
		assert.Empty(w.t, history.CompareReplicas(dirs, name))
	}
	for p := range 2 {
		for dir := range strings.SplitSeq(w.c.Brokers[0].Dir, ",") {
			if name := fmt.Sprint("alone-", p); exists(filepath.Join(dir, name)) {
				assert.Empty(w.t, history.Verify(dir, name))
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sharedOn is how many replicas of the shared topic are on the small disk.
func (w *fullDisk) sharedOn() int {
	found, err := filepath.Glob(filepath.Join(w.dir, "shared-?"))
	require.NoError(w.t, err)
	return len(found)
}

// partitionIn is the first partition of the other topic that is in a directory.
func (w *fullDisk) partitionIn(dir string) int32 {
	for p := range int32(2) {
		if exists(filepath.Join(dir, fmt.Sprint("alone-", p))) {
			return p
		}
	}
	require.Fail(w.t, "no partition of its own is on the small disk")
	return -1
}

// leaders tells who leads, the largest ids first.
func (w *fullDisk) leaders(topic string) string {
	var ids []int32
	for _, known := range describe(w.controller, topic).Topics {
		for _, p := range known.Partitions {
			ids = append(ids, p.Leader)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	text := ""
	for _, id := range ids {
		text += fmt.Sprint(" ", id)
	}
	return text
}

// describeDir is what the broker says of the directory on the small disk.
func (w *fullDisk) describeDir() kmsg.DescribeLogDirsResponseDir {
	w.t.Helper()
	for _, d := range ask[*kmsg.DescribeLogDirsResponse](dial(w.t, w.c.Brokers[0].Addr), at(4, kmsg.NewPtrDescribeLogDirsRequest())).Dirs {
		if d.Dir == w.dir {
			return d
		}
	}
	require.Fail(w.t, "the directory is not told of")
	return kmsg.DescribeLogDirsResponseDir{}
}

// A broker whose only log directory fails for another reason than lack of room ends, with an exit code that a supervisor sees.
func TestABrokerWithoutAnyLogDirectoryEnds(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, zktest.Embedded(t).Addr(), 1, map[string]string{"replica.high.watermark.checkpoint.interval.ms": "500"})
	b := c.Brokers[0]
	require.Zero(t, create(dialController(t, b.Addr), 5, false, creation("t", 1, 1))["t"].ErrorCode)
	awaitLeaders(t, dial(t, b.Addr), "t", 1)
	require.NoError(t, os.Rename(b.Dir, b.Dir+".away"))
	require.NoError(t, os.WriteFile(b.Dir, []byte("no directory"), 0o600))
	c2 := dial(t, b.Addr)
	c2.send(produceRequest(9, "t", 0, 1, batch{records: plainly(1, "moves the high watermark, which is written down")}.encode(t)))
	require.NotZero(t, b.ExitCode(t, patience))
	require.Contains(t, b.LogTail(4000), "every log directory has failed")
}
