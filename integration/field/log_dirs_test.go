package field

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// dirFault breaks one of a broker's log directories, and mends it while the broker is down.
type dirFault struct {
	name   string
	place  func(t *testing.T) string // a file system for the directory; nil: that of the other
	inject func(t *testing.T, dir string)
	mend   func(t *testing.T, dir string)
	bad    bool // a broker that starts meanwhile finds it unusable
}

func dirFaults() []dirFault {
	away := func(dir string) string { return dir + ".away" }
	filler := func(dir string) string { return filepath.Join(dir, "filler") }
	var disk *lane.Disk // of the one of these that is played
	onDisk := func(t *testing.T) string {
		disk = lane.NewDisk(t, 128<<20)
		return disk.Dir
	}
	return []dirFault{
		{"gone", nil, func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(dir, away(dir)))
			require.NoError(t, os.WriteFile(dir, []byte("no directory"), 0o600))
		}, func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(dir))
			require.NoError(t, os.Rename(away(dir), dir))
		}, true},
		{"a folder deleted under it", nil, func(t *testing.T, dir string) {
			folders, err := filepath.Glob(filepath.Join(dir, "spread-*"))
			require.NoError(t, err)
			require.NotEmpty(t, folders)
			require.NoError(t, os.RemoveAll(folders[0]))
		}, func(*testing.T, string) {}, false},
		{"full", func(t *testing.T) string {
			mounted := lane.SmallDisk(t, 64<<20)
			lane.Need(t, mounted != "", "a small disk, which root can mount")
			return mounted
		}, func(t *testing.T, dir string) { lane.Fill(t, filler(dir)) }, func(t *testing.T, dir string) { require.NoError(t, os.Remove(filler(dir))) }, false},
		{"read-only since an error", onDisk, func(*testing.T, string) { disk.TurnReadOnly() }, func(*testing.T, string) { disk.Restore() }, true},
		{"pulled out", onDisk, func(*testing.T, string) { disk.CutPower() }, func(*testing.T, string) { disk.Restore() }, true},
	}
}

// BR-073, H45: one of two log directories of a broker fails. Its replicas alone go offline, their leaders move, what is made
// meanwhile goes into the other one, nobody who writes with acks=all loses a record; a start with the directory still bad
// is a start without it, and when it is good again everything is whole.
func TestALogDirectoryThatFailsCostsItsReplicasOnly(t *testing.T) {
	programs := map[string]cluster.Program{"barnabas": cluster.Barnabas}
	if os.Getenv("BARNABAS_APACHE") == "1" { // to see that Kafka does the same
		needApache(t)
		programs["apache"] = cluster.Kafka(apacheVersion)
	}
	for name, program := range programs {
		for i, fault := range dirFaults() {
			t.Run(name+"/"+fault.name, func(t *testing.T) {
				t.Parallel()
				newDirWorld(t, program, dirFaults()[i]).play()
			})
		}
	}
}

const spreadOver = 6

// dirWorld is two brokers, of which the first has a directory that is going to fail, and somebody who writes.
type dirWorld struct {
	t         *testing.T
	c         *cluster.Cluster
	z         tree
	good, bad string
	client    *kgo.Client
	admin     *kadm.Client
	acked     [spreadOver]atomic.Int64 // records, by partition
	fault     dirFault
}

func newDirWorld(t *testing.T, program cluster.Program, fault dirFault) *dirWorld {
	zk := zktest.Embedded(t)
	root := t.TempDir()
	w := &dirWorld{t: t, z: openTree(t, zk.Addr()), good: filepath.Join(root, "good"), bad: filepath.Join(root, "bad"), fault: fault}
	if fault.place != nil {
		w.bad = filepath.Join(fault.place(t), "bad")
	}
	settings := map[string]string{"log.segment.bytes": "131072", "replica.lag.time.max.ms": "3000", "zookeeper.session.timeout.ms": "3000", "auto.leader.rebalance.enable": "false"}
	w.c = cluster.StartProgram(t, program, zk.Addr(), 2, settings, func(id int) map[string]string {
		if id == 1 {
			return map[string]string{"log.dirs": w.good + "," + w.bad}
		}
		return nil
	})
	var err error
	w.client, err = kgo.NewClient(kgo.SeedBrokers(w.c.Seeds()...), kgo.AlwaysRetryEOF(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.NoError(t, err)
	t.Cleanup(w.client.Close)
	w.admin = kadm.NewClient(w.client)
	return w
}

func (w *dirWorld) play() {
	t, b, fault := w.t, w.c.Brokers[0], w.fault
	_, err := w.admin.CreateTopic(lane.Patience(t), spreadOver, 2, nil, "spread")
	require.NoError(t, err)
	w.c.WaitWhole(t, "spread", spreadOver, 2)
	eventually(t, func() bool {
		return len(w.partitionsIn(w.bad, "spread"))+len(w.partitionsIn(w.good, "spread")) == spreadOver
	}, "the replicas are made")
	lost := w.partitionsIn(w.bad, "spread")
	require.Len(t, lost, spreadOver/2, "the partitions are spread over the directories")
	ctx, stop := context.WithCancel(context.Background())
	var writing sync.WaitGroup
	for p := range spreadOver {
		writing.Go(func() { w.write(ctx, int32(p)) })
	}
	w.progress("before")

	fault.inject(t, w.bad)
	eventually(t, func() bool { return w.failed(w.bad) }, "the directory is offline")
	assert.False(t, w.failed(w.good))
	eventually(t, func() bool {
		return w.isrs("spread", lost) == fmt.Sprint(len(lost), " without 1, ", spreadOver-len(lost), " with")
	}, "its replicas are out, the others in")
	eventually(t, func() bool { return len(w.z.children("/log_dir_event_notification")) == 0 }, "the controller was told")
	_, err = w.admin.CreateTopic(lane.Patience(t), 4, 2, nil, "later")
	require.NoError(t, err)
	eventually(t, func() bool { return w.isrs("later", nil) == "0 without 1, 4 with" }, "what is new goes into the good directory")
	eventually(t, func() bool { return len(w.partitionsIn(w.good, "later")) == 4 }, "all of it") // a new replica counts as in sync before it is made
	w.progress("without the directory")

	if fault.bad {
		b.Kill(t)
		b.Start(t)
		b.WaitReady(t)
		eventually(t, func() bool {
			return w.isrs("spread", lost) == fmt.Sprint(len(lost), " without 1, ", spreadOver-len(lost), " with")
		}, "a start without it")
		assert.True(t, w.failed(w.bad))
		w.progress("after a start without the directory")
	}
	b.Kill(t)
	fault.mend(t, w.bad)
	b.Start(t)
	b.WaitReady(t)
	w.c.WaitWhole(t, "spread", spreadOver, 2)
	assert.False(t, w.failed(w.bad))
	w.progress("with the directory again")
	stop()
	writing.Wait()
	w.everythingIsThere()
}

// write sends records to one partition, each after the one before it was acknowledged.
func (w *dirWorld) write(ctx context.Context, p int32) {
	for n := int64(0); ctx.Err() == nil; n++ {
		r := &kgo.Record{Topic: "spread", Partition: p, Value: fmt.Appendf(nil, "%d %s", n, strings.Repeat("x", 2000))}
		if err := w.client.ProduceSync(lane.Patience(w.t), r).FirstErr(); !assert.NoError(w.t, err, "partition %d", p) {
			return
		}
		w.acked[p].Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// progress waits until every writer has got on.
func (w *dirWorld) progress(when string) {
	w.t.Helper()
	var from [spreadOver]int64
	for p := range from {
		from[p] = w.acked[p].Load()
	}
	eventually(w.t, func() bool {
		for p := range from {
			if w.acked[p].Load() < from[p]+20 {
				return false
			}
		}
		return true
	}, "writing goes on %s", when)
}

func (w *dirWorld) everythingIsThere() {
	var offsets kadm.Offsets
	for p := range int32(spreadOver) {
		offsets.AddOffset("spread", p, 0, -1)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.c.Seeds()...), kgo.ConsumePartitions(offsets.KOffsets()))
	require.NoError(w.t, err)
	defer client.Close()
	var seen [spreadOver]int64
	done := func() bool {
		for p := range seen {
			if seen[p] < w.acked[p].Load() {
				return false
			}
		}
		return true
	}
	ctx := lane.Patience(w.t)
	for !done() {
		fetches := client.PollFetches(ctx)
		require.NoError(w.t, ctx.Err(), "%v", seen)
		fetches.EachRecord(func(r *kgo.Record) {
			if strings.HasPrefix(string(r.Value), fmt.Sprint(seen[r.Partition], " ")) {
				seen[r.Partition]++ // a record may be there twice, after an answer that was lost
			}
		})
	}
}

func (w *dirWorld) partitionsIn(dir, topic string) map[int32]bool {
	folders, err := filepath.Glob(filepath.Join(dir, topic+"-*"))
	require.NoError(w.t, err)
	found := map[int32]bool{}
	for _, f := range folders {
		p, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(f), topic+"-"))
		if err == nil {
			found[int32(p)] = true
		}
	}
	return found
}

// failed tells that the first broker describes a directory as offline.
func (w *dirWorld) failed(dir string) bool {
	described, err := w.admin.DescribeBrokerLogDirs(lane.Patience(w.t), 1, nil)
	if err != nil {
		return false
	}
	d, ok := described[dir]
	return ok && d.Err != nil
}

// isrs counts the partitions whose ISR is without broker 1, all of them among those named, and those it is in.
func (w *dirWorld) isrs(topic string, named map[int32]bool) string {
	topics, err := w.admin.ListTopics(lane.Patience(w.t), topic)
	if err != nil {
		return err.Error()
	}
	without, with := 0, 0
	for _, p := range topics[topic].Partitions {
		in := false
		for _, id := range p.ISR {
			in = in || id == 1
		}
		switch {
		case !in && named[p.Partition] && p.Leader == 2:
			without++
		case in && p.Leader >= 0:
			with++
		}
	}
	return fmt.Sprint(without, " without 1, ", with, " with")
}

func (z tree) children(path string) []string {
	r, err := z.one(zkstate.Children(path))
	require.NoError(z.t, err)
	return r.Children
}
