package commitlog

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"barnabas/broker/record"
	"barnabas/broker/vfs"
)

// A partition is created, deleted, and created again under the same name by another topic, with a neighbour in the same
// directory. Wherever the power is cut, records are found under the id of the topic that wrote them and under no other, the
// neighbour has lost nothing that was flushed, and a deletion that had returned is not undone.
func TestRecordsAreNeverFoundUnderTheIDOfAnotherTopic(t *testing.T) {
	neighbour := TopicPartition{"neighbour", 3}
	ids := map[TopicID]byte{{1}: 'x', {2}: 'y', {3}: 'z'}
	type promise struct {
		ops     int
		what    string
		id      TopicID // whose the log is; zero: none, or one that need not exist
		flushed int64
		gone    TopicID // deleted for good
		beside  int64   // flushed in the neighbour
	}
	fs, clk := vfs.NewCrashFS(), newClock()
	m, err := bootOn(fs, clk)
	require.NoError(t, err)
	var now promise
	var promises []promise
	done := func(what string) {
		now.ops, now.what = fs.Ops(), what
		promises = append(promises, now)
	}
	appendTo := func(tp TopicPartition, id TopicID, value byte) *Log {
		l, err := m.GetOrCreate(tp, id, false)
		require.NoError(t, err)
		for i := range 5 {
			b := record.NewBuilder(record.BuilderOptions{})
			b.Append(int64(i), nil, bytes.Repeat([]byte{value}, 150))
			batch, err := b.Build()
			require.NoError(t, err)
			_, err = l.AppendAsLeader(batch, 0, AppendOptions{RequireV2: true})
			require.NoError(t, err)
		}
		return l
	}
	done("boot")
	for life, id := range []TopicID{{1}, {2}, {3}} {
		beside := appendTo(neighbour, TopicID{9}, 'n')
		require.NoError(t, beside.Flush())
		now.beside = beside.EndOffset()
		done("neighbour")
		if life > 0 {
			// While it is being deleted it may be there or not.
			old := &promises[len(promises)-1]
			now.gone, now.id, now.flushed = old.id, TopicID{}, 0
			old.id, old.flushed = TopicID{}, 0
			require.NoError(t, m.Delete(tp0))
			done("delete")
		}
		l := appendTo(tp0, id, ids[id])
		now.id = id
		done("create and append")
		require.NoError(t, l.Flush())
		now.flushed = l.EndOffset()
		done("flush")
		m.checkpointRecoveryPoints()
		m.CheckpointHighWatermarks()
		done("checkpoints")
		clk.advance(2 * time.Second)
		m.removeDue(clk.at)
		done("remove")
		if life == 1 {
			require.NoError(t, m.Close())
			done("close")
			m, err = bootOn(fs, clk)
			require.NoError(t, err)
			done("open")
		}
	}

	disks := 0
	for cut := range fs.Ops() + 1 {
		before := promises[0]
		for _, p := range promises {
			if p.ops <= cut {
				before = p
			}
		}
		for _, a := range vfs.Adversaries {
			for seed := range uint64(2) {
				where := fmt.Sprintf("cut behind operation %d, %s %d, after %q: %v", cut, a, seed, before.what, fs.History(max(0, cut-4))[:min(4, cut)])
				disk := fs.Image(cut, a, seed)
				m, err := bootOn(disk, clk)
				require.NoError(t, err, where)
				disks++
				if l := m.Get(neighbour); l != nil {
					require.NoError(t, l.Err(), where)
					require.GreaterOrEqual(t, l.EndOffset(), before.beside, where)
				} else {
					require.Zero(t, before.beside, where)
				}
				l := m.Get(tp0)
				if l == nil {
					require.Zero(t, before.flushed, "the log is gone: %s", where)
					continue
				}
				require.NoError(t, l.Err(), where)
				id := l.TopicID()
				if before.gone != (TopicID{}) {
					require.NotEqual(t, before.gone, id, "a deleted log is back: %s", where)
				}
				if before.flushed > 0 {
					require.Equal(t, before.id, id, where)
					require.GreaterOrEqual(t, l.EndOffset(), before.flushed, where)
				}
				for _, r := range readAll(t, l, l.StartOffset(), l.EndOffset()) {
					require.Equal(t, ids[id], r.Value[0], "a record of another topic under id %v: %s", id, where)
				}
			}
		}
	}
	t.Logf("%d disks", disks)
}
