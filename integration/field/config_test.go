package field

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/cluster"
)

// overrides tells the settings that a topic has of its own, and their values.
func overrides(c *conn, topic string) map[string]string {
	c.t.Helper()
	req := at(4, kmsg.NewPtrDescribeConfigsRequest())
	req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic}}
	got := ask[*kmsg.DescribeConfigsResponse](c, req).Resources[0]
	require.Zero(c.t, got.ErrorCode)
	own := map[string]string{}
	for _, config := range got.Configs {
		if config.Source == kmsg.ConfigSourceDynamicTopicConfig {
			own[config.Name] = value(config.Value)
		}
	}
	return own
}

// incrementally changes settings of a topic: name, operation, value by turns.
func incrementally(c *conn, topic string, validateOnly bool, changes ...kmsg.IncrementalAlterConfigsRequestResourceConfig) int16 {
	c.t.Helper()
	req := at(1, kmsg.NewPtrIncrementalAlterConfigsRequest())
	req.ValidateOnly = validateOnly
	req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic, Configs: changes}}
	return ask[*kmsg.IncrementalAlterConfigsResponse](c, req).Resources[0].ErrorCode
}

func change(name string, op kmsg.IncrementalAlterConfigOp, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	return kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Op: op, Value: &value}
}

// BR-025: the old call replaces, the new one edits, and a value that is the default of today is stored all the same.
func TestSettingsAreReplacedByTheOldCallAndEditedByTheNew(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		const set, remove, appendTo, subtract = kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpDelete, kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract
		c := dial(t, addr)
		topic := newTopic(t, addr, 1, "cleanup.policy", "compact", "retention.ms", "1000")
		is := func(want map[string]string, what string) {
			t.Helper()
			eventually(t, func() bool { return assert.ObjectsAreEqual(want, overrides(c, topic)) }, "%s: %v", what, want)
		}
		is(map[string]string{"cleanup.policy": "compact", "retention.ms": "1000"}, "as created")

		assert.Zero(t, incrementally(c, topic, false, change("segment.bytes", set, "1048576")))
		is(map[string]string{"cleanup.policy": "compact", "retention.ms": "1000", "segment.bytes": "1048576"}, "only its key")
		assert.Zero(t, incrementally(c, topic, false, change("cleanup.policy", appendTo, "delete")))
		is(map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "1000", "segment.bytes": "1048576"}, "appended")
		assert.Zero(t, incrementally(c, topic, false, change("cleanup.policy", subtract, "compact"), change("retention.ms", remove, "")))
		is(map[string]string{"cleanup.policy": "delete", "segment.bytes": "1048576"}, "today's default stays of its own")
		assert.Zero(t, incrementally(c, topic, true, change("segment.bytes", set, "2097152")))
		assert.Equal(t, kerr.InvalidRequest.Code, incrementally(c, topic, false, change("retention.ms", set, "1"), change("retention.ms", set, "2")), "a key twice")
		assert.Equal(t, kerr.InvalidConfig.Code, incrementally(c, topic, false, change("retention.ms", set, "soon")))
		assert.Equal(t, kerr.InvalidConfig.Code, incrementally(c, topic, false, change("no.such", set, "1")))
		assert.Equal(t, kerr.InvalidConfig.Code, incrementally(c, topic, false, change("retention.ms", appendTo, "1")), "no list")
		assert.Equal(t, kerr.UnknownTopicOrPartition.Code, incrementally(c, "never-was", false, change("retention.ms", set, "1")))
		is(map[string]string{"cleanup.policy": "delete", "segment.bytes": "1048576"}, "nothing of all that")

		req := at(1, kmsg.NewPtrAlterConfigsRequest())
		req.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic,
			Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "max.message.bytes", Value: kmsg.StringPtr("5000")}}}}
		assert.Zero(t, ask[*kmsg.AlterConfigsResponse](c, req).Resources[0].ErrorCode)
		is(map[string]string{"max.message.bytes": "5000"}, "the old call leaves nothing else")
		eventually(t, func() bool {
			return produce(c, 9, topic, 0, -1, batch{records: plainly(1, strings.Repeat("x", 6000))}.encode(t)).ErrorCode == kerr.MessageTooLarge.Code
		}, "it takes effect")
	})
}

// BR-058: a broker describes what it is asked for, of itself.
func TestDescribingSettings(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		describeOne := func(kind kmsg.ConfigResourceType, name string, keys ...string) kmsg.DescribeConfigsResponseResource {
			req := at(3, kmsg.NewPtrDescribeConfigsRequest())
			req.IncludeSynonyms = true
			req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name, ConfigNames: keys}}
			return ask[*kmsg.DescribeConfigsResponse](c, req).Resources[0]
		}
		assert.Equal(t, kerr.UnknownTopicOrPartition.Code, describeOne(kmsg.ConfigResourceTypeTopic, "never-was").ErrorCode)
		assert.Equal(t, kerr.InvalidTopicException.Code, describeOne(kmsg.ConfigResourceTypeTopic, "a b").ErrorCode)
		assert.Equal(t, kerr.InvalidRequest.Code, describeOne(kmsg.ConfigResourceTypeBroker, "2").ErrorCode, "another broker's")
		assert.Equal(t, kerr.InvalidRequest.Code, describeOne(kmsg.ConfigResourceTypeBroker, "one").ErrorCode)
		some := describeOne(kmsg.ConfigResourceTypeBroker, "1", "log.retention.ms", "no.such.key", "ssl.keystore.password")
		require.Zero(t, some.ErrorCode)
		got := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
		for _, config := range some.Configs {
			got[config.Name] = config
		}
		require.Len(t, got, 2, "only what was asked for, and exists")
		assert.True(t, got["ssl.keystore.password"].IsSensitive)
		assert.Nil(t, got["ssl.keystore.password"].Value)
		topic := newTopic(t, addr, 1, "retention.ms", "4000")
		one := describeOne(kmsg.ConfigResourceTypeTopic, topic, "retention.ms")
		require.Len(t, one.Configs, 1)
		assert.Equal(t, "4000", value(one.Configs[0].Value))
		require.NotEmpty(t, one.Configs[0].ConfigSynonyms)
		assert.Equal(t, kmsg.ConfigSourceDynamicTopicConfig, one.Configs[0].ConfigSynonyms[0].Source, "the strongest first")
		assert.Empty(t, describeOne(kmsg.ConfigResourceTypeBroker, "").Configs, "no cluster-wide default is set")
	})
}

// BR-058: the same keys, with the same values, sources and marks as Apache Kafka's, on a broker with the same settings.
func TestEveryBrokerSettingIsDescribedAsApacheKafkaDoes(t *testing.T) {
	needApache(t)
	all := func(k *cluster.Cluster) map[string]kmsg.DescribeConfigsResponseResourceConfig {
		req := at(4, kmsg.NewPtrDescribeConfigsRequest())
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1"}}
		got := map[string]kmsg.DescribeConfigsResponseResourceConfig{}
		for _, config := range ask[*kmsg.DescribeConfigsResponse](dial(t, k.Brokers[0].Addr), req).Resources[0].Configs {
			config.ConfigSynonyms = nil
			got[config.Name] = config
		}
		return got
	}
	mine, theirs := all(ours()), all(apache())
	ofOneRun := map[string]bool{"listeners": true, "log.dirs": true, "zookeeper.connect": true, "node.id": true}
	for name, want := range theirs {
		got, ok := mine[name]
		if assert.True(t, ok, "%s is missing", name) && !ofOneRun[name] {
			assert.Equal(t, want, got, name)
		}
	}
	for name := range mine {
		if !strings.HasPrefix(name, "barnabas.") {
			assert.Contains(t, theirs, name)
		}
	}
}
