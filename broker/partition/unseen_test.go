package partition

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"barnabas/broker/commitlog"
)

// What a broker has to see by itself, as its controller has not seen it gone: a session ended and another began while a controller was being elected.

// crash starts the broker anew without a clean shutdown.
func (w *world) crash() {
	w.t.Helper()
	w.close()
	require.NoError(w.t, os.Remove(filepath.Join(w.dir, ".kafka_cleanshutdown")))
	w.open()
}

func TestH20_WhoCrashedUnseenDoesNotLeadOnWhereOthersAreInSync(t *testing.T) {
	w := newWorld(t)
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(5, 10)).Err)
	w.crash()
	returns := 0
	w.m.cfg.OnReturn = func() { returns++ }
	again := w.order(1, []int32{1, 2}, []int32{1, 2})
	again.LeaderEpoch = 1
	require.ErrorIs(t, w.apply(again)[0].Err, kerr.KafkaStorageError)
	require.ErrorIs(t, w.produced(1, batch(1, 1)).Err, kerr.KafkaStorageError)

	// The controller elects somebody else, and says so.
	_, each := w.m.StopReplicas(StopReplicas{ControllerEpoch: 1, BrokerEpoch: -1, Partitions: []StopReplica{{Topic: "a", LeaderEpoch: 2}}})
	require.ErrorIs(t, each[0].Err, kerr.KafkaStorageError)
	require.Equal(t, 1, returns, "it asks for another order")
	require.NoError(t, w.apply(w.order(2, []int32{1, 2}, []int32{2}))[0].Err)
	require.EqualValues(t, 5, w.logs.Get(topicA).EndOffset(), "and follows with what it has")
	w.lead([]int32{1, 2}, []int32{1, 2})
}

func TestH20_WhoIsElectedAfterACrashLeads(t *testing.T) {
	for name, c := range map[string]struct {
		isr   []int32
		later int32
		clean bool
	}{
		"in a later epoch":       {isr: []int32{1, 2}, later: 1},
		"alone in the ISR":       {isr: []int32{1}},
		"after a clean shutdown": {isr: []int32{1, 2}, clean: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lead([]int32{1, 2}, c.isr)
			require.NoError(t, w.produced(1, batch(5, 10)).Err)
			if c.clean {
				w.close()
				w.open()
			} else {
				w.crash()
			}
			o := w.order(1, []int32{1, 2}, c.isr)
			o.LeaderEpoch = 1 + c.later
			require.NoError(t, w.apply(o)[0].Err)
		})
	}
}

func TestH34_WhoseReplicaWasMovedAwayUnheardLeadsNoMore(t *testing.T) {
	w := newWorld(t)
	var told []Role
	w.m.cfg.OnRoles = func(roles []Role) { told = append(told, roles...) }
	w.lead([]int32{1, 2}, []int32{1, 2})
	told = nil
	wait := w.produce(-1, time.Minute, batch(1, 1))
	metadata := func(epoch int32, replicas ...int32) {
		w.m.TakenAway([]Assigned{{TP: topicA, LeaderEpoch: epoch, Replicas: replicas}, {TP: commitlog.TopicPartition{Topic: "no"}, LeaderEpoch: epoch, Replicas: replicas}})
	}
	metadata(w.epoch, 2, 3)
	metadata(w.epoch+1, 2, 1)
	require.NotNil(t, w.m.Partition("a", 0), "older news, and news that do not concern it")
	require.Empty(t, told)

	metadata(w.epoch+1, 2, 3)
	require.ErrorIs(t, (<-wait)[0].Err, kerr.NotLeaderForPartition)
	require.Nil(t, w.m.Partition("a", 0))
	require.Equal(t, []Role{{TP: topicA, LeaderEpoch: w.epoch + 1, Stopped: true}}, told)
	require.EqualValues(t, 1, w.logs.Get(topicA).EndOffset(), "the log is kept")

	w.epoch++
	w.lead([]int32{1, 2}, []int32{1, 2})
	require.NoError(t, w.produced(1, batch(1, 1)).Err)
}
