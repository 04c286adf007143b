package field

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// minimal fills in what a request cannot do without.
func minimal(t *testing.T, key int16, topic string) kmsg.Request {
	switch req := kmsg.RequestForKey(key).(type) {
	case *kmsg.ProduceRequest:
		return produceRequest(0, topic, 0, 1, batch{records: plainly(1, "x")}.encode(t))
	case *kmsg.FetchRequest:
		return fetchRequest(0, topic, 0, 0, 1<<20)
	case *kmsg.MetadataRequest:
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
		return req
	case *kmsg.ListOffsetsRequest:
		req.ReplicaID = -1
		req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Timestamp: latest, CurrentLeaderEpoch: -1, MaxNumOffsets: 1}}}}
		return req
	case *kmsg.OffsetForLeaderEpochRequest:
		req.ReplicaID = -2
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{CurrentLeaderEpoch: -1}}}}
		return req
	case *kmsg.DescribeConfigsRequest:
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"}}}
		return req
	case *kmsg.ApiVersionsRequest:
		req.ClientSoftwareName, req.ClientSoftwareVersion = "field", "1"
		return req
	default:
		return req
	}
}

// comparedFurther have minimal requests whose answers depend on what happened on the broker before.
var comparedFurther = map[string]bool{"InitProducerID": true, "ApiVersions": true, "DescribeCluster": true, "DescribeLogDirs": true, "Metadata": true}

// BR-011: every version that is advertised is served: its answer leaves nothing over, and says what Apache Kafka's says. In detail the answers are compared where they are made.
func TestEveryAdvertisedVersionIsServed(t *testing.T) {
	answers := map[string]map[string]string{"barnabas": {}, "apache": {}}
	eachBroker(t, func(t *testing.T, addr string) {
		topic := "versions"
		createTopic(t, addr, topic, 1, 1)
		stored(dial(t, addr), topic, 0, batch{records: plainly(1, "a")})
		name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
		for _, api := range ask[*kmsg.ApiVersionsResponse](dial(t, addr), kmsg.NewPtrApiVersionsRequest()).ApiKeys {
			if kmsg.RequestForKey(api.ApiKey) == nil || !ownAPIs[api.ApiKey] {
				continue
			}
			if api.ApiKey == 0 {
				api.MinVersion = 3 // the first that carries batches
			}
			for version := api.MinVersion; version <= api.MaxVersion; version++ {
				req := minimal(t, api.ApiKey, topic)
				req.SetVersion(version)
				c := dial(t, addr)
				resp, err := c.answer(req, c.send(req))
				what := fmt.Sprintf("%s v%d", kmsg.NameForKey(api.ApiKey), version)
				if assert.NoError(t, err, what) && !comparedFurther[kmsg.NameForKey(api.ApiKey)] {
					answers[name][what] = plain(fmt.Sprintf("%+v", resp))
				}
			}
		}
	})
	require.Greater(t, len(answers["barnabas"]), 50)
	for what, theirs := range answers["apache"] {
		if mine, served := answers["barnabas"][what]; served {
			assert.Equal(t, theirs, mine, what)
		}
	}
}

// ownAPIs are those of clients whose minimal request asks for nothing that needs a group or a transaction.
var ownAPIs = map[int16]bool{0: true, 1: true, 2: true, 3: true, 18: true, 19: true, 20: true, 21: true, 22: true, 23: true, 32: true, 33: true, 35: true, 37: true, 43: true, 44: true, 60: true}

var (
	addresses = regexp.MustCompile(`0x[0-9a-f]+`)
	times     = regexp.MustCompile(`(LogAppendTime):\d{10,}`)
)

// plain takes out what differs from run to run.
func plain(text string) string {
	return times.ReplaceAllString(addresses.ReplaceAllString(text, "P"), "$1:T")
}
