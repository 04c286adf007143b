package security

import (
	"context"
	"crypto/tls"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	kafkasasl "github.com/segmentio/kafka-go/sasl"
	kafkaplain "github.com/segmentio/kafka-go/sasl/plain"
	kafkascram "github.com/segmentio/kafka-go/sasl/scram"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	franzscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"barnabas/integration/lane"
	"barnabas/ssl"
)

// door is a way in: a listener and what a client proves there.
type door struct {
	addr, mechanism, user, secret string      // of OAUTHBEARER the secret is a token
	tls                           *tls.Config // nil: not encrypted
}

const wanted = 3 // records of each round

// rounds takes each library through each door: it makes a topic, writes to it, reads as a member of a group and asks for
// the groups. Those that start slowly take all doors only with BARNABAS_LONG.
func rounds(t *testing.T, b broker) {
	t.Parallel()
	settings := with(byCertificate(t, "PEM"), map[string]string{"ssl.endpoint.identification.algorithm": "https"})
	encryption, err := ssl.Client(func(name string) string { return settings[name] })
	require.NoError(t, err)
	libraries := []struct {
		name  string
		round func(t *testing.T, d door, topic string)
		slow  bool // each round is a program of its own
	}{
		{"franz-go", franzRound, false}, {"kafka-go", kafkaGoRound, false}, {"sarama", ibmRound, false}, {"old sarama", shopifyRound, false},
		{"kafka-python", pythonRound("kafka"), true}, {"confluent-kafka", pythonRound("confluent_kafka"), true},
	}
	for _, library := range libraries {
		t.Run(library.name, func(t *testing.T) {
			t.Parallel()
			for _, d := range []struct {
				listener, mechanism, user, secret string
				always                            bool
			}{
				{"PEM", "", "", "", true}, {"SASL_SSL", "PLAIN", "alice", "alice-secret", false}, {"SASL_SSL", "SCRAM-SHA-256", "carol", "carol-secret", false},
				{"SASL_SSL", "SCRAM-SHA-512", "carol", "carol-secret", true}, {"SASL_PLAINTEXT", "SCRAM-SHA-512", "carol", "carol-secret", false},
			} {
				if library.slow && !d.always && !long() {
					continue
				}
				t.Run(d.listener+" "+d.mechanism, func(t *testing.T) {
					in := door{addr: b.addrs[d.listener], mechanism: d.mechanism, user: d.user, secret: d.secret}
					if d.listener != "SASL_PLAINTEXT" {
						in.tls = encryption(in.addr)
					}
					library.round(t, in, strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(library.name+"-"+d.listener+"-"+d.mechanism)))
				})
			}
		})
	}
}

func franzRound(t *testing.T, d door, topic string) {
	var mechanism sasl.Mechanism
	switch d.mechanism {
	case "PLAIN":
		mechanism = plain.Auth{User: d.user, Pass: d.secret}.AsMechanism()
	case "SCRAM-SHA-256":
		mechanism = franzscram.Auth{User: d.user, Pass: d.secret}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		mechanism = franzscram.Auth{User: d.user, Pass: d.secret}.AsSha512Mechanism()
	case "OAUTHBEARER":
		mechanism = oauth.Auth{Token: d.secret}.AsMechanism()
	}
	options := []kgo.Opt{kgo.SeedBrokers(d.addr), kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
	if mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	if d.tls != nil {
		options = append(options, kgo.DialTLSConfig(d.tls))
	}
	ctx := lane.Patience(t)
	client, err := kgo.NewClient(options...)
	require.NoError(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(ctx, 1, 1, nil, topic)
	require.NoError(t, err)
	for range wanted {
		require.NoError(t, client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("hello")}).FirstErr())
	}
	for got := 0; got < wanted; {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		got += fetches.NumRecords()
	}
	require.NoError(t, client.CommitUncommittedOffsets(ctx))
	groups, err := admin.ListGroups(ctx)
	require.NoError(t, err)
	assert.Contains(t, groups.Groups(), topic)
}

func kafkaGoRound(t *testing.T, d door, topic string) {
	var mechanism kafkasasl.Mechanism
	var err error
	switch d.mechanism {
	case "PLAIN":
		mechanism = kafkaplain.Mechanism{Username: d.user, Password: d.secret}
	case "SCRAM-SHA-256":
		mechanism, err = kafkascram.Mechanism(kafkascram.SHA256, d.user, d.secret)
	case "SCRAM-SHA-512":
		mechanism, err = kafkascram.Mechanism(kafkascram.SHA512, d.user, d.secret)
	}
	require.NoError(t, err)
	ctx := lane.Patience(t)
	transport := &kafka.Transport{TLS: d.tls, SASL: mechanism}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(d.addr), Transport: transport, Timeout: time.Minute}
	created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}}})
	require.NoError(t, err)
	require.NoError(t, created.Errors[topic])
	w := &kafka.Writer{Addr: client.Addr, Transport: transport, Topic: topic, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll}
	defer w.Close()
	for range wanted {
		require.NoError(t, w.WriteMessages(ctx, kafka.Message{Value: []byte("hello")}))
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{d.addr}, GroupID: topic, Topic: topic, MaxWait: 100 * time.Millisecond,
		Dialer: &kafka.Dialer{Timeout: time.Minute, TLS: d.tls, SASLMechanism: mechanism}})
	defer r.Close()
	for range wanted {
		_, err := r.ReadMessage(ctx)
		require.NoError(t, err)
	}
	groups, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	require.NoError(t, err)
	assert.True(t, slices.ContainsFunc(groups.Groups, func(g kafka.ListGroupsResponseGroup) bool { return g.GroupID == topic }))
}

// pythonRound has the same done by a library for Python.
func pythonRound(module string) func(*testing.T, door, string) {
	return func(t *testing.T, d door, topic string) {
		python := lane.Program(t, "python3")
		lane.Need(t, exec.Command(python, "-c", "import "+module).Run() == nil, "Python's package "+module)
		ctx, cancel := context.WithTimeout(lane.Patience(t), patienceOfPrograms)
		defer cancel()
		cmd := exec.CommandContext(ctx, python, "testdata/round.py", module, d.addr, topic, d.mechanism)
		cmd.Env = append(os.Environ(), "ROUND_USER="+d.user, "ROUND_SECRET="+d.secret)
		if d.tls != nil {
			cmd.Env = append(cmd.Env, "ROUND_CA=testdata/ca.pem", "ROUND_CERTIFICATE=testdata/client.pem", "ROUND_KEY=testdata/client-key.pem")
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}
