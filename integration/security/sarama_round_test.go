package security

import (
	"context"
	"testing"

	"github.com/IBM/sarama"
	shopify "github.com/Shopify/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/xdg-go/scram"

	"barnabas/integration/lane"
)

// scramOfSarama is how sarama is taught SCRAM, as its examples show it.
type scramOfSarama struct {
	scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (x *scramOfSarama) Begin(user, password, actingAs string) error {
	client, err := x.NewClient(user, password, actingAs)
	if err == nil {
		x.ClientConversation = client.NewConversation()
	}
	return err
}

// scramOf is sarama's SCRAM for a mechanism.
func scramOf(mechanism string) *scramOfSarama {
	if mechanism == "SCRAM-SHA-256" {
		return &scramOfSarama{HashGeneratorFcn: scram.SHA256}
	}
	return &scramOfSarama{HashGeneratorFcn: scram.SHA512}
}

// tokenOfSarama and tokenOfOldSarama are a bearer token as each of them wants it.
type (
	tokenOfSarama    string
	tokenOfOldSarama string
)

func (t tokenOfSarama) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
}

func (t tokenOfOldSarama) Token() (*shopify.AccessToken, error) {
	return &shopify.AccessToken{Token: string(t)}, nil
}

// reading counts records until there are enough; it handles the claims of both saramas.
type reading struct{ enough context.CancelFunc }

func (reading) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reading) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r reading) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for range wanted {
		select {
		case m, more := <-c.Messages():
			if !more {
				return nil
			}
			s.MarkMessage(m, "")
		case <-s.Context().Done():
			return nil
		}
	}
	r.enough()
	return nil
}

func ibmRound(t *testing.T, d door, topic string) {
	c := sarama.NewConfig()
	c.Version, c.Producer.Return.Successes, c.Consumer.Offsets.Initial = sarama.V2_8_0_0, true, sarama.OffsetOldest
	c.Net.TLS.Enable, c.Net.TLS.Config = d.tls != nil, d.tls
	c.Net.SASL.Enable, c.Net.SASL.User, c.Net.SASL.Password, c.Net.SASL.Mechanism = d.mechanism != "", d.user, d.secret, sarama.SASLMechanism(d.mechanism)
	c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return scramOf(d.mechanism) }
	c.Net.SASL.TokenProvider = tokenOfSarama(d.secret)
	admin, err := sarama.NewClusterAdmin([]string{d.addr}, c)
	require.NoError(t, err)
	defer admin.Close()
	require.NoError(t, admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	p, err := sarama.NewSyncProducer([]string{d.addr}, c)
	require.NoError(t, err)
	defer p.Close()
	for range wanted {
		_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("hello")})
		require.NoError(t, err)
	}
	g, err := sarama.NewConsumerGroup([]string{d.addr}, topic, c)
	require.NoError(t, err)
	defer g.Close()
	patience := lane.Patience(t)
	ctx, enough := context.WithCancel(patience)
	defer enough()
	for ctx.Err() == nil {
		require.NoError(t, g.Consume(ctx, []string{topic}, reading{enough}))
	}
	require.NoError(t, patience.Err(), "the records were read")
	groups, err := admin.ListConsumerGroups()
	require.NoError(t, err)
	assert.Contains(t, groups, topic)
}

// oldReading is reading for the older sarama, whose types are others.
type oldReading struct{ enough context.CancelFunc }

func (oldReading) Setup(shopify.ConsumerGroupSession) error   { return nil }
func (oldReading) Cleanup(shopify.ConsumerGroupSession) error { return nil }

func (r oldReading) ConsumeClaim(s shopify.ConsumerGroupSession, c shopify.ConsumerGroupClaim) error {
	for range wanted {
		select {
		case m, more := <-c.Messages():
			if !more {
				return nil
			}
			s.MarkMessage(m, "")
		case <-s.Context().Done():
			return nil
		}
	}
	r.enough()
	return nil
}

func shopifyRound(t *testing.T, d door, topic string) {
	c := shopify.NewConfig()
	c.Version, c.Producer.Return.Successes, c.Consumer.Offsets.Initial = shopify.V2_8_0_0, true, shopify.OffsetOldest
	c.Net.TLS.Enable, c.Net.TLS.Config = d.tls != nil, d.tls
	c.Net.SASL.Enable, c.Net.SASL.User, c.Net.SASL.Password, c.Net.SASL.Mechanism = d.mechanism != "", d.user, d.secret, shopify.SASLMechanism(d.mechanism)
	c.Net.SASL.SCRAMClientGeneratorFunc = func() shopify.SCRAMClient { return scramOf(d.mechanism) }
	c.Net.SASL.TokenProvider = tokenOfOldSarama(d.secret)
	admin, err := shopify.NewClusterAdmin([]string{d.addr}, c)
	require.NoError(t, err)
	defer admin.Close()
	require.NoError(t, admin.CreateTopic(topic, &shopify.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	p, err := shopify.NewSyncProducer([]string{d.addr}, c)
	require.NoError(t, err)
	defer p.Close()
	for range wanted {
		_, _, err := p.SendMessage(&shopify.ProducerMessage{Topic: topic, Value: shopify.StringEncoder("hello")})
		require.NoError(t, err)
	}
	g, err := shopify.NewConsumerGroup([]string{d.addr}, topic, c)
	require.NoError(t, err)
	defer g.Close()
	patience := lane.Patience(t)
	ctx, enough := context.WithCancel(patience)
	defer enough()
	for ctx.Err() == nil {
		require.NoError(t, g.Consume(ctx, []string{topic}, oldReading{enough}))
	}
	require.NoError(t, patience.Err(), "the records were read")
	groups, err := admin.ListConsumerGroups()
	require.NoError(t, err)
	assert.Contains(t, groups, topic)
}
