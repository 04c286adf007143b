package security

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
	"barnabas/zkstate/zktest"
)

// aToken is how every token begins.
const aToken = "eyJ"

// byUnsignedToken is a client that makes its own token.
func byUnsignedToken(user string) map[string]string {
	return map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": jaas(bearerModule, `unsecuredLoginStringClaim_sub="`+user+`"`, `unsecuredLoginExtension_traceId="1"`)}
}

// byIssuedToken is a client that has its token issued.
func byIssuedToken(p provider, secret string) map[string]string {
	return map[string]string{
		"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.login.callback.handler.class": bearerPackage + "OAuthBearerLoginCallbackHandler",
		"sasl.oauthbearer.token.endpoint.url": p.url + "/token", "sasl.jaas.config": jaas(bearerModule, `clientId="app"`, `clientSecret="`+secret+`"`, `scope="read write"`),
	}
}

// byTokenInFile is a client that finds its token in a file.
func byTokenInFile(t *testing.T) map[string]string {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(signingKeys()["p256"].sign(t, jose.ES256, claimsOf("file", nil))), 0o600))
	set := byIssuedToken(provider{}, "")
	set["sasl.oauthbearer.token.endpoint.url"] = "file://" + file
	return set
}

// ownToolsByTokens are ours, at whichever broker.
func ownToolsByTokens(t *testing.T, b broker, p provider) {
	for _, c := range []struct {
		name, listener string
		settings       map[string]string
	}{{"unsigned", "UNSIGNED", byUnsignedToken("alice")}, {"issued", "SIGNED", byIssuedToken(p, appSecret)}, {"issued for short sessions", "SHORT", byIssuedToken(p, appSecret)}, {"in a file", "SIGNED", byTokenInFile(t)}} {
		t.Run("our own tools, "+c.name, func(t *testing.T) {
			t.Parallel()
			set, topic, bin := write(t, c.settings), strings.ReplaceAll("own-"+c.name, " ", "-"), cluster.Binary(t)
			out := run(t, "hello\n", bin, "kafka-console-producer", "--bootstrap-server", b.addrs[c.listener], "--topic", topic, "--producer.config", set)
			require.Empty(t, out)
			out = run(t, "", bin, "kafka-console-consumer", "--bootstrap-server", b.addrs[c.listener], "--topic", topic, "--consumer.config", set, "--from-beginning", "--max-messages", "1", "--timeout-ms", "120000")
			assert.Contains(t, out, "hello")
		})
	}
	for name, c := range map[string]struct{ settings, want string }{
		"a wrong secret":  {write(t, byIssuedToken(p, "guess")), "invalid_client"},
		"a token refused": {write(t, byUnsignedToken("alice")), "invalid_token"},
	} {
		t.Run("our own tools tell at once of "+name, func(t *testing.T) {
			t.Parallel()
			out, err := tryToRun(t, "", cluster.Binary(t), "kafka-topics", "--bootstrap-server", b.addrs["SIGNED"], "--list", "--command-config", c.settings)
			assert.Error(t, err)
			assert.Contains(t, out, c.want)
			assert.NotContains(t, out, "guess")
		})
	}
}

func TestEveryClientComesInByItsToken(t *testing.T) {
	p := startProvider(t)
	b := startBearers(t, cluster.Barnabas, p)
	t.Run("clients", func(t *testing.T) {
		for _, c := range []struct {
			name, version, listener string
			settings                map[string]string
			always                  bool
		}{
			{"issued", "3.9.1", "SIGNED", byIssuedToken(p, appSecret), true}, {"unsigned", "2.8.2", "UNSIGNED", byUnsignedToken("alice"), true},
			{"unsigned", "3.9.1", "UNSIGNED", byUnsignedToken("alice"), false}, {"in a file", "3.9.1", "SIGNED", byTokenInFile(t), false},
		} {
			if !c.always && !long() {
				continue
			}
			t.Run("console "+c.version+" "+c.name, func(t *testing.T) {
				t.Parallel()
				set, topic := write(t, c.settings), strings.ReplaceAll("console-"+c.version+"-"+c.name, " ", "-")
				java(t, c.version, "hello\n", "kafka.tools.ConsoleProducer", "--bootstrap-server", b.addrs[c.listener], "--topic", topic, "--producer.config", set)
				consumer := "kafka.tools.ConsoleConsumer"
				if c.version == "3.9.1" {
					consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
				}
				assert.Contains(t, java(t, c.version, "", consumer, "--bootstrap-server", b.addrs[c.listener], "--topic", topic, "--consumer.config", set, "--from-beginning", "--max-messages", "1", "--timeout-ms", "120000"), "hello")
			})
		}
		libraries := map[string]func(*testing.T, door, string){"franz-go": franzRound, "sarama": ibmRound, "old sarama": shopifyRound, "confluent-kafka": pythonRound("confluent_kafka"), "kafka-python": pythonRound("kafka")}
		for name, round := range libraries {
			if name == "kafka-python" && !long() {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				token := signingKeys()["rsa"].sign(t, jose.RS256, claimsOf("app", nil))
				round(t, door{addr: b.addrs["SIGNED"], mechanism: "OAUTHBEARER", user: "app", secret: token}, "bearer-"+strings.ReplaceAll(name, " ", "-"))
			})
		}
		t.Run("a new token for each session", func(t *testing.T) {
			t.Parallel()
			newTokenForEachSession(t, b)
		})
	})
	log := b.Brokers[0].LogTail(1 << 20)
	assert.NotContains(t, log, appSecret)
	assert.NotContains(t, log, aToken)
	assert.Contains(t, log, "NOBODY HAS SIGNED")
}

// newTokenForEachSession goes on for some sessions, by tokens that last for a few seconds.
func newTokenForEachSession(t *testing.T, b broker) {
	var mu sync.Mutex
	shown := 0
	token := func(context.Context) (oauth.Auth, error) {
		mu.Lock()
		defer mu.Unlock()
		shown++
		return oauth.Auth{Token: signingKeys()["p256"].sign(t, jose.ES256, claimsOf("app", map[string]any{"exp": time.Now().Unix() + reauthMs/1000}))}, nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs["SIGNED"]), kgo.SASL(oauth.Oauth(token)), kgo.DefaultProduceTopic("sessions"), kgo.AllowAutoTopicCreation(), kgo.AlwaysRetryEOF(),
		kgo.RecordDeliveryTimeout(patienceOfPrograms))
	require.NoError(t, err)
	defer client.Close()
	tokens := func() int {
		mu.Lock()
		defer mu.Unlock()
		return shown
	}
	require.NoError(t, client.ProduceSync(lane.Patience(t), kgo.StringRecord("x")).FirstErr())
	first := tokens()
	for ctx := lane.Patience(t); tokens() < first+2; {
		require.NoError(t, client.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr())
		time.Sleep(50 * time.Millisecond) // the pace of a client that has little to say
	}
}

// Brokers of both kinds show each other tokens that soon end, and two of them are killed and come back as the other kind.
func TestBrokersShowEachOtherTokens(t *testing.T) {
	p := startProvider(t)
	m := startMixed(t, zktest.Embedded(t).Addr(), with(map[string]string{
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_PLAINTEXT",
		"sasl.enabled.mechanisms":        "OAUTHBEARER", "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
	}, onListener("brokers", map[string]string{
		"oauthbearer.sasl.jaas.config":                   jaas(bearerModule, `clientId="broker"`, `clientSecret="`+appSecret+`"`),
		"oauthbearer.sasl.login.callback.handler.class":  bearerPackage + "OAuthBearerLoginCallbackHandler",
		"oauthbearer.sasl.server.callback.handler.class": bearerPackage + "OAuthBearerValidatorCallbackHandler",
		"sasl.oauthbearer.token.endpoint.url":            p.url + "/token",
		"sasl.oauthbearer.jwks.endpoint.url":             p.url + "/keys",
		"sasl.oauthbearer.expected.audience":             "kafka",
		"sasl.oauthbearer.expected.issuer":               bearerIssuer,
	})))
	began := time.Now()
	m.write(t)
	for i, to := range []cluster.Program{cluster.Barnabas, cluster.Kafka("3.9.1")} { // the controller goes first
		m.Brokers[i].Kill(t)
		m.comesBack(t, m.Brokers[i], to)
	}
	time.Sleep(tokensLast - time.Since(began)) // time itself is what ends tokens
	m.write(t)                                 // by tokens that were renewed
	m.holdsAll(t, appSecret, aToken)
}
