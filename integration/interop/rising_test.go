package interop

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"barnabas/integration/cluster"
	"barnabas/integration/history"
	"barnabas/integration/lane"
)

// relocate moves the one partition of each internal topic to some brokers, of which the first is to lead.
func (m *mixed) relocate(t *testing.T, to ...int32) {
	t.Helper()
	var order kadm.AlterPartitionAssignmentsReq
	var both kadm.TopicsSet
	for _, topic := range []string{"__consumer_offsets", "__transaction_state"} {
		order.Assign(topic, 0, to)
		both.Add(topic, 0)
	}
	ordered, err := m.admin.AlterPartitionAssignments(lane.Patience(t), order)
	require.NoError(t, err)
	require.NoError(t, ordered.Error())
	seen := ""
	moved := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, _ = m.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, both)
		known, err := m.admin.Metadata(ctx, "__consumer_offsets", "__transaction_state")
		seen = fmt.Sprint(err)
		for _, topic := range known.Topics {
			p := topic.Partitions[0]
			seen += fmt.Sprintf("; %s: %v led by %d, in sync %v", topic.Topic, p.Replicas, p.Leader, p.ISR)
			slices.Sort(p.ISR)
			if p.Leader != to[0] || !slices.Equal(p.Replicas, to) || !slices.Equal(p.ISR, slices.Sorted(slices.Values(to))) {
				return false
			}
		}
		return err == nil && len(known.Topics) == 2
	}
	for deadline := time.Now().Add(patience); !moved(); time.Sleep(100 * time.Millisecond) { // the pace of looking
		require.True(t, time.Now().Before(deadline), "to %v: %s", to, seen)
	}
}

// What an upgrade brings with it, while an application is in its transactions: the topics of both coordinators are reassigned from Apache Kafka's brokers to ours and away again, and the brokers
// are restarted one by one with a later inter.broker.protocol.version, so that for a while some write ISR changes to ZooKeeper and some ask the controller for them.
func TestCoordinatorsMoveHouseAndTheProtocolRisesUnderTransactions(t *testing.T) {
	t.Parallel()
	kafka := cluster.Kafka("3.9.1")
	m := startMix(t, "2.4", []cluster.Program{kafka, cluster.Barnabas, kafka}, []string{"3.9.1"}, longSession)
	m.create(t, "moved", mixedPartitions)
	m.create(t, copiedTopic, mixedPartitions)
	load := history.Start(t, history.Config{Seeds: m.Seeds(), Topic: "moved", Producers: 2, PerSecond: 300, MaxValue: 100})
	copies := startCopying(t, m.Cluster, "moved")
	copies.progress("at first")
	for _, to := range [][]int32{{1, 3}, {2, 3}, {3, 1}, {2, 1, 3}} {
		m.relocate(t, to...)
		copies.progress(fmt.Sprint("by coordinators at ", to))
	}
	versions := []string{"3.9"}
	if allMixes() {
		versions = []string{"2.8", "3.9"}
	}
	for _, version := range versions {
		for _, b := range m.Brokers {
			b.Set("inter.broker.protocol.version", version)
			b.Stop(t)
			b.Start(t)
			b.WaitReady(t)
			for topic, partitions := range map[string]int{"moved": mixedPartitions, copiedTopic: mixedPartitions, "__consumer_offsets": 1, "__transaction_state": 1} {
				m.WaitWhole(t, topic, partitions, 3)
			}
			copies.progress(fmt.Sprintf("with broker %d at %s", b.ID, version))
		}
	}
	m.relocate(t, 3, 2)
	copies.progress("by coordinators that have moved again")
	m.finish(t, load, "moved", copies)
}
