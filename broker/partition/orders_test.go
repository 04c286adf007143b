package partition

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

func TestH25_OrdersOfAnEarlierControllerAreRefused(t *testing.T) {
	w := newWorld(t)
	o := w.order(1, []int32{1}, []int32{1})
	all, _ := w.m.ApplyLeaderAndISR(LeaderAndISR{ControllerEpoch: 8, BrokerEpoch: -1, Partitions: []LeaderAndISRPartition{o}})
	require.NoError(t, all)
	all, _ = w.m.ApplyLeaderAndISR(LeaderAndISR{ControllerEpoch: 7, BrokerEpoch: -1})
	require.ErrorIs(t, all, kerr.StaleControllerEpoch)
	all, _ = w.m.StopReplicas(StopReplicas{ControllerEpoch: 7, BrokerEpoch: -1})
	require.ErrorIs(t, all, kerr.StaleControllerEpoch)
}

func TestH25_AnEarlierControllersOrdersAreRefusedOnceTheNextOneHasToldOfBrokers(t *testing.T) {
	w := newWorld(t)
	o := w.order(2, []int32{1, 2}, []int32{2})
	all, _ := w.m.ApplyLeaderAndISR(LeaderAndISR{ControllerEpoch: 8, BrokerEpoch: -1, Partitions: []LeaderAndISRPartition{o}})
	require.NoError(t, all)
	require.NoError(t, w.m.ControllerSeen(8))
	require.NoError(t, w.m.ControllerSeen(9))
	require.ErrorIs(t, w.m.ControllerSeen(8), kerr.StaleControllerEpoch)
	all, _ = w.m.StopReplicas(StopReplicas{ControllerEpoch: 8, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: EpochNotGiven, Delete: true}}})
	require.ErrorIs(t, all, kerr.StaleControllerEpoch)
	all, _ = w.m.ApplyLeaderAndISR(LeaderAndISR{ControllerEpoch: 8, BrokerEpoch: -1})
	require.ErrorIs(t, all, kerr.StaleControllerEpoch)
	require.NotNil(t, w.m.Partition("a", 0))
}

func TestH26_OrdersForAnEarlierRegistrationAreRefusedForALaterOneTaken(t *testing.T) {
	w := newWorld(t)
	for epoch, want := range map[int64]error{99: kerr.StaleBrokerEpoch, 100: nil, 101: nil, -1: nil} {
		all, _ := w.m.ApplyLeaderAndISR(LeaderAndISR{ControllerEpoch: 1, BrokerEpoch: epoch})
		require.ErrorIs(t, all, want)
		all, _ = w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: epoch})
		require.ErrorIs(t, all, want)
	}
}

func TestLeaderEpochNeverGoesBack(t *testing.T) {
	w := newWorld(t)
	first := w.order(1, []int32{1}, []int32{1})
	second := w.order(1, []int32{1}, []int32{1})
	require.NoError(t, w.apply(second)[0].Err)
	require.ErrorIs(t, w.apply(first)[0].Err, kerr.StaleControllerEpoch)
	require.ErrorIs(t, w.apply(second)[0].Err, kerr.StaleControllerEpoch)
	require.EqualValues(t, 2, w.m.Partition("a", 0).Status().LeaderEpoch)
}

func TestBrokerOutsideTheAssignment(t *testing.T) {
	w := newWorld(t)
	require.ErrorIs(t, w.apply(w.order(2, []int32{2, 3}, []int32{2}))[0].Err, kerr.UnknownTopicOrPartition)
	require.Nil(t, w.logs.Get(topicA))
}

func TestFollowerIsHandedToTheFetchers(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	require.Len(t, w.fetchers.added, 1)
	require.EqualValues(t, 2, w.fetchers.added[0].Leader.ID)
	require.EqualValues(t, 1, w.fetchers.added[0].LeaderEpoch)
	w.lead([]int32{1, 2}, []int32{1})
	require.Contains(t, w.fetchers.removed, topicA)
}

func TestH06_LeaderNotesItsEpochAlsoWithoutWriting(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	require.NoError(t, w.produced(1, batch(5, 10)).Err)
	w.lead([]int32{1}, []int32{1})
	w.lead([]int32{1}, []int32{1})
	epoch, end, err := w.m.OffsetForLeaderEpoch("a", 0, 3, 2)
	require.NoError(t, err)
	require.EqualValues(t, 1, epoch, "epoch 2 wrote nothing")
	require.EqualValues(t, 5, end)
	epoch, end, err = w.m.OffsetForLeaderEpoch("a", 0, -1, 3)
	require.NoError(t, err)
	require.EqualValues(t, 3, epoch)
	require.EqualValues(t, 5, end)
}

func TestH27_StaleStopReplicaDeletesNothing(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	w.lead([]int32{1}, []int32{1})
	stop := func(epoch int32) error {
		all, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: epoch, Delete: true}}})
		require.NoError(t, all)
		return each[0].Err
	}
	require.ErrorIs(t, stop(1), kerr.FencedLeaderEpoch)
	require.NotNil(t, w.logs.Get(topicA))
	require.NoError(t, stop(2))
	require.Nil(t, w.logs.Get(topicA))
	for _, epoch := range []int32{EpochDuringDelete, EpochNotGiven} {
		w.lead([]int32{1}, []int32{1})
		require.NoError(t, stop(epoch))
		require.Nil(t, w.logs.Get(topicA))
	}
	require.NoError(t, stop(9), "a replica that is not here is stopped")
}

func TestStopWithoutDeletionKeepsTheReplica(t *testing.T) {
	w := newWorld(t)
	w.follow([]int32{1, 2})
	_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: 1}}})
	require.NoError(t, each[0].Err)
	require.Contains(t, w.fetchers.removed, topicA)
	require.NotNil(t, w.logs.Get(topicA))
}

func TestDeletionFindsALogThatNoOrderNamed(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	w.close()
	w.open()
	require.Nil(t, w.m.Partition("a", 0))
	_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: EpochDuringDelete, Delete: true}}})
	require.NoError(t, each[0].Err)
	require.Nil(t, w.logs.Get(topicA))
}

func (w *world) full(ps ...LeaderAndISRPartition) {
	w.t.Helper()
	all, each := w.m.ApplyLeaderAndISR(LeaderAndISR{ControllerEpoch: 1, BrokerEpoch: 100, Type: RequestFull, Partitions: ps})
	require.NoError(w.t, all)
	for _, e := range each {
		require.NoError(w.t, e.Err)
	}
}

func (w *world) dirs(suffix string) (found []string) {
	entries, err := os.ReadDir(w.dir)
	require.NoError(w.t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			found = append(found, filepath.Join(w.dir, e.Name()))
		}
	}
	return found
}

func TestH34_FullOrderSetsStraysAside(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	o := w.order(1, []int32{1}, []int32{1})
	o.Partition = 1
	require.NoError(t, w.apply(o)[0].Err)
	o.LeaderEpoch++
	w.full(o)
	require.Nil(t, w.m.Partition("a", 0))
	require.Nil(t, w.logs.Get(topicA))
	require.NotNil(t, w.m.Partition("a", 1))
	require.Len(t, w.dirs("-stray"), 1, "kept, not deleted")
}

func TestH34_HighWatermarkSurvivesALeaderThatIsNotAlive(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 9}, []int32{1})
	require.NoError(t, w.produced(1, batch(5, 10)).Err)
	for range 3 {
		w.close()
		w.open()
		require.NoError(t, w.apply(w.order(9, []int32{1, 9}, []int32{1, 9}))[0].Err, "leader 9 is not alive")
		require.EqualValues(t, 5, w.logs.Get(topicA).HighWatermark())
		require.Empty(t, w.fetchers.added)
	}
}

func TestHighWatermarkSurvivesRestartsWithoutAnyOrder(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	require.NoError(t, w.produced(1, batch(5, 10)).Err)
	for range 3 {
		w.close()
		w.open()
	}
	require.EqualValues(t, 5, w.logs.Get(topicA).HighWatermark())
}

func TestH36_LogOfAnEarlierTopicIsSetAside(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	require.NoError(t, w.produced(1, batch(5, 10)).Err)
	w.close()
	w.open() // the topic was deleted and made again meanwhile
	w.epoch = 0
	o := w.order(1, []int32{1}, []int32{1})
	o.TopicID = commitlog.TopicID{2}
	o.IsNew = false
	require.NoError(t, w.apply(o)[0].Err)
	require.Zero(t, w.m.Partition("a", 0).Log().EndOffset())
	require.Equal(t, commitlog.TopicID{2}, w.m.Partition("a", 0).Log().TopicID())
	require.Len(t, w.dirs("-stray"), 1)
}

func TestH36_RecreatedWhileTheOldReplicaLives(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	require.NoError(t, w.produced(1, batch(5, 10)).Err)
	o := w.order(1, []int32{1}, []int32{1})
	o.TopicID = commitlog.TopicID{2}
	require.ErrorIs(t, w.apply(o)[0].Err, kerr.InconsistentTopicID)
	o.IsNew, o.LeaderEpoch = true, 0
	require.NoError(t, w.apply(o)[0].Err, "its StopReplica was lost, the topic is new")
	require.Zero(t, w.m.Partition("a", 0).Log().EndOffset())
	require.ErrorIs(t, w.fetched(func(r *FetchRequest) { r.Partitions[0].TopicID = commitlog.TopicID{1} })[0].Err, kerr.InconsistentTopicID)
}

func TestTopicIDIsTakenWithoutANewEpoch(t *testing.T) {
	w := newWorld(t)
	o := w.order(1, []int32{1}, []int32{1})
	o.TopicID = commitlog.TopicID{}
	require.NoError(t, w.apply(o)[0].Err)
	o.TopicID = commitlog.TopicID{4}
	require.NoError(t, w.apply(o)[0].Err)
	require.Equal(t, commitlog.TopicID{4}, w.m.Partition("a", 0).Log().TopicID())
	require.ErrorIs(t, w.apply(o)[0].Err, kerr.StaleControllerEpoch)
}

func TestFetcherLearnsTheTopicID(t *testing.T) {
	w := newWorld(t)
	o := w.order(2, []int32{1, 2}, []int32{1, 2})
	o.TopicID = commitlog.TopicID{}
	require.NoError(t, w.apply(o)[0].Err)
	o.TopicID = commitlog.TopicID{4}
	require.NoError(t, w.apply(o)[0].Err)
	require.Equal(t, commitlog.TopicID{4}, w.fetchers.added[1].TopicID)
	require.Equal(t, w.fetchers.added[0].LeaderEpoch, w.fetchers.added[1].LeaderEpoch)
}

func TestUncertainISRChangeIsSentAgain(t *testing.T) {
	w := newWorld(t)
	w.isr.lose = 2
	w.lead([]int32{1, 2}, []int32{1})
	w.follower(2, 0)
	require.Eventually(t, func() bool { return len(w.m.Partition("a", 0).Status().ISR) == 2 }, time.Minute, time.Millisecond)
	w.isr.mu.Lock()
	defer w.isr.mu.Unlock()
	require.Len(t, w.isr.asks, 3)
}

func TestH45_FailedDirectoryTakesItsReplicasOffline(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	wait := w.produce(-1, time.Minute, batch(1, 1))
	w.m.LogDirFailed(w.m.Partition("a", 0).Log().ParentDir())
	require.ErrorIs(t, (<-wait)[0].Err, kerr.KafkaStorageError)
	require.ErrorIs(t, w.produced(1, batch(1, 1)).Err, kerr.KafkaStorageError)
	require.ErrorIs(t, w.fetched(func(*FetchRequest) {})[0].Err, kerr.KafkaStorageError)
	require.ErrorIs(t, w.apply(w.order(1, []int32{1}, []int32{1}))[0].Err, kerr.KafkaStorageError)
	_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: EpochDuringDelete, Delete: true}}})
	require.ErrorIs(t, each[0].Err, kerr.KafkaStorageError)
	require.Equal(t, 1, w.m.Counts().Offline)
}

func TestBrokenInvariantStopsThePartition(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1}, []int32{1})
	p := w.m.Partition("a", 0)
	p.state.Lock()
	p.state.isr = []int32{2}
	p.state.Unlock()
	require.ErrorIs(t, w.produced(1, batch(1, 1)).Err, kerr.KafkaStorageError)
	require.ErrorIs(t, w.produced(1, batch(1, 1)).Err, kerr.KafkaStorageError)
	require.EqualValues(t, 1, w.logs.Get(topicA).EndOffset(), "nothing more is written")
}

func TestManyPartitionsChangeRolesTogether(t *testing.T) {
	w := newWorld(t)
	var roles []Role
	w.m.cfg.OnRoles = func(r []Role) { roles = append(roles, r...) }
	var ps []LeaderAndISRPartition
	for i := range int32(100) {
		o := w.order(1+i%2, []int32{1, 2}, []int32{1, 2})
		o.Partition, o.IsNew = i, true
		ps = append(ps, o)
	}
	for _, e := range w.apply(ps...) {
		require.NoError(t, e.Err)
	}
	require.Equal(t, 50, w.m.Counts().Leaders)
	require.Len(t, roles, 100)
}
