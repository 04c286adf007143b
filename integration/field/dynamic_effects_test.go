package field

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/zkstate"
	"barnabas/zkstate/zktest"
)

// setOnBroker sets a dynamic setting of a broker, or of all ("").
func setOnBroker(t *testing.T, addr, broker, name, to string) {
	t.Helper()
	req := at(1, kmsg.NewPtrIncrementalAlterConfigsRequest())
	req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: broker,
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{change(name, kmsg.IncrementalAlterConfigOpSet, to)}}}
	got := ask[*kmsg.IncrementalAlterConfigsResponse](dial(t, addr), req).Resources[0]
	require.Zero(t, got.ErrorCode, value(got.ErrorMessage))
}

// BR-055: an address that is set while the broker runs is published at once, and by its next life.
func TestAnotherAddressIsPublishedAtOnceAndAfterARestart(t *testing.T) {
	for name, program := range map[string]cluster.Program{"barnabas": cluster.Barnabas, "apache": cluster.Kafka(apacheVersion)} {
		t.Run(name, func(t *testing.T) {
			if name == "apache" {
				needApache(t)
			}
			b := cluster.StartProgram(t, program, zktest.Embedded(t).Addr(), 1, nil, func(int) map[string]string { return nil }).Brokers[0]
			_, port, err := net.SplitHostPort(b.Addr)
			require.NoError(t, err)
			awaitPublished := func(when string) {
				c := dial(t, b.Addr)
				eventually(t, func() bool { return describe(c).Brokers[0].Host == "localhost" }, "the other address is published %s", when)
			}
			setOnBroker(t, b.Addr, "1", "advertised.listeners", "PLAINTEXT://localhost:"+port)
			awaitPublished("at once")
			b.Stop(t)
			b.Start(t)
			b.WaitReady(t)
			awaitPublished("after a restart")
		})
	}
}

// What is set for all brokers of unclean elections counts for a controller that has just started, too.
func TestUncleanElectionsForAllOutliveTheController(t *testing.T) {
	zookeeper := zktest.Embedded(t).Addr()
	c := cluster.Start(t, zookeeper, 2, map[string]string{"controlled.shutdown.enable": "false", "zookeeper.session.timeout.ms": "3000"})
	first, second := c.Brokers[0], c.Brokers[1]
	setOnBroker(t, first.Addr, "", "unclean.leader.election.enable", "true")
	createTopic(t, first.Addr, "unclean", 1, 2)
	c.WaitWhole(t, "unclean", 1, 2)
	second.Stop(t)
	known := dial(t, first.Addr)
	eventually(t, func() bool {
		p := describe(known, "unclean").Topics[0].Partitions
		return len(p) == 1 && p[0].Leader == 1 && len(p[0].ISR) == 1
	}, "the first leads alone")
	first.Stop(t)
	z := openTree(t, zookeeper)
	for _, told := range z.children(zkstate.ConfigChangesPath) { // as after a quarter of an hour
		_, err := z.one(zkstate.Delete(zkstate.ConfigChangesPath+"/"+told, zkstate.AnyVersion))
		require.NoError(t, err)
	}
	second.Start(t)
	second.WaitReady(t)
	awaitLeaders(t, dial(t, second.Addr), "unclean", 1)
}
