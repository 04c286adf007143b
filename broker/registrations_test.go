package broker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// A broker that restarts fast is never missed by who looks at the list of names alone: the epoch tells it.
func TestARestartedBrokerIsToldByTheEpochOfItsRegistration(t *testing.T) {
	srv := zktest.Embedded(t)
	connect := func() *zkstate.Client {
		zk, err := zkstate.Connect(zkstate.Config{Servers: srv.Addr(), SessionTimeout: 10 * time.Second, ConnectTimeout: 10 * time.Second, Log: logrus.NewEntry(logrus.New())})
		require.NoError(t, err)
		t.Cleanup(func() { zk.Close() })
		return zk
	}
	watcher, other := connect(), connect()
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, watcher.MakePersistentPaths(ctx))

	looks := make(chan struct{}, 100)
	r := newRegistrations(watcher)
	r.changed = func() { looks <- struct{}{} }
	events := watcher.Subscribe()
	defer events.Close()
	var following sync.WaitGroup
	following.Go(func() { r.follow(ctx, events.C()) })
	defer following.Wait()
	defer cancel()
	until := func(holds func() bool) {
		deadline := time.After(time.Minute)
		for !holds() {
			select {
			case <-looks:
			case <-deadline:
				t.Fatal("not seen")
			}
		}
	}

	require.Equal(t, noBrokerEpoch, r.EpochOf(7))
	register := func() int64 {
		result, err := other.One(ctx, zkstate.CreateEphemeral(zkstate.BrokerIDPath(7), nil))
		require.NoError(t, err)
		stat, err := other.One(ctx, zkstate.Exists(result.Path))
		require.NoError(t, err)
		return stat.Stat.Czxid
	}
	first := register()
	until(func() bool { return r.EpochOf(7) == first })
	_, err := other.One(ctx, zkstate.Delete(zkstate.BrokerIDPath(7), zkstate.AnyVersion))
	require.NoError(t, err)
	second := register()
	require.Greater(t, second, first)
	until(func() bool { return r.EpochOf(7) == second })
	_, err = other.One(ctx, zkstate.Delete(zkstate.BrokerIDPath(7), zkstate.AnyVersion))
	require.NoError(t, err)
	until(func() bool { return r.EpochOf(7) == noBrokerEpoch })
}
