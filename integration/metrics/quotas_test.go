package metrics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Who has a limit is shown with what he took of it, how long he had to pause, and what he still may create.
func TestLimitsAreShownWithWhatWasTaken(t *testing.T) {
	c, brokers := start(t, 1, nil)
	adm := kadm.NewClient(dial(t, c))
	_, err := adm.AlterClientQuotas(call(t), []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: kadm.StringPtr("limited")}},
		// So little time that no question is answered in less.
		Ops: []kadm.AlterClientQuotaOp{{Key: "request_percentage", Value: 0.000001}, {Key: "controller_mutation_rate", Value: 0.01},
			{Key: "producer_byte_rate", Value: 1 << 20}},
	}})
	require.NoError(t, err)
	limited := kadm.NewClient(dial(t, c, kgo.ClientID("limited")))
	assert.EventuallyWithT(t, func(at *assert.CollectT) { // the broker learns of it from ZooKeeper
		_, err := limited.ListBrokers(call(t))
		require.NoError(at, err)
		s := brokers[0].scrape(at)
		require.Positive(at, s.value("kafka_server_quota_request_time", "clientId=limited,resource=Request"))
	}, patience, 50*time.Millisecond)
	_, err = limited.CreateTopic(call(t), 2, 1, nil, "counted")
	require.NoError(t, err)
	require.NoError(t, dial(t, c, kgo.ClientID("limited")).ProduceSync(call(t), &kgo.Record{Topic: "counted", Value: []byte("x")}).FirstErr())
	s := brokers[0].scrape(t)
	assert.InDelta(t, 1000, s.value("kafka_server_quota_throttle_time", "clientId=limited,resource=Request"), 0.5)
	assert.InDelta(t, -1.89, s.value("kafka_server_quota_tokens", "clientId=limited,resource=ControllerMutation"), 0.5, "two taken of what eleven seconds allow")
	assert.Positive(t, s.value("kafka_server_quota_mutation_rate", "clientId=limited,resource=ControllerMutation"))
	assert.Positive(t, s.value("kafka_server_quota_byte_rate", "clientId=limited,resource=Produce"))
	assert.Positive(t, s.value("kafka_server_request_exempt_request_time", ""))
}
