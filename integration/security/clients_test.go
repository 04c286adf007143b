package security

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"barnabas/integration/cluster"
	"barnabas/integration/lane"
)

func byPlain(protocol string) map[string]string {
	return map[string]string{"security.protocol": protocol, "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas(plainModule, `username="alice"`, `password="alice-secret"`)}
}

func byScram(mechanism string) map[string]string {
	return map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas(scramModule, `username="carol"`, `password="carol-secret"`)}
}

func byCertificate(t testing.TB, kind string) map[string]string {
	return with(stores(t, "client", kind), map[string]string{"security.protocol": "SSL"})
}

// long is set for every console and every library with every listener.
func long() bool { return os.Getenv("BARNABAS_LONG") != "" }

func TestEveryClientComesInByWhatItProves(t *testing.T) {
	b := start(t, cluster.Barnabas)
	t.Run("clients", func(t *testing.T) {
		t.Run("consoles", func(t *testing.T) { consoles(t, b) })
		t.Run("our own tools", func(t *testing.T) { ownTools(t, b) })
		t.Run("kcat", func(t *testing.T) { kcat(t, b) })
		t.Run("libraries", func(t *testing.T) { rounds(t, b) })
		t.Run("bare tokens", func(t *testing.T) { bareTokens(t, b) })
		t.Run("authenticating again", func(t *testing.T) { again(t, b) })
		t.Run("a password that changes", func(t *testing.T) { changedPassword(t, b) })
	})
	assert.NotContains(t, b.Brokers[0].LogTail(1<<20), "-secret")
}

// consoles are those of two releases of Apache Kafka.
func consoles(t *testing.T, b broker) {
	t.Parallel()
	trust := map[string]string{"ssl.truststore.location": testdata(t, "trust.jks"), "ssl.truststore.password": password}
	for _, c := range []struct {
		version, listener string
		settings          map[string]string
		always            bool
	}{
		{"3.9.1", "SSL", byCertificate(t, "JKS"), true}, {"2.8.2", "SSL", byCertificate(t, "PKCS12"), true},
		{"3.9.1", "SASL_SSL", with(byScram("SCRAM-SHA-512"), trust), true}, {"2.8.2", "SASL_PLAINTEXT", byPlain("SASL_PLAINTEXT"), true},
		{"2.8.2", "SSL", byCertificate(t, "JKS"), false}, {"3.9.1", "SSL", byCertificate(t, "PKCS12"), false},
		{"2.8.2", "SASL_SSL", with(byScram("SCRAM-SHA-512"), trust), false}, {"3.9.1", "SASL_PLAINTEXT", byPlain("SASL_PLAINTEXT"), false},
	} {
		if !c.always && !long() {
			continue
		}
		t.Run(c.version+" "+c.listener+" "+c.settings["ssl.keystore.type"], func(t *testing.T) {
			file, topic := write(t, c.settings), strings.ReplaceAll(strings.ToLower("console-"+c.version+c.listener+c.settings["ssl.keystore.type"]), "_", "-")
			java(t, c.version, "hello\n", "kafka.tools.ConsoleProducer", "--bootstrap-server", b.addrs[c.listener], "--topic", topic, "--producer.config", file)
			consumer, groups := "kafka.tools.ConsoleConsumer", "kafka.admin.ConsumerGroupCommand"
			if c.version == "3.9.1" {
				consumer, groups = "org.apache.kafka.tools.consumer.ConsoleConsumer", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
			}
			out := java(t, c.version, "", consumer, "--bootstrap-server", b.addrs[c.listener], "--topic", topic, "--consumer.config", file, "--from-beginning", "--max-messages", "1", "--timeout-ms", "120000", "--group", topic)
			assert.Contains(t, out, "hello")
			if long() {
				assert.Contains(t, java(t, c.version, "", groups, "--bootstrap-server", b.addrs[c.listener], "--command-config", file, "--list"), topic)
			}
		})
	}
}

func ownTools(t *testing.T, b broker) {
	trust := map[string]string{"ssl.truststore.type": "PEM", "ssl.truststore.location": testdata(t, "ca.pem")}
	for _, c := range []struct {
		name, listener string
		settings       map[string]string
	}{
		{"JKS", "SSL", byCertificate(t, "JKS")}, {"PKCS12", "SSL", byCertificate(t, "PKCS12")}, {"PEM", "PEM", byCertificate(t, "PEM")},
		{"PLAIN", "SASL_PLAINTEXT", byPlain("SASL_PLAINTEXT")}, {"SCRAM-SHA-256", "SASL_SSL", with(byScram("SCRAM-SHA-256"), trust)}, {"SCRAM-SHA-512", "SASL_SSL", with(byScram("SCRAM-SHA-512"), trust)},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, topic, bin := write(t, c.settings), strings.ToLower("own-"+c.name), cluster.Binary(t)
			run(t, "hello\n", bin, "kafka-console-producer", "--bootstrap-server", b.addrs[c.listener], "--topic", topic, "--producer.config", file)
			out := run(t, "", bin, "kafka-console-consumer", "--bootstrap-server", b.addrs[c.listener], "--topic", topic, "--consumer.config", file, "--from-beginning", "--max-messages", "1", "--timeout-ms", "120000")
			assert.Contains(t, out, "hello")
			out = run(t, "", bin, "kafka-topics", "--bootstrap-server", b.addrs[c.listener], "--list", "--command-config", file)
			assert.Contains(t, out, topic)
		})
	}
	t.Run("a wrong password is told at once", func(t *testing.T) {
		set := byPlain("SASL_PLAINTEXT")
		set["sasl.jaas.config"] = strings.ReplaceAll(set["sasl.jaas.config"], "alice-secret", "guess")
		out, err := tryToRun(t, "", cluster.Binary(t), "kafka-topics", "--bootstrap-server", b.addrs["SASL_PLAINTEXT"], "--list", "--command-config", write(t, set))
		assert.Error(t, err)
		assert.Contains(t, out, "Authentication failed: Invalid username or password")
	})
	t.Run("a broker that nobody vouches for", func(t *testing.T) {
		out, err := tryToRun(t, "", cluster.Binary(t), "kafka-topics", "--bootstrap-server", b.addrs["SASL_SSL"], "--list", "--command-config", write(t, byScram("SCRAM-SHA-256")))
		assert.Error(t, err)
		assert.Contains(t, out, "certificate signed by unknown authority")
	})
}

// kcat stands for librdkafka.
func kcat(t *testing.T, b broker) {
	t.Parallel()
	lane.Program(t, "kcat")
	ca := "ssl.ca.location=" + testdata(t, "ca.pem")
	own := []string{"security.protocol=SSL", ca, "ssl.keystore.location=" + testdata(t, "client.p12"), "ssl.keystore.password=" + password}
	for _, c := range []struct {
		name, listener string
		settings       []string
	}{
		{"SSL", "SSL", own}, {"PEM", "PEM", []string{"security.protocol=SSL", ca, "ssl.certificate.location=" + testdata(t, "client.pem"), "ssl.key.location=" + testdata(t, "client-key.pem")}},
		{"PLAIN", "SASL_SSL", []string{"security.protocol=SASL_SSL", ca, "sasl.mechanism=PLAIN", "sasl.username=alice", "sasl.password=alice-secret"}},
		{"SCRAM-SHA-256", "SASL_SSL", []string{"security.protocol=SASL_SSL", ca, "sasl.mechanism=SCRAM-SHA-256", "sasl.username=carol", "sasl.password=carol-secret"}},
		{"SCRAM-SHA-512", "SASL_PLAINTEXT", []string{"security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-512", "sasl.username=carol", "sasl.password=carol-secret"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"-b", b.addrs[c.listener], "-t", strings.ToLower("kcat-" + c.name), "-X", "allow.auto.create.topics=true"}
			for _, setting := range c.settings {
				args = append(args, "-X", setting)
			}
			big := strings.Repeat("x", 200_000) // takes many records of TLS
			run(t, "hello\n"+big+"\n", "kcat", append([]string{"-P"}, args...)...)
			out := run(t, "", "kcat", append([]string{"-C", "-e", "-q"}, args...)...)
			assert.Contains(t, out, "hello\n"+big+"\n")
		})
	}
}

// bareTokens is PLAIN as sarama does it when it is told to skip ApiVersions: the tokens have no requests around them.
func bareTokens(t *testing.T, b broker) {
	t.Parallel()
	cfg := sarama.NewConfig()
	cfg.Version, cfg.Producer.Return.Successes, cfg.ApiVersionsRequest = sarama.V2_8_0_0, true, false
	cfg.Net.SASL.Enable, cfg.Net.SASL.Mechanism, cfg.Net.SASL.Version = true, sarama.SASLTypePlaintext, sarama.SASLHandshakeV0
	cfg.Net.SASL.User, cfg.Net.SASL.Password, cfg.Net.SASL.Handshake = "alice", "alice-secret", true
	cfg.Metadata.Retry.Max = madeMeanwhile
	p, err := sarama.NewSyncProducer([]string{b.addrs["SASL_PLAINTEXT"]}, cfg)
	require.NoError(t, err)
	defer p.Close()
	_, offset, err := p.SendMessage(&sarama.ProducerMessage{Topic: "bare-tokens", Value: sarama.StringEncoder("hello")})
	require.NoError(t, err)
	assert.Zero(t, offset)
}

// again keeps a connection for longer than the session lasts.
func again(t *testing.T, b broker) {
	t.Parallel()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addrs["SHORT"]), kgo.SASL(plain.Auth{User: "alice", Pass: "alice-secret"}.AsMechanism()), kgo.DefaultProduceTopic("again"), kgo.AllowAutoTopicCreation(),
		kgo.RecordDeliveryTimeout(patienceOfPrograms), kgo.AlwaysRetryEOF()) // a session may be over before its first request, if the machine is held up
	require.NoError(t, err)
	defer client.Close()
	for until := time.Now().Add(reauthMs * 3 / 2 * time.Millisecond); time.Now().Before(until); {
		require.NoError(t, client.ProduceSync(lane.Patience(t), kgo.StringRecord("x")).FirstErr())
		time.Sleep(50 * time.Millisecond) // the pace of a client that has little to say
	}
}

// changedPassword is taken over by a broker that runs.
func changedPassword(t *testing.T, b broker) {
	t.Parallel()
	lane.Program(t, "kcat")
	for i := range 2 {
		secret := fmt.Sprintf("secret-%d", i)
		addCredential(t, b.ZooKeeper, "dave", secret)
		ctx, cancel := context.WithTimeout(context.Background(), patienceOfPrograms)
		defer cancel()
		for {
			out, err := tryToRun(t, "", "kcat", "-L", "-m", "2", "-b", b.addrs["SASL_PLAINTEXT"], "-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=SCRAM-SHA-256", "-X", "sasl.username=dave", "-X", "sasl.password="+secret)
			if err == nil {
				break
			}
			require.NoError(t, ctx.Err(), out)
		}
	}
}
