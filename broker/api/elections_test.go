package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"barnabas/broker/metadata"
)

// electionWorld is a controller that has elected a leader of one-0, which the
// metadata does not show yet.
func electionWorld(t *testing.T) *world {
	w := newPlayedWorld(t)
	w.t = t
	w.controller.do = func(req kmsg.Request) kmsg.Response {
		resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
		for _, t := range req.(*kmsg.ElectLeadersRequest).Topics {
			out := kmsg.NewElectLeadersResponseTopic()
			out.Topic = t.Topic
			for _, p := range t.Partitions {
				out.Partitions = append(out.Partitions, kmsg.ElectLeadersResponseTopicPartition{Partition: p})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	}
	return w
}

// led tells the broker who leads one-0; its replicas are 1 and 2, and broker 1
// is the only one alive.
func (w *world) led(leader int32) {
	update := kmsg.NewPtrUpdateMetadataRequest()
	update.Version, update.ControllerID = 8, 1
	b := kmsg.NewUpdateMetadataRequestLiveBroker()
	b.ID = 1
	update.LiveBrokers = append(update.LiveBrokers, b)
	topic := topicState("one", [16]byte{1}, [][]int32{{1, 2}})
	topic.PartitionStates[0].Leader = leader
	update.TopicStates = append(update.TopicStates, topic)
	require.NoError(w.t, w.d.applyMetadata(update))
}

func elect(kind int8, timeout time.Duration) []byte {
	req := kmsg.NewPtrElectLeadersRequest()
	req.Version, req.ElectionType, req.TimeoutMillis = 2, kind, int32(timeout.Milliseconds())
	req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "one", Partitions: []int32{0}}}
	return frame(req)
}

func electionCode(t *testing.T, o outcome) int16 {
	require.NoError(t, o.closed)
	return decodeAnswer(t, 43, 2, o.response).(*kmsg.ElectLeadersResponse).Topics[0].Partitions[0].ErrorCode
}

func TestAnElectionIsAnsweredWhenTheMetadataShowsTheLeader(t *testing.T) {
	for name, c := range map[string]struct {
		kind   int8
		before int32 // leader that the metadata shows at first
	}{
		"preferred":              {preferredElection, 2},
		"unclean":                {1, metadata.NoLeader},
		"unclean, of a dead one": {1, 2},
		"preferred, without any": {preferredElection, metadata.NoLeader},
	} {
		t.Run(name, func(t *testing.T) {
			w := electionWorld(t)
			w.led(c.before)
			answer := w.start("PLAINTEXT", elect(c.kind, time.Minute))
			select {
			case <-answer:
				t.Fatal("answered before the metadata shows it")
			default:
			}
			w.led(1)
			require.Zero(t, electionCode(t, await(t, answer)))
		})
	}
}

func TestAnElectionThatTheMetadataDoesNotShowTimesOut(t *testing.T) {
	w := electionWorld(t)
	w.led(2)
	require.Equal(t, kerr.RequestTimedOut.Code, electionCode(t, w.handle("PLAINTEXT", elect(preferredElection, 10*time.Millisecond))))
	require.Equal(t, kerr.RequestTimedOut.Code, electionCode(t, w.handle("PLAINTEXT", elect(preferredElection, 0))))
}

func TestAnElectionThatIsShownAlreadyIsAnsweredAtOnce(t *testing.T) {
	w := electionWorld(t)
	w.led(1)
	require.Zero(t, electionCode(t, w.handle("PLAINTEXT", elect(preferredElection, 0))))
}
