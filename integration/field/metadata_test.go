package field

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// BR-014: no list and an empty list are two different questions, and at version 0 the other way round.
func TestMetadataKnowsNoListFromAnEmptyOne(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		name := newTopic(t, addr, 1)
		c := dial(t, addr)
		names := func(version int16, topics []kmsg.MetadataRequestTopic) []string {
			req := at(version, kmsg.NewPtrMetadataRequest())
			req.Topics = topics
			var all []string
			for _, topic := range ask[*kmsg.MetadataResponse](c, req).Topics {
				all = append(all, *topic.Topic)
			}
			return all
		}
		none := []kmsg.MetadataRequestTopic{}
		assert.Contains(t, names(0, none), name, "at version 0, an empty list is every topic")
		for version := int16(1); version <= 12; version++ {
			assert.Empty(t, names(version, none), "version %d", version)
			assert.Contains(t, names(version, nil), name, "version %d", version)
		}
	})
}

// BR-014: topics by id.
func TestMetadataByTopicID(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		name := newTopic(t, addr, 1)
		c := dial(t, addr)
		byName := at(12, kmsg.NewPtrMetadataRequest())
		byName.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		known := ask[*kmsg.MetadataResponse](c, byName).Topics[0]
		require.NotZero(t, known.TopicID)

		ask1 := func(version int16, topic kmsg.MetadataRequestTopic) kmsg.MetadataResponseTopic {
			req := at(version, kmsg.NewPtrMetadataRequest())
			req.Topics = []kmsg.MetadataRequestTopic{topic}
			return ask[*kmsg.MetadataResponse](c, req).Topics[0]
		}
		for _, version := range []int16{12} {
			found := ask1(version, kmsg.MetadataRequestTopic{TopicID: known.TopicID})
			assert.Zero(t, found.ErrorCode)
			require.NotNil(t, found.Topic)
			assert.Equal(t, name, *found.Topic)

			unknown := ask1(version, kmsg.MetadataRequestTopic{TopicID: [16]byte{1, 2, 3}})
			assert.Equal(t, kerr.UnknownTopicID.Code, unknown.ErrorCode)
			assert.Nil(t, unknown.Topic)
			assert.Equal(t, [16]byte{1, 2, 3}, unknown.TopicID)
		}
	})
}

// BR-014: the lists of other APIs.
func TestOtherListsKnowNoneFromEmpty(t *testing.T) {
	eachBroker(t, func(t *testing.T, addr string) {
		name := newTopic(t, addr, 1)
		c := dial(t, addr)

		dirs := at(2, kmsg.NewPtrDescribeLogDirsRequest())
		count := func() int {
			n := 0
			for _, dir := range ask[*kmsg.DescribeLogDirsResponse](c, dirs).Dirs {
				n += len(dir.Topics)
			}
			return n
		}
		dirs.Topics = nil
		assert.Positive(t, count(), "no list: every log")
		dirs.Topics = []kmsg.DescribeLogDirsRequestTopic{}
		assert.Zero(t, count(), "an empty list: none")

		for _, keys := range []struct {
			asked []string
			more  bool
		}{{nil, true}, {[]string{}, false}, {[]string{"retention.ms"}, false}} {
			req := at(3, kmsg.NewPtrDescribeConfigsRequest())
			req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: name, ConfigNames: keys.asked}}
			got := ask[*kmsg.DescribeConfigsResponse](c, req).Resources[0]
			require.Zero(t, got.ErrorCode)
			if keys.more || len(keys.asked) == 0 {
				assert.Greater(t, len(got.Configs), 20, "%v: every setting", keys.asked)
			} else {
				assert.Len(t, got.Configs, len(keys.asked))
			}
		}

		assert.Empty(t, ask[*kmsg.DeleteRecordsResponse](c, at(1, kmsg.NewPtrDeleteRecordsRequest())).Topics)
	})
}
