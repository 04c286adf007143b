package cluster

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"barnabas/integration/lane"
	"barnabas/zkstate"
)

// Registry looks from outside at what ZooKeeper knows of brokers.
type Registry struct{ zk *zkstate.Client }

// OpenRegistry looks into a ZooKeeper until the test ends.
func OpenRegistry(t testing.TB, zookeeper string) *Registry {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	zk, err := zkstate.Connect(zkstate.Config{Servers: zookeeper, SessionTimeout: time.Minute, Log: logrus.NewEntry(quiet)})
	require.NoError(t, err)
	t.Cleanup(zk.Close)
	return &Registry{zk}
}

// Epoch is the broker epoch of a registration, 0 when there is none.
func (r *Registry) Epoch(t testing.TB, b *Broker) int64 {
	t.Helper()
	node, err := r.zk.One(lane.Patience(t), zkstate.Exists(zkstate.BrokerIDPath(int32(b.ID))))
	if err != nil {
		require.ErrorIs(t, err, zkstate.ErrNoNode)
		return 0
	}
	return node.Stat.Czxid
}

// AwaitGone waits until a broker has no registration.
func (r *Registry) AwaitGone(t testing.TB, b *Broker) {
	t.Helper()
	for ctx := lane.Patience(t); r.Epoch(t, b) != 0; time.Sleep(10 * time.Millisecond) { // the pace of looking
		require.NoError(t, ctx.Err(), "the registration of broker %d", b.ID)
	}
}

// ISR are the replicas in sync of a partition, in order.
func (r *Registry) ISR(t testing.TB, topic string, partition int32) []int32 {
	t.Helper()
	node, err := r.zk.One(lane.Patience(t), zkstate.Get(zkstate.PartitionStatePath(topic, partition)))
	require.NoError(t, err)
	state, err := zkstate.DecodePartitionState(node.Data)
	require.NoError(t, err)
	slices.Sort(state.ISR)
	return state.ISR
}
