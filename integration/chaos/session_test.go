package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
)

const (
	session = sessionMs * time.Millisecond
	soon    = 2 * time.Minute // longer than anything takes that a cluster does by itself, also on a busy machine
)

func (w *world) load(t testing.TB) *history.Load {
	t.Helper()
	return history.Start(t, history.Config{Seeds: w.Seeds(), Topic: loaded, Producers: 2, PerSecond: 1000, MaxValue: 120})
}

// judge ends a load and judges everything.
func (w *world) judge(t testing.TB, load *history.Load) {
	t.Helper()
	w.WaitWhole(t, loaded, w.partitions, replicas)
	assert.Empty(t, load.Finish(t, history.Promise{Idempotent: true}))
	assert.Empty(t, load.Refused())
	w.compareReplicas(t)
}

// controllerOf is the controller as a broker knows it, -1 if it knows none or does not answer.
func controllerOf(t testing.TB, b *cluster.Broker) int32 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	known, err := kadm.NewClient(client).BrokerMetadata(ctx)
	if err != nil {
		return -1
	}
	return known.Controller
}

// controller waits until the first broker knows of one.
func (w *world) controller(t testing.TB) *cluster.Broker {
	t.Helper()
	id := int32(-1)
	require.Eventually(t, func() bool { id = controllerOf(t, w.Brokers[0]); return id > 0 }, soon, 20*time.Millisecond, "there is a controller")
	return w.Brokers[id-1]
}

func (w *world) other(b *cluster.Broker) *cluster.Broker { return w.Brokers[b.ID%len(w.Brokers)] }

// A controller sleeps for longer than its session. Another takes over; the one that wakes does not act on what it remembers, registers anew and follows.
func TestH23_AControllerThatSleptIsAControllerNoMore(t *testing.T) {
	w := newWorld(t, 3, 6, 1)
	load := w.load(t)
	for range 3 {
		load.Progress(t, perRound, "under the controller of now")
		old := w.controller(t)
		old.Pause(t)
		require.Eventually(t, func() bool {
			c := controllerOf(t, w.other(old))
			return c > 0 && int(c) != old.ID
		}, soon, 20*time.Millisecond, "another controller")
		load.Progress(t, perRound, "under the next controller")
		old.Resume(t)
		require.Eventually(t, func() bool {
			c := controllerOf(t, old)
			return c > 0 && int(c) != old.ID && c == controllerOf(t, w.other(old))
		}, soon, 20*time.Millisecond, "it knows who is the controller now")
		w.WaitWhole(t, loaded, w.partitions, replicas)
	}
	w.judge(t, load)
}

// ZooKeeper is away for many sessions' time. What is in sync goes on being written; when ZooKeeper is back, brokers are registered and a controller works again without anybody's help.
func TestH29_BrokersOutliveZooKeeper(t *testing.T) {
	w := newWorld(t, 3, 6, 2)
	load := w.load(t)
	load.Progress(t, perRound, "with ZooKeeper")
	w.zk.Stop()
	away := time.Now()
	for time.Since(away) < 8*session {
		load.Progress(t, perRound, "without ZooKeeper")
	}
	w.zk.Start()
	createEventually(t, w.Seeds(), "after")
	w.WaitWhole(t, "after", 1, replicas)
	w.judge(t, load)
}

func createEventually(t testing.TB, seeds []string, topic string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := kadm.NewClient(client).CreateTopic(ctx, 1, replicas, nil, topic)
		return err == nil
	}, soon, 100*time.Millisecond, "a topic can be created")
}

// Sessions are lost faster than a cluster comes to rest: brokers sleep in turn, each for a little longer than its session, the next before the last has settled.
func TestH31_SessionsThatEndInALoopWedgeNobody(t *testing.T) {
	w := newWorld(t, 3, 6, 3)
	load := w.load(t)
	for i := range 9 {
		b := w.Brokers[i%3]
		b.Pause(t)
		w.pause(session, 2*session)
		b.Resume(t)
		w.pause(10*time.Millisecond, 300*time.Millisecond)
	}
	load.Progress(t, perRound, "after the storm")
	w.judge(t, load)
}
