package ecosystem

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// judged is the broker that all this runs on: Barnabas, or with BARNABAS_ECOSYSTEM_ON=kafka Apache Kafka's own, to tell what is whose.
func judged() cluster.Program {
	if os.Getenv("BARNABAS_ECOSYSTEM_ON") == "kafka" {
		return cluster.Kafka("3.9.1")
	}
	return cluster.Barnabas
}

// threeBrokers outlive any one of them.
func threeBrokers(t *testing.T) *cluster.Cluster {
	return cluster.StartProgram(t, judged(), zktest.Embedded(t).Addr(), 3, map[string]string{
		"zookeeper.session.timeout.ms": "3000", "zookeeper.connection.timeout.ms": "60000", "group.initial.rebalance.delay.ms": "0", "min.insync.replicas": "2", "auto.create.topics.enable": "false",
		"offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "5", "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
		"log.cleaner.backoff.ms": "500",
	}, func(int) map[string]string { return nil })
}

// client is one that goes on whatever becomes of brokers.
func client(t *testing.T, c *cluster.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Seeds()...), kgo.MetadataMinAge(100 * time.Millisecond), kgo.MetadataMaxAge(time.Second), kgo.AlwaysRetryEOF(), kgo.UnknownTopicRetries(-1)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// create makes topics with as many replicas as the cluster gives by default.
func create(t *testing.T, admin *kadm.Client, partitions int32, settings map[string]string, topics ...string) {
	t.Helper()
	configs := map[string]*string{}
	for name, value := range settings {
		configs[name] = &value
	}
	made, err := admin.CreateTopics(lane.Patience(t), partitions, -1, configs, topics...)
	require.NoError(t, err)
	require.NoError(t, made.Error())
}

// settingsOf are those that a topic itself was given.
func settingsOf(t *testing.T, admin *kadm.Client, topic string) map[string]string {
	t.Helper()
	described, err := admin.DescribeTopicConfigs(lane.Patience(t), topic)
	require.NoError(t, err)
	of, err := described.On(topic, nil)
	require.NoError(t, err)
	require.NoError(t, of.Err)
	own := map[string]string{}
	for _, config := range of.Configs {
		if config.Source == kmsg.ConfigSourceDynamicTopicConfig {
			own[config.Key] = config.MaybeValue()
		}
	}
	return own
}
