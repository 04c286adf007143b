package field

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// creation is one topic of a CreateTopics request.
func creation(name string, partitions int32, factor int16) kmsg.CreateTopicsRequestTopic {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, factor
	return topic
}

func create(c *conn, version int16, validateOnly bool, topics ...kmsg.CreateTopicsRequestTopic) map[string]kmsg.CreateTopicsResponseTopic {
	c.t.Helper()
	req := at(version, kmsg.NewPtrCreateTopicsRequest())
	req.TimeoutMillis, req.ValidateOnly, req.Topics = int32(patience.Milliseconds()), validateOnly, topics
	got := map[string]kmsg.CreateTopicsResponseTopic{}
	for _, topic := range ask[*kmsg.CreateTopicsResponse](c, req).Topics {
		got[topic.Topic] = topic
	}
	return got
}

// BR-040: automation keys on the exact code.
func TestEveryWrongCreationHasItsOwnCode(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		there := newTopic(t, addr, 1)
		fresh := topicName(t)
		with := func(topic kmsg.CreateTopicsRequestTopic, name string, value *string) kmsg.CreateTopicsRequestTopic {
			topic.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: name, Value: value}}
			return topic
		}
		assigned := func(name string, partitions int32, replicas ...[]int32) kmsg.CreateTopicsRequestTopic {
			topic := creation(name, partitions, -1)
			for i, r := range replicas {
				topic.ReplicaAssignment = append(topic.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(i), Replicas: r})
			}
			return topic
		}
		gap := assigned(fresh, -1, []int32{1}, []int32{1})
		gap.ReplicaAssignment[1].Partition = 5
		for _, wrong := range []struct {
			topic kmsg.CreateTopicsRequestTopic
			code  *kerr.Error
			what  string
		}{
			{creation(there, 1, 1), kerr.TopicAlreadyExists, "a name that exists"},
			{creation(there, 1, 99), kerr.TopicAlreadyExists, "which wins over the replication factor"},
			{creation(there, 0, 0), kerr.TopicAlreadyExists, "and over everything"},
			{creation(fresh, 1, 0), kerr.InvalidReplicationFactor, "factor 0"},
			{creation(fresh, 1, -2), kerr.InvalidReplicationFactor, "factor -2"},
			{creation(fresh, 1, 5), kerr.InvalidReplicationFactor, "factor 5 on one broker"},
			{creation(fresh, 0, 1), kerr.InvalidPartitions, "no partitions"},
			{creation(fresh, -2, 1), kerr.InvalidPartitions, "-2 partitions"},
			{gap, kerr.InvalidReplicaAssignment, "an assignment with a gap"},
			{assigned(fresh, -1, []int32{1, 1}), kerr.InvalidReplicaAssignment, "a replica twice"},
			{assigned(fresh, -1, []int32{1}, []int32{1, 2}), kerr.InvalidReplicaAssignment, "of unequal length"},
			{assigned(fresh, 2, []int32{1}, []int32{1}), kerr.InvalidRequest, "count and assignment together"},
			{creation("", 1, 1), kerr.InvalidTopicException, "an empty name"},
			{creation(".", 1, 1), kerr.InvalidTopicException, "."},
			{creation("..", 1, 1), kerr.InvalidTopicException, ".."},
			{creation(strings.Repeat("x", 250), 1, 1), kerr.InvalidTopicException, "250 characters"},
			{creation("a b", 1, 1), kerr.InvalidTopicException, "a blank"},
			{creation("a/b", 1, 1), kerr.InvalidTopicException, "a slash"},
			{creation("../../etc", 1, 1), kerr.InvalidTopicException, "a way out"},
			{creation("<img src=x onerror=alert(1)>", 1, 1), kerr.InvalidTopicException, "a program"},
			{with(creation(fresh, 1, 1), "no.such.setting", kmsg.StringPtr("1")), kerr.InvalidConfig, "an unknown setting"},
			{with(creation(fresh, 1, 1), "retention.ms", kmsg.StringPtr("long")), kerr.InvalidConfig, "a value that is none"},
			{with(creation(fresh, 1, 1), "segment.ms", kmsg.StringPtr("0")), kerr.InvalidConfig, "a value out of range"},
			{with(creation(fresh, 1, 1), "retention.ms", nil), kerr.InvalidConfig, "no value"},
		} {
			for version := int16(2); version <= 7; version++ {
				for _, validateOnly := range []bool{true, false} {
					got := create(c, version, validateOnly, wrong.topic)[wrong.topic.Topic]
					assert.Equal(t, wrong.code.Code, got.ErrorCode, "%s, version %d, validate only %v: %v", wrong.what, version, validateOnly, value(got.ErrorMessage))
					if version >= 1 {
						assert.NotEmpty(t, value(got.ErrorMessage), wrong.what)
					}
				}
			}
		}
		both := create(c, 5, false, creation(fresh, 1, 1), creation(fresh, 1, 1), creation(fresh+"-good", 1, 1))
		assert.Equal(t, kerr.InvalidRequest.Code, both[fresh].ErrorCode, "a name twice in one request")
		assert.Zero(t, both[fresh+"-good"].ErrorCode, "the others are created")
		assert.Zero(t, create(c, 5, true, creation(fresh, 1, 1))[fresh].ErrorCode)
		assert.EqualValues(t, 3, describe(c, fresh).Topics[0].ErrorCode, "what was only validated was not created")

		dotted := strings.ReplaceAll(fresh, "-", ".")
		require.Zero(t, create(c, 5, false, creation(dotted, 1, 1))[dotted].ErrorCode)
		under := strings.ReplaceAll(fresh, "-", "_")
		assert.Equal(t, kerr.InvalidTopicException.Code, create(c, 5, false, creation(under, 1, 1))[under].ErrorCode, "names that differ by dot and underscore")
	})
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// BR-040: what is left to the broker.
func TestDefaultsOfANewTopic(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		name := topicName(t)
		got := create(c, 5, false, creation(name, -1, -1))[name]
		require.Zero(t, got.ErrorCode, value(got.ErrorMessage))
		assert.EqualValues(t, 1, got.NumPartitions)
		assert.EqualValues(t, 1, got.ReplicationFactor)
		assert.Greater(t, len(got.Configs), 20)
	})
}

// BR-035: what is asked of a topic right after its creation was answered, on the same connection, is answered.
func TestATopicIsUsableAtOnce(t *testing.T) {
	c := dial(t, ours().Brokers[0].Addr)
	b := batch{records: plainly(1, "first")}.encode(t)
	for i := range 100 {
		name := fmt.Sprintf("at-once-%d", i)
		require.Zero(t, create(c, 5, false, creation(name, 3, 1))[name].ErrorCode)
		topic := describe(c, name).Topics[0]
		require.Zero(t, topic.ErrorCode)
		require.Len(t, topic.Partitions, 3)
		for _, p := range topic.Partitions {
			require.Zero(t, p.ErrorCode)
			require.EqualValues(t, 1, p.Leader)
		}
		require.Zero(t, produce(c, 9, name, int32(i%3), -1, b).ErrorCode)
		require.EqualValues(t, 1, listOffset(c, 5, name, int32(i%3), latest).Offset)
		req := at(3, kmsg.NewPtrDescribeConfigsRequest())
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: name}}
		require.Zero(t, ask[*kmsg.DescribeConfigsResponse](c, req).Resources[0].ErrorCode)
		if i%2 == 0 {
			require.Zero(t, deleteTopic(t, c, name))
			again := create(c, 5, false, creation(name, 1, 1))[name]
			require.Contains(t, []int16{0, kerr.TopicAlreadyExists.Code}, again.ErrorCode)
		}
	}
}

// BR-035: who may bring a topic about by asking for it.
func TestOnlyThoseWhoAllowItCreateATopicByAsking(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		asked := func(version int16, allow bool, name string) kmsg.MetadataResponseTopic {
			req := at(version, kmsg.NewPtrMetadataRequest())
			req.AllowAutoTopicCreation = allow
			req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
			return ask[*kmsg.MetadataResponse](c, req).Topics[0]
		}
		for _, version := range []int16{4, 8, 9, 12} {
			name := topicName(t)
			for range 3 {
				assert.Equal(t, kerr.UnknownTopicOrPartition.Code, asked(version, false, name).ErrorCode, "version %d", version)
			}
		}
		for _, version := range []int16{0, 1, 3, 4, 9, 12} {
			name := topicName(t)
			assert.Contains(t, []int16{0, kerr.LeaderNotAvailable.Code, kerr.UnknownTopicOrPartition.Code}, asked(version, true, name).ErrorCode)
			eventually(t, func() bool {
				got := asked(version, true, name)
				return got.ErrorCode == 0 && got.Partitions[0].Leader == 1
			}, "%s comes to be at version %d", name, version)
		}
		assert.Equal(t, kerr.InvalidTopicException.Code, asked(4, true, "not a name").ErrorCode)
		assert.Equal(t, kerr.UnknownTopicOrPartition.Code, produce(c, 9, topicName(t), 0, -1, batch{records: plainly(1, "x")}.encode(t)).ErrorCode, "writing creates nothing")
	})
}

// BR-013: 249 characters are a name like any other.
func TestTheLongestNameLivesAndDies(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		name := strings.Repeat("a", 249)
		for range 2 {
			eventually(t, func() bool { return create(c, 5, false, creation(name, 12, 1))[name].ErrorCode == 0 }, "it is created")
			awaitLeaders(t, c, name, 12)
			assert.Zero(t, stored(c, name, 11, batch{records: plainly(1, "x")}))
			require.Zero(t, deleteTopic(t, c, name))
		}
		dirs := at(4, kmsg.NewPtrDescribeLogDirsRequest())
		for _, dir := range ask[*kmsg.DescribeLogDirsResponse](c, dirs).Dirs {
			assert.Zero(t, dir.ErrorCode, "the directory stays online")
		}
	})
}

// BR-031: deleting twice, and what does not exist.
func TestDeletingWhatIsGone(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		c := dial(t, addr)
		name := newTopic(t, addr, 1)
		assert.Zero(t, deleteTopic(t, c, name))
		assert.Equal(t, kerr.UnknownTopicOrPartition.Code, deleteTopic(t, c, name))
		assert.Equal(t, kerr.UnknownTopicOrPartition.Code, deleteTopic(t, c, "never-was"))
		req := at(6, kmsg.NewPtrDeleteTopicsRequest())
		req.TimeoutMillis = 1000
		req.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: [16]byte{9}}}
		assert.Equal(t, kerr.UnknownTopicID.Code, ask[*kmsg.DeleteTopicsResponse](c, req).Topics[0].ErrorCode)
	})
}
