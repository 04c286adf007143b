package api

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/integration/lane"
)

// TestTopicsAreUsableWhenTheirCreationIsAnswered creates, and at once describes,
// writes and looks up, on the broker that answered; the other broker may be
// behind for a moment, and says so with errors that clients retry.
func TestTopicsAreUsableWhenTheirCreationIsAnswered(t *testing.T) {
	program := os.Getenv("BARNABAS_PROGRAM")
	lane.Need(t, program != "", "the built program, named by BARNABAS_PROGRAM")
	dir := t.TempDir()
	k := startCluster(t, dir, func(properties string) { start(t, dir, program, "broker", properties) })
	r := &recorder{t: t, kafka: k, cluster: recordedCluster{topicIDs: make(map[string][16]byte), doors: k.doors}, patience: time.Minute}
	r.prepare()
	for i := range 20 {
		name := fmt.Sprint("new-", i)
		create := kmsg.NewPtrCreateTopicsRequest()
		create.Version, create.TimeoutMillis = 7, 60_000
		create.Topics = append(create.Topics, createTopic(name, -1, -1, [][]int32{{1, 2}, {1, 2}}))
		created := r.ask("PLAINTEXT", create).(*kmsg.CreateTopicsResponse)
		require.Zero(t, created.Topics[0].ErrorCode)

		m := kmsg.NewPtrMetadataRequest()
		m.Version = 12
		ask := kmsg.NewMetadataRequestTopic()
		ask.Topic = &name
		m.Topics = append(m.Topics, ask)
		require.Zero(t, metadataTrouble(r.ask("PLAINTEXT", m).(*kmsg.MetadataResponse)))

		produce := produceOne(-1, name, 0, oneBatch(t, "v"))
		produce.TimeoutMillis = 60_000
		produced := r.ask("PLAINTEXT", produce).(*kmsg.ProduceResponse)
		require.Zero(t, produced.Topics[0].Partitions[0].ErrorCode)

		describe := kmsg.NewPtrDescribeConfigsRequest()
		describe.Version = 4
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, name
		describe.Resources = append(describe.Resources, resource)
		require.Zero(t, r.ask("PLAINTEXT", describe).(*kmsg.DescribeConfigsResponse).Resources[0].ErrorCode)

		elsewhere := metadataTrouble(r.ask("B2", m).(*kmsg.MetadataResponse))
		require.True(t, elsewhere == 0 || kerr.IsRetriable(kerr.ErrorForCode(elsewhere)), "error %d", elsewhere)
		require.Eventually(t, func() bool { return metadataTrouble(r.ask("B2", m).(*kmsg.MetadataResponse)) == 0 }, time.Minute, 5*time.Millisecond)

		if i%2 == 0 {
			remove := kmsg.NewPtrDeleteTopicsRequest()
			remove.Version, remove.TimeoutMillis, remove.TopicNames = 5, 60_000, []string{name}
			require.Zero(t, r.ask("PLAINTEXT", remove).(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode)
			require.Equal(t, kerr.UnknownTopicOrPartition.Code, metadataTrouble(r.ask("PLAINTEXT", m).(*kmsg.MetadataResponse)))
			// As in Kafka the name is taken until the controller has finished.
			require.Eventually(t, func() bool {
				again := r.ask("PLAINTEXT", create).(*kmsg.CreateTopicsResponse).Topics[0]
				require.Contains(t, []int16{0, kerr.TopicAlreadyExists.Code}, again.ErrorCode)
				return again.ErrorCode == 0 && again.TopicID != created.Topics[0].TopicID
			}, time.Minute, 5*time.Millisecond)
		}
	}
}

// metadataTrouble is the first error in an answer.
func metadataTrouble(resp *kmsg.MetadataResponse) int16 {
	for _, topic := range resp.Topics {
		if topic.ErrorCode != 0 {
			return topic.ErrorCode
		}
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 {
				return p.ErrorCode
			}
		}
	}
	return 0
}
