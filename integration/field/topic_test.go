package field

import (
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var topicNumber atomic.Int64

// newTopic creates a topic of this test alone and waits until each partition takes records.
func newTopic(t testing.TB, addr string, partitions int32, configs ...string) string {
	t.Helper()
	name := topicName(t)
	createTopic(t, addr, name, partitions, 1, configs...)
	return name
}

func topicName(t testing.TB) string {
	plain := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	name := strings.Map(plain, t.Name())
	return name[:min(len(name), 100)] + "-" + strconv.FormatInt(topicNumber.Add(1), 10)
}

// createTopic creates a topic; configs are name, value, name, value.
func createTopic(t testing.TB, addr, name string, partitions int32, factor int16, configs ...string) {
	t.Helper()
	c := dialController(t, addr)
	req := at(5, kmsg.NewPtrCreateTopicsRequest())
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, factor
	for i := 0; i < len(configs); i += 2 {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = configs[i], &configs[i+1]
		topic.Configs = append(topic.Configs, config)
	}
	req.Topics = append(req.Topics, topic)
	req.TimeoutMillis = int32(patience.Milliseconds())
	for _, made := range ask[*kmsg.CreateTopicsResponse](c, req).Topics {
		require.NoError(t, kerr.ErrorForCode(made.ErrorCode), "%s", made.Topic)
	}
	awaitLeaders(t, c, name, partitions)
}

// dialController connects to the broker that is controller, as one of the brokers knows it.
func dialController(t testing.TB, addr string) *conn {
	t.Helper()
	c := dial(t, addr)
	controller := ""
	eventually(t, func() bool {
		known := describe(c)
		for _, b := range known.Brokers {
			if b.NodeID == known.ControllerID {
				controller = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
				return true
			}
		}
		return false
	}, "there is a controller")
	return dial(t, controller)
}

func awaitLeaders(t testing.TB, c *conn, name string, partitions int32) {
	t.Helper()
	eventually(t, func() bool {
		led := int32(0)
		for _, topic := range describe(c, name).Topics {
			for _, p := range topic.Partitions {
				if p.ErrorCode == 0 && p.Leader >= 0 {
					led++
				}
			}
		}
		return led == partitions
	}, "every partition of %s has a leader", name)
}

// describe asks for the metadata of topics, at version 4, without creating any.
func describe(c *conn, names ...string) *kmsg.MetadataResponse {
	c.t.Helper()
	req := at(4, kmsg.NewPtrMetadataRequest())
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	return ask[*kmsg.MetadataResponse](c, req)
}

func deleteTopic(t testing.TB, c *conn, name string) int16 {
	t.Helper()
	req := at(4, kmsg.NewPtrDeleteTopicsRequest())
	req.TopicNames = []string{name}
	req.TimeoutMillis = int32(patience.Milliseconds())
	return ask[*kmsg.DeleteTopicsResponse](c, req).Topics[0].ErrorCode
}

// eventually waits for a condition that the brokers bring about in their own time.
func eventually(t testing.TB, condition func() bool, what string, args ...any) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: "+what, append([]any{patience}, args...)...)
		}
		<-tick.C
	}
}

func allTopics(c *conn) *kmsg.MetadataResponse {
	c.t.Helper()
	req := at(4, kmsg.NewPtrMetadataRequest())
	req.Topics = nil
	return ask[*kmsg.MetadataResponse](c, req)
}

func assignment(partition int32, replicas ...int32) kmsg.CreateTopicsRequestTopicReplicaAssignment {
	return kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: partition, Replicas: replicas}
}
