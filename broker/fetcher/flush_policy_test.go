package fetcher

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/partition"
	"barnabas/broker/vfs"
)

// acknowledged writes n records and returns what was promised about them.
func (c *cluster) acknowledged(n int) map[int64]string {
	c.t.Helper()
	acked := map[int64]string{}
	for len(acked) < n {
		value := fmt.Sprintf("%d-%d", c.leaderEpoch, len(acked))
		offset, ok := c.produce(value)
		require.True(c.t, ok, "%s", c)
		acked[offset] = value
	}
	return acked
}

// lost counts the acknowledged records that the replicas, which agree, do not have at their offsets.
func (c *cluster) lost(acked map[int64]string) int {
	c.t.Helper()
	c.settled()
	values, _ := c.leading().values(c.t)
	n := 0
	for offset, value := range acked {
		if offset >= int64(len(values)) || values[offset] != value {
			n++
		}
	}
	return n
}

// alone waits until the leader is the only member of the ISR, and knows it.
func (c *cluster) alone() {
	require.Eventually(c.t, func() bool { return len(c.leading().replicas.Partition("t", 0).Status().ISR) == 1 }, time.Minute, time.Millisecond, "%s", c)
}

// The last replica standing acknowledges what only it has, loses its power, and comes back first. Kafka gives away what its page cache held.
func TestH20_TheLastReplicaStandingLosesItsPower(t *testing.T) {
	for _, row := range []struct {
		name  string
		flush partition.FlushPolicy
		loses bool
	}{{"kafka", partition.FlushAsKafka, true}, {"thin-isr", partition.FlushThinISR, false}, {"always", partition.FlushAlways, false}} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster(t, "3.9", row.flush, 1, 1, 2, 3)
			acked := c.acknowledged(10)
			second, third := c.die(2, vfs.Everything, 1), c.die(3, vfs.Everything, 1)
			c.alone()
			for offset, value := range c.acknowledged(10) {
				acked[offset] = value
			}
			first := c.die(1, vfs.Synced, 1)
			c.revive(1, first)
			c.revive(2, second)
			c.revive(3, third)
			require.Equal(t, row.loses, c.lost(acked) > 0, "lost %d of %d", c.lost(acked), len(acked))
		})
	}
}

// All replicas lose their power at the same moment. Only flushing always holds against that; the other policies lose the tail, and still the replicas agree afterwards.
func TestH21_EveryReplicaLosesItsPowerAtOnce(t *testing.T) {
	for _, row := range []struct {
		name  string
		flush partition.FlushPolicy
		loses bool
	}{{"kafka", partition.FlushAsKafka, true}, {"thin-isr", partition.FlushThinISR, true}, {"always", partition.FlushAlways, false}} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster(t, "3.9", row.flush, 2, 1, 2, 3)
			acked := c.acknowledged(20)
			images := map[int32]*vfs.CrashFS{}
			for id, n := range c.nodes {
				images[id] = n.disk.Image(n.disk.Ops(), vfs.Synced, 1)
			}
			for id := range images {
				c.die(id, vfs.Synced, 1)
			}
			for id, disk := range images {
				c.revive(id, disk)
			}
			require.Equal(t, row.loses, c.lost(acked) > 0)
		})
	}
}

// A leader that ran without flushes lost its power as the only member of the ISR, and its log came back shorter than what it is known to have committed. Leading, it makes everybody cut
// what they still have; refusing, it leaves the choice of the other replica open.
func TestH20_AReplicaThatCameBackShortDoesNotLeadAlone(t *testing.T) {
	for _, row := range []struct {
		name  string
		flush partition.FlushPolicy // after the restart
		loses bool
	}{{"kafka", partition.FlushAsKafka, true}, {"thin-isr", partition.FlushThinISR, false}} {
		t.Run(row.name, func(t *testing.T) {
			c := newCluster(t, "3.9", partition.FlushAsKafka, 1, 1, 2)
			acked := c.acknowledged(10) // by both
			require.Eventually(t, func() bool { return checkpointed(c.nodes[1].disk) == 10 }, time.Minute, time.Millisecond)
			second := c.die(2, vfs.Everything, 1)
			c.alone()
			first := c.die(1, vfs.Synced, 1)
			c.flush = row.flush
			c.revive(1, first)
			if !row.loses {
				require.Nil(t, c.nodes[1].replicas.Partition("t", 0), "its replica is offline")
				// The controller sees the storage error; an operator, or unclean.leader.election.enable, chooses the other one.
				c.mu.Lock()
				c.isr, c.leader = []int32{2}, -1
				c.mu.Unlock()
				c.revive(2, second)
				values, _ := c.nodes[2].values(t)
				require.Len(t, values, len(acked), "what was acknowledged by two replicas is still served by one")
				return
			}
			c.revive(2, second)
			require.Equal(t, len(acked), c.lost(acked), "both gave away what both had acknowledged")
		})
	}
}

// checkpointed is the high watermark of t-0 in the checkpoint on a disk, or -1.
func checkpointed(disk vfs.FS) int64 {
	f, err := disk.OpenFile("/data/replication-offset-checkpoint", os.O_RDONLY, 0)
	if err != nil {
		return -1
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		return -1
	}
	_, line, _ := strings.Cut(string(text), "\nt 0 ")
	offset := int64(-1)
	_, _ = fmt.Sscan(line, &offset)
	return offset
}
