package partition

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
	"barnabas/broker/vfs"
)

// fullWorld is a broker with two directories, of which the first has a-0 and is about to be full.
type fullWorld struct {
	*world
	disk    *vfs.CrashFS
	returns atomic.Int32
}

func newFullWorld(t *testing.T) *fullWorld {
	w := &fullWorld{disk: vfs.NewCrashFS()}
	w.world = newWorldOn(t, w.disk, "/a", "/b")
	w.m.cfg.OnReturn = func() { w.returns.Add(1) }
	return w
}

// fill has an append find out that there is no room in /a.
func (w *fullWorld) fill() {
	w.t.Helper()
	w.disk.Inject(func(o vfs.Op) error {
		if (o.Kind == vfs.OpWrite || o.Kind == vfs.OpCreate) && strings.HasPrefix(o.Name, "/a/") {
			return syscall.ENOSPC
		}
		return nil
	})
	require.ErrorIs(w.t, w.produced(1, batch(1, 1)).Err, kerr.KafkaStorageError)
	w.m.LogDirFailed("/a")
	require.Eventually(w.t, func() bool { return w.m.Counts().Offline > 0 }, time.Minute, time.Millisecond)
}

// room brings the directory back and waits until the replicas know.
func (w *fullWorld) room() {
	w.t.Helper()
	w.disk.Inject(nil)
	require.NoError(w.t, w.logs.Reopen("/a"))
	before := w.returns.Load()
	w.m.LogDirReturned("/a")
	require.Eventually(w.t, func() bool { return w.returns.Load() > before }, time.Minute, time.Millisecond)
}

// stopped is the controller's word on a replica that it has found offline.
func (w *fullWorld) stopped(epoch int32) {
	w.t.Helper()
	_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: epoch}}})
	require.ErrorIs(w.t, each[0].Err, kerr.KafkaStorageError)
}

func TestH46_ReplicasOfADirectoryThatWasFullComeBack(t *testing.T) {
	w := newFullWorld(t)
	w.lead([]int32{1}, []int32{1})
	require.Equal(t, "/a", w.m.Partition("a", 0).Log().ParentDir())
	for range 5 {
		require.NoError(t, w.produced(-1, batch(1, 100)).Err)
	}
	w.fill()
	require.ErrorIs(t, w.apply(w.order(1, []int32{1}, []int32{1}))[0].Err, kerr.KafkaStorageError)
	w.stopped(w.epoch)
	require.ErrorIs(t, w.produced(1, batch(1, 1)).Err, kerr.KafkaStorageError)

	w.room()
	require.EqualValues(t, 1, w.returns.Load())
	require.ErrorIs(t, w.produced(1, batch(1, 1)).Err, kerr.KafkaStorageError, "nobody said yet that it leads")
	o := w.order(None, []int32{1}, []int32{1})
	o.IsNew = false
	require.NoError(t, w.apply(o)[0].Err)
	require.Zero(t, w.m.Counts().Offline)
	w.lead([]int32{1}, []int32{1})
	got := w.produced(-1, batch(1, 1))
	require.NoError(t, got.Err)
	require.EqualValues(t, 5, got.BaseOffset)
	require.EqualValues(t, 6, w.m.Partition("a", 0).Log().HighWatermark())
}

// What the controller does not know to be gone could be made to lead in the epoch in which it led, with less than it had.
func TestAReplicaThatTheControllerTrustsDoesNotComeBack(t *testing.T) {
	w := newFullWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(3, 100)).Err)
	w.fill()
	f, err := w.disk.OpenFile("/a/a-0/00000000000000000000.log", os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, errors.Join(f.Truncate(0), f.Close()), "somebody makes room by hand")
	w.room()
	require.EqualValues(t, 1, w.returns.Load(), "so that the controller asks")
	for _, trusting := range []LeaderAndISRPartition{
		{Leader: 1, LeaderEpoch: w.epoch, ISR: []int32{1, 2}},
		{Leader: 2, LeaderEpoch: w.epoch + 1, ISR: []int32{2, 1}},
		{Leader: None, LeaderEpoch: w.epoch + 1, ISR: []int32{2, 1}},
	} {
		trusting.Topic, trusting.Replicas, trusting.ControllerEpoch, trusting.TopicID = "a", []int32{1, 2}, 1, commitlog.TopicID{1}
		require.ErrorIs(t, w.apply(trusting)[0].Err, kerr.KafkaStorageError)
		require.ErrorIs(t, w.produced(1, batch(1, 1)).Err, kerr.KafkaStorageError)
	}
	w.stopped(w.epoch + 2)
	require.EqualValues(t, 2, w.returns.Load(), "so that the controller asks again")
	w.epoch += 2
	require.NoError(t, w.apply(w.order(2, []int32{1, 2}, []int32{2}))[0].Err)
	require.Len(t, w.fetchers.added, 1)
}

// The leader may have taken it back into the ISR just when it went. Nothing of it is lost.
func TestAReplicaThatHoldsAllThatItHeldFollowsAsAMemberOfTheISR(t *testing.T) {
	w := newFullWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(3, 100)).Err)
	w.fill()
	w.room()
	require.ErrorIs(t, w.apply(w.order(1, []int32{1, 2}, []int32{1, 2}))[0].Err, kerr.KafkaStorageError, "it does not lead on")
	w.follow([]int32{1, 2})
}

// The StopReplica by which the controller took notice comes when an order has brought the replica back already.
func TestAReplicaThatIsStoppedByAnOlderOrderComesBackAgain(t *testing.T) {
	for _, epoch := range []func(int32) int32{func(known int32) int32 { return known }, func(int32) int32 { return EpochNotGiven }} {
		w := newFullWorld(t)
		w.lead([]int32{1, 2}, []int32{1, 2})
		w.fill()
		w.room()
		require.NoError(t, w.apply(w.order(None, []int32{1, 2}, []int32{2}))[0].Err)
		o := w.order(2, []int32{1, 2}, []int32{2})
		require.NoError(t, w.apply(o)[0].Err)
		_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: epoch(w.epoch)}}})
		require.NoError(t, each[0].Err)
		require.EqualValues(t, 2, w.returns.Load())
		require.NoError(t, w.apply(o)[0].Err, "the same order is carried out anew")
		require.Len(t, w.fetchers.added, 2)

		_, each = w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: w.epoch + 1}}})
		require.NoError(t, each[0].Err)
		require.EqualValues(t, 2, w.returns.Load(), "this one is meant")
	}
}

func TestAReplicaThatIsBackCanBeDeleted(t *testing.T) {
	w := newFullWorld(t)
	w.lead([]int32{1}, []int32{1})
	w.fill()
	w.room()
	_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: EpochDuringDelete, Delete: true}}})
	require.NoError(t, each[0].Err)
	require.Nil(t, w.logs.Get(topicA))
	require.Zero(t, w.m.Counts().Offline)
}

// A directory that fills up again before the first order is no news to the controller.
func TestAReplicaThatIsGoneAgainBeforeItServedComesBack(t *testing.T) {
	w := newFullWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	w.fill()
	w.stopped(w.epoch)
	for range 3 {
		w.room()
		w.disk.Inject(func(o vfs.Op) error {
			if o.Kind == vfs.OpWrite && strings.HasPrefix(o.Name, "/a/") {
				return syscall.ENOSPC
			}
			return nil
		})
		w.logs.CheckpointHighWatermarks() // finds it full
		_, err := w.logs.Get(topicA).AppendAsLeader(batch(1, 1), w.epoch, commitlog.AppendOptions{})
		require.ErrorIs(t, err, kerr.KafkaStorageError)
		w.m.LogDirFailed("/a")
		o := w.order(2, []int32{1, 2}, []int32{2})
		require.ErrorIs(t, w.apply(o)[0].Err, kerr.KafkaStorageError)
	}
	w.room()
	require.NoError(t, w.apply(w.order(2, []int32{1, 2}, []int32{2}))[0].Err)
}

func TestWhoCoordinatesInAFailedDirectoryIsTold(t *testing.T) {
	w := newFullWorld(t)
	var mu sync.Mutex
	var roles []Role
	w.m.cfg.OnRoles = func(r []Role) {
		mu.Lock()
		defer mu.Unlock()
		roles = append(roles, r...)
	}
	w.lead([]int32{1}, []int32{1})
	w.fill()
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(roles) == 2 && roles[0].Leader && roles[1].Stopped && !roles[1].Leader
	}, time.Minute, time.Millisecond)
}

// A replica that was refused because its log might have been in the directory, and was not, gets one.
func TestAReplicaWithoutALogIsMadeWhenNoDirectoryIsMissing(t *testing.T) {
	w := newFullWorld(t)
	w.lead([]int32{1}, []int32{1})
	w.fill()
	o := w.order(2, []int32{1, 2}, []int32{1, 2})
	o.Partition = 1
	require.ErrorIs(t, w.apply(o)[0].Err, kerr.KafkaStorageError)
	w.room()
	o.ISR = []int32{2}
	require.NoError(t, w.apply(o)[0].Err)
	require.NotNil(t, w.m.Partition("a", 1))
}

// A move is gone on with when the directory that it goes to comes back.
func TestAMoveIntoADirectoryThatWasFullGoesOn(t *testing.T) {
	w := newFullWorld(t)
	movers := &notingMovers{}
	w.m.cfg.Movers = movers
	require.NoError(t, w.logs.PreferDir(topicA, "/b"))
	w.lead([]int32{1}, []int32{1})
	require.NoError(t, w.m.AlterLogDirs([]LogDirChange{{topicA, "/a"}})[0].Err)
	_, _, err := w.m.Partition("a", 0).Move(1 << 20)
	require.NoError(t, err)
	require.Equal(t, "/a", w.m.Partition("a", 0).Log().ParentDir(), "an empty log is moved at once")

	require.NoError(t, w.produced(1, batch(1, 100)).Err)
	require.NoError(t, w.m.AlterLogDirs([]LogDirChange{{topicA, "/b"}})[0].Err)
	future := w.logs.GetFuture(topicA)
	require.NotNil(t, future)
	w.disk.Inject(func(o vfs.Op) error {
		if (o.Kind == vfs.OpWrite || o.Kind == vfs.OpCreate) && strings.HasPrefix(o.Name, "/b/") {
			return syscall.ENOSPC
		}
		return nil
	})
	_, _, err = w.m.Partition("a", 0).Move(1 << 20)
	require.ErrorIs(t, err, kerr.KafkaStorageError)
	w.m.LogDirFailed("/b")
	require.Eventually(t, func() bool { return w.m.Partition("a", 0).future() == nil }, time.Minute, time.Millisecond)
	w.disk.Inject(nil)
	require.NoError(t, w.logs.Reopen("/b"))
	started := movers.count()
	w.m.LogDirReturned("/b")
	require.Eventually(t, func() bool { return movers.count() > started }, time.Minute, time.Millisecond)
	_, done, err := w.m.Partition("a", 0).Move(1 << 20)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, "/b", w.m.Partition("a", 0).Log().ParentDir())
	require.EqualValues(t, 1, w.m.Partition("a", 0).Log().EndOffset())
}

// notingMovers counts how often it was told to begin.
type notingMovers struct {
	noMovers
	started atomic.Int32
}

func (n *notingMovers) Start([]*Partition) { n.started.Add(1) }
func (n *notingMovers) count() int32       { return n.started.Load() }
